"""The one selection of a window, told to all panels."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal, Slot

from app.models.selection import Selection, Trail
from app.views.mark_book import MarkBook


class SelectionHub(QObject):
    """Keeps the selection; whoever changes it names itself as the origin.

    Panels connect `changed` and scroll only where the origin is another one.
    """

    changed = Signal(object, object)
    """(Selection, origin: the object that caused it, or None)."""

    hovered = Signal(str)
    """What is under the pointer in words; empty when it left."""

    compare_wanted = Signal(int, int)
    """Numbers of two events that a panel wants compared."""

    problem = Signal(str, str)
    """(kind, sentence) that a panel wants shown in the messages panel."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._trail = Trail()
        self.marks = MarkBook(self)
        """Bookmarks and notes on what can be selected."""

    @property
    def selection(self) -> Selection:
        """What is selected now."""
        return self._trail.current

    @property
    def trail(self) -> Trail:
        """Past selections, for Back and Forward."""
        return self._trail

    def select(self, selection: Selection, origin: object | None = None) -> None:
        """Make `selection` the one of all panels; nothing is sent where it already is."""
        if self._trail.push(selection):
            self.changed.emit(selection, origin)

    def change(self, origin: object | None = None, **fields) -> None:
        """The same selection with some fields changed."""
        self.select(self.selection.change(**fields), origin)

    @Slot()
    def clear(self) -> None:
        """Select nothing; the sequence stays."""
        self.select(Selection(seq=self.selection.seq))

    @Slot()
    def go_back(self) -> None:
        """The selection before."""
        if self._trail.can_go_back:
            self.changed.emit(self._trail.back(), None)

    @Slot()
    def go_forward(self) -> None:
        """The selection after, once `go_back` was used."""
        if self._trail.can_go_forward:
            self.changed.emit(self._trail.forward(), None)
