"""A window on a session that no engine stands behind, and a person's keys; see `bare_window`."""

from __future__ import annotations

from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import QApplication

from app.settings import Settings
from app.views.main_window import MainWindow
from engine.events import SessionOpened
from tests.app import values

SESSION = SessionOpened("tiny", "cpu", (("reserve", "transaction"),), (("tokens", "token"),), ())


def sent(window: MainWindow) -> list[object]:
    commands: list[object] = []
    window.client.sent.connect(lambda _ticket, command: commands.append(command))
    return commands


def press(qtbot, window: MainWindow, keys: str) -> None:
    combination = QKeySequence(keys)[0]
    target = QApplication.focusWidget() or window
    qtbot.keyClick(target, combination.key(), combination.keyboardModifiers())


def bare_window(qtbot, settings: Settings) -> MainWindow:
    """A shown window of 1280 by 800 with all panels."""
    window = MainWindow(settings)
    qtbot.addWidget(window)
    window.resize(1280, 800)
    window.show()
    window.build_panels()
    return window


def with_events(window: MainWindow) -> MainWindow:
    """The window after five events of hand-made values, the third a failure."""
    client = window.client
    client.receive(1, SESSION)
    for n in range(1, 6):
        outcome = {"outcome": "failed", "result": "rejected: nonfinite"} if n == 3 else {}
        client.receive(0, values.record(n, values.sequence(0, 0, 4 * n), **outcome))
    client.receive(0, values.snapshot(values.sequence(0, 0, 20)))
    client.deliver_now()
    window.update_actions()
    return window
