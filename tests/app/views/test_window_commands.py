"""The window's commands as a person gives them."""

from __future__ import annotations

import json

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication

from app.action_list import ACTIONS
from app.settings import Settings
from app.views.main_window import MainWindow
from app.views.window_help import Page
from engine.events import FaultsChanged, FeedChanged
from tests.app.views import by_hand
from tests.app.views.by_hand import press, sent


@pytest.fixture
def window(qtbot, settings: Settings) -> MainWindow:
    return by_hand.bare_window(qtbot, settings)


@pytest.fixture
def opened(window: MainWindow) -> MainWindow:
    """A window on a session that no engine stands behind."""
    return by_hand.with_events(window)


def test_actions_that_cannot_be_used_say_why(opened: MainWindow) -> None:
    reasons = {spec.id: opened.actions_.reason(spec.id) for spec in ACTIONS}
    assert "no token is queued" in reasons["run.run"]
    assert reasons["run.finish"] == "no transaction is open"
    assert reasons["go.live"] == "the newest state is shown"
    assert reasons["file.save"] == ""
    opened.client.receive(0, FeedChanged(((0, 9),), False, 5))
    opened.client.receive(0, FaultsChanged((("reserve", "oom", 1, 0),)))
    opened.client.deliver_now()
    opened.update_actions()
    assert opened.actions_["run.run"].isEnabled()
    assert opened.actions_["run.clear_faults"].isEnabled()


def test_engine_bar_sends_what_it_says(qtbot, opened: MainWindow, settings: Settings) -> None:
    commands = sent(opened)
    opened.client.receive(0, FeedChanged(((0, 9),), False, 5))
    opened.client.deliver_now()
    opened.update_actions()
    for id in ("run.stage", "run.chunk", "run.token", "run.run"):
        opened.actions_[id].trigger()
    opened.engine_bar.chunk.setValue(7)
    opened.engine_bar.feed.setText("5, 6")
    qtbot.keyClick(opened.engine_bar.feed, Qt.Key.Key_Return)
    names = [type(command).__name__ for command in commands]
    assert names == ["StepStage", "StepChunk", "StepToken", "Run", "SetChunk", "Feed"]
    assert commands[-1].tokens == (5, 6)
    assert settings.chunk == 7
    opened.engine_bar.feed.setText("five")
    qtbot.keyClick(opened.engine_bar.feed, Qt.Key.Key_Return)
    assert len(commands) == 6
    assert "expected x64" in opened.status.currentMessage()


def test_a_hole_is_asked_for_at_the_frontier(opened: MainWindow) -> None:
    commands = sent(opened)
    opened.append_hole()
    assert tuple(commands[-1].op.positions) == (20, 21, 23)
    assert len(commands[-1].op.tokens) == 3


def test_go_to_field_goes_to_positions_groups_and_events(qtbot, opened: MainWindow) -> None:
    def go(text: str) -> None:
        opened.focus_go_to()
        opened.time_bar.place.setText(text)
        qtbot.keyClick(opened.time_bar.place, Qt.Key.Key_Return)

    go("13")
    assert opened.hub.selection.start == 13
    go("g1")
    assert (opened.hub.selection.start, opened.hub.selection.stop) == (4, 8)
    go("event 2")
    assert opened.client.shown is opened.client.records[1]
    assert opened.history_banner.isVisible()
    go("999")
    assert "There is no position 999" in opened.status.currentMessage()
    go("here")
    assert "expected 812" in opened.status.currentMessage()
    go("cell 3")
    assert opened.hub.selection.cell == 3


def test_time_travel_by_keys(qtbot, opened: MainWindow) -> None:
    opened.run_panel.overview.setFocus()
    opened.step_event(-1)
    assert opened.client.shown.number == 4
    opened.go_to_first()
    assert opened.client.shown.number == 1
    assert opened.time_bar.event_words == "Event 1 / 5"
    assert opened.actions_.reason("go.back_event")
    opened.step_problem(1)
    assert opened.client.shown.number == 3
    opened.go_to_last_good()
    assert opened.client.shown.number == 2
    opened.return_to_live()
    assert opened.client.shown is None
    assert not opened.history_banner.isVisible()


def test_doing_something_leaves_the_past(opened: MainWindow) -> None:
    opened.go_to_first()
    opened.append_hole()
    assert opened.client.shown is None


def test_back_and_forward_walk_the_selections(opened: MainWindow) -> None:
    opened.run_panel.go_to(3)
    opened.run_panel.go_to(9)
    opened.go_back()
    assert opened.hub.selection.start == 3
    opened.go_forward()
    assert opened.hub.selection.start == 9
    opened.clear_selection()
    assert opened.hub.selection.is_empty


def test_copy_takes_what_the_focused_view_shows(opened: MainWindow) -> None:
    opened.run_panel.detail.setFocus()
    opened.run_panel.go_to(5)
    opened.copy_text()
    assert QGuiApplication.clipboard().text().splitlines()[-1] == "position 5: complete group"
    opened.copy_json()
    value = json.loads(QGuiApplication.clipboard().text())
    assert (value["run"], value["selected"], value["group"]) == ([0, 19], [5, 5], 1)


def test_select_the_whole_run(opened: MainWindow) -> None:
    opened.select_run()
    assert (opened.hub.selection.start, opened.hub.selection.stop) == (0, 20)
    assert "(20)" in opened.status.selected.text()


def test_palette_runs_commands_by_a_few_letters(qtbot, opened: MainWindow) -> None:
    opened.open_palette()
    palette = opened.palette_
    qtbot.keyClicks(palette.field, "select whole")
    assert palette.model.entries[0].id == "edit.all"
    qtbot.keyClick(palette.field, Qt.Key.Key_Return)
    assert not palette.isVisible()
    assert opened.hub.selection.stop == 20
    opened.open_palette()
    qtbot.keyClicks(palette.field, "g2")
    qtbot.keyClick(palette.field, Qt.Key.Key_Return)
    assert opened.hub.selection.group == 2
    opened.open_palette()
    qtbot.keyClicks(palette.field, "finish")
    assert palette.model.entries[0].reason == "no transaction is open"
    qtbot.keyClick(palette.field, Qt.Key.Key_Return)
    assert palette.isVisible(), "what can't run stays, with its reason"
    qtbot.keyClick(palette.field, Qt.Key.Key_Down)
    qtbot.keyClick(palette.field, Qt.Key.Key_Escape)
    assert not palette.isVisible()


def test_letters_act_in_drawings_and_not_in_fields(qtbot, opened: MainWindow) -> None:
    opened.activateWindow()
    detail = opened.run_panel.detail
    detail.setFocus()
    per = detail.axis.per_position
    qtbot.keyClicks(detail, "+")
    assert detail.axis.per_position > per
    qtbot.keyClicks(detail, "0")
    assert detail.axis.x0 == detail.axis.lo
    opened.engine_bar.feed.setFocus()
    opened.engine_bar.feed.clear()
    per = detail.axis.per_position
    qtbot.keyClicks(opened.engine_bar.feed, "x5")
    assert opened.engine_bar.feed.text() == "x5"
    assert detail.axis.per_position == per


def test_ctrl_arrows_move_by_groups_in_a_drawing_and_by_events_elsewhere(qtbot, opened) -> None:
    opened.activateWindow()
    opened.run_panel.detail.setFocus()
    opened.run_panel.go_to(8)
    press(qtbot, opened, "Ctrl+Right")
    assert opened.hub.selection.start == 12
    press(qtbot, opened, "Ctrl+Left")
    assert opened.hub.selection.start == 8
    assert opened.client.shown is None
    opened.run_panel.follow.setFocus()
    press(qtbot, opened, "Ctrl+Left")
    assert opened.client.shown is opened.client.records[-2]


def test_panes_are_visited_in_turn(qtbot, opened: MainWindow) -> None:
    opened.activateWindow()
    opened.run_panel.detail.setFocus()
    seen = []
    for _ in range(4):
        opened.next_pane(1)
        seen.append(opened.focusWidget())
    assert len(set(map(id, seen))) == 4
    for _ in range(4):
        opened.next_pane(-1)
    assert opened.run_panel.isAncestorOf(opened.focusWidget())


def test_pages_open_without_blocking(qtbot, opened: MainWindow) -> None:
    for show in (opened.show_shortcuts, opened.show_glossary, opened.show_about):
        show()
        pages = [page for page in opened.findChildren(Page) if page.isVisible()]
        assert len(pages) == 1
    pages[0].close()
