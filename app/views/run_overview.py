"""Whole runs, one lane a sequence, on a common axis; a box shows what the detail shows."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QFontMetrics,
    QFontMetricsF,
    QHelpEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
)
from PySide6.QtWidgets import QToolTip, QWidget

from app import theme
from app.models import columns, track_text
from app.models import sequences as model
from app.models.axis import Axis, nice_step
from app.models.sequences import Kind, Track
from app.views import drawing

TICKS = 6
GAP = 3
MOST_LANES = 6
MOST_LABEL = 0.25
"""Share of the width that the names of the lanes may take; longer ones are cut."""
MOST_ITEMS = 400


class RunOverview(drawing.Drawing):
    """Every sequence at once; click moves the detail, Up and Down choose the sequence."""

    centred = Signal(float)
    """Position that the detail should have in its middle."""
    chosen = Signal(int)
    """Sequence that the user chose."""
    pointed = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("run.overview", parent)
        self.setAccessibleName(self.tr("Run overview"))
        self.setAccessibleDescription(
            self.tr("Up and Down choose the sequence, Left and Right move what the detail shows")
        )
        self.tracks: tuple[Track, ...] = ()
        self.seq = 0
        self.box: tuple[float, float] = (0, 0)
        self.only: Kind | None = None
        self._selected: tuple[int, int] | None = None
        self.n_paints = 0

    def sizeHint(self) -> QSize:
        return QSize(800, self._wanted_height())

    def minimumSizeHint(self) -> QSize:
        return QSize(240, self._wanted_height())

    @property
    def ruler(self) -> int:
        """Height of the ruler, with the text."""
        return max(16, QFontMetrics(theme.mono()).height() + 2)

    def _wanted_height(self) -> int:
        lanes = max(1, min(MOST_LANES, len(self.tracks)))
        one = max(25, self.fontMetrics().height() + TICKS + 4)
        return lanes * (34 if lanes == 1 else one) + self.ruler

    def set_tracks(self, tracks: tuple[Track, ...], seq: int) -> None:
        """Show another state; `seq` is the chosen sequence."""
        grown = min(MOST_LANES, len(tracks)) != min(MOST_LANES, len(self.tracks))
        self.tracks, self.seq = tracks, seq
        if grown:
            self.updateGeometry()
        self.update()

    def set_box(self, x0: float, x1: float) -> None:
        """Show which part of the axis the detail shows."""
        if (x0, x1) != self.box:
            self.box = (x0, x1)
            self.update()

    def set_selected(self, selected: tuple[int, int] | None) -> None:
        """Mark a range of positions of the chosen sequence."""
        self._selected = selected
        self.tell_value()
        self.update()

    def set_filter(self, only: Kind | None) -> None:
        """Fade every kind but one."""
        self.only = only
        self.update()

    # geometry --------------------------------------------------------------------------------

    def visible_tracks(self) -> tuple[Track, ...]:
        """At most `MOST_LANES` sequences round the chosen one."""
        at = next((n for n, t in enumerate(self.tracks) if t.seq == self.seq), 0)
        first = max(0, min(at - MOST_LANES // 2, len(self.tracks) - MOST_LANES))
        return self.tracks[first : first + MOST_LANES]

    def axis(self) -> Axis:
        """The common axis of all lanes."""
        tracks = self.visible_tracks()
        lo = min((t.lo for t in tracks), default=0)
        hi = max((t.hi for t in tracks), default=1)
        result = Axis(lo=lo, hi=max(hi, lo + 1), width=max(1, self.width()))
        result.per_position = max(1, result.width - self.gutter) / (result.hi - result.lo)
        result.x0 = lo - self.gutter / result.per_position
        return result

    @property
    def gutter(self) -> int:
        """Pixels at the left for the names of the lanes, so that they hide no position."""
        if len(self.tracks) < 2:
            return 0
        metrics = QFontMetrics(theme.mono())
        widest = max(metrics.horizontalAdvance(track.label) for track in self.visible_tracks())
        return min(widest + 14, int(self.width() * MOST_LABEL))

    def label_of(self, track: Track) -> str:
        """The name of a lane, cut where there is no room for it."""
        metrics = QFontMetrics(theme.mono())
        return metrics.elidedText(track.label, Qt.TextElideMode.ElideMiddle, self.gutter - 12)

    def lane_rect(self, n: int, n_lanes: int) -> QRectF:
        """Rectangle of lane n of n_lanes."""
        height = (self.height() - self.ruler) / max(1, n_lanes)
        return QRectF(0, n * height, self.width(), height - (GAP if n_lanes > 1 else 0))

    def track_at(self, y: float) -> Track | None:
        """The lane under a pixel."""
        tracks = self.visible_tracks()
        for n, track in enumerate(tracks):
            if self.lane_rect(n, len(tracks)).contains(QPointF(1, y)):
                return track
        return None

    # reading ---------------------------------------------------------------------------------

    def accessible_value(self) -> str:
        track = next((t for t in self.tracks if t.seq == self.seq), None)
        return self.tr("no run") if track is None else f"{track.label}: {track_text.summary(track)}"

    def as_text(self) -> str:
        return "\n\n".join(track_text.as_text(t) for t in self.tracks)

    def pointer_words(self, x: float, y: float) -> str:
        """Counts by kind in the column under the pointer."""
        track = self.track_at(y)
        if track is None:
            return ""
        if x < self.gutter:
            return f"{track.label}: {track_text.summary(track)}"
        axis = self.axis()
        first = axis.to_position(x)
        stop = max(first + 1, axis.to_position(x + 1))
        kinds = ", ".join(
            f"{n:,} {model.WORD_OF[kind]}" for kind, n in model.counts_in(track, first, stop)
        )
        where = f"{first:,}" if stop - first == 1 else f"{first:,} to {stop - 1:,}"
        return f"{track.label}, position {where}: {kinds or 'outside the run'}"

    # mouse and keyboard ----------------------------------------------------------------------

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            words = self.pointer_words(event.pos().x(), event.pos().y())
            QToolTip.showText(event.globalPos(), words, self)
            return True
        return super().event(event)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        track = self.track_at(event.position().y())
        if track is not None and track.seq != self.seq:
            self.chosen.emit(track.seq)
        if event.position().x() >= self.gutter:
            self.centred.emit(self.axis().to_position(event.position().x()) + 0.5)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        position = self.axis().to_position(max(event.position().x(), self.gutter))
        if event.buttons() & Qt.MouseButton.LeftButton:
            self.centred.emit(position + 0.5)
        else:
            self.pointed.emit(position if event.position().x() >= self.gutter else -1)

    def leaveEvent(self, event: QEvent) -> None:
        self.pointed.emit(-1)
        super().leaveEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key = event.key()
        if key in (Qt.Key.Key_Up, Qt.Key.Key_Down) and self.tracks:
            at = next((n for n, t in enumerate(self.tracks) if t.seq == self.seq), 0)
            at += 1 if key == Qt.Key.Key_Down else -1
            self.chosen.emit(self.tracks[max(0, min(at, len(self.tracks) - 1))].seq)
        elif key in (Qt.Key.Key_Left, Qt.Key.Key_Right):
            length = self.box[1] - self.box[0]
            step = length / 2 if key == Qt.Key.Key_Right else -length / 2
            self.centred.emit((self.box[0] + self.box[1]) / 2 + step)
        elif key in (Qt.Key.Key_Home, Qt.Key.Key_End):
            axis = self.axis()
            self.centred.emit(axis.lo if key == Qt.Key.Key_Home else axis.hi)
        else:
            super().keyPressEvent(event)

    def focusInEvent(self, event) -> None:
        self.update()
        super().focusInEvent(event)

    def focusOutEvent(self, event) -> None:
        self.update()
        super().focusOutEvent(event)

    # painting --------------------------------------------------------------------------------

    def paintEvent(self, event: QPaintEvent) -> None:
        self.n_paints += 1
        painter = QPainter(self)
        painter.fillRect(self.rect(), theme.colour("window"))
        tracks = self.visible_tracks()
        axis = self.axis()
        table = drawing.colour_table(self.only)
        for n, track in enumerate(tracks):
            self._draw_lane(painter, track, axis, self.lane_rect(n, len(tracks)), table)
        self._draw_ruler(painter, axis)
        self._draw_box(painter, axis, tracks)
        self.draw_focus(painter)
        painter.end()

    def _draw_lane(
        self, painter: QPainter, track: Track, axis: Axis, rect: QRectF, table: np.ndarray
    ) -> None:
        scale = self.devicePixelRatioF()
        width = max(1, round(self.width() * scale))
        usual, loud = columns.column_codes(track, axis.x0, axis.per_position * scale, width)
        body = QRectF(rect.left(), rect.top() + TICKS + 1, rect.width(), rect.height() - TICKS - 1)
        drawing.draw_row(painter, body, table[usual])
        ticks = np.where(loud > Kind.MIX, loud, Kind.OUTSIDE)
        ticks = table[drawing.widened(ticks, max(2, round(2 * scale)))]
        drawing.draw_row(painter, QRectF(0, rect.top(), rect.width(), TICKS), ticks)
        for start, stop, kind in model.visible_segments(track, track.lo, track.hi, 100):
            a, b = axis.to_pixel(start), axis.to_pixel(stop)
            if b - a < drawing.patterns_from() or self.only not in (None, kind):
                continue
            if kind is Kind.GROUP_A:
                drawing.draw_group_patterns(painter, body, track, axis, start, stop, MOST_ITEMS)
            else:
                where = QRectF(a, body.top(), b - a, body.height()).toRect()
                drawing.draw_pattern(painter, where, kind)
        if track.ghost is not None:
            a, b = (axis.to_pixel(p) for p in track.ghost)
            painter.setPen(drawing.dashed("private"))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRect(QRectF(a, body.top() + 1, max(3, b - a), body.height() - 2))
        if self.gutter:
            self._draw_label(painter, track, rect)

    def _draw_label(self, painter: QPainter, track: Track, lane: QRectF) -> None:
        """The lane's name beside it."""
        painter.setFont(theme.mono())
        chosen = track.seq == self.seq
        plate = QRectF(lane.left(), lane.top(), self.gutter - 4, lane.height())
        painter.fillRect(plate.adjusted(0, 0, 4, 0), theme.colour("window"))
        if chosen:
            painter.fillRect(plate, theme.colour("accent"))
        painter.setPen(theme.text_on("accent") if chosen else theme.colour("text"))
        middle = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft
        painter.drawText(plate.adjusted(4, 0, -2, 0), middle, self.label_of(track))

    def _draw_box(self, painter: QPainter, axis: Axis, tracks: tuple[Track, ...]) -> None:
        n = next((n for n, t in enumerate(tracks) if t.seq == self.seq), None)
        if n is None:
            return
        rect = self.lane_rect(n, len(tracks))
        if self._selected is not None:
            a, b = (axis.to_pixel(p) for p in self._selected)
            mark = QRectF(a, rect.top() + TICKS + 1, max(2.0, b - a), rect.height() - TICKS - 1)
            painter.fillRect(mark, theme.colour("accent"))
        a = max(float(self.gutter), axis.to_pixel(self.box[0]))
        b = min(float(self.width()), axis.to_pixel(self.box[1]))
        # round what is shown, not over it: a run may be as wide as the line
        left, right = max(1.0, a - 2), min(self.width() - 1.0, max(a + 6, b + 2))
        box = QRectF(left, rect.top() + 1, right - left, rect.height() - 2)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(QPen(theme.colour("base"), 4))
        painter.drawRect(box)
        painter.setPen(QPen(theme.colour("text"), 2))
        painter.drawRect(box)

    def _draw_ruler(self, painter: QPainter, axis: Axis) -> None:
        top = self.height() - self.ruler
        font = theme.mono()
        metrics = QFontMetricsF(font)
        painter.setFont(font)
        painter.setPen(theme.colour("text2"))
        step = nice_step(axis.per_position, metrics.horizontalAdvance(f"{int(axis.hi):,}") + 32)
        position = -(-int(axis.lo) // step) * step
        while position <= axis.hi:
            x = round(axis.to_pixel(position))
            text = f"{position:,}"
            if x + metrics.horizontalAdvance(text) + 4 <= self.width():
                painter.drawLine(QPointF(x, top), QPointF(x, top + 3))
                painter.drawText(QPointF(x + 3, top + metrics.ascent() + 1), text)
            position += step
