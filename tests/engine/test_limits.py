"""A limit is what the rules take at its ends and refuse, for the reason named, just outside."""

from __future__ import annotations

import os

import pytest

from engine.history import History
from engine.limits import Limit, limits
from engine.ops import Append, EvictFront, Fork, Op, Rewind, Shift
from engine.rules import judge
from engine.terms import MAX_POSITION, Reason
from tests.helpers.world import RandomOps, World

SEED = int(os.environ.get("BANKFLIP_SEED", "20261129"))
WORLDS = [
    {"capacity": 12},
    {"capacity": 16, "window": 8},
    {"capacity": 9, "window": 12},
    {"capacity": 12, "max_cells": 20, "block": 4},
    {"capacity": 16, "window": 8, "max_cells": 14, "block": 1},
]


def op_for(name: str, seq: int, value: int, history: History) -> Op:
    stop = history.of(seq).run.stop
    if name == "append_start":
        return Append(seq, (value,))
    if name == "append_count":
        return Append(seq, range(stop, stop + value))
    if name == "evict":
        return EvictFront(seq, value)
    if name == "rewind":
        return Rewind(seq, value)
    if name == "shift":
        return Shift(seq, value)
    empty = next(s for s in range(10) if not history.of(s).n)
    return Fork(seq, empty, value)


NAMES = ("append_start", "append_count", "evict", "rewind", "shift", "fork")


def check(history: History, seq: int, name: str, limit: Limit) -> None:
    def reason_for(value: int) -> Reason | None:
        refusal = judge(history, op_for(name, seq, value, history))
        return None if refusal is None else refusal.reason

    if limit.low is None or limit.high is None:
        assert (limit.low, limit.high) == (None, None)
        run = history.of(seq).run
        for value in (run.stop, 1) if name.startswith("append") else (0, 1, run.stop, -run.start):
            assert reason_for(value) is not None, (history, seq, name, value)
        if name == "append_start":
            assert reason_for(run.stop) is limit.above
        return
    assert reason_for(limit.low) is None
    assert reason_for(limit.low - 1) is limit.below
    if name == "append_count" and limit.high > 10_000:
        # too many to execute token by token: the run would end at the last position there is
        assert limit.high == MAX_POSITION + 1 - history.of(seq).run.stop
        assert reason_for(50) is None
    else:
        assert reason_for(limit.high) is None, (history, seq, limit)
    assert reason_for(limit.high + 1) is limit.above, (history, seq, name, limit)


@pytest.mark.parametrize("sizes", WORLDS, ids=str)
def test_limits_are_where_the_rules_begin_to_refuse(sizes: dict[str, int]) -> None:
    seed = SEED + WORLDS.index(sizes)
    print(f"seed {seed}")
    world, ops = World(History.empty(**sizes)), RandomOps(seed)
    seen: set[Reason] = set()
    for _ in range(500):
        world.do(ops.op(world))
        for seq in range(3):
            found = limits(world.history, seq)
            assert found.run == world.history.of(seq).run
            for name in NAMES:
                limit = getattr(found, name)
                check(world.history, seq, name, limit)
                seen.add(limit.above)
    assert {Reason.GAP, Reason.OUT_OF_RANGE, Reason.TOO_LARGE} <= seen
    assert (Reason.OOM in seen) == ("max_cells" in sizes)


def test_limits_of_a_long_windowed_sequence_are_quick_to_tell() -> None:
    history = World(History.empty(capacity=1 << 22, window=1 << 20, max_cells=1 << 20))
    history.do({"op": "append", "seq": 0, "positions": list(range(5, 1000))})
    assert limits(history.history, 0).append_count.high == MAX_POSITION + 1 - 1000


def test_limits_say_what_stands_in_the_way() -> None:
    world = World(History.empty(capacity=12))
    world.do({"op": "append", "seq": 0, "positions": list(range(5, 12))})
    found = limits(world.history, 0)
    assert found.append_start == Limit(12, 12, Reason.OVERLAP, Reason.GAP, 11, 12)
    assert found.append_count == Limit(1, 5, Reason.OUT_OF_RANGE, Reason.CAPACITY, 0, 12)
    assert found.rewind == Limit(5, 12, Reason.OUT_OF_RANGE, Reason.OUT_OF_RANGE, 5, 11)
    assert found.evict == Limit(1, 7, Reason.OUT_OF_RANGE, Reason.OUT_OF_RANGE, 0, 7)
    assert found.shift == Limit(
        -5, MAX_POSITION - 11, Reason.NEGATIVE, Reason.TOO_LARGE, 0, MAX_POSITION
    )
    assert not limits(world.history, 1).rewind.possible
