"""Bookmarks and notes in a dock: go there, rename in place, edit the note, delete."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtWidgets import QAbstractItemView, QToolButton

from app.adapters.table_model import TableModel
from app.models import marks as model
from app.models import text
from app.models.marks import Mark
from app.models.marks_table import NAME_COLUMN, Shown, table_of
from app.models.sequences import Track
from app.views.panel import Panel, label, named, row_of, set_text
from app.views.tables import TableView
from engine.events import SessionOpened
from engine.snapshot import Record

MOST_KNOWN = 4_000
"""Records kept so that those of a capture are not read anew at each redraw."""


class NamesModel(TableModel):
    """The table with names that can be edited in place."""

    renamed = Signal(int, str)

    def flags(self, index):
        flags = super().flags(index)
        named = index.isValid() and index.column() == NAME_COLUMN
        return flags | Qt.ItemFlag.ItemIsEditable if named else flags

    def data(self, index, role=Qt.ItemDataRole.DisplayRole):
        if role == Qt.ItemDataRole.EditRole:
            role = Qt.ItemDataRole.DisplayRole
        return super().data(index, role)

    def setData(self, index, value, role=Qt.ItemDataRole.EditRole) -> bool:
        if role != Qt.ItemDataRole.EditRole or index.column() != NAME_COLUMN:
            return False
        self.renamed.emit(index.row(), str(value))
        return True


class MarksView(TableView):
    """The table with the keys of a list that can be changed: F2 and Delete."""

    deleted = Signal()

    def make_model(self) -> TableModel:
        return NamesModel(parent=self)

    def __init__(self, name: str, parent=None) -> None:
        super().__init__(name, parent)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)

    def edit_name(self) -> None:
        """Edit the name of the current row."""
        row = self.currentIndex().row()
        if row >= 0:
            self.choose_row(row)
            self.edit(self.table.index(row, NAME_COLUMN))

    @property
    def is_editing(self) -> bool:
        """True while a name is being typed."""
        return self.state() == QAbstractItemView.State.EditingState

    def keyPressEvent(self, event) -> None:
        if event.key() == Qt.Key.Key_Delete:
            self.deleted.emit()
        elif event.key() == Qt.Key.Key_F2:
            self.edit_name()
        else:
            super().keyPressEvent(event)


class MarksPanel(Panel):
    """All bookmarks and notes of what is open."""

    title = "Bookmarks"
    went = Signal(object)
    """Mark that the user wants to see."""
    note_asked = Signal(object)
    """Mark whose note the user wants to edit."""
    refused = Signal(str)

    def build(self) -> None:
        self.tracks: Callable[[], Sequence[Track]] = tuple
        """The runs that are drawn; the window says where they are."""
        self.listed: tuple[Mark, ...] = ()
        self._known: dict[int, Record | None] = {}
        self._known_of: object = None
        self.chip = label("", self.tr("Bookmarks and notes"), second=True)
        self.go = _button(self.tr("Go there"), self.tr("Select the place of this row (Enter)"))
        self.rename = _button(self.tr("Rename"), self.tr("Change the name of this row (F2)"))
        self.note = _button(self.tr("Note..."), self.tr("Change name and note of this row"))
        self.delete = _button(
            self.tr("Delete"), self.tr("Delete the selected rows (Delete); Undo brings them back")
        )
        self.empty = label(
            self.tr("Nothing is marked yet: Ctrl+B bookmarks what is selected, ")
            + self.tr("Ctrl+Shift+B writes a note on it."),
            self.tr("Nothing is marked yet"),
            second=True,
            wrap=True,
        )
        self.view = MarksView(self.tr("Bookmarks"))
        self.view.extra_actions = self._row_actions
        self.box.setSpacing(4)
        self.box.addLayout(row_of(self.chip, None, self.go, self.rename, self.note, self.delete))
        self.box.addWidget(self.empty)
        self.box.addWidget(self.view, 1)
        self.box.addStretch(0)
        self._connect()

    def _connect(self) -> None:
        self.go.clicked.connect(self.go_there)
        self.rename.clicked.connect(self.view.edit_name)
        self.note.clicked.connect(self.edit_note)
        self.delete.clicked.connect(self.delete_rows)
        # not `chosen`: the arrow keys only move among the rows
        self.view.clicked.connect(self.go_there)
        self.view.activated_row.connect(self.go_there)
        self.view.deleted.connect(self.delete_rows)
        names = self.view.table
        assert isinstance(names, NamesModel)
        names.renamed.connect(self._renamed)
        self.view.selectionModel().selectionChanged.connect(self._enable)
        self.hub.marks.changed.connect(self._marks_changed)
        self.client.foreign_opened.connect(self._marks_changed)

    # content ----------------------------------------------------------------------------------

    def _marks_changed(self, *_args: object) -> None:
        self.refresh(prompt=True)

    def show_record(self, record) -> None:
        self.refresh()

    def show_event(self, body) -> None:
        if isinstance(body, SessionOpened):
            self.refresh()

    def rebuild(self) -> None:
        if self.view.is_editing:
            # an editor would be closed under the user's hands
            self._stale = True
            QTimer.singleShot(500, self, self.look_again)
            return
        self.listed = model.ordered(self.hub.marks.marks.values())
        own = not self.is_foreign
        shown = Shown(self.tracks(), self.state() if own else None, self.record_of)
        self.view.set_table(table_of(self.listed, shown))
        n_notes = sum(bool(mark.note) for mark in self.listed)
        n_marks = sum(bool(mark.number) for mark in self.listed)
        words = f"{text.plural(n_marks, 'bookmark')}, {text.plural(n_notes, 'note')}"
        set_text(self.chip, words if self.listed else "", "text2")
        self.empty.setVisible(not self.listed)
        self.view.setVisible(bool(self.listed))
        self._enable()

    def words(self) -> str:
        return self.chip.text() or self.empty.text()

    @property
    def is_foreign(self) -> bool:
        """True while another engine's state is shown, which has neither cells nor events."""
        return self.client.offline and self.client.foreign is not None

    def record_of(self, number: int) -> Record | None:
        """The record with a number, read once."""
        if self.is_foreign:
            return None
        journal = self.journal()
        if self._known_of is not journal or len(self._known) > MOST_KNOWN:
            self._known_of = journal
            self._known.clear()
        if number not in self._known:
            row = journal.row_of(number)
            if row is None:
                return None
            self._known[number] = journal.records[row]
        return self._known[number]

    # what the user does -----------------------------------------------------------------------

    def current(self) -> Mark | None:
        """The mark of the current row."""
        row = self.view.currentIndex().row()
        return self.listed[row] if 0 <= row < len(self.listed) else None

    def chosen(self) -> list[Mark]:
        """The marks of the selected rows."""
        rows = sorted({index.row() for index in self.view.selectionModel().selectedRows()})
        return [self.listed[row] for row in rows if row < len(self.listed)]

    def go_there(self, *_row: object) -> None:
        """Show the place of the current row in every panel."""
        mark = self.current()
        if mark is not None:
            self.went.emit(mark)

    def edit_note(self) -> None:
        """Ask for the note of the current row."""
        mark = self.current()
        if mark is not None:
            self.note_asked.emit(mark)

    def delete_rows(self) -> None:
        """Delete the selected rows; one step to undo."""
        book = self.hub.marks
        book.do(model.removed(book.marks, [mark.place for mark in self.chosen()]))

    def _renamed(self, row: int, name: str) -> None:
        if row < len(self.listed):
            book, place = self.hub.marks, self.listed[row].place
            try:
                book.do(model.renamed(book.marks, place, name))
            except ValueError as error:
                self.refused.emit(str(error))

    def _enable(self, *_args: object) -> None:
        any_row = bool(self.listed) and self.view.selectionModel().hasSelection()
        for button in (self.go, self.rename, self.note, self.delete):
            button.setEnabled(any_row)

    def _row_actions(self, menu, _row: int) -> None:
        for button, slot in (
            (self.go, self.go_there),
            (self.rename, self.view.edit_name),
            (self.note, self.edit_note),
            (self.delete, self.delete_rows),
        ):
            menu.addAction(button.text(), slot)


def _button(words: str, tip: str) -> QToolButton:
    button = QToolButton()
    button.setText(words)
    button.setMinimumHeight(24)
    named(button, words, tip)
    return button
