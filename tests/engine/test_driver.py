"""The driver: every command, the journal it makes, and trouble as a sentence."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

from engine import commands as c
from engine.capture import Capture
from engine.driver import _HANDLERS
from engine.engine import append
from engine.events import (
    LimitsKnown,
    SessionOpened,
    Trial,
    Trouble,
)
from engine.ops import EvictFront, Fail, Fork, Reset, Rewind, Save
from engine.progress import Progress
from engine.snapshot import ArraySlice, CheckResult, Record, Snapshot
from engine.terms import FailKind, TxnStage
from tests.helpers import golden
from tests.helpers.desk import TINY, Desk
from tests.helpers.engines import prompt


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
