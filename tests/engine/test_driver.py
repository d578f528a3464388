"""The driver: every command, the journal it makes, and trouble as a sentence."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any, TypeVar, get_args

import numpy as np
import pytest

from engine import commands as c
from engine.capture import Capture
from engine.driver import _HANDLERS, Driver
from engine.engine import append
from engine.events import (
    FaultsChanged,
    FeedChanged,
    LimitsKnown,
    SessionOpened,
    StagesChanged,
    Trial,
    Trouble,
)
from engine.ops import EvictFront, Fail, Fork, Reset, Rewind, Save
from engine.progress import CancelToken, Progress
from engine.snapshot import ArraySlice, CheckResult, Record, Snapshot
from engine.terms import FailKind, TxnStage
from tests.helpers import golden
from tests.helpers.engines import good, prompt, session

T = TypeVar("T")
TINY = "qwen4exp-tiny"


class Desk:
    """A driver, and everything that it said."""

    def __init__(self, folder: str | None = TINY, **settings: Any) -> None:
        self.said: list[Any] = []
        self.tickets: list[int] = []
        self.cancel = CancelToken()
        self.driver = Driver(self.hear, self.cancel)
        if folder is not None or settings:
            self.do(c.OpenModel(folder, "cpu", **settings))

    def hear(self, ticket: int, body: Any) -> None:
        self.tickets.append(ticket)
        self.said.append(body)

    def do(self, command: c.Command, turns: int | None = None) -> list[Any]:
        """One command and all the turns that it asks for; what was said meanwhile."""
        start = len(self.said)
        self.driver.handle(command, 7)
        n = 0
        while self.driver.has_work and (turns is None or n < turns):
            self.driver.turn()
            n += 1
            assert n < 20_000
        return self.said[start:]

    def one(self, command: c.Command, kind: type[T]) -> T:
        """The only event of a kind that a command gave."""
        found = [body for body in self.do(command) if isinstance(body, kind)]
        assert len(found) == 1, found
        return found[0]

    def trouble(self, command: c.Command) -> str:
        """The sentence of a command that could not be carried out; the session is as before."""
        engine = self.driver.engine
        before = None if engine is None else engine.digests()
        sentence = self.one(command, Trouble).sentence
        assert sentence
        assert "\n" not in sentence
        assert before is None or self.driver.engine is None or engine.digests() == before  # type: ignore[union-attr]
        return sentence

    def last(self, kind: type[T]) -> T:
        return next(body for body in reversed(self.said) if isinstance(body, kind))

    def records(self) -> list[Record]:
        return [body for body in self.said if isinstance(body, Record)]


def test_every_command_has_a_handler() -> None:
    assert set(_HANDLERS) == set(get_args(c.Command))


def test_before_a_session_everything_is_trouble() -> None:
    samples: list[Any] = [
        c.Do(append(0, 0, [1])),
        c.Try(append(0, 0, [1])),
        c.Feed(0, (1,)),
        c.SetChunk(1),
        c.SetMode("fast"),
        c.ArmFault("head", "oom"),
        c.ReadArray("logits", -1, "", 0),
        c.RunCheck("audit"),
        c.SaveSession("a"),
        c.LoadSession("a"),
        c.StartCapture("a"),
        c.Limits(0),
        *(kind() for kind in (c.Undo, c.Run, c.Pause, c.StepStage, c.StepChunk, c.StepToken)),
        *(kind() for kind in (c.Finish, c.Discard, c.ClearFaults, c.StopCapture)),
        c.ClearFeed(0),
    ]
    assert {type(s) for s in samples} == set(get_args(c.Command)) - {c.OpenModel}
    desk = Desk(None)
    for command in samples:
        assert "no session" in desk.trouble(command)
    desk.driver.turn()
    desk.driver.close()
    assert not desk.driver.has_work


def test_opening_tells_stages_owners_and_arrays() -> None:
    desk = Desk()
    opened = desk.last(SessionOpened)
    names = [name for name, _ in opened.stages]
    assert [n for n in names if n in TxnStage.__members__.values()] == list(TxnStage)
    assert names.index("write") < names.index("embed") < names.index("head") < len(names) - 4
    assert ("qsa.kv", "position") in opened.owners
    assert ("qsa.kv", 3, "k") in opened.arrays
    assert desk.last(Snapshot).backend == "cpu"
    assert set(desk.tickets) == {7}


@pytest.mark.parametrize(
    ("command", "part"),
    [
        (c.OpenModel("no-such-model"), "no such model"),
        (c.OpenModel(TINY, backend="abacus"), "backend"),
        (c.OpenModel(None, group_size=0), "group_size"),
        (c.OpenModel(None, capacity=0), "capacity"),
        (c.OpenModel(None, window=5), "window"),
        (c.OpenModel(None, mode="slow"), "inspect or fast"),
    ],
)
def test_a_session_that_cannot_be_opened_leaves_the_present_one(
    command: c.OpenModel, part: str
) -> None:
    desk = Desk()
    desk.do(c.Do(append(0, 0, [1, 2])))
    engine = desk.driver.engine
    assert part in desk.trouble(command)
    assert desk.driver.engine is engine
    assert desk.one(c.Do(append(0, 2, [3])), Record).outcome == "ok"


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


# ops, trials, undo


def test_a_trial_does_nothing() -> None:
    desk = Desk()
    desk.do(c.Do(append(0, 0, prompt(TINY, 70))))
    before = desk.driver.engine.digests()  # type: ignore[union-attr]
    record = desk.one(c.Try(EvictFront(0, 6)), Trial).record
    assert record.outcome == "ok"
    assert [(v.start, v.stop) for v in record.sequences] == [(6, 70)]
    record = desk.one(c.Try(append(0, 80, [1])), Trial).record
    assert (record.reason, record.nearest) == ("gap", 70)
    assert desk.one(c.Try(Fail("head", FailKind.OOM, Fork(0, 1))), Trial).record.outcome == "ok"
    assert desk.driver.engine.digests() == before  # type: ignore[union-attr]
    assert desk.driver.engine.flips == 1  # type: ignore[union-attr]


def test_undo_brings_the_state_before_back_once() -> None:
    desk = Desk()
    first = desk.one(c.Do(append(0, 0, [1, 2, 3])), Record)
    second = desk.one(c.Do(append(0, 3, [4])), Record)
    undone = desk.one(c.Undo(), Record)
    assert undone.op == "undo"
    assert undone.digests_before == second.digests_after
    assert undone.digests_after == first.digests_after
    assert desk.last(Snapshot).sequences[0].stop == 3
    desk.trouble(c.Undo())
    again = desk.one(c.Do(append(0, 3, [4])), Record)
    assert again.digests_after == second.digests_after


# looking


def test_arrays_are_read_and_named_when_they_are_not_there() -> None:
    desk = Desk()
    desk.do(c.Do(append(2, 40, prompt(TINY, 10))))
    engine = desk.driver.engine
    assert engine is not None
    found = desk.one(c.ReadArray("logits", -1, "", 2), ArraySlice)
    assert np.array_equal(found.values, engine.logits(2))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="read-only"):
        found.values[0] = 1
    rows = desk.one(c.ReadArray("qsa.kv", 3, "k", 2, "public", 43, 45), ArraySlice)
    assert (rows.start, len(rows.values)) == (43, 2)
    everything = desk.one(c.ReadArray("qsa.kv", 3, "k", 2), ArraySlice)
    assert np.array_equal(everything.values[3:5], rows.values)
    for bad in (
        c.ReadArray("nothing", -1, "", 2),
        c.ReadArray("logits", 3, "", 2),
        c.ReadArray("qsa.kv", 3, "x", 2),
        c.ReadArray("logits", -1, "", 77),
        c.ReadArray("logits", -1, "", 2, "secret"),
    ):
        desk.trouble(bad)


def test_limits_name_what_is_legal() -> None:
    desk = Desk()
    desk.do(c.Do(append(0, 0, prompt(TINY, 70))))
    known = desk.one(c.Limits(0), LimitsKnown)
    rows = {row.op: row for row in known.limits}
    assert (rows["append at"].nearest, rows["evict_front"].farthest) == (70, 70)
    assert desk.one(c.Limits(9), LimitsKnown).seq == 9


@pytest.mark.parametrize("name", ["same-as-fresh", "audit", "boundary-sweep"])
def test_checks_tell_progress_and_a_result(name: str) -> None:
    desk = Desk(None, group_size=4)
    desk.do(c.Do(append(0, 3, [0] * 9)))
    said = desk.do(c.RunCheck(name))
    steps = [s for s in said if isinstance(s, Progress)]
    results = [s for s in said if isinstance(s, CheckResult)]
    assert [r.ok for r in results] == [True]
    assert all(s.done <= s.total for s in steps)
    assert "check" in desk.trouble(c.RunCheck("nonsense"))


def test_a_check_can_be_cancelled() -> None:
    desk = Desk(mode="fast")
    desk.do(c.Do(append(0, 0, [1] * 9)))
    desk.do(c.RunCheck("boundary-sweep"), turns=1)
    desk.cancel.set()
    desk.driver.turn()
    assert "cancelled" in desk.last(Trouble).sentence
    assert not desk.driver.has_work


# files


def test_sessions_are_saved_and_loaded(tmp_path: Path) -> None:
    desk = Desk()
    path = str(tmp_path / "a.safetensors")
    first = desk.one(c.Do(append(0, 0, [1, 2, 3])), Record)
    assert desk.one(c.SaveSession(path), CheckResult).ok
    desk.do(c.Do(Reset(0)))
    record = desk.one(c.LoadSession(path), Record)
    assert (record.op, record.digests_after) == ("load", first.digests_after)
    Path(path).write_bytes(b"not a session")
    assert "a.safetensors" in desk.trouble(c.LoadSession(path))
    assert "none" in desk.trouble(c.SaveSession(str(tmp_path / "none" / "b")))
    assert desk.one(c.Do(append(0, 3, [4])), Record).outcome == "ok"


def test_a_capture_holds_the_journal(tmp_path: Path) -> None:
    desk = Desk()
    path = str(tmp_path / "a.bankflip")
    assert desk.one(c.StartCapture(path), CheckResult).ok
    desk.do(c.Do(append(0, 0, [1, 2, 3])))
    desk.do(c.Do(append(0, 9, [4])))
    desk.do(c.ArmFault("head", "oom"))
    desk.do(c.Do(append(0, 3, [4])))
    desk.do(c.StopCapture())
    assert "no capture" in desk.trouble(c.StopCapture())
    with Capture(path) as capture:
        found = [capture.record(n) for n in range(3)]
    assert [(r.op, r.outcome) for r in found] == [
        ("append", "ok"),
        ("append", "rejected"),
        ("append", "failed"),
    ]
    desk.trouble(c.StartCapture(str(tmp_path / "none" / "b.bankflip")))


# anything


def test_random_commands_never_raise(tmp_path: Path, long_profile: bool) -> None:
    seed = 99
    print("seed", seed)
    choice = random.Random(seed)
    desk = Desk(mode="fast")
    stages = [name for name, _ in desk.last(SessionOpened).stages]
    number = lambda: choice.choice((-(2**40), -1, 0, 1, 2, 3, 5, 8, 2**31, 2**40))  # noqa: E731
    small = lambda: choice.randrange(3)  # noqa: E731

    def command() -> Any:
        stop = desk.last(Snapshot).sequences[0].stop if desk.last(Snapshot).sequences else 0
        ops = [
            append(small(), choice.choice((stop, number())), [choice.choice((1, 5, 256, -1))] * 3),
            EvictFront(small(), number()),
            Rewind(small(), choice.choice((stop, number()))),
            Fork(small(), small(), choice.choice((None, number()))),
            Save(small(), "s"),
            Reset(small()),
        ]
        return choice.choice(
            (
                c.Do(choice.choice(ops)),
                c.Try(choice.choice(ops)),
                c.Do(Fail(choice.choice([*stages, "x"]), choice.choice(list(FailKind)), ops[0])),
                c.Undo(),
                c.Feed(small(), (1, 2, choice.choice((3, 300))), choice.choice((None, number()))),
                c.ClearFeed(number()),
                c.SetChunk(number()) if choice.random() < 0.5 else c.SetChunk(4),
                c.SetMode(choice.choice(("fast", "inspect", "slow"))),
                c.Run(choice.choice((None, number()))),
                c.Pause(),
                *(kind() for kind in (c.StepStage, c.StepChunk, c.StepToken, c.Finish, c.Discard)),
                c.ArmFault(
                    choice.choice(stages),
                    choice.choice(list(FailKind)),
                    choice.choice((1, number())),
                ),
                c.ClearFaults(),
                c.ReadArray(
                    choice.choice(("qsa.kv", "logits", "x")),
                    small() - 1,
                    "k",
                    small(),
                    choice.choice(("public", "private")),
                    number(),
                    number(),
                ),
                c.RunCheck(choice.choice(("audit", "x"))),
                c.Limits(small()),
                c.SaveSession(str(tmp_path / "s")),
                c.LoadSession(str(tmp_path / "s")),
            )
        )

    for _ in range(3000 if long_profile else 150):
        desk.do(command(), turns=choice.choice((0, 3, 40, 400)))
        desk.driver.engine.audit()  # type: ignore[union-attr]
    assert not desk.driver.engine.broken  # type: ignore[union-attr]
    desk.driver.close()
    assert golden.MODELS
