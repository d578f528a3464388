"""Scenarios without a model: fail ops, finals, and what makes a scenario malformed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from engine.cases import Final, parse
from engine.errors import Malformed, StepFailed
from engine.replay import Replay, replay
from engine.terms import FailKind, TxnStage

APPEND = {"op": "append", "seq": 0, "positions": [0, 1, 2, 3, 4]}
MORE = {"op": "append", "seq": 0, "positions": [5, 6]}


def run(*ops: dict[str, Any], **fields: Any) -> Replay:
    value = {"capacity": 12, "ops": list(ops), **fields}
    return replay(parse(json.dumps(value).encode(), "x.json"))


def fail(stage: str, during: dict[str, Any], kind: str = "oom", **more: Any) -> dict[str, Any]:
    return {"op": "fail", "stage": stage, "kind": kind, "during": during, **more}


@pytest.mark.parametrize("kind", list(FailKind))
@pytest.mark.parametrize("stage", [s for s in TxnStage if s is not TxnStage.LOAD])
def test_a_failed_op_is_rejected_with_its_kind_and_leaves_nothing(stage: str, kind: str) -> None:
    found = run(APPEND, fail(stage, MORE, kind), MORE)
    assert found.results == ("ok", f"rejected: {kind}", "ok")
    assert found.histories[1] is found.histories[0]
    failure = found.refusals[1]
    assert isinstance(failure, StepFailed)
    assert (failure.stage, failure.kind, failure.op, failure.op_number) == (
        stage,
        kind,
        "append",
        1,
    )


@pytest.mark.parametrize("times", [1, 2, 7, "always"])
def test_a_fault_is_gone_after_its_op_however_often_it_fires(times: Any) -> None:
    found = run(APPEND, fail("write", MORE, times=times), MORE)
    assert found.results == ("ok", "rejected: oom", "ok")


def test_an_illegal_op_in_flight_gives_its_own_reason() -> None:
    gap = {"op": "append", "seq": 0, "positions": [9]}
    assert run(APPEND, fail("write", gap)).results[1] == "rejected: gap"


READS = [
    {"op": "restore", "seq": 1, "slot": "a"},
    {"op": "fork", "src": 0, "dst": 1},
    {"op": "copy", "src": 0, "dst": 1},
    {"op": "rewind", "seq": 0, "to": 3},
    {"op": "remove", "seq": 0, "start": 3},
    {"op": "transaction", "ops": [MORE, {"op": "fork", "src": 0, "dst": 1}]},
]
READS_NOT = [
    MORE,
    {"op": "evict_front", "seq": 0, "count": 1},
    {"op": "shift", "seq": 0, "delta": 4},
    {"op": "reset", "seq": 0},
    {"op": "save", "seq": 0, "slot": "b"},
    {"op": "remove", "seq": 0, "stop": 2},
    {"op": "transaction", "ops": [MORE]},
]


@pytest.mark.parametrize("during", READS, ids=lambda op: op["op"])
def test_load_is_a_stage_of_what_reads_a_state_back(during: dict[str, Any]) -> None:
    found = run(APPEND, {"op": "save", "seq": 0, "slot": "a"}, fail("load", during))
    assert found.results[2] == "rejected: oom"


@pytest.mark.parametrize("during", READS_NOT, ids=lambda op: op["op"])
def test_load_of_anything_else_makes_the_scenario_malformed(during: dict[str, Any]) -> None:
    with pytest.raises(Malformed, match=f"op 1 .fail.: {during['op']} has no stage load"):
        run(APPEND, fail("load", during))


@pytest.mark.parametrize("stage", ["head", "LOAD", "", "write ", "layer.0.gdn"])
def test_a_stage_that_does_not_exist_makes_the_scenario_malformed(stage: str) -> None:
    with pytest.raises(Malformed, match="the stage is unknown"):
        run(APPEND, fail(stage, MORE))
    scenario = parse(json.dumps({"capacity": 9, "ops": [fail(stage, APPEND)]}).encode())
    assert replay(scenario, [stage]).results == ("rejected: oom",)


def test_final_names_every_sequence_that_the_scenario_mentions() -> None:
    found = run(
        APPEND,
        {"op": "fork", "src": 3, "dst": 4},
        fail("write", {"op": "append", "seq": 7, "positions": [0]}),
        {"op": "transaction", "ops": [{"op": "reset", "seq": 9}]},
    )
    assert dict(found.final) == {
        0: Final((0, 4), 1, 1),
        3: Final(None, 0, 0),
        4: Final(None, 0, 0),
        7: Final(None, 0, 0),
        9: Final(None, 0, 0),
    }


def test_mismatches_are_sentences() -> None:
    end = {"final": {"0": {"run": [0, 3], "complete_groups": 1, "tail": 0, "holes": []}}}
    found = run(APPEND, expect=["rejected: gap", end])
    assert found.mismatches == (
        "op 0 (append): expected rejected: gap, got ok",
        "sequence 0: expected 0 to 3 (1 groups, tail 0), got 0 to 4 (1 groups, tail 1)",
    )
    assert not found.ok


def test_the_window_of_a_scenario_is_kept() -> None:
    long = {"op": "append", "seq": 0, "positions": list(range(11))}
    found = run(long, window=8)
    assert dict(found.final) == {0: Final((4, 10), 1, 3)}


def test_a_scenario_without_ops_or_expectations_is_fine() -> None:
    assert run().ok
    assert run(APPEND).ok
