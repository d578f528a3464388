"""Limits as rows: each farthest target works, and one more is refused for the reason given."""

from __future__ import annotations

import pytest

from engine.engine import Engine, append
from engine.errors import Rejected
from engine.ops import EvictFront, Fork, Op, Rewind, Shift
from engine.reach import limit_views
from engine.snapshot import LimitView
from engine.terms import MAX_POSITION
from tests.helpers.engines import good, prompt, session


def rows(engine: Engine, seq: int = 0) -> dict[str, LimitView]:
    return {row.op: row for row in limit_views(engine.pair.public_bank, seq)}


def reason(engine: Engine, op: Op) -> str | None:
    """Why an op is refused now, None when it is legal; nothing is done."""
    try:
        engine.judge(op)
    except Rejected as refusal:
        return str(refusal.reason)
    return None


def op_of(engine: Engine, name: str, value: int) -> Op:
    """The op that a row speaks of, with one argument."""
    stop = engine.pair.public_bank.history.value.of(0).run.stop
    return {
        "append at": lambda: append(0, value, [1]),
        "append count": lambda: append(0, stop, [1] * value),
        "evict_front": lambda: EvictFront(0, value),
        "rewind": lambda: Rewind(0, value),
        "shift down": lambda: Shift(0, value),
        "shift up": lambda: Shift(0, value),
        "fork": lambda: Fork(0, 5, value),
    }[name]()


def sessions() -> list[Engine]:
    free = Engine(None, capacity=40)
    good(free, append(0, 7, [0] * 30))
    plain = session(mode="fast", capacity=90)
    good(plain, append(0, 7, prompt(n=70)))
    evicted = session(mode="fast", capacity=90)
    good(evicted, append(0, 7, prompt(n=70)))
    good(evicted, EvictFront(0, 5))
    good(evicted, append(0, 77, [1, 2]))
    shifted = session(mode="fast", capacity=90)
    good(shifted, append(0, 7, prompt(n=30)))
    good(shifted, Shift(0, 3))
    far = Engine(None)
    good(far, append(0, MAX_POSITION - 9, [0] * 8))
    return [free, plain, evicted, shifted, far]


@pytest.mark.parametrize("number", range(5))
def test_nearest_and_farthest_are_legal_and_one_more_is_not(number: int) -> None:
    engine = sessions()[number]
    n_checked = 0
    for name, row in rows(engine).items():
        if row.farthest is None:
            continue
        assert row.nearest is not None
        for value in (row.nearest, row.farthest):
            if name == "append count" and value > 1000:
                continue
            assert reason(engine, op_of(engine, name, value)) is None, (name, value)
        step = -1 if row.farthest < row.nearest else 1
        if name in ("rewind", "fork", "shift down") or row.nearest == row.farthest:
            step = -1  # where only one value is legal, the row says what is below it
        beyond = row.farthest + step
        if name == "append count" and beyond > 1000:
            continue
        why = reason(engine, op_of(engine, name, beyond))
        assert why is not None, (name, beyond)
        if beyond >= 0 or name.startswith("shift"):
            assert row.reason.startswith(why), (name, row.reason, why)
        n_checked += 1
    assert n_checked >= 5


def test_an_empty_sequence_can_only_be_begun() -> None:
    engine = session()
    known = rows(engine, 3)
    assert (known["append at"].nearest, known["append at"].farthest) == (0, MAX_POSITION)
    for name in ("evict_front", "rewind", "shift up", "fork"):
        assert known[name].farthest is None
        assert known[name].reason
