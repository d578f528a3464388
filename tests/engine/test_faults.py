"""Faults: when they fire, and that the real thing behind each kind is real."""

from __future__ import annotations

import mlx.core as mx
import pytest

from engine.engine import append
from engine.faults import Fault, unfinished
from engine.terms import FailKind
from metal.status import SENTENCES, StatusBit
from tests.helpers.engines import good, session

N_FAILURES = 400
"""Some hundred failed evaluations once made a later one wait for ever."""


@pytest.mark.parametrize(("times", "skip"), [(1, 0), (2, 0), (1, 2), (0, 1)])
def test_when_a_fault_fires(times: int, skip: int) -> None:
    engine = session(mode="fast")
    fault = Fault("head", FailKind.STRUCTURAL, times, skip)
    engine.faults.append(fault)
    seen = [engine.apply(append(n, 0, [n])).outcome for n in range(6)]
    stop = 6 if times == 0 else skip + times
    expected = ["failed" if skip <= n < stop else "ok" for n in range(6)]
    assert seen == expected
    assert (fault.fired, fault.spent) == (expected.count("failed"), times > 0)


def test_a_fault_meets_every_piece_of_a_chunk() -> None:
    """150 tokens run in three pieces: `skip` counts passes of the stage, not transactions."""
    engine = session(mode="fast")
    engine.faults.append(Fault("head", FailKind.NONFINITE, 1, 2))
    record = engine.apply(append(0, 0, [1] * 150))
    assert (record.outcome, record.stage) == ("failed", "head")
    assert "position 128" in record.bad_value
    good(engine, append(0, 0, [1] * 150))


def test_an_evaluation_that_cannot_finish_raises_and_hangs_nothing() -> None:
    for _ in range(N_FAILURES):
        with pytest.raises(RuntimeError):
            mx.eval(mx.ones((4,)) + 1, unfinished())
        after = mx.ones((2, 2))
        for _ in range(12):
            after = after @ mx.ones((2, 2))
        mx.eval(after)
    assert after.tolist() == [[4096.0] * 2] * 2


@pytest.mark.parametrize("mode", ["inspect", "fast"])
def test_what_each_kind_tells(mode: str) -> None:
    engine = session(mode=mode, budget_bytes=1 << 31)
    told = {}
    for kind in FailKind:
        engine.faults[:] = [Fault("layer.3.qsa.attend", kind)]
        record = engine.apply(append(0, 40, [1, 2, 3, 4, 5]))
        assert (record.stage, record.kind) == ("layer.3.qsa.attend", kind)
        told[kind] = record.sentence
    assert SENTENCES[StatusBit.HOLE] in told[FailKind.STATUS]
    assert f"the budget is {1 << 31:,}" in told[FailKind.OOM]
    assert "NaN" in told[FailKind.NONFINITE]
    assert "position 40" in told[FailKind.NONFINITE]
    assert "float32" in told[FailKind.COMMAND]
    assert "asked to stop" in told[FailKind.CANCEL]
    assert "injected" in told[FailKind.STRUCTURAL]
