"""The player's and the recorder's logic, files and exported tests."""

from __future__ import annotations

import json

import pytest

from app.models.scenario import Player, Recorder, file_text, pytest_text, slug
from engine import cases
from tests.helpers import sessions

TWO = {
    "case": "two",
    "capacity": 64,
    "ops": [
        {"op": "append", "seq": 0, "positions": [0, 1, 2, 3, 4]},
        {"op": "append", "seq": 0, "positions": [6]},
    ],
    "expect": [
        "ok",
        "rejected: gap",
        {"final": {"0": {"run": [0, 4], "complete_groups": 1, "tail": 1, "holes": []}}},
    ],
}


def played(*records):
    player = Player(dict(TWO))
    for record in records:
        player.played(record)
    return player


GAP = sessions.refused(
    2, result="rejected: gap", sequences=(sessions.sequence(0, 0, 5),), reason="gap"
)


def test_nothing_loaded():
    assert Player().verdict()[0] == "no scenario open"
    assert Player().next_op is None
    assert Player().table().n_rows == 0


def test_steps_are_compared_with_what_is_expected():
    player = played(sessions.record(1, 0, 5))
    assert player.verdict() == ("1 of 2 ops done, as expected so far", "running")
    assert [row.cells[4].text for row in player.table().rows] == ["as expected", "next"]
    assert player.table().rows[0].jump.event == 1


def test_all_as_expected():
    player = played(sessions.record(1, 0, 5), GAP)
    assert player.verdict() == ("all 2 ops as expected", "done")


def test_the_first_difference_is_named():
    player = played(sessions.record(1, 0, 5), sessions.record(2, 5, 6))
    assert player.verdict() == ("op 1: expected rejected: gap, given ok", "failed")
    assert player.first_difference() == 1


def test_a_different_end_is_named():
    other = sessions.refused(2, result="rejected: gap", sequences=(sessions.sequence(0, 0, 4),))
    player = played(sessions.record(1, 0, 5), other)
    assert player.verdict() == ("sequence 0: expected run [0, 4], given [0, 3]", "failed")


def test_restart_forgets_the_results():
    player = played(sessions.record(1, 0, 5))
    player.restart()
    assert player.results == []
    assert player.next_op == TWO["ops"][0]


def test_a_recording_is_a_valid_scenario_that_expects_what_happened():
    recorder = Recorder()
    recorder.take(sessions.record(1, 0, 5))
    assert recorder.ops == []
    recorder.start(4, 64, None, "")
    recorder.take(sessions.record(1, 0, 5))
    recorder.take(sessions.failed(2, "verify", "oom", op_json=json.dumps(TWO["ops"][1])))
    scenario = recorder.scenario("seen", "Seen")
    read = cases.parse(file_text(scenario).encode())
    assert read.expect == ("ok", "rejected: oom")
    assert json.loads(file_text(scenario))["ops"][1] == {
        "op": "fail",
        "stage": "verify",
        "kind": "oom",
        "during": {"op": "append", "seq": 0, "positions": [6]},
    }
    assert dict(read.final)[0].run == (0, 31)


def test_an_undo_takes_the_last_op_out_of_the_recording():
    recorder = Recorder()
    recorder.start(4, 64, None, "")
    recorder.take(sessions.record(1, 0, 5, sequences=(sessions.sequence(0, 0, 5),)))
    recorder.take(sessions.record(2, 5, 6, sequences=(sessions.sequence(0, 0, 6),)))
    undo = {"op": "undo", "op_json": '{"op": "undo"}', "positions_written": None}
    recorder.take(sessions.record(3, 0, 0, sequences=(sessions.sequence(0, 0, 5),), **undo))
    assert len(recorder.ops) == 1
    assert recorder.scenario("x")["expect"][-1]["final"]["0"]["run"] == [0, 4]


def test_files_are_read_back():
    assert json.loads(file_text(TWO))["ops"] == TWO["ops"]


@pytest.mark.parametrize(
    ("name", "wanted"),
    [("A hole, refused", "a-hole-refused"), ("", "scenario"), ("--", "scenario")],
)
def test_names_for_files(name, wanted):
    assert slug(name) == wanted


def test_an_exported_test_is_python_that_holds_the_scenario():
    text = pytest_text(TWO)
    space: dict = {}
    exec(compile(text, "exported", "exec"), space)
    assert json.loads(space["SCENARIO"])["ops"] == TWO["ops"]
    assert callable(space["test_two"])
