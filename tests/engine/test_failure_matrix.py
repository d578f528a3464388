"""Every stage fails in every way: the state is the old one, and the next good chunk is right.

Written as a loop over the plan itself: the first stage fails, then the second, until a run meets
no fault. A new stage is covered without editing this file.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count, product

import numpy as np
import pytest

from engine.engine import Engine, append
from engine.faults import Fault
from engine.ops import Append, EvictFront, Fork, Op, Restore, Rewind, Save, Shift
from engine.terms import FailKind, TxnStage
from tests.helpers.engines import Bytes, batch, good, prompt, public, session

KINDS = tuple(FailKind)
CHUNKS = (1, 3, 4, 5, 8, 17)
BEFORE = 60
"""Tokens that are there already, so that the longer chunks cross a checkpoint."""
PATTERN = np.float32(-123.5)


@dataclass
class Trial:
    """A session with something in it, an op, and what the op gives when nothing fails."""

    engine: Engine
    op: Op
    old: Bytes
    new: Bytes
    old_digests: tuple[tuple[str, str], ...]
    new_digests: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, engine: Engine, op: Op) -> Trial:
        """Learn the good result from the same session, then go back to before it."""
        old, digests = public(engine), engine.digests()
        good(engine, op)
        new, new_digests = public(engine), engine.digests()
        record = engine.undo()
        assert not isinstance(record, str), record
        assert (public(engine), engine.digests()) == (old, digests)
        return cls(engine, op, old, new, digests, new_digests)

    def fails(self, fault: Fault) -> bool:
        """Try the op with a fault: False when it met none. Checks everything either way."""
        sink = np.full((64, 256), PATTERN)
        self.engine.faults.append(fault)
        # a batch has no one buffer, and without a model there are no logits
        keep = sink if isinstance(self.op, Append) and self.engine.model is not None else None
        record = self.engine.apply(self.op, sink=keep)
        self.engine.faults.clear()
        if fault.fired == 0:
            assert record.outcome == "ok", record.sentence
            return False
        assert record.outcome in ("failed", "cancelled"), (fault, record.sentence)
        assert record.kind == fault.kind
        assert record.digests_before == record.digests_after == self.old_digests
        assert self.engine.digests() == self.old_digests
        assert public(self.engine) == self.old
        assert (sink == PATTERN).all()
        assert [s.state for s in record.stages].count("failed") >= 1
        return True

    def succeeds(self) -> None:
        """The next good run gives the bytes of one that never failed; then back to before it."""
        good(self.engine, self.op)
        assert self.engine.digests() == self.new_digests
        assert public(self.engine) == self.new
        assert not isinstance(self.engine.undo(), str)


def appends(n_sequences: int, mode: str, chunk: int, name: str = "qwen4exp-tiny") -> Trial:
    engine = session(name, mode=mode, audit_each=True)
    tokens = prompt(name, BEFORE + chunk)
    ops = []
    for seq in range(n_sequences):
        good(engine, append(seq, seq, tokens[:BEFORE]))
        ops.append(append(seq, seq + BEFORE, tokens[BEFORE:]))
    return Trial.of(engine, ops[0] if n_sequences == 1 else batch(*ops))


def all_points(trial: Trial, kind: FailKind, persistent: bool) -> int:
    """Fail at the first point, the second, ... until a run meets no fault; returns how many."""
    for n in count():
        fault = Fault("*", kind, 0 if persistent else 1, nth=n)
        if not trial.fails(fault):
            assert not isinstance(trial.engine.undo(), str)
            return n
        if persistent:
            assert trial.fails(Fault("*", kind, 0, nth=n))
        trial.succeeds()
    raise AssertionError


def plan_length(trial: Trial) -> int:
    trial.engine.begin(trial.op)
    assert trial.engine.open is not None
    n = len(trial.engine.open.records)
    trial.engine.discard()
    return n


@pytest.mark.long
@pytest.mark.parametrize("mode", ["inspect", "fast"])
@pytest.mark.parametrize("n_sequences", [1, 2])
@pytest.mark.parametrize("chunk", CHUNKS)
@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_whole_matrix(
    kind: FailKind, persistent: bool, chunk: int, n_sequences: int, mode: str
) -> None:
    trial = appends(n_sequences, mode, chunk)
    assert all_points(trial, kind, persistent) == plan_length(trial)


@pytest.mark.parametrize("mode", ["inspect", "fast"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_stage_in_every_way(kind: FailKind, mode: str) -> None:
    trial = appends(1, mode, 5)
    reached = all_points(trial, kind, persistent=kind is FailKind.STATUS)
    assert reached == plan_length(trial)


def test_pairs_of_everything_else() -> None:
    """Each pair of chunk size, sequences, mode, kind and persistence, at stages in turn."""
    trials = {
        key: appends(*key) for key in product((1, 2), ("inspect", "fast"), CHUNKS) if _wanted(*key)
    }
    n = 0
    for turn, ((_, _, chunk), trial) in enumerate(trials.items()):
        length = plan_length(trial)
        for number, kind in enumerate(KINDS):
            for persistent in (False, True):
                n += 1
                nth = (turn * 7 + number * 11 + persistent * 3 + chunk) % length
                assert trial.fails(Fault("*", kind, 0 if persistent else 1, nth=nth))
        trial.succeeds()
    assert n == len(trials) * len(KINDS) * 2


def _wanted(n_sequences: int, mode: str, chunk: int) -> bool:
    """A pairwise subset: every chunk size meets both modes, and both counts of sequences."""
    return (CHUNKS.index(chunk) + (mode == "fast") + n_sequences) % 2 == 0


LIFE = {
    "rewind": (Rewind(0, 30),),
    "fork": (Fork(0, 5, 70),),
    "evict": (EvictFront(0, 7),),
    "shift": (Shift(0, 100),),
    "save": (Save(0, "new"),),
    "restore": (Restore(0, "old"),),
    "many": (Rewind(0, 100), append(0, 100, [1, 2, 3]), EvictFront(0, 3), Save(0, "old")),
}


@pytest.mark.parametrize("mode", ["inspect", "fast"])
@pytest.mark.parametrize("life", LIFE)
def test_lifecycle_ops_fail_whole(life: str, mode: str, long_profile: bool) -> None:
    engine = session(mode=mode, audit_each=True)
    good(engine, append(0, 0, prompt(n=50)))
    good(engine, Save(0, "old"))
    good(engine, append(0, 50, prompt(n=120)[50:]))
    ops = LIFE[life]
    trial = Trial.of(engine, ops[0] if len(ops) == 1 else batch(*ops))
    length = plan_length(trial)
    for number, kind in enumerate(KINDS):
        points = range(length) if long_profile else {number % length, length - 1 - number}
        for nth in points:
            assert trial.fails(Fault("*", kind, 1, nth=nth)), (kind, nth)
        trial.succeeds()


@pytest.mark.parametrize("mode", ["inspect", "fast"])
@pytest.mark.parametrize("first", KINDS)
def test_failures_while_catching_up_after_a_failure(first: FailKind, mode: str) -> None:
    trial = appends(2, mode, 5)
    for second in KINDS:
        assert trial.fails(Fault("layer.3.qsa.attend", first))
        assert trial.fails(Fault(TxnStage.RESERVE, second))
        assert trial.fails(Fault(TxnStage.PUBLISH, first))
        assert trial.fails(Fault(TxnStage.RESERVE, second))
        trial.succeeds()


def test_model_free_sessions_fail_whole() -> None:
    engine = Engine(None, capacity=64)
    good(engine, append(0, 0, [0] * 10))
    trial = Trial.of(engine, append(0, 10, [0] * 5))
    for kind in KINDS:
        for nth in range(plan_length(trial)):
            assert trial.fails(Fault("*", kind, 1, nth=nth))
        trial.succeeds()
