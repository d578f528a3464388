"""What all panels share: one state to show, redrawn when it is looked at, and jumps to others.

A panel sets `title`, builds its widgets in `build`, and fills them in `rebuild`. Changes mark it
stale; it is rebuilt at most every `INTERVAL_MS`, and not at all while nobody can see it.
"""

from __future__ import annotations

import itertools
import time
from typing import TypeVar
from weakref import WeakKeyDictionary

from PySide6.QtCore import QEvent, QObject, QRectF, Qt, QTimer, Slot
from PySide6.QtGui import QPainter
from PySide6.QtWidgets import (
    QAbstractItemView,
    QAbstractScrollArea,
    QDockWidget,
    QHBoxLayout,
    QLabel,
    QLayout,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from app import glyphs, theme
from app.models.journal import Journal
from app.models.state import State, state_of
from app.models.table import Jump

INTERVAL_MS = 50
SLOWEST_MS = 1000
SHARE = 12
"""A panel waits this many times as long as its last redraw took: it takes 1/12 of the window's
time at most, however fast chunks run."""
STEP = 4_000
"""Records that are read in one go."""
_JOURNALS: WeakKeyDictionary[QObject, Journal] = WeakKeyDictionary()
_DELAYS = itertools.cycle(range(0, 50, 9))
"""Panels redraw one after the other, so that no turn of the event loop holds all of them."""
PLACES = ("start", "stop", "cell", "group")


class Panel(QWidget):
    """A QWidget with `client` and `hub`; see the module."""

    title = ""

    def __init__(self, client, hub, parent=None) -> None:
        super().__init__(parent)
        self.client, self.hub = client, hub
        self.setAccessibleName(self.title)
        self._stale = True
        self._interval = INTERVAL_MS
        self._delay = next(_DELAYS)
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.timeout.connect(self.look_again)
        self.box = QVBoxLayout(self)
        self.box.setContentsMargins(8, 8, 8, 8)
        self.box.setSpacing(8)
        self.build()
        name_all(self)
        client.shown_changed.connect(self._shown_changed)

    # for a panel to fill in -------------------------------------------------------------------

    def build(self) -> None:
        """Make the widgets, once."""

    def rebuild(self) -> None:
        """Fill the widgets from `state` and the hub's selection."""

    # when to redraw ---------------------------------------------------------------------------

    def state(self) -> State | None:
        """The one state that all panels show."""
        records = self.client.records
        newest = records[-1].number if records else None
        return state_of(self.client.snapshot, self.client.shown, newest)

    def refresh(self, *, prompt: bool = False) -> None:
        """Mark the panel stale; it is rebuilt soon if it can be seen.

        What the user did (`prompt`) does not wait as long as what the engine did.
        """
        self._stale = True
        if not self.can_be_seen():
            return
        wait = INTERVAL_MS if prompt else self._interval + self._delay
        if not self._timer.isActive() or self._timer.remainingTime() > wait:
            self._timer.start(wait)

    def can_be_seen(self) -> bool:
        """False while hidden or behind another tab, where Qt still calls a panel visible."""
        if not self.isVisible():
            return False
        return not self.property("docked") or not self.visibleRegion().isEmpty()

    @Slot()
    def look_again(self) -> None:
        """Redraw if stale and seen; the window calls it when a tab comes to the front."""
        if self.can_be_seen():
            self.flush()

    @Slot()
    def flush(self) -> None:
        """Rebuild now if stale (pictures and tests)."""
        if self._stale:
            self._stale = False
            began = time.perf_counter()
            self.rebuild()
            self.setAccessibleDescription(self.words())
            took_ms = int((time.perf_counter() - began) * 1000)
            self._interval = min(SLOWEST_MS, max(3 * INTERVAL_MS, SHARE * took_ms))

    def words(self) -> str:
        """The panel's state in a sentence, for screen readers and reports."""
        line = getattr(self, "line", None)
        return line.text() if isinstance(line, QLabel) else ""

    def showEvent(self, event) -> None:
        super().showEvent(event)
        if self.property("docked"):
            self._timer.start(self._interval)  # only then is it known which tab is in front
        else:
            self.flush()

    def changeEvent(self, event) -> None:
        super().changeEvent(event)
        if event.type() in (QEvent.Type.PaletteChange, QEvent.Type.FontChange):
            self.refresh()

    def grab(self, *args):
        """A picture of the panel as it is now, even when it was stale."""
        self.flush()
        return super().grab(*args)

    @Slot(object)
    def _shown_changed(self, record) -> None:
        self.refresh(prompt=True)

    # what the window calls --------------------------------------------------------------------

    def show_snapshot(self, snapshot) -> None:
        self.refresh()

    def show_selection(self, selection, origin) -> None:
        self.refresh(prompt=True)

    def journal(self) -> Journal:
        """The journal of the session, which all panels share; read on in steps when it is long."""
        journal = _JOURNALS.get(self.client)
        if journal is None or journal.records is not self.client.records:
            journal = _JOURNALS[self.client] = Journal.of(self.client.records)
        journal.catch_up(STEP)
        if journal.n_behind:
            self.refresh()
        return journal

    # leading elsewhere ------------------------------------------------------------------------

    def jump(self, jump: Jump | None) -> None:
        """Select what a row leads to, in every panel."""
        if jump is None:
            return
        fields = jump.changes()
        if any(name in fields for name in PLACES):
            fields = {**dict.fromkeys(PLACES), **fields}
        self.hub.change(self, **fields)

    def bring_up(self) -> None:
        """Show the dock that holds this panel, before the others of its stack."""
        parent = self.parentWidget()
        while parent is not None and not isinstance(parent, QDockWidget):
            parent = parent.parentWidget()
        if parent is not None:
            parent.show()
            parent.raise_()

    def send(self, command) -> int:
        """Ask the engine."""
        return int(self.client.send(command))


def label(text: str = "", name: str = "", *, second: bool = False, wrap: bool = False) -> QLabel:
    """A line of text; `second` in the second text colour."""
    widget = QLabel(text)
    _dress(widget, name or text, second, wrap)
    return widget


def _dress(widget: QLabel, name: str, second: bool, wrap: bool) -> None:
    widget.setAccessibleName(name)
    widget.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
    widget.setWordWrap(wrap)
    if wrap:
        widget.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
    if second:
        widget.setForegroundRole(widget.palette().ColorRole.PlaceholderText)


def paragraph(text: str = "", name: str = "", *, second: bool = False) -> QLabel:
    """Wrapped text that gets just the height that it needs at the width it has."""
    widget = label(text, name, second=second, wrap=True)
    policy = widget.sizePolicy()
    policy.setHeightForWidth(True)
    widget.setSizePolicy(policy)
    return widget


class WholeLabel(QLabel):
    """Wrapped text that is never cut: where a panel is too low, its scroll area gives way.

    All wrapped labels of a panel must be such, or those that give way are laid over the others.
    """

    def __init__(self, text: str, name: str, *, second: bool = False) -> None:
        super().__init__(text)
        _dress(self, name or text, second, wrap=True)

    def resizeEvent(self, event) -> None:
        """As wide as it is now, so high at least."""
        super().resizeEvent(event)
        self._keep_whole()

    def setText(self, text: str) -> None:
        """New text, new height."""
        super().setText(text)
        self._keep_whole()

    def _keep_whole(self) -> None:
        # the height that is needed is never below the minimum, so an old one must go first
        self.setMinimumHeight(0)
        self.setMinimumHeight(max(0, self.heightForWidth(self.width())))


def heading(text: str) -> QLabel:
    """A bold line over a part of a panel."""
    widget = label(text)
    font = widget.font()
    font.setBold(True)
    widget.setFont(font)
    return widget


def set_text(widget: QLabel, text: str, role: str = "") -> None:
    """Change a label, its accessible name and, where `role` is readable as text, its colour."""
    if widget.text() != text:
        widget.setText(text)
        widget.setAccessibleDescription(text)
    if role:
        palette = widget.palette()
        colour = theme.colour(role if role in ("text", "text2", "warning", "accent") else "text")
        palette.setColor(widget.foregroundRole(), colour)
        widget.setPalette(palette)


W = TypeVar("W", bound=QWidget)


def named(widget: W, name: str, tip: str = "") -> W:
    """Give a widget its accessible name and tooltip; returns it."""
    widget.setAccessibleName(name)
    if tip:
        widget.setToolTip(tip)
        widget.setStatusTip(tip)
    return widget


def name_all(root: QWidget) -> None:
    """Name what is still nameless: parts of tables and scroll areas, labels by their text."""
    for child in root.findChildren(QWidget):
        if child.accessibleName():
            continue
        text = child.text() if hasattr(child, "text") and callable(child.text) else ""
        owner = child.parentWidget()
        while owner is not None and not owner.accessibleName():
            owner = owner.parentWidget()
        of = owner.accessibleName() if owner is not None else root.accessibleName()
        child.setAccessibleName(text or f"{of}: {_part_word(child)}")


def _part_word(widget: QWidget) -> str:
    for kind, word in ((QAbstractItemView, "list"), (QAbstractScrollArea, "scroll area")):
        if isinstance(widget, kind):
            return word
    return widget.metaObject().className().removeprefix("Q").lower()


def row_of(*widgets: QWidget | None) -> QLayout:
    """Widgets in a line; None is a stretch."""
    line = QHBoxLayout()
    line.setSpacing(8)
    line.setContentsMargins(0, 0, 0, 0)
    for widget in widgets:
        if widget is None:
            line.addStretch(1)
        else:
            wraps = isinstance(widget, QLabel) and widget.wordWrap()
            line.addWidget(widget, 1 if wraps else 0)
    return line


class GlyphLabel(QWidget):
    """A glyph of 14 px in a line of text."""

    def __init__(self, parent=None) -> None:
        super().__init__(parent)
        self.look = ("", "")
        self.setFixedSize(16, 16)
        self.setAccessibleName("state")

    def show_glyph(self, glyph: str, role: str) -> None:
        """Change the shape; none hides the widget."""
        self.setVisible(bool(glyph))
        if (glyph, role) != self.look:
            self.look = (glyph, role)
            self.setAccessibleName(role or "state")
            self.update()

    def paintEvent(self, event) -> None:
        glyph, role = self.look
        if glyph:
            painter = QPainter(self)
            glyphs.paint(painter, QRectF(2, 2, 12, 12), glyph, theme.colour(role))
