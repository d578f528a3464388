"""Bars over the centre: which past event is shown, and what went wrong; never a modal dialog."""

from __future__ import annotations

from PySide6.QtCore import QEvent, Qt, Signal
from PySide6.QtGui import QPainter, QPalette
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLabel,
    QPlainTextEdit,
    QPushButton,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from app import theme
from engine.snapshot import Record


class Bar(QFrame):
    """A line with an edge in a role's colour, a text and buttons."""

    def __init__(self, name: str, role: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.role = role
        self.setObjectName(name)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setAutoFillBackground(True)
        outer = QVBoxLayout(self)
        outer.setContentsMargins(12, 4, 8, 4)
        outer.setSpacing(4)
        self.row = QHBoxLayout()
        self.row.setSpacing(8)
        self.text = QLabel()
        self.text.setWordWrap(True)
        self.text.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.text.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        self.row.addWidget(self.text, 1)
        outer.addLayout(self.row)
        self.hide()
        self._paint()

    def button(self, text: str, name: str) -> QPushButton:
        """Add a button at the end."""
        button = QPushButton(text)
        button.setObjectName(f"{self.objectName()}.{name}")
        button.setAccessibleName(text)
        button.setMinimumHeight(24)
        self.row.addWidget(button)
        return button

    def say(self, text: str) -> None:
        """Show a text."""
        self.text.setText(text)
        self.text.setAccessibleName(text)
        self.show()

    def _paint(self) -> None:
        palette = self.palette()
        palette.setColor(QPalette.ColorRole.Window, theme.colour("base"))
        self.setPalette(palette)

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.ApplicationPaletteChange:
            self._paint()

    def paintEvent(self, event) -> None:
        super().paintEvent(event)
        painter = QPainter(self)
        painter.fillRect(0, 0, 4, self.height(), theme.colour(self.role))
        painter.fillRect(0, self.height() - 1, self.width(), 1, theme.colour("line"))
        painter.end()


class HistoryBanner(Bar):
    """Says that the past is shown."""

    returned = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("banner_history", "accent", parent)
        self.setAccessibleName(self.tr("Time travel"))
        self.button(self.tr("Return to newest"), "return").clicked.connect(self.returned)

    def show_record(self, record: Record | None, newest: int, is_capture: bool = False) -> None:
        """Name the event shown; hide for the newest state."""
        if record is None:
            self.hide()
            return
        where = self.tr("Viewing event {0} of {1}: {2}").format(
            f"{record.number:,}", f"{newest:,}", record.sentence or record.op
        )
        self.say(where + self.tr("  Read only; nothing here changes the session."))


class NoticeBar(Bar):
    """Says what the window did by itself, until it is read."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("banner_notice", "accent", parent)
        self.setAccessibleName(self.tr("Notice"))
        self.button(self.tr("Dismiss"), "dismiss").clicked.connect(self.hide)


class FileBar(Bar):
    """Says that the file shown was changed by someone else."""

    reload_asked = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("banner_file", "warning", parent)
        self.setAccessibleName(self.tr("File"))
        self.button(self.tr("Reload"), "reload").clicked.connect(self._reload)
        self.button(self.tr("Keep"), "keep").clicked.connect(self.hide)

    def _reload(self) -> None:
        self.hide()
        self.reload_asked.emit()


class ErrorBar(Bar):
    """The first error on top; later ones are counted. Details stay copyable."""

    copied = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("banner_error", "failed", parent)
        self.setAccessibleName(self.tr("Error"))
        self.details = QPlainTextEdit()
        self.details.setReadOnly(True)
        self.details.setAccessibleName(self.tr("Details of the error"))
        self.details.setMaximumHeight(160)
        self.details.hide()
        layout = self.layout()
        assert layout is not None
        layout.addWidget(self.details)
        self.more = self.button(self.tr("Details"), "details")
        self.more.setCheckable(True)
        self.more.toggled.connect(self.details.setVisible)
        copy = self.button(self.tr("Copy"), "copy")
        copy.clicked.connect(lambda: self.copied.emit(self.whole()))
        self.button(self.tr("Dismiss"), "dismiss").clicked.connect(self.dismiss)
        self._sentences: list[str] = []

    def add(self, sentence: str, details: str = "") -> None:
        """Show a sentence; the first one stays until it is dismissed."""
        if sentence in self._sentences:
            return
        self._sentences.append(sentence)
        others = len(self._sentences) - 1
        text = self._sentences[0]
        if others:
            text += self.tr("  ({0} more, see Details)").format(others)
        block = details or sentence
        self.details.setPlainText("\n\n".join(filter(None, [self.details.toPlainText(), block])))
        self.say(text)

    def whole(self) -> str:
        """Everything that the bar knows."""
        return "\n".join(self._sentences) + "\n\n" + self.details.toPlainText()

    def dismiss(self) -> None:
        """Forget and hide."""
        self._sentences.clear()
        self.details.clear()
        self.more.setChecked(False)
        self.hide()
