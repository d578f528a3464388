"""Random user actions on the running engine: no exception, no Qt warning, memory flat."""

from __future__ import annotations

import gc
import os
import random
import time
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, Qt, QTimer
from PySide6.QtGui import QDesktopServices
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QFileDialog, QMenu, QWidget

from app.models.marks import LONGEST_NOTE
from app.settings import Settings
from app.views.drawing import Drawing
from app.views.main_window import MainWindow
from app.views.note_page import NotePage
from engine.commands import ArmFault, Do, Feed
from engine.ops import EvictFront, Fork, Reset, Restore, Rewind, Save, Shift
from engine.terms import FailKind

LEFT_OUT = {"file.quit"}
"""Ends the window, and the walk with it."""

KEYS = (
    Qt.Key.Key_Left,
    Qt.Key.Key_Right,
    Qt.Key.Key_Up,
    Qt.Key.Key_Down,
    Qt.Key.Key_PageUp,
    Qt.Key.Key_PageDown,
    Qt.Key.Key_Home,
    Qt.Key.Key_End,
    Qt.Key.Key_Plus,
    Qt.Key.Key_Minus,
    Qt.Key.Key_0,
    Qt.Key.Key_F,
    Qt.Key.Key_H,
    Qt.Key.Key_Tab,
    Qt.Key.Key_Return,
    Qt.Key.Key_Space,
    Qt.Key.Key_Escape,
)
MODIFIERS = (
    Qt.KeyboardModifier.NoModifier,
    Qt.KeyboardModifier.ShiftModifier,
    Qt.KeyboardModifier.ControlModifier,
)
CLICKABLE = ("QToolButton", "QPushButton", "QTabBar", "QCheckBox")


@pytest.fixture(autouse=True)
def dialogs_are_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever asks with a dialog of the system or a menu gets "cancel" at once."""
    for name in ("getOpenFileName", "getOpenFileNames", "getSaveFileName"):
        nothing: object = [] if name.endswith("s") else ""
        monkeypatch.setattr(QFileDialog, name, lambda *a, nothing=nothing, **k: (nothing, ""))
    monkeypatch.setattr(QFileDialog, "getExistingDirectory", lambda *a, **k: "")
    monkeypatch.setattr(QDesktopServices, "openUrl", lambda *a: True)
    monkeypatch.setattr(QMenu, "exec", lambda *a, **k: None)


def resident_mib() -> float:
    """Memory of this process in MiB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


class Monkey:
    """One random action a call; the seed says all."""

    def __init__(self, window: MainWindow, seed: int) -> None:
        self.window, self.rng = window, random.Random(seed)
        self.kinds = (
            [self.command] * 5
            + [self.key] * 4
            + [self.click] * 3
            + [self.drag] * 2
            + [self.op] * 2
            + [self.fault, self.place, self.size]
        )

    def act(self) -> str:
        """Do something; says what."""
        return self.rng.choice(self.kinds)()

    def command(self) -> str:
        ids = [spec.id for spec in self.window.actions_ if spec.id not in LEFT_OUT]
        id = self.rng.choice(ids)
        if (
            id in ("file.close", "file.demo", "run.restart", "file.start")
            and self.rng.random() < 0.9
        ):
            return "not yet"
        self.window.actions_[id].trigger()
        return id

    def key(self) -> str:
        target = QApplication.focusWidget() or self.window
        key, modifier = self.rng.choice(KEYS), self.rng.choice(MODIFIERS)
        QTest.keyClick(target, key, modifier)
        return f"{key} {modifier}"

    def _visible(self, fits) -> list[QWidget]:
        return [
            w
            for w in self.window.findChildren(QWidget)
            if fits(w) and w.isVisible() and w.isEnabled() and not w.visibleRegion().isEmpty()
        ]

    def click(self) -> str:
        found = self._visible(lambda w: type(w).__name__ in CLICKABLE)
        if not found:
            return "nothing to click"
        widget = self.rng.choice(found)
        place = QPoint(
            self.rng.randrange(max(1, widget.width())), self.rng.randrange(max(1, widget.height()))
        )
        QTest.mouseClick(widget, Qt.MouseButton.LeftButton, pos=place)
        return f"click {widget.objectName() or widget.accessibleName()}"

    def drag(self) -> str:
        found = self._visible(lambda w: isinstance(w, Drawing))
        if not found:
            return "nothing to drag"
        widget = self.rng.choice(found)
        one, two = (
            QPoint(self.rng.randrange(widget.width()), self.rng.randrange(widget.height()))
            for _ in range(2)
        )
        modifier = self.rng.choice(MODIFIERS[:2])
        QTest.mousePress(widget, Qt.MouseButton.LeftButton, modifier, one)
        QTest.mouseMove(widget, two)
        QTest.mouseRelease(widget, Qt.MouseButton.LeftButton, modifier, two)
        return f"drag {widget.objectName()}"

    def op(self) -> str:
        rng, client = self.rng, self.window.client
        seq = rng.randrange(3)
        op = rng.choice(
            [
                EvictFront(seq, rng.randrange(1, 9)),
                Rewind(seq, rng.randrange(0, 80)),
                Shift(seq, rng.randrange(-5, 6)),
                Fork(seq, rng.randrange(3), None),
                Save(seq, "a"),
                Restore(seq, "a"),
                Reset(seq),
            ]
        )
        client.send(Do(op))
        client.send(Feed(seq, tuple(rng.randrange(250) for _ in range(rng.randrange(1, 12)))))
        return str(op)

    def fault(self) -> str:
        session = self.window.client.session
        if session is None or not session.stages:
            return "no stage"
        stage, _ = self.rng.choice(session.stages)
        kind = str(self.rng.choice(list(FailKind)))
        self.window.client.send(ArmFault(stage, kind, self.rng.randrange(1, 3)))
        return f"fail {stage} {kind}"

    def place(self) -> str:
        text = self.rng.choice(["3", "g2", "cell 5", "event 4", "seq 1", "nowhere", "99999"])
        self.window.time_bar.place.setText(text)
        QTest.keyClick(self.window.time_bar.place, Qt.Key.Key_Return)
        return f"go to {text}"

    def write(self, page: NotePage) -> str:
        """Fill in the small window for a note, and keep it or give up."""
        page.note.setPlainText("x" * self.rng.choice([0, 3, LONGEST_NOTE, LONGEST_NOTE + 1]))
        page.name.setText(self.rng.choice(["", "here"]))
        kept = page.save.isEnabled() and self.rng.random() < 0.7
        (page.accept if kept else page.reject)()
        return f"note {'kept' if kept else 'given up'}"

    def size(self) -> str:
        self.window.resize(self.rng.randrange(700, 1800), self.rng.randrange(600, 1100))
        return "resize"


def close_popup() -> None:
    """Close the menu or palette that is open, so that the walk goes on."""
    popup = QApplication.activePopupWidget()
    if popup is not None:
        popup.close()


def roam(qtbot, settings: Settings, caught: list[str], n_actions: int, seed: int) -> list[float]:
    """Memory after each tenth of the actions."""
    window = MainWindow(settings)
    qtbot.addWidget(window)
    window.resize(1280, 800)
    window.show()
    window.open_tiny()
    rescue = QTimer()  # menus turn an event loop of their own until they are closed
    rescue.timeout.connect(close_popup)
    rescue.start(100)
    monkey, memory = Monkey(window, seed), []
    did: list[str] = []
    for n in range(n_actions):
        did.append(monkey.act())
        QApplication.processEvents()
        page = QApplication.activeModalWidget()
        if isinstance(page, NotePage):  # the only one that waits for a person
            did.append(monkey.write(page))
            QApplication.processEvents()
        if n % 5 == 0:
            time.sleep(0.002)
        if window.stack.currentWidget() is window.start_page and not window.is_opening:
            window.open_tiny()
        assert QApplication.activeModalWidget() is None, did[-5:]
        assert not caught, f"seed {seed}, action {n}: {did[-5:]}\n" + "\n".join(caught)
        if n % max(1, n_actions // 10) == 0:
            gc.collect()
            memory.append(resident_mib())
    rescue.stop()
    window.close()
    assert not caught, "\n".join(caught)
    return memory


def test_five_hundred_random_actions_meet_no_error(qtbot, settings, caught) -> None:
    seed = random.randrange(2**31)
    print(f"seed {seed}")
    roam(qtbot, settings, caught, 500, seed)


@pytest.mark.long
def test_ten_thousand_random_actions_meet_no_error_and_memory_is_flat(
    qtbot, settings, caught
) -> None:
    seed = random.randrange(2**31)
    print(f"seed {seed}")
    memory = roam(qtbot, settings, caught, 10_000, seed)
    print(f"MiB after each tenth: {[round(m) for m in memory]}")
    assert memory[-1] < memory[len(memory) // 2] + 150, memory
