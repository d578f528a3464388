"""Random hands on every panel at once, with the real engine behind: no error, no Qt warning."""

from __future__ import annotations

import gc
import random

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import (
    QAbstractButton,
    QApplication,
    QComboBox,
    QFileDialog,
    QLineEdit,
    QMenu,
    QWidget,
)

from app import theme
from app.views.tables import TableView
from engine.commands import Feed, Finish, Pause, Run, SetChunk, SetMode, StepChunk, StepStage
from tests.app.views.test_panels import ALL

KEYS = [
    Qt.Key.Key_Up, Qt.Key.Key_Down, Qt.Key.Key_Left, Qt.Key.Key_Right, Qt.Key.Key_Home,
    Qt.Key.Key_End, Qt.Key.Key_PageUp, Qt.Key.Key_Return, Qt.Key.Key_Tab, Qt.Key.Key_Escape,
    Qt.Key.Key_C, Qt.Key.Key_Space, Qt.Key.Key_Menu, Qt.Key.Key_1, Qt.Key.Key_Minus,
]  # fmt: skip
WORDS = ["", "7", "-3", "0-9", "failed", "pos:4", "x:", "1,2,3", "999999999999", "a b", "ü"]


class Monkey:
    """Chooses what to do by a seeded generator; nothing here asks what is sensible."""

    def __init__(self, desk, panels, seed: int) -> None:
        self.desk, self.panels, self.chance = desk, panels, random.Random(seed)
        self.acts = (
            self.click, self.click, self.key, self.key, self.type, self.choose, self.select,
            self.travel, self.feed, self.command, self.row, self.menu, self.look, self.fault,
        )  # fmt: skip

    def widget(self, kind=QWidget):
        panel = self.chance.choice(self.panels)
        found = [w for w in panel.findChildren(kind) if w.isVisible() and w.isEnabled()]
        return self.chance.choice(found) if found else None

    def act(self) -> None:
        self.chance.choice(self.acts)()
        for popup in QApplication.topLevelWidgets():
            if isinstance(popup, QMenu) and popup.isVisible():
                popup.close()

    def click(self) -> None:
        if (button := self.widget(QAbstractButton)) is not None:
            self.desk.qtbot.mouseClick(button, Qt.MouseButton.LeftButton)

    def key(self) -> None:
        if (widget := self.widget()) is not None:
            widget.setFocus()
            held = self.chance.choice([Qt.KeyboardModifier.NoModifier] * 3
                                      + [Qt.KeyboardModifier.ControlModifier])  # fmt: skip
            self.desk.qtbot.keyClick(widget, self.chance.choice(KEYS), held)

    def type(self) -> None:
        if (edit := self.widget(QLineEdit)) is not None and not edit.isReadOnly():
            edit.clear()
            edit.insert(self.chance.choice(WORDS))

    def choose(self) -> None:
        if (box := self.widget(QComboBox)) is not None and box.count():
            at = self.chance.randrange(box.count())
            box.setCurrentIndex(at)
            box.activated.emit(at)

    def row(self) -> None:
        view = self.widget(TableView)
        if view is not None and view.table.rowCount():
            index = view.table.index(self.chance.randrange(view.table.rowCount()), 0)
            view.scrollTo(index)
            place = view.visualRect(index).center()
            self.desk.qtbot.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=place)

    def menu(self) -> None:
        view = self.widget(TableView)
        if view is not None and view.table.rowCount():
            menu = view.menu_for(self.chance.randrange(view.table.rowCount()))
            actions = [a for a in menu.actions() if not a.isSeparator()]
            self.chance.choice(actions).trigger()
            menu.close()
            menu.deleteLater()

    def select(self) -> None:
        start = self.chance.randrange(0, 60)
        stop = start + self.chance.randrange(1, 9)
        change = self.chance.choice([
            {"start": start, "stop": stop}, {"cell": start}, {"seq": self.chance.randrange(3)},
            {"owner": "qsa.kv"}, {"event": start}, {"stage": "head"},
            {"start": None, "stop": None, "cell": None, "group": None},
        ])  # fmt: skip
        self.desk.hub.change(None, **change)

    def travel(self) -> None:
        records = self.desk.client.records
        self.desk.client.show(self.chance.choice([*records[-5:], None]) if records else None)

    def feed(self) -> None:
        tokens = tuple(self.chance.randrange(200) for _ in range(self.chance.randrange(1, 9)))
        self.desk.client.send(Feed(self.chance.randrange(2), tokens))

    def command(self) -> None:
        self.desk.client.send(self.chance.choice([
            Run(), Pause(), StepStage(), StepChunk(), Finish(), SetMode("fast"),
            SetMode("inspect"), SetChunk(self.chance.randrange(1, 6)),
        ]))  # fmt: skip

    def fault(self) -> None:
        panel = next(p for p in self.panels if hasattr(p, "arm_fault"))
        panel.arm_fault()

    def look(self) -> None:
        theme.apply(QApplication.instance(), self.chance.choice(["light", "dark", "contrast"]))
        panel = self.chance.choice(self.panels)
        panel.resize(self.chance.randrange(240, 1100), self.chance.randrange(150, 600))
        self.desk.qtbot.mouseMove(panel, QPoint(9, 9))


@pytest.mark.parametrize("model", [None, "qwen4exp-tiny"])
def test_random_hands_break_nothing(desk, long_profile, monkeypatch, model):
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *a, **k: ("", ""))
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *a, **k: ("", ""))
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    desk.drive(model, capacity=64)
    panels = [desk.open(param.values[0]) for param in ALL]
    monkey = Monkey(desk, panels, seed)
    for number in range(4000 if long_profile else 250):
        monkey.act()
        desk.settle()
        if number % 10 == 0:
            QApplication.processEvents()
            for panel in panels:
                panel.flush()
            desk.settle()
    gc.collect()
    snapshot = desk.client.snapshot
    assert snapshot is not None
    assert not snapshot.broken
