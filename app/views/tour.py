"""The tour's dock: five steps, the next one with what to do and a button that shows where.

Shows what `app.models.tour` says; the window looks at what happens and moves the focus.
"""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtGui import QCloseEvent
from PySide6.QtWidgets import (
    QDockWidget,
    QFrame,
    QPushButton,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from app import theme
from app.models.tour import STEPS, Help, Progress, Scene, Step, help_with
from app.views.panel import GlyphLabel, heading, name_all, named, paragraph, row_of, set_text

WIDTH = 264
"""Pixels at the usual size of text."""


class StepRow(QWidget):
    """Glyph and title of a step; under the next one what to do."""

    asked = Signal(str)
    """Target of its help that the user wants to be shown."""

    def __init__(self, number: int, step: Step) -> None:
        super().__init__()
        self.step, self.number = step, number
        self.help = Help("")
        self.state = ""
        self.setObjectName(f"tour.{step.id}")
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(4)
        self.mark = GlyphLabel(self)
        self.title = paragraph(f"{number}. {self.tr(step.title)}")
        box.addLayout(row_of(self.mark, self.title))
        self.more = QWidget()
        inner = QVBoxLayout(self.more)
        inner.setContentsMargins(24, 0, 0, 8)
        inner.setSpacing(8)
        self.sentence = paragraph(self.tr(step.sentence))
        self.hint = paragraph("", self.tr("What is in the way"), second=True)
        self.button = QPushButton()
        self.button.setObjectName(f"tour.{step.id}.show")
        self.button.setMinimumHeight(24)
        self.button.clicked.connect(lambda: self.asked.emit(self.help.target))
        inner.addWidget(self.sentence)
        inner.addWidget(self.hint)
        inner.addLayout(row_of(self.button, None))
        box.addWidget(self.more)

    def show_state(self, is_done: bool, is_next: bool, scene: Scene) -> None:
        """Ticked, next with its help, or yet to come."""
        self.state = self.tr("done") if is_done else self.tr("next") if is_next else self.tr("open")
        glyph, role = ("tick", "done") if is_done else ("triangle", "running")
        if not is_done and not is_next:
            glyph, role = "dash", "pending"
        self.mark.show_glyph(glyph, role)
        font = self.title.font()
        font.setBold(is_next)
        self.title.setFont(font)
        self.setAccessibleName(f"{self.title.text()}: {self.state}")
        self.more.setVisible(is_next)
        if is_next:
            self._show_help(help_with(self.step, scene))

    def _show_help(self, help: Help) -> None:
        self.help = help
        set_text(self.hint, self.tr(help.hint) if help.hint else "", "text2")
        self.hint.setVisible(bool(help.hint))
        words = self.tr(help.button)
        self.button.setText(words)
        named(self.button, f"{words}: {self.step.title}")


class TourPanel(QWidget):
    """All steps, with Restart and Close."""

    asked = Signal(str)
    restarted = Signal()
    closed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("tour")
        self.setAccessibleName(self.tr("Tour"))
        box = QVBoxLayout(self)
        box.setContentsMargins(8, 8, 8, 8)
        box.setSpacing(4)
        self.count = heading("")
        self.count.setWordWrap(True)
        box.addWidget(self.count)
        self.rows = [StepRow(number, step) for number, step in enumerate(STEPS, 1)]
        for row in self.rows:
            row.asked.connect(self.asked)
            box.addWidget(row)
        self.end = paragraph(self.tr("Help > Tour begins it again."), second=True)
        box.addWidget(self.end)
        box.addStretch(1)
        self.restart = QPushButton(self.tr("Restart"))
        named(self.restart, self.tr("Restart the tour"), self.tr("Begin with the first step"))
        self.close_button = QPushButton(self.tr("Close"))
        named(self.close_button, self.tr("Close the tour"), self.end.text())
        for button in (self.restart, self.close_button):
            button.setMinimumHeight(24)
        self.restart.clicked.connect(self.restarted)
        self.close_button.clicked.connect(self.closed)
        box.addLayout(row_of(self.restart, None, self.close_button))
        name_all(self)

    def show_progress(self, progress: Progress, scene: Scene) -> None:
        """Tick what is done, and help with what is next."""
        current = progress.current
        for row in self.rows:
            row.show_state(row.step.id in progress.done, row.step is current, scene)
        words = self.tr("{0} of {1} steps done").format(len(progress.done), len(STEPS))
        set_text(self.count, self.tr("All steps are done") if progress.is_finished else words)
        self.setAccessibleDescription(self.count.text())
        self.end.setVisible(progress.is_finished)

    def focus(self) -> None:
        """Put the keyboard on the button of the next step, else on Close."""
        buttons = [row.button for row in self.rows if not row.more.isHidden()]
        (buttons or [self.close_button])[0].setFocus()


class TourDock(QDockWidget):
    """Left of the work; can be closed at any time, and says so."""

    left = Signal()
    """The user closed it."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setWindowTitle(self.tr("Tour"))
        self.setObjectName("dock.tour")
        self.setAccessibleName(self.windowTitle())
        features = QDockWidget.DockWidgetFeature
        self.setFeatures(features.DockWidgetClosable | features.DockWidgetMovable)
        self.panel = TourPanel()
        self.area = QScrollArea()
        self.area.setFrameShape(QFrame.Shape.NoFrame)
        self.area.setWidgetResizable(True)
        self.area.setMinimumWidth(WIDTH)
        self.area.setWidget(self.panel)
        self.setWidget(self.area)
        self.panel.closed.connect(self.close)
        named(self.area, self.tr("Tour: scroll area"))
        name_all(self)

    def wanted_width(self) -> int:
        """Wider with larger text."""
        return round(WIDTH * theme.row_height() / 22)

    def closeEvent(self, event: QCloseEvent) -> None:
        super().closeEvent(event)
        self.left.emit()
