"""The toolbars: engine control, time travel, the field to go to, and the field for tokens."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import (
    QComboBox,
    QLabel,
    QLineEdit,
    QSizePolicy,
    QSpinBox,
    QToolBar,
    QToolButton,
    QWidget,
)

from app.action_list import ENGINE_BAR, TIME_BAR
from app.actions import Actions
from app.models.goto import EXAMPLES, FEED_EXAMPLES, parse_target, parse_tokens

ICON = QSize(16, 16)


class WindowBar(QToolBar):
    """A toolbar with an object name, small icons and named buttons."""

    def __init__(self, name: str, title: str, parent: QWidget | None = None) -> None:
        super().__init__(title, parent)
        self.setObjectName(name)
        self.setAccessibleName(title)
        self.setIconSize(ICON)
        self.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonIconOnly)

    def add(self, actions: Actions, *ids: str, with_text: bool = False) -> None:
        """Add actions; their buttons get names that can be read out."""
        for id in ids:
            self.addAction(actions[id])
            button = self.widgetForAction(actions[id])
            button.setAccessibleName(actions[id].text())
            button.setObjectName(f"bar.{id}")
            button.setMinimumSize(24, 24)
            if with_text and isinstance(button, QToolButton):
                button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)


class EngineBar(WindowBar):
    """Feed, run, pause, step, chunk size, mode and backend."""

    fed = Signal(tuple)
    chunk_changed = Signal(int)
    backend_chosen = Signal(str)
    refused = Signal(str)

    def __init__(self, actions: Actions, parent: QWidget | None = None) -> None:
        super().__init__("bar.engine", "Engine", parent)
        self.feed = QLineEdit("x64")
        self.feed.setObjectName("bar.feed")
        self.feed.setAccessibleName(self.tr("Tokens to feed"))
        self.feed.setPlaceholderText(self.tr("tokens"))
        self.feed.setToolTip(self.tr("Queue tokens: {0}; Enter feeds them").format(FEED_EXAMPLES))
        self.feed.setFixedWidth(96)
        self.feed.returnPressed.connect(self._feed)
        self.addWidget(self._label(self.tr("Feed")))
        self.addWidget(self.feed)
        self.addSeparator()
        self.add(actions, "run.run", with_text=True)
        self.add(actions, *ENGINE_BAR[1:2])
        self.add(actions, *ENGINE_BAR[2:6])
        self.add(actions, "run.finish", "run.discard", "run.cancel")
        self.addSeparator()
        self.addWidget(self._label(self.tr("Chunk")))
        self.chunk = QSpinBox()
        self.chunk.setObjectName("bar.chunk")
        self.chunk.setAccessibleName(self.tr("Tokens a chunk"))
        self.chunk.setToolTip(self.tr("How many tokens one transaction takes"))
        self.chunk.setRange(1, 4096)
        self.chunk.setKeyboardTracking(False)
        self.chunk.valueChanged.connect(self.chunk_changed)
        self.addWidget(self.chunk)
        self.backend = QComboBox()
        self.backend.setObjectName("bar.backend")
        self.backend.setAccessibleName(self.tr("Backend"))
        self.backend.setToolTip(
            self.tr("Where the next session runs; auto takes Metal or CUDA where there is one")
        )
        self.backend.addItems(["auto", "cpu", "metal", "cuda"])
        self.backend.textActivated.connect(self.backend_chosen)
        self.addWidget(self.backend)
        self.add(actions, "run.fast")
        self.addSeparator()
        self.add(actions, "run.inject", "run.hole")

    def _label(self, text: str) -> QLabel:
        label = QLabel(f" {text} ")
        label.setAccessibleName(text)
        return label

    def _feed(self) -> None:
        tokens = parse_tokens(self.feed.text())
        if tokens is None:
            self.refused.emit(
                self.tr("Feed: expected {0}, given {1!r}").format(FEED_EXAMPLES, self.feed.text())
            )
        else:
            self.fed.emit(tokens)


class TimeBar(WindowBar):
    """The event shown, with steps, and the field to go to."""

    asked = Signal(object)
    refused = Signal(str)

    def __init__(self, actions: Actions, parent: QWidget | None = None) -> None:
        super().__init__("bar.time", "Time", parent)
        self.add(actions, *TIME_BAR[:2])
        self.shown = QLabel()
        self.event_label(0, 0)
        self.addWidget(self.shown)
        self.add(actions, *TIME_BAR[2:], "go.good")
        spacer = QWidget()
        spacer.setAccessibleName(self.tr("Space"))
        spacer.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        self.addWidget(spacer)
        self.place = QLineEdit()
        self.place.setObjectName("bar.goto")
        self.place.setAccessibleName(self.tr("Go to"))
        self.place.setPlaceholderText(self.tr("Go to 812, g203, cell 77"))
        self.place.setToolTip(self.tr("Go to {0} (Ctrl+G)").format(EXAMPLES))
        self.place.setFixedWidth(190)
        self.place.setClearButtonEnabled(True)
        self.place.returnPressed.connect(self._go)
        self.addWidget(self.place)
        self.add(actions, "help.palette")

    def event_label(self, shown: int, newest: int) -> None:
        """Say which event is shown of how many."""
        text = self.tr(" Event {0} / {1} ").format(f"{shown:,}", f"{newest:,}")
        self.event_words = text.strip()
        self.shown.setText(text)
        self.shown.setAccessibleName(self.event_words)

    def _go(self) -> None:
        target = parse_target(self.place.text())
        if target is None:
            self.refused.emit(
                self.tr("Go to: expected {0}, given {1!r}").format(EXAMPLES, self.place.text())
            )
        else:
            self.asked.emit(target)
