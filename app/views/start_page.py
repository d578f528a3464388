"""What a window without a session shows: the tiny model, scenarios, samples and recent files."""

from __future__ import annotations

import json
from pathlib import Path

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QPainter, QPen
from PySide6.QtWidgets import (
    QAbstractButton,
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QScrollArea,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from app import resources, theme


def scenario_words(path: Path) -> tuple[str, str]:
    """(title, first sentence of the note) of a scenario file, its name where it has none."""
    try:
        value = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        value = {}
    title = str(value.get("title") or path.stem.replace("-", " "))
    note = str(value.get("note") or "")
    return title, note.split(". ")[0].rstrip(".") + ("." if note else "")


class Choice(QAbstractButton):
    """A button with an icon, a title and one line under it; what does not fit ends in dots."""

    def __init__(self, title: str, line: str, icon: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.title, self.line, self.icon_name = title, line, icon
        self.setText(title)
        self.setAccessibleName(title)
        self.setAccessibleDescription(line)
        self.setToolTip(line)
        self.setStatusTip(line)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def sizeHint(self) -> QSize:
        return QSize(280, 2 * self.fontMetrics().height() + 12)

    def minimumSizeHint(self) -> QSize:
        return QSize(120, self.sizeHint().height())

    def paintEvent(self, event) -> None:
        painter = QPainter(self)
        if self.isEnabled() and (self.underMouse() or self.isDown()):
            painter.fillRect(
                self.rect(), theme.colour("alternate" if not self.isDown() else "line")
            )
        faint = theme.colour("text2")
        icon = theme.icon(self.icon_name, "accent" if self.isEnabled() else "pending")
        icon.paint(painter, 6, 6, 20, 20)
        width, height = self.width() - 40, self.fontMetrics().height()
        painter.setFont(theme.heading())
        painter.setPen(theme.colour("text") if self.isEnabled() else faint)
        dots = Qt.TextElideMode.ElideRight
        text = painter.fontMetrics().elidedText(self.title, dots, width)
        painter.drawText(34, 6 + painter.fontMetrics().ascent(), text)
        painter.setFont(self.font())
        painter.setPen(faint)
        text = self.fontMetrics().elidedText(self.line, dots, width)
        painter.drawText(34, 6 + height + self.fontMetrics().ascent(), text)
        if self.hasFocus():
            painter.setPen(QPen(theme.colour("accent"), 2))
            painter.drawRect(self.rect().adjusted(1, 1, -1, -1))
        painter.end()


class StartPage(QScrollArea):
    """Asks the window to open things; opens nothing itself."""

    demo_asked = Signal()
    open_asked = Signal()
    path_asked = Signal(str)
    clear_asked = Signal()
    tour_asked = Signal()
    tour_declined = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("start")
        self.setAccessibleName(self.tr("Start page"))
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        page = QWidget()
        page.setAccessibleName(self.tr("Start"))
        outer = QHBoxLayout(page)
        inner = QVBoxLayout()
        outer.addStretch(1)
        outer.addLayout(inner, 12)
        outer.addStretch(1)
        inner.setContentsMargins(16, 24, 16, 16)
        inner.setSpacing(8)
        self._head(inner)
        inner.addWidget(self._tour())
        grid = QGridLayout()
        grid.setHorizontalSpacing(32)
        grid.setVerticalSpacing(8)
        grid.setColumnStretch(0, 1)
        grid.setColumnStretch(1, 1)
        left, right = QVBoxLayout(), QVBoxLayout()
        for column in (left, right):
            column.setSpacing(2)
        grid.addLayout(left, 0, 0)
        grid.addLayout(right, 0, 1)
        inner.addLayout(grid)
        self._scenarios(left)
        self.recent_box = QVBoxLayout()
        self.recent_box.setSpacing(4)
        right.addLayout(self.recent_box)
        self._samples(right)
        right.addStretch(1)
        left.addStretch(1)
        hint = self._second(self.tr("Drop a file anywhere in this window to open it."))
        inner.addWidget(hint)
        inner.addStretch(1)
        self.setWidget(page)
        self.set_recent([])

    def _head(self, inner: QVBoxLayout) -> None:
        title = QLabel(self.tr("Bankflip"))
        font = title.font()
        font.setPointSizeF(font.pointSizeF() * 1.6)
        font.setBold(True)
        title.setFont(font)
        title.setAccessibleName(title.text())
        inner.addWidget(title)
        line = self.tr(
            "See the run of positions, the two state banks and every stage of inference, "
            "and make any stage fail."
        )
        inner.addWidget(self._second(line))
        row = QHBoxLayout()
        row.setSpacing(8)
        self.demo = QPushButton(self.tr("Open the tiny model"))
        self.demo.setObjectName("start.demo")
        self.demo.setAccessibleName(self.demo.text())
        self.demo.setToolTip(
            self.tr("Start a session with the model that ships with Bankflip, on this machine")
        )
        self.demo.setDefault(True)
        self.open = QPushButton(self.tr("Open a file..."))
        self.open.setObjectName("start.open")
        self.open.setAccessibleName(self.open.text())
        self.open.setToolTip(
            self.tr("A scenario, capture, saved session, model folder or cache of another engine")
        )
        for button in (self.demo, self.open):
            button.setMinimumHeight(32)
            row.addWidget(button)
        row.addStretch(1)
        inner.addSpacing(8)
        inner.addLayout(row)
        inner.addSpacing(8)
        self.demo.clicked.connect(self.demo_asked)
        self.open.clicked.connect(self.open_asked)

    def _tour(self) -> QWidget:
        """The offer of the tour, for who opens the window for the first time."""
        self.tour_offer = QWidget()
        self.tour_offer.setAccessibleName(self.tr("Offer of a tour"))
        row = QHBoxLayout(self.tour_offer)
        row.setContentsMargins(0, 0, 0, 8)
        row.setSpacing(8)
        words = self.tr("New here? The tour shows in five steps what this window does.")
        self.tour = QPushButton(self.tr("Take the tour"))
        self.tour.setObjectName("start.tour")
        self.tour.setToolTip(self.tr("Opens the demo, and a panel beside it that says what to do"))
        self.no_tour = QPushButton(self.tr("No, thanks"))
        self.no_tour.setObjectName("start.no_tour")
        self.no_tour.setToolTip(self.tr("Don't offer it again; Help has it"))
        self.no_tour.setFlat(True)
        for button in (self.tour, self.no_tour):
            button.setAccessibleName(button.text())
            button.setMinimumHeight(24)
            row.addWidget(button)
        row.addWidget(self._second(words), 1)
        self.tour.clicked.connect(self.tour_asked)
        self.no_tour.clicked.connect(self.tour_declined)
        return self.tour_offer

    def offer_tour(self, wanted: bool) -> None:
        """Show or hide the offer."""
        self.tour_offer.setVisible(wanted)

    def _heading(self, text: str) -> QLabel:
        label = QLabel(text)
        label.setAccessibleName(text)
        label.setFont(theme.heading())
        return label

    def _second(self, text: str) -> QLabel:
        label = QLabel(text)
        label.setAccessibleName(text)
        label.setWordWrap(True)
        label.setForegroundRole(label.palette().ColorRole.PlaceholderText)
        return label

    def _choice(self, path: Path, title: str, line: str, icon: str) -> Choice:
        choice = Choice(title, line, icon)
        choice.setObjectName(f"start.{path.name}")
        choice.clicked.connect(lambda: self.path_asked.emit(str(path)))
        return choice

    def _scenarios(self, box: QVBoxLayout) -> None:
        box.addWidget(self._heading(self.tr("Scenarios that teach")))
        for path in resources.scenarios():
            title, line = scenario_words(path)
            box.addWidget(self._choice(path, title, line, "scenario"))

    def _samples(self, box: QVBoxLayout) -> None:
        box.addSpacing(8)
        box.addWidget(self._heading(self.tr("State of other engines")))
        for path, title, line in resources.samples():
            box.addWidget(self._choice(path, title, line, "file"))

    def set_recent(self, paths: list[str]) -> None:
        """List the recent files; a missing one is grey and says so."""
        while self.recent_box.count():
            item = self.recent_box.takeAt(0)
            widget = item.widget() if item is not None else None
            if widget is not None:
                widget.hide()
                widget.setParent(None)
                widget.deleteLater()
        self.recent_box.addWidget(self._heading(self.tr("Recent files")))
        if not paths:
            self.recent_box.addWidget(self._second(self.tr("Nothing was opened yet.")))
            return
        for name in paths:
            path = Path(name)
            choice = self._choice(path, path.name, str(path.parent), "file")
            if not path.exists():
                choice.setEnabled(False)
                choice.setToolTip(self.tr("{0} is not there any more").format(name))
            self.recent_box.addWidget(choice)
        clear = QPushButton(self.tr("Clear the list"))
        clear.setObjectName("start.clear")
        clear.setAccessibleName(self.tr("Clear the list of recent files"))
        clear.setFlat(True)
        clear.setMinimumHeight(24)
        clear.clicked.connect(self.clear_asked)
        self.recent_box.addWidget(clear, 0, Qt.AlignmentFlag.AlignLeft)
