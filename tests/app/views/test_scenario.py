"""The scenario player on the real engine: load, step, play, record, save, export."""

from __future__ import annotations

import json
import runpy

import pytest
from PySide6.QtCore import Qt

from app import resources
from app.models.scenario import file_text, pytest_text
from app.views.scenario import ScenarioPanel
from engine import cases

LEFT = Qt.MouseButton.LeftButton


@pytest.fixture
def panel(desk):
    desk.drive()
    panel = desk.open(ScenarioPanel, (900, 300))
    panel.flush()
    return panel


def settle(desk, panel):
    desk.settle()
    panel.flush()


def shipped(name):
    return str(next(path for path in resources.scenarios() if path.stem == name))


def test_a_scenario_is_played_op_by_op(desk, panel):
    assert panel.load(shipped("hole-refused"))
    settle(desk, panel)
    n_ops = panel.view.table.rowCount()
    for done in range(n_ops):
        assert panel.verdict.text() == f"{done} of {n_ops} ops done, as expected so far"
        desk.qtbot.mouseClick(panel.step, LEFT)
        settle(desk, panel)
    assert panel.verdict.text() == f"all {n_ops} ops as expected"
    assert not panel.step.isEnabled()


@pytest.mark.parametrize("name", ["left-padding", "wrap", "failed-stage"])
def test_play_all_of_a_shipped_scenario(desk, panel, name):
    panel.load(shipped(name))
    settle(desk, panel)
    desk.qtbot.mouseClick(panel.play, LEFT)
    settle(desk, panel)
    assert panel.verdict.text().startswith("all ")
    assert panel.verdict.text().endswith("as expected")


def test_it_stops_at_the_first_difference(desk, panel, tmp_path):
    path = tmp_path / "wrong.json"
    ops = [{"op": "append", "seq": 0, "positions": [n]} for n in (0, 1, 2)]
    path.write_text(
        json.dumps({"case": "wrong", "capacity": 8, "ops": ops,
                    "expect": ["ok", "rejected: gap", "ok"]})
    )  # fmt: skip
    panel.load(str(path))
    settle(desk, panel)
    panel.play_all()
    settle(desk, panel)
    assert panel.verdict.text() == "op 1: expected rejected: gap, given ok"
    assert [row.cells[4].text for row in panel.view.table.source.rows] == [
        "as expected",
        "differs",
        "next",
    ]


def test_a_done_row_leads_to_its_event(desk, panel):
    panel.load(shipped("hole-refused"))
    settle(desk, panel)
    panel.play_all()
    settle(desk, panel)
    panel.view.setFocus()
    panel.view.choose_row(1)
    assert desk.hub.selection.event == desk.client.records[1].number


def test_the_row_follows_the_op_that_ran_last(desk, panel):
    panel.load(shipped("hole-refused"))
    settle(desk, panel)
    assert panel.view.rows() == [0]
    for done in range(2):
        desk.qtbot.mouseClick(panel.step, LEFT)
        settle(desk, panel)
        assert panel.view.rows() == [done]
    desk.qtbot.mouseClick(panel.play, LEFT)
    settle(desk, panel)
    assert panel.view.rows() == [panel.view.table.rowCount() - 1]
    assert desk.hub.selection.event is None, "following chooses no event"


def test_a_row_chosen_by_hand_stays_chosen_while_ops_are_played(desk, panel):
    panel.load(shipped("hole-refused"))
    settle(desk, panel)
    panel.step_op()
    settle(desk, panel)
    panel.play_all()
    panel.view.choose_row(2)
    settle(desk, panel)
    assert panel.player.next_op is None
    assert panel.view.rows() == [2]
    desk.qtbot.mouseClick(panel.restart, LEFT)
    settle(desk, panel)
    desk.qtbot.mouseClick(panel.play, LEFT)
    settle(desk, panel)
    assert panel.view.rows() == [panel.view.table.rowCount() - 1]


def test_a_bad_file_is_said_in_place_and_changes_nothing(desk, panel, tmp_path):
    panel.load(shipped("hole-refused"))
    settle(desk, panel)
    before = panel.player.scenario
    path = tmp_path / "bad.json"
    path.write_text('{"ops": 7}')
    assert not panel.load(str(path))
    assert "bad.json" in panel.verdict.text()
    assert panel.player.scenario is before
    assert not panel.load(str(tmp_path / "absent.json"))
    assert "absent.json" in panel.verdict.text()


def test_what_is_done_is_recorded_and_plays_again(desk, panel, tmp_path):
    desk.qtbot.mouseClick(panel.record, LEFT)
    desk.do(op="append", seq=0, positions=[0, 1, 2, 3, 4])
    desk.do(op="append", seq=0, positions=[7])
    desk.do(op="fail", stage="verify", kind="oom", during={"op": "reset", "seq": 0})
    desk.do(op="fork", src=0, dst=3, stop=4)
    panel.flush()
    assert panel.record.text() == "Recording (4)"
    panel.name.setText("My case")
    desk.qtbot.mouseClick(panel.record, LEFT)
    panel.flush()
    assert panel.verdict.text() == "all 4 ops as expected"
    path = tmp_path / "my-case.json"
    panel.write(str(path), file_text)
    read = cases.load(path)
    assert read.case == "my-case"
    assert read.expect == ("ok", "rejected: gap", "rejected: oom", "ok")
    panel.load(str(path))
    settle(desk, panel)
    panel.play_all()
    settle(desk, panel)
    assert panel.verdict.text() == "all 4 ops as expected"


def test_an_exported_test_passes_and_fails_when_the_end_is_another(desk, panel, tmp_path):
    desk.qtbot.mouseClick(panel.record, LEFT)
    desk.do(op="append", seq=0, positions=[0, 1, 2])
    desk.qtbot.mouseClick(panel.record, LEFT)
    good, bad = tmp_path / "test_good.py", tmp_path / "test_bad.py"
    panel.write(str(good), pytest_text)
    bad.write_text(good.read_text().replace('"tail": 3', '"tail": 2'))
    run = runpy.run_path(str(good))
    run["test_recorded"](tmp_path)
    with pytest.raises(AssertionError):
        runpy.run_path(str(bad))["test_recorded"](tmp_path)


def test_a_place_that_can_not_be_written_is_said_in_place(desk, panel, tmp_path):
    panel.load(shipped("hole-refused"))
    settle(desk, panel)
    panel.write(str(tmp_path / "no" / "such" / "x.json"), file_text)
    assert "No such file" in panel.verdict.text()


def test_a_scenario_opened_by_the_window_is_shown(desk, panel):
    scenario = json.loads(cases.dump(cases.load(shipped("hole-refused"))))
    desk.client.scenario_opened.emit(scenario)
    panel.flush()
    assert panel.view.table.rowCount() == len(scenario["ops"])
    assert panel.step.isEnabled()


@pytest.mark.parametrize("size", [(900, 300), (300, 200)])
def test_the_note_of_a_scenario_is_never_cut(desk, panel, size):
    assert panel.load(shipped("demo"))
    settle(desk, panel)
    panel.resize(*size)
    desk.qtbot.wait(1)
    heading = panel.heading
    assert len(heading.text()) > 80
    assert heading.height() >= heading.heightForWidth(heading.width())


def test_a_scenario_without_a_note_has_its_title_alone(desk, panel, tmp_path):
    path = tmp_path / "mine.json"
    path.write_text('{"ops": [{"op": "append", "seq": 0, "positions": [0]}], "capacity": 8}')
    assert panel.load(str(path))
    settle(desk, panel)
    assert panel.heading.text() == "mine"
