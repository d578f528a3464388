"""How the run of one sequence is painted; mixed into `RunDetail`.

Draws in screen space: one code a pixel column, looked up in a table of colours, stretched as an
image one pixel high. The cost depends on the width of the widget, not on the length of the run.
"""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import (
    QColor,
    QFontMetricsF,
    QPainter,
    QPaintEvent,
    QPen,
    QPolygonF,
)

from app import theme
from app.models import columns
from app.models import sequences as model
from app.models.axis import Axis, nice_step
from app.models.marks import Mark
from app.models.sequences import Kind, Track
from app.views import drawing
from app.views.mark_paint import draw_marks

TICK_LANE = 8
MOST_ITEMS = 400
LABELS_FROM = 6.0
"""Pixels a position from which labels, crosses and boxes are drawn."""
SEPARATORS_FROM = 4.0


class RunPainting(drawing.Drawing):
    """The painting half of `RunDetail`, on what the other half keeps."""

    axis: Axis
    track: Track | None
    only: Kind | None
    n_paints: int
    _selected: tuple[int, int] | None
    _flash: tuple[int, int] | None
    _bar: QRectF | None
    _marks: tuple[Mark, ...]

    @property
    def ruler(self) -> float:
        """Height of the ruler, with the text."""
        return max(18, QFontMetricsF(theme.mono()).height() + 4)

    @property
    def body(self) -> QRectF:
        """The lane of the groups."""
        top = TICK_LANE + 1
        return QRectF(0, top, self.width(), max(1, self.height() - top - self.ruler))

    def paintEvent(self, event: QPaintEvent) -> None:
        self.n_paints += 1
        self._bar = None
        painter = QPainter(self)
        painter.fillRect(self.rect(), theme.colour("base"))
        track = self.track
        if track is None or track.hi <= track.lo:
            self._draw_empty(painter)
        else:
            self._draw_lanes(painter, track)
            self._draw_items(painter, track)
            self._draw_marks(painter, track)
        self._draw_ruler(painter)
        self.draw_focus(painter)
        painter.end()

    def _draw_empty(self, painter: QPainter) -> None:
        painter.setPen(theme.colour("text2"))
        text = self.tr("This run holds no positions")
        painter.drawText(self.body, Qt.AlignmentFlag.AlignCenter, text)

    def _draw_lanes(self, painter: QPainter, track: Track) -> None:
        scale = self.devicePixelRatioF()
        width = max(1, round(self.width() * scale))
        per = self.axis.per_position * scale
        usual, loud = columns.column_codes(track, self.axis.x0, per, width)
        table = drawing.colour_table(self.only)
        row = table[usual]
        if per >= SEPARATORS_FROM * scale:
            row[columns.separator_columns(track, self.axis.x0, per, width)] = theme.rgb("base")
        drawing.draw_row(painter, self.body, row)
        ticks = np.where(loud > Kind.MIX, loud, Kind.OUTSIDE)
        ticks = table[drawing.widened(ticks, max(2, round(2 * scale)))]
        drawing.draw_row(painter, QRectF(0, 0, self.width(), TICK_LANE), ticks)

    def _draw_items(self, painter: QPainter, track: Track) -> None:
        """Patterns, crosses, boxes and group labels of the visible segments."""
        axis, body = self.axis, self.body
        first, stop = int(axis.x0), int(axis.x1) + 1
        left, least = MOST_ITEMS, drawing.patterns_from()
        for start, end, kind in model.visible_segments(track, first, stop, MOST_ITEMS):
            a, b = max(axis.to_pixel(start), -1.0), min(axis.to_pixel(end), self.width() + 1.0)
            if b - a < least or kind is Kind.OUTSIDE or self.only not in (None, kind):
                continue
            rect = QRectF(a, body.top(), b - a, body.height())
            if kind in (Kind.EVICTED, Kind.PADDING, Kind.FORGOTTEN):
                drawing.draw_pattern(painter, rect.toRect(), kind)
            elif kind is Kind.GROUP_A:
                self._draw_group_lines(painter, track, max(start, first), min(end, stop))
                left -= self._draw_group_labels(painter, track, max(start, first), min(end, stop))
            elif axis.per_position >= LABELS_FROM and stop - first <= MOST_ITEMS:
                for position in range(max(start, first), min(end, stop)):
                    self._draw_single(painter, position, kind)
            elif kind is Kind.HOLE:
                drawing.draw_hole(painter, rect)

    def _cell_rect(self, position: int) -> QRectF:
        left, right = self.axis.to_pixel(position), self.axis.to_pixel(position + 1)
        body = self.body
        return QRectF(round(left), body.top(), round(right) - round(left), body.height())

    def _draw_single(self, painter: QPainter, position: int, kind: Kind) -> None:
        rect = self._cell_rect(position)
        if kind is Kind.HOLE:
            drawing.draw_hole(painter, rect)
        else:
            painter.setPen(QPen(theme.colour("text"), 1))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRect(rect.adjusted(0.5, 0.5, -1.5, -1.5))

    def _draw_group_lines(self, painter: QPainter, track: Track, first: int, stop: int) -> None:
        """Patterns of groups, clear of the line of labels where the lane has room for both."""
        lane, top = self.body, QFontMetricsF(theme.mono()).height() + 6
        if lane.height() > 2 * top:
            lane = lane.adjusted(0, top, 0, 0)
        drawing.draw_group_patterns(painter, lane, track, self.axis, first, stop, MOST_ITEMS)

    def _draw_group_labels(self, painter: QPainter, track: Track, first: int, stop: int) -> int:
        wide = self.axis.per_position * track.group_size
        font = theme.mono()
        metrics = QFontMetricsF(font)
        last_group = (stop - 1 - track.anchor) // track.group_size
        first_group = max(0, (first - track.anchor) // track.group_size)
        label = f"g{last_group:,}"
        if metrics.horizontalAdvance(label) + 6 > wide or last_group - first_group > MOST_ITEMS:
            return 0
        painter.setFont(font)
        for group in range(first_group, last_group + 1):
            start, _ = model.group_range(track, group)
            pixel = self.axis.to_pixel(start)
            role = "group_b" if group % 2 else "group_a"
            painter.setPen(theme.text_on(role))
            painter.drawText(
                QPointF(pixel + 4, self.body.top() + metrics.ascent() + 4), f"g{group:,}"
            )
        return last_group - first_group + 1

    def _draw_marks(self, painter: QPainter, track: Track) -> None:
        """Ghost, refused attempt, flash, frontier, selection and bookmarks, above all else."""
        if track.ghost is not None:
            self._draw_box(painter, track.ghost, "private", self.tr("private"), True)
        for wanted in track.wanted:
            self._draw_box(painter, wanted, "hole", self.tr("refused"), True)
        if self._flash is not None:
            self._draw_box(painter, self._flash, "public", "", False)
        if track.frontier is not None:
            self._draw_frontier(painter, track.frontier)
        if self._selected is not None:
            a = max(self.axis.to_pixel(self._selected[0]), -4.0)
            b = min(self.axis.to_pixel(self._selected[1]), self.width() + 4.0)
            if b > a:
                self._draw_selected(painter, a, max(3.0, b - a))
        if self._marks:
            painter.setFont(self.font())
            draw_marks(painter, self.axis, self.body, self._marks, QFontMetricsF(self.font()))

    def _draw_selected(self, painter: QPainter, left: float, width: float) -> None:
        """Outline with a halo, and a bar on the ruler: seen over every fill."""
        rect = QRectF(left, 1, width, self.body.bottom() - 2)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(QPen(theme.colour("base"), 5))
        painter.drawRect(rect)
        painter.setPen(QPen(theme.colour("accent"), 2))
        painter.drawRect(rect)
        self._bar = QRectF(left, self.body.bottom(), width, 4)

    def _draw_box(
        self, painter: QPainter, where: tuple[int, int], role: str, text: str, is_dashed: bool
    ) -> None:
        a = max(self.axis.to_pixel(where[0]), -4.0)
        b = min(self.axis.to_pixel(where[1]), self.width() + 4.0)
        if b <= a:
            return
        rect = QRectF(a, self.body.top(), max(3.0, b - a), self.body.height()).adjusted(
            1, 1, -1, -1
        )
        fill = QColor(theme.colour(role))
        fill.setAlpha(40)
        painter.setBrush(fill)
        painter.setPen(drawing.dashed(role) if is_dashed else QPen(theme.colour(role), 2))
        painter.drawRect(rect)
        metrics = QFontMetricsF(self.font())
        if text and rect.width() > metrics.horizontalAdvance(text) + 8:
            painter.setFont(self.font())
            painter.setPen(theme.colour("text"))
            painter.drawText(rect.adjusted(4, 2, -4, -2), Qt.AlignmentFlag.AlignBottom, text)

    def _draw_frontier(self, painter: QPainter, frontier: int) -> None:
        x = round(self.axis.to_pixel(frontier + 1))
        if not -8 <= x <= self.width() + 8:
            return
        ink = theme.colour("text")
        painter.fillRect(QRectF(x - 1, 0, 2, self.body.bottom()), ink)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, True)
        painter.setBrush(ink)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.drawPolygon(QPolygonF([QPointF(x - 6, 0), QPointF(x + 6, 0), QPointF(x, 8)]))
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)

    def _draw_ruler(self, painter: QPainter) -> None:
        axis = self.axis
        top = self.body.bottom()
        painter.fillRect(QRectF(0, top, self.width(), self.ruler), theme.colour("window"))
        if self._bar is not None:
            painter.fillRect(self._bar, theme.colour("accent"))
        font = theme.mono()
        metrics = QFontMetricsF(font)
        painter.setFont(font)
        painter.setPen(theme.colour("text2"))
        widest = metrics.horizontalAdvance(f"{int(axis.x1):,}") + 24
        step = nice_step(axis.per_position, widest)
        position = int(axis.x0 // step) * step
        if position < axis.x0:
            position += step
        base = top + metrics.ascent() + 3
        while position <= axis.x1:
            x = round(axis.to_pixel(position))
            text = f"{position:,}"
            if x + metrics.horizontalAdvance(text) + 4 <= self.width():
                painter.drawLine(QPointF(x, top), QPointF(x, top + 4))
                painter.drawText(QPointF(x + 3, base), text)
            position += step
