"""The driver runs tokens: whole chunks, single stages, turns, cancels and faults."""

from __future__ import annotations

import pytest

from engine import commands as c
from engine.engine import append
from engine.events import (
    FaultsChanged,
    FeedChanged,
    StagesChanged,
)
from engine.ops import Fail
from engine.snapshot import CheckResult, Record, Snapshot
from engine.terms import FailKind
from tests.helpers.desk import TINY, Desk
from tests.helpers.engines import good, prompt, session

# running


def test_running_publishes_a_chunk_after_the_other() -> None:
    desk = Desk()
    tokens = tuple(prompt(TINY, 21))
    assert desk.one(c.Feed(0, tokens), FeedChanged).queued == ((0, 21),)
    desk.do(c.SetChunk(8))
    said = desk.do(c.Run())
    spans = [r.positions_written for r in said if isinstance(r, Record)]
    assert spans == [(0, 8), (8, 16), (16, 21)]
    assert desk.last(FeedChanged).queued == ()
    assert not desk.last(FeedChanged).running
    expected = session(TINY)
    good(expected, append(0, 0, list(tokens)))
    assert desk.driver.engine.digests() == expected.digests()  # type: ignore[union-attr]


def test_sequences_take_turns() -> None:
    desk = Desk(mode="fast")
    desk.do(c.Feed(0, (1, 2, 3, 4, 5)))
    desk.do(c.Feed(3, (6, 7, 8), start=100))
    desk.do(c.SetChunk(2))
    said = [r for r in desk.do(c.Run()) if isinstance(r, Record)]
    assert [(r.seq, r.positions_written) for r in said] == [
        (0, (0, 2)),
        (3, (100, 102)),
        (0, (2, 4)),
        (3, (102, 103)),
        (0, (4, 5)),
    ]


def test_running_to_a_position_stops_there() -> None:
    desk = Desk(mode="fast")
    desk.do(c.Feed(0, tuple(range(20))))
    desk.do(c.SetChunk(8))
    desk.do(c.Run(to_position=11))
    view = desk.last(Snapshot).sequences[0]
    assert (view.start, view.stop) == (0, 11)
    assert desk.last(FeedChanged).queued == ((0, 9),)
    assert not desk.last(FeedChanged).running
    desk.do(c.Run())
    assert desk.last(Snapshot).sequences[0].stop == 20


def test_a_pause_ends_after_the_chunk_in_flight() -> None:
    desk = Desk()
    desk.do(c.Feed(0, tuple(range(20))))
    desk.do(c.SetChunk(4))
    desk.do(c.Run(), turns=3)
    assert desk.driver.engine.open is not None  # type: ignore[union-attr]
    desk.do(c.Pause())
    assert desk.driver.engine.open is None  # type: ignore[union-attr]
    assert desk.last(Snapshot).sequences[0].stop == 4
    assert desk.last(FeedChanged).queued == ((0, 16),)
    desk.do(c.Pause())
    assert not desk.driver.has_work


def test_stages_are_stepped_one_by_one() -> None:
    desk = Desk()
    desk.do(c.Feed(0, (1, 2, 3)))
    n = 0
    while not desk.records():
        desk.do(c.StepStage())
        n += 1
        if not desk.records():
            views = desk.last(StagesChanged).stages
            assert [v.state for v in views] == ["done"] * n + ["pending"] * (len(views) - n)
            snapshot = desk.last(Snapshot)
            assert snapshot.open is not None
            assert snapshot.open.next_stage == views[n].name
            assert snapshot.sequences == ()
    assert n == len(views)
    assert desk.records()[0].outcome == "ok"
    assert desk.last(Snapshot).open is None


def test_while_a_transaction_is_open_others_are_busy() -> None:
    desk = Desk()
    desk.do(c.Do(append(0, 0, [1, 2])))
    desk.do(c.Feed(0, (3, 4)))
    desk.do(c.StepStage())
    record = desk.one(c.Do(append(1, 0, [1])), Record)
    assert record.result == "rejected: busy"
    assert "open" in desk.trouble(c.Undo())
    desk.trouble(c.LoadSession("none.safetensors"))
    assert desk.one(c.Discard(), Record).outcome == "cancelled"
    assert desk.last(FeedChanged).queued == ((0, 2),)
    assert desk.last(Snapshot).sequences[0].stop == 2
    assert "no transaction" in desk.trouble(c.Discard())
    assert "no transaction" in desk.trouble(c.Finish())
    desk.do(c.StepStage())
    assert desk.one(c.Finish(), Record).outcome == "ok"
    assert desk.last(FeedChanged).queued == ()


def test_chunks_and_tokens_are_stepped() -> None:
    desk = Desk()
    desk.do(c.Feed(0, tuple(range(12))))
    desk.do(c.SetChunk(5))
    assert desk.one(c.StepChunk(), Record).n_tokens == 5
    assert desk.one(c.StepToken(), Record).n_tokens == 1
    desk.do(c.StepStage())
    assert desk.one(c.StepChunk(), Record).n_tokens == 5
    assert desk.one(c.StepChunk(), Record).n_tokens == 1
    for command in (c.StepChunk(), c.StepToken(), c.StepStage(), c.Run()):
        assert "no tokens are queued" in desk.trouble(command)


def test_tokens_that_are_wrong_stay_queued_and_stop_the_run() -> None:
    desk = Desk(mode="fast")
    desk.do(c.Feed(0, (1, 2, 999)))
    desk.do(c.SetChunk(2))
    said = desk.do(c.Run())
    assert [r.result for r in said if isinstance(r, Record)] == ["ok", "rejected: token"]
    assert desk.last(FeedChanged).queued == ((0, 1),)
    assert not desk.last(FeedChanged).running
    desk.do(c.ClearFeed(0))
    assert desk.last(FeedChanged).queued == ()


def test_a_cancel_ends_the_chunk_and_the_run() -> None:
    desk = Desk()
    desk.do(c.Feed(0, tuple(range(20))))
    desk.do(c.Run(), turns=5)
    desk.cancel.set()
    desk.do(c.ClearFaults())
    assert desk.records()[-1].outcome == "cancelled"
    assert desk.last(Snapshot).sequences == ()
    assert not desk.driver.has_work
    desk.do(c.Run())
    assert desk.last(Snapshot).sequences[0].stop == 20


# faults


@pytest.mark.parametrize("mode", ["inspect", "fast"])
def test_the_third_chunk_meets_a_value_that_is_not_finite(mode: str) -> None:
    """First light: two chunks succeed, the third fails at a choice of groups, the next is good."""
    tokens = prompt(TINY, 40)
    desk = Desk(mode=mode)
    desk.do(c.SetChunk(8))
    armed = desk.one(c.ArmFault("layer.3.qsa.select", "nonfinite", 1, 2), FaultsChanged)
    assert armed.faults == (("layer.3.qsa.select", "nonfinite", 1, 2),)
    desk.do(c.Feed(0, tuple(tokens)))
    said = [r for r in desk.do(c.Run()) if isinstance(r, Record)]
    assert [r.outcome for r in said] == ["ok", "ok", "failed"]
    bad = said[-1]
    assert (bad.stage, bad.kind) == ("layer.3.qsa.select", "nonfinite")
    assert bad.bad_value.startswith("NaN in")
    assert "sequence 0" in bad.bad_value
    assert bad.digests_before == bad.digests_after == said[1].digests_after
    assert [v.name for v in bad.stages if v.state == "failed"] == ["layer.3.qsa.select"]
    view = desk.last(Snapshot).sequences[0]
    assert (view.start, view.stop) == (0, 16)
    assert desk.last(FeedChanged).queued == ((0, 24),)
    assert desk.last(FaultsChanged).faults == ()
    said = [r for r in desk.do(c.Run()) if isinstance(r, Record)]
    assert [r.outcome for r in said] == ["ok"] * 3
    whole = session(TINY)
    good(whole, append(0, 0, tokens))
    assert desk.driver.engine.digests() == whole.digests()  # type: ignore[union-attr]
    result = [r for r in desk.do(c.RunCheck("same-as-fresh")) if isinstance(r, CheckResult)]
    assert result[-1].ok


def test_faults_are_armed_told_and_cleared() -> None:
    desk = Desk()
    desk.do(c.ArmFault("head", "oom", 0))
    desk.do(c.ArmFault("embed", "cancel", 2, 1))
    assert desk.last(FaultsChanged).faults == (("head", "oom", 0, 0), ("embed", "cancel", 2, 1))
    desk.do(c.ClearFaults("head"))
    assert desk.last(FaultsChanged).faults == (("embed", "cancel", 2, 1),)
    desk.do(c.ClearFaults())
    assert desk.last(FaultsChanged).faults == ()
    for bad in (
        c.ArmFault("no.such.stage", "oom"),
        c.ArmFault("head", "boredom"),
        c.ArmFault("head", "oom", -1),
        c.ArmFault("head", "oom", 1, -1),
    ):
        desk.trouble(bad)
    assert desk.last(FaultsChanged).faults == ()


def test_a_fault_that_is_armed_while_a_transaction_is_open_waits_for_the_next() -> None:
    desk = Desk()
    desk.do(c.Feed(0, (1, 2)))
    desk.do(c.StepStage())
    desk.do(c.ArmFault("head", "structural"))
    assert desk.one(c.Finish(), Record).outcome == "ok"
    assert desk.one(c.Do(append(0, 2, [1])), Record).outcome == "failed"


@pytest.mark.parametrize("kind", list(FailKind))
def test_a_fail_op_is_an_op_like_others(kind: FailKind) -> None:
    desk = Desk(mode="fast")
    desk.do(c.Do(append(0, 0, [1, 2])))
    record = desk.one(c.Do(Fail("verify", kind, append(0, 2, [3]))), Record)
    assert record.result == f"rejected: {kind}"
    assert "verify" in record.sentence
    assert "no such stage" in desk.trouble(c.Do(Fail("load", kind, append(0, 2, [3]))))
    assert desk.one(c.Do(append(0, 2, [3])), Record).outcome == "ok"
