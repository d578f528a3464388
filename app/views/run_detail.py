"""The run of one sequence, zoomed: groups, tail, holes, frontier and the private ghost.

What it keeps, and what pointer and keys do; how it is painted is in `run_paint`.
"""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QRectF, QSize, Qt, QTimer, Signal
from PySide6.QtGui import (
    QHelpEvent,
    QKeyEvent,
    QMouseEvent,
    QResizeEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QToolTip, QWidget

from app import theme
from app.models import sequences as model
from app.models import track_text
from app.models.axis import Axis
from app.models.marks import Mark, Span
from app.models.sequences import Kind, Track
from app.views.run_paint import RunPainting

FLASH_MS = 150


class RunDetail(RunPainting):
    """Pan, zoom, select and read the run of one sequence."""

    picked = Signal(int, int)
    """Half-open range that the user selected."""
    pointed = Signal(int)
    """Position under the pointer; -1 when it left."""
    view_changed = Signal(float, float)
    """First and last position in view."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("run.detail", parent)
        self.setAccessibleName(self.tr("Run detail"))
        self.setAccessibleDescription(
            self.tr("Arrow keys move by a position, with Ctrl by a group, Page keys by a screen")
        )
        self.axis = Axis()
        self.track: Track | None = None
        self.following = True
        self.only: Kind | None = None
        self.words: Callable[[int], str] = self.plain_words
        self._selected: tuple[int, int] | None = None
        self._cursor: int | None = None
        self._anchor: int | None = None
        self._drag: tuple[float, float, bool] | None = None
        self._flash: tuple[int, int] | None = None
        self._bar: QRectF | None = None
        self._marks: tuple[Mark, ...] = ()
        self._flash_timer = QTimer(self)
        self._flash_timer.setSingleShot(True)
        self._flash_timer.timeout.connect(self._end_flash)
        self.n_paints = 0

    def sizeHint(self) -> QSize:
        return QSize(800, 150)

    def minimumSizeHint(self) -> QSize:
        return QSize(240, 64 + 2 * self.fontMetrics().height())

    # what is shown ---------------------------------------------------------------------------

    def set_track(self, track: Track | None) -> None:
        """Show another state; new positions flash once where motion is wanted."""
        old, self.track = self.track, track
        self._flash = None
        if track is not None:
            same = old is not None and old.seq == track.seq and old.label == track.label
            if not same:
                self.following = True
            elif old is not None and None not in (old.frontier, track.frontier):
                grown = int(track.frontier or 0) - int(old.frontier or 0)
                if grown > 0 and old.anchor <= track.anchor and not theme.reduced_motion():
                    self._flash = (int(old.frontier or 0) + 1, int(track.frontier or 0) + 1)
                    self._flash_timer.start(FLASH_MS)
            self._fit_axis(track)
        self.update()

    def _fit_axis(self, track: Track) -> None:
        """Take over the ends of a track, with room for the frontier's mark behind them."""
        self.axis.lo = track.lo
        self.axis.hi = track.hi + max(2, (track.hi - track.lo) // 50)
        self.axis.width = max(1, self.width())
        if self.following:
            self.axis.follow()
        else:
            self.axis.clamp()
        self.view_changed.emit(self.axis.x0, self.axis.x1)

    def _end_flash(self) -> None:
        self._flash = None
        self.update()

    def set_selected(self, selected: tuple[int, int] | None, reveal: bool) -> None:
        """Outline a range of positions; `reveal` scrolls where it is off screen."""
        if selected == self._selected:
            return
        self._selected = selected
        if selected is not None:
            if self._cursor is None or not selected[0] <= self._cursor < selected[1]:
                self._cursor = selected[0]
            if reveal and not self.axis.x0 <= selected[0] < self.axis.x1 - 1:
                self.following = False
                self.axis.reveal(*selected)
                self.view_changed.emit(self.axis.x0, self.axis.x1)
        self.tell_value()
        self.update()

    def set_marks(self, marks: tuple[Mark, ...]) -> None:
        """Show the bookmarks and notes of the run, in order."""
        if marks != self._marks:
            self._marks = marks
            self.update()

    def marks_at(self, first: int, stop: int) -> str:
        """The bookmarks and notes on some positions in words; empty where there are none."""
        spans = [(m.words, m.place) for m in self._marks if isinstance(m.place, Span)]
        return ", ".join(w for w, place in spans if place.start < stop and place.stop > first)

    def set_filter(self, only: Kind | None) -> None:
        """Fade every kind but one; None shows all."""
        self.only = only
        self.update()

    def show_range(self, start: float, stop: float) -> None:
        """Show a part of the axis."""
        self.following = False
        self.axis.fit(start, stop)
        self._moved()

    def _moved(self) -> None:
        self.view_changed.emit(self.axis.x0, self.axis.x1)
        self.update()

    # actions ---------------------------------------------------------------------------------

    def zoom(self, factor: float) -> None:
        self.following = False
        at = None
        if self._cursor is not None and self.axis.x0 <= self._cursor < self.axis.x1:
            at = self.axis.to_pixel(self._cursor + 0.5)
        self.axis.zoom(factor, at)
        self._moved()

    def fit_all(self) -> None:
        self.following = False
        self.axis.fit(self.axis.lo, self.axis.hi)
        self._moved()

    def fit_selection(self) -> None:
        if self._selected is not None:
            self.following = False
            self.axis.fit(*self._selected, margin=0.2)
            self._moved()

    def pan(self, screens: float) -> None:
        self.following = False
        self.axis.pan(screens * self.axis.width)
        self._moved()

    def follow_frontier(self) -> None:
        """Keep the newest positions in view from now on."""
        self.following = True
        if self.track is not None:
            self._fit_axis(self.track)
        self.update()

    def select_position(self, position: int, extend: bool = False) -> None:
        """Move the cursor; `extend` keeps the other end of the range."""
        track = self.track
        if track is None:
            return
        position = max(track.lo, min(position, max(track.lo, track.hi - 1)))
        if not extend or self._anchor is None:
            self._anchor = position if not extend or self._cursor is None else self._cursor
        self._cursor = position
        low, high = sorted((self._anchor, position))
        chosen = (low, high + 1)
        if not self.axis.x0 <= position < self.axis.x1 - 1:
            self.following = False
            self.axis.reveal(position, position + 1)
            self.view_changed.emit(self.axis.x0, self.axis.x1)
        self._selected = chosen
        self.tell_value()
        self.update()
        self.picked.emit(*chosen)

    # reading ---------------------------------------------------------------------------------

    def plain_words(self, position: int) -> str:
        """Position, kind and group in words."""
        track = self.track
        if track is None:
            return ""
        text = f"position {position:,}, {model.WORD_OF[model.kind_at(track, position)]}"
        group = model.group_at(track, position)
        if group is None:
            return text
        word = "broken group" if model.is_broken(track, group) else "group"
        return f"{text}, {word} {group:,}"

    def accessible_value(self) -> str:
        if self.track is None:
            return self.tr("no run")
        if self._selected is None:
            return track_text.summary(self.track)
        start, stop = self._selected
        if stop - start == 1:
            return self.words(start)
        return f"positions {start:,} to {stop - 1:,}"

    def as_text(self) -> str:
        if self.track is None:
            return ""
        return track_text.as_text(self.track, *(self._selected or (None, None)))

    def pointer_words(self, pixel: float) -> str:
        """What is under a pixel: one position in full, or how many of each kind."""
        track = self.track
        if track is None:
            return ""
        first = self.axis.to_position(pixel)
        stop = max(first + 1, self.axis.to_position(pixel + 1))
        if stop - first == 1:
            return self.words(first)
        kinds = ", ".join(
            f"{n:,} {model.WORD_OF[kind]}" for kind, n in model.counts_in(track, first, stop)
        )
        text = f"positions {first:,} to {stop - 1:,}: {kinds or 'outside the run'}"
        return ", ".join(filter(None, (text, self.marks_at(first, stop))))

    # mouse and keyboard ----------------------------------------------------------------------

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            QToolTip.showText(event.globalPos(), self.pointer_words(event.pos().x()), self)
            return True
        return super().event(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        if self.track is not None:
            self._fit_axis(self.track)
        super().resizeEvent(event)

    def wheelEvent(self, event: QWheelEvent) -> None:
        self.following = False
        delta = event.angleDelta()
        if event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            self.axis.zoom(1.2 ** (delta.y() / 120), event.position().x())
        else:
            self.axis.pan(-(delta.x() or delta.y()) / 120 * 80)
        self._moved()
        event.accept()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton:
            selecting = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
            self._drag = (event.position().x(), self.axis.x0, selecting)
            if selecting:
                self._anchor = self._cursor = None
                self.select_position(self.axis.to_position(event.position().x()))

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        x = event.position().x()
        if self._drag is None:
            self.pointed.emit(self.axis.to_position(x))
            return
        start, x0, selecting = self._drag
        if selecting:
            self.select_position(self.axis.to_position(x), extend=True)
        elif abs(x - start) >= 3:
            self.following = False
            self.axis.x0 = x0 - (x - start) / self.axis.per_position
            self.axis.clamp()
            self.setCursor(Qt.CursorShape.ClosedHandCursor)
            self._moved()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if self._drag is not None and event.button() == Qt.MouseButton.LeftButton:
            start, _, selecting = self._drag
            if not selecting and abs(event.position().x() - start) < 3:
                self.select_position(self.axis.to_position(event.position().x()))
            self._drag = None
            self.unsetCursor()

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        if self.track is not None:
            found = model.segment_at(self.track, self.axis.to_position(event.position().x()))
            if found is not None:
                self.following = False
                self.axis.fit(*found, margin=0.5)
                self._moved()

    def leaveEvent(self, event: QEvent) -> None:
        self.pointed.emit(-1)
        super().leaveEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        track = self.track
        steps = {
            Qt.Key.Key_Left: -1,
            Qt.Key.Key_Right: 1,
            Qt.Key.Key_PageUp: -max(1, int(self.axis.span)),
            Qt.Key.Key_PageDown: max(1, int(self.axis.span)),
        }
        key = Qt.Key(event.key())
        if track is None or key not in (*steps, Qt.Key.Key_Home, Qt.Key.Key_End):
            super().keyPressEvent(event)
            return
        extend = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
        if key == Qt.Key.Key_Home:
            target = track.lo
        elif key == Qt.Key.Key_End:
            target = track.hi - 1
        elif self._cursor is None:
            newest = track.lo if track.frontier is None else track.frontier
            target = track.lo if steps[key] > 0 else newest
        else:
            grouped = event.modifiers() & Qt.KeyboardModifier.ControlModifier
            step = steps[key]
            target = self._cursor + (step * track.group_size if grouped and step**2 == 1 else step)
        self.select_position(target, extend)

    def focusInEvent(self, event) -> None:
        self.update()
        super().focusInEvent(event)

    def focusOutEvent(self, event) -> None:
        self.update()
        super().focusOutEvent(event)
