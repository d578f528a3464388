"""The table of commands: keys, words, handlers, reasons."""

from __future__ import annotations

import pytest
from PySide6.QtGui import QKeySequence

from app.action_list import ACTIONS, MENUS
from app.actions import Actions, shortcut_rows, without_duplicates
from app.views.main_window import MainWindow


@pytest.fixture
def window(qtbot, settings) -> MainWindow:
    window = MainWindow(settings)
    qtbot.addWidget(window)
    return window


def test_every_key_means_one_thing() -> None:
    assert without_duplicates() == []


def test_a_key_that_two_actions_claim_is_found() -> None:
    assert without_duplicates((*ACTIONS, ACTIONS[0])) != []


def test_every_key_is_one_that_qt_knows() -> None:
    for spec in ACTIONS:
        for key in spec.keys:
            sequence = QKeySequence(key)
            assert sequence.count() == 1, (spec.id, key)
            assert sequence.toString(QKeySequence.SequenceFormat.PortableText) == key, spec.id


def test_letters_alone_act_only_in_drawings() -> None:
    for spec in ACTIONS:
        for key in spec.keys:
            if len(key) == 1 and key.isalpha():
                assert spec.drawing, spec.id


def test_every_action_has_a_tip_a_menu_and_a_handler(window: MainWindow) -> None:
    for spec in window.actions_:
        action = window.actions_[spec.id]
        assert action.statusTip()
        assert action.text()
        assert spec.menu.split("/")[0] in MENUS
        assert callable(getattr(window, spec.handler))
        menus = [m for m in action.associatedObjects() if m is window.menus[spec.menu]]
        assert menus, spec.id


def test_a_disabled_action_says_why(window: MainWindow) -> None:
    assert not window.actions_["run.run"].isEnabled()
    reason = window.actions_.reason("run.run")
    assert reason
    assert reason in window.actions_["run.run"].statusTip()
    entry = next(e for e in window.palette_entries("") if e.id == "run.run")
    assert entry.reason == reason


def test_enabling_again_forgets_the_reason(window: MainWindow) -> None:
    actions: Actions = window.actions_
    actions.enable("run.run", "because")
    actions.enable("run.run")
    assert actions["run.run"].isEnabled()
    assert "because" not in actions["run.run"].statusTip()


def test_shortcut_page_lists_everything_with_keys() -> None:
    assert len(shortcut_rows()) == sum(bool(spec.keys) for spec in ACTIONS)
