"""The fault injector: what the form arms, the armed list, the proof; on the real engine, too."""

from __future__ import annotations

import itertools

import pytest
from PySide6.QtCore import Qt

from app.views.faults import FaultPanel
from app.views.main_window import MainWindow
from engine.commands import ArmFault, ClearFaults, Feed, Run
from engine.events import FaultsChanged, SessionOpened
from tests.helpers import sessions


@pytest.fixture
def panel(desk):
    panel = desk.open(FaultPanel, (420, 560))
    sessions.fill(desk.client, sessions.journal(31), sessions.sequence(0, 0, 112))
    panel.flush()
    return panel


def pick(panel, stage, kind, when):
    panel.stage.setCurrentText(stage)
    panel.kind.setCurrentIndex(panel.kind.findData(kind))
    panel.when.setCurrentIndex(panel.when.findData(when))


def test_all_stages_of_the_session_are_offered(panel):
    names = [panel.stage.itemText(n) for n in range(panel.stage.count())]
    assert names == [name for name, _ in sessions.stage_names()]


@pytest.mark.parametrize(
    ("when", "times", "skip"), [("once", 1, 0), ("always", 0, 0), ("nth", 1, 4)]
)
def test_the_button_arms_what_the_form_says(desk, panel, when, times, skip):
    pick(panel, "layer.3.qsa.select", "nonfinite", when)
    panel.nth.setValue(5)
    assert panel.nth.isEnabled() == (when == "nth")
    desk.qtbot.mouseClick(panel.arm, Qt.MouseButton.LeftButton)
    assert desk.sent == [ArmFault("layer.3.qsa.select", "nonfinite", times, skip)]
    assert desk.hub.selection.stage == "layer.3.qsa.select"


def test_enter_in_the_stage_arms(desk, panel):
    pick(panel, "verify", "oom", "once")
    desk.qtbot.keyClick(panel.stage.lineEdit(), Qt.Key.Key_Return)
    assert desk.sent == [ArmFault("verify", "oom", 1, 0)]


@pytest.mark.parametrize("key", [Qt.Key.Key_Return, Qt.Key.Key_Enter])
def test_the_first_enter_in_the_window_arms(qtbot, settings, key):
    window = MainWindow(settings)
    qtbot.addWidget(window)
    window.show()
    window.build_panels()
    sessions.fill(window.client, sessions.journal(3), sessions.sequence(0, 0, 12))
    window.client.receive(1, SessionOpened("tiny", "cpu", sessions.stage_names(), (), ()))
    window.client.deliver_now()
    panel = window.docks.panels["faults"]
    window.go_to_panel("faults")
    panel.flush()
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow)
    panel.kind.setFocus()
    qtbot.keyClick(window.focusWidget(), Qt.Key.Key_Backtab)
    assert window.focusWidget() is panel.stage
    assert panel.stage.lineEdit().hasSelectedText()
    sent = []
    window.client.sent.connect(lambda ticket, command: sent.append(command))
    qtbot.keyClick(window.focusWidget(), key)
    assert sent == [ArmFault(panel.stage.currentText(), "structural", 1, 0)]


def test_an_unknown_stage_is_refused_in_place(desk, panel):
    panel.stage.setEditText("layer.9")
    panel.arm_fault()
    assert desk.sent == []
    assert panel.explain.text() == "expected a stage of the plan, given 'layer.9'"


def test_a_stage_chosen_elsewhere_is_taken(desk, panel):
    desk.hub.change(None, stage="head")
    assert panel.stage.currentText() == "head"


def test_the_armed_list_is_cleared_row_by_row_or_whole(desk, panel):
    assert panel.armed_mark.text() == "No fault is armed"
    desk.client.receive(0, FaultsChanged((("head", "oom", 1, 0), ("verify", "status", 0, 0))))
    desk.client.deliver_now()
    panel.flush()
    assert panel.armed_mark.text() == "Armed (2)"
    panel.armed.choose_row(1)
    desk.qtbot.mouseClick(panel.clear_one, Qt.MouseButton.LeftButton)
    desk.qtbot.mouseClick(panel.clear_all, Qt.MouseButton.LeftButton)
    assert desk.sent == [ClearFaults("verify"), ClearFaults()]


def test_the_last_failure_is_proved(panel):
    assert panel.result.text().startswith("event 30: append on sequence 0: nonfinite at stage")
    assert panel.verdict.text() == "failed: all 13 owners unchanged, byte for byte"
    assert panel.proof.table.rowCount() == 13


def test_the_shown_event_is_proved_in_time_travel(desk, panel):
    desk.client.show(desk.client.records[0])
    panel.flush()
    assert panel.verdict.text() == "published: 13 of 13 owners changed, one flip"


def test_a_real_nan_in_the_tiny_model_changes_no_owner(desk):
    """The first light of the whole project: the third chunk fails, the fourth succeeds."""
    desk.drive("qwen4exp-tiny")
    panel = desk.open(FaultPanel, (420, 560))
    pick(panel, "layer.3.qsa.select", "nonfinite", "nth")
    panel.nth.setValue(3)
    panel.arm_fault()
    desk.client.send(Feed(0, tuple(range(32))))
    desk.client.send(Run())
    desk.settle()
    panel.flush()
    assert [record.outcome for record in desk.client.records] == ["ok", "ok", "failed"]
    failed = desk.client.records[-1]
    assert failed.digests_before == failed.digests_after
    assert panel.verdict.text() == "failed: all 13 owners unchanged, byte for byte"
    assert "NaN" in panel.result.text()
    desk.client.send(Run())
    desk.settle()
    assert desk.client.records[-1].outcome == "ok"
    assert desk.client.snapshot.sequences[0].stop == 32


LONG = "append on sequence 0: command at stage verify (injected, the library says: " + "words " * 30


@pytest.mark.parametrize("size", [(420, 560), (432, 291), (240, 120)])
def test_the_last_result_is_never_cut(desk, panel, size):
    for text in ("short", LONG, "short"):
        panel.result.setText(text)
        panel.resize(*size)
        desk.qtbot.wait(1)
        assert panel.result.height() >= panel.result.heightForWidth(panel.result.width())
    one_line = panel.result.height()
    panel.result.setText(LONG)
    desk.qtbot.wait(1)
    assert panel.result.height() > 2 * one_line


def test_in_the_window_no_part_of_the_last_result_lies_over_another(qtbot, settings):
    window = MainWindow(settings)
    qtbot.addWidget(window)
    window.resize(1100, 700)
    window.show()
    window.build_panels()
    sessions.fill(window.client, sessions.journal(31), sessions.sequence(0, 0, 112))
    window.client.deliver_now()
    window.go_to_panel("faults")
    panel = window.docks.panels["faults"]
    panel.flush()
    panel.result.setText(LONG)
    qtbot.wait(30)
    parts = (panel.result_title, panel.result, panel.verdict, panel.proof)
    shown = [part.geometry() for part in parts if part.isVisible()]
    assert len(shown) >= 3
    for above, below in itertools.pairwise(shown):
        assert above.bottom() < below.top()
