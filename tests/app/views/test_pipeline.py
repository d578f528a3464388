"""The pipeline by click and key: choosing stages, arming failures, what is armed."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QContextMenuEvent
from PySide6.QtWidgets import QMenu

from app.views.pipeline import PipelinePanel
from engine.commands import ArmFault, ClearFaults
from engine.events import FaultsChanged
from engine.terms import FailKind
from tests.helpers import sessions

Key = Qt.Key


@pytest.fixture(params=[(900, 300), (870, 110), (420, 400)], ids=["roomy", "low", "narrow"])
def panel(desk, request):
    panel = desk.open(PipelinePanel, request.param)
    sessions.fill(desk.client, [sessions.record(1, 0, 4)], sessions.sequence(0, 0, 4))
    panel.flush()
    return panel


def test_every_stage_has_its_place_and_none_overlap(panel):
    placed = panel.view.placed
    assert [item.chip.name for item in placed] == [name for name, _ in sessions.stage_names()]
    for number, one in enumerate(placed):
        assert one.rect.right() < panel.view.width()
        assert not any(one.rect.intersects(other.rect) for other in placed[number + 1 :])


def test_a_low_panel_shows_a_line_a_stage(desk):
    panel = desk.open(PipelinePanel, (900, 300))
    sessions.fill(desk.client, [sessions.failed(1)], sessions.sequence(0, 0, 4))
    panel.flush()
    assert not panel.view.compact
    tall = panel.view.minimumHeight()
    panel.resize(900, 130)
    desk.qtbot.waitUntil(lambda: panel.view.compact)
    assert panel.view.minimumHeight() < 0.6 * tall
    panel.resize(900, 300)
    desk.qtbot.waitUntil(lambda: not panel.view.compact)


def test_titles_overlap_nothing(panel):
    for number, (rect, _) in enumerate(panel.view.titles):
        assert not any(rect.intersects(item.rect) for item in panel.view.placed)
        assert not any(rect.intersects(other) for other, _ in panel.view.titles[number + 1 :])


def test_a_click_selects_the_stage_everywhere(desk, panel):
    item = panel.view.chip("layer.0.gdn")
    desk.qtbot.mouseClick(panel.view, Qt.MouseButton.LeftButton, pos=item.rect.center())
    assert desk.hub.selection.stage == "layer.0.gdn"


def test_arrow_keys_move_between_stages(desk, panel):
    view = panel.view
    view.setFocus()
    names = [item.chip.name for item in view.placed]
    desk.qtbot.keyClick(view, Key.Key_Home)
    assert desk.hub.selection.stage == names[0]
    desk.qtbot.keyClick(view, Key.Key_Right)
    assert desk.hub.selection.stage == names[1]
    desk.qtbot.keyClick(view, Key.Key_Left)
    desk.qtbot.keyClick(view, Key.Key_Left)
    assert desk.hub.selection.stage == names[0]
    desk.qtbot.keyClick(view, Key.Key_Down)
    assert view.chip(desk.hub.selection.stage).row == 1
    desk.qtbot.keyClick(view, Key.Key_Up)
    assert view.chip(desk.hub.selection.stage).row == 0
    desk.qtbot.keyClick(view, Key.Key_End)
    assert desk.hub.selection.stage == names[-1]


def test_a_selection_elsewhere_is_described(desk, panel):
    desk.hub.change(None, stage="head")
    assert panel.view.accessibleDescription().startswith("stage head, ")


@pytest.mark.parametrize("kind", list(FailKind))
def test_the_menu_arms_every_kind_once_always_and_later(desk, panel, kind):
    menu = panel.fault_menu("layer.3.qsa.select")
    desk.qtbot.addWidget(menu)
    sub = next(action.menu() for action in menu.actions() if action.text() == str(kind))
    for action in sub.actions():
        action.trigger()
    stage = "layer.3.qsa.select"
    assert desk.sent == [
        ArmFault(stage, str(kind), 1, 0),
        ArmFault(stage, str(kind), 0, 0),
        ArmFault(stage, str(kind), 1, 2),
    ]


def test_the_menu_clears_faults(desk, panel):
    desk.client.receive(0, FaultsChanged((("head", "oom", 1, 0),)))
    desk.client.deliver_now()
    menu = panel.fault_menu("head")
    desk.qtbot.addWidget(menu)
    by_name = {action.text(): action for action in menu.actions()}
    assert by_name["Clear faults here"].isEnabled()
    by_name["Clear faults here"].trigger()
    by_name["Clear all faults"].trigger()
    assert desk.sent == [ClearFaults("head"), ClearFaults()]


def test_the_menu_opens_by_keyboard_on_the_chosen_stage(desk, panel):
    desk.hub.change(None, stage="embed")
    middle = panel.view.rect().center()
    event = QContextMenuEvent(
        QContextMenuEvent.Reason.Keyboard, middle, panel.view.mapToGlobal(middle)
    )
    with desk.qtbot.waitSignal(panel.view.menu_wanted) as caught:
        panel.view.contextMenuEvent(event)
    assert caught.args[0] == "embed"
    menus = [menu for menu in panel.findChildren(QMenu) if menu.isVisible()]
    assert [menu.accessibleName() for menu in menus] == ["Fail at embed"]
    for menu in menus:
        menu.close()


def test_armed_faults_are_drawn_and_counted(desk, panel):
    before = panel.view.grab().toImage()
    desk.client.receive(0, FaultsChanged((("head", "oom", 1, 0), ("embed", "oom", 0, 0))))
    desk.client.deliver_now()
    panel.flush()
    assert panel.armed.text() == "2 faults armed"
    assert panel.view.chip("head").chip.armed == ("oom, next time",)
    assert panel.view.grab().toImage() != before


def test_a_failed_event_of_the_past_is_shown_with_its_banner(desk, panel):
    record = sessions.failed(2)
    desk.client.receive(0, record)
    desk.client.deliver_now()
    desk.client.show(record)
    panel.flush()
    assert panel.banner.text() == (
        "transaction 2 failed at layer.3.qsa.select (nonfinite): public bank unchanged"
    )
    assert panel.view.chip("head").chip.dashed
    shown = panel.scroll_area.viewport().rect().translated(-panel.view.pos())
    assert shown.contains(panel.view.chip("layer.3.qsa.select").rect)


def test_a_refusal_says_that_no_stage_ran(desk, panel):
    desk.client.show(sessions.refused(2))
    panel.flush()
    assert panel.banner.text().startswith("no stage ran: append on sequence 0: not-consecutive")


def test_copy_takes_the_stages_as_text(desk, panel, qapp):
    panel.view.setFocus()
    desk.qtbot.keyClick(panel.view, Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    lines = qapp.clipboard().text().splitlines()
    assert lines[0].startswith("Stage\tState")
    assert len(lines) == 1 + len(sessions.stage_names())
