"""The small window in which the name and the note of a place are written."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import (
    QDialog,
    QDialogButtonBox,
    QFormLayout,
    QLabel,
    QLineEdit,
    QPlainTextEdit,
    QVBoxLayout,
)

from app.models.marks import LONGEST_NAME, LONGEST_NOTE, Mark, clean_note, place_words
from app.views.panel import label, named, set_text


class NotePage(QDialog):
    """Name and note of one place; Ctrl+Enter keeps them, Escape gives up."""

    written = Signal(object, str, str)
    """(place, name, note)."""

    def __init__(self, mark: Mark, parent=None) -> None:
        super().__init__(parent)
        self.place = mark.place
        title = self.tr("Note on {0}").format(place_words(mark.place))
        self.setWindowTitle(title)
        self.setAccessibleName(title)
        self.setObjectName("page.note")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.name = named(QLineEdit(mark.name), self.tr("Name"))
        self.name.setMaxLength(LONGEST_NAME)
        self.name.setPlaceholderText(self.tr("optional, one line"))
        self.note = named(QPlainTextEdit(mark.note), self.tr("Note"))
        self.note.setTabChangesFocus(True)
        self.length = label("", self.tr("Length of the note"), second=True)
        self._lay_out()
        self.note.textChanged.connect(self._count)
        done = QShortcut(QKeySequence("Ctrl+Return"), self)
        done.activated.connect(self.accept)
        self._count()
        self.note.setFocus()
        self.resize(460, 300)

    def _lay_out(self) -> None:
        layout = QVBoxLayout(self)
        layout.setSpacing(8)
        form = QFormLayout()
        form.setRowWrapPolicy(QFormLayout.RowWrapPolicy.WrapLongRows)
        form.addRow(QLabel(self.tr("Name")), self.name)
        form.addRow(QLabel(self.tr("Note")), self.note)
        layout.addLayout(form, 1)
        layout.addWidget(self.length)
        kinds = QDialogButtonBox.StandardButton
        self.buttons = QDialogButtonBox(kinds.Save | kinds.Cancel)
        named(self.buttons, self.tr("Buttons"))
        self.save = self.buttons.button(kinds.Save)
        named(self.save, self.tr("Save"), self.tr("Keep name and note (Ctrl+Enter)"))
        named(self.buttons.button(kinds.Cancel), self.tr("Cancel"), self.tr("Change nothing (Esc)"))
        self.buttons.accepted.connect(self.accept)
        self.buttons.rejected.connect(self.reject)
        layout.addWidget(self.buttons)

    def _count(self) -> None:
        n = len(clean_note(self.note.toPlainText()))
        over = n > LONGEST_NOTE
        words = f"{n:,} of {LONGEST_NOTE:,} characters"
        set_text(
            self.length,
            words + (": shorten the note" if over else ""),
            "warning" if over else "text2",
        )
        self.save.setEnabled(not over)

    def accept(self) -> None:
        """Hand out what was written; a note that is too long stays open."""
        if self.save.isEnabled():
            self.written.emit(self.place, self.name.text(), self.note.toPlainText())
            super().accept()
