"""The bookmarks and notes of what is open, and the undo stack that all their changes go through."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QUndoCommand, QUndoStack

from app.models import marks as model
from app.models.marks import Change, Mark, Place

MOST_UNDONE = 200


class MarkBook(QObject):
    """Keeps the marks; whoever changes them hands in a `Change`."""

    changed = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.marks: dict[Place, Mark] = {}
        self.stack = QUndoStack(self)
        self.stack.setUndoLimit(MOST_UNDONE)
        self.newest_event: Callable[[], int] = lambda: -1
        """Number of the newest record, which says what was changed last: a mark or the session."""

    def do(self, change: Change) -> None:
        """Make a change that can be undone; one that changes nothing is no change."""
        if change.edits:
            self.stack.push(_Command(self, change))

    def put(self, change: Change, back: bool) -> None:
        """What the stack does and undoes."""
        self.replace(model.applied(self.marks, change, back))

    def replace(self, marks: dict[Place, Mark]) -> None:
        """Other marks of the same session, such as after another window's were merged."""
        if marks != self.marks:
            self.marks = marks
            self.changed.emit()

    def begin(self, marks: dict[Place, Mark]) -> None:
        """The marks of another session: nothing of before can be undone."""
        self.stack.clear()
        self.replace(marks)

    @property
    def undo_event(self) -> int | None:
        """The event after which the change that Undo would take back was made; None without one."""
        command = self.stack.command(self.stack.index() - 1) if self.stack.canUndo() else None
        return _made_after(command) if command is not None else None


class _Command(QUndoCommand):
    """One change on the stack."""

    def __init__(self, book: MarkBook, change: Change) -> None:
        super().__init__(change.words)
        self.book, self.change = book, change
        self.after = book.newest_event()

    def redo(self) -> None:
        self.book.put(self.change, back=False)

    def undo(self) -> None:
        self.book.put(self.change, back=True)


def _made_after(command: QUndoCommand) -> int:
    return command.after if isinstance(command, _Command) else -1
