"""Random ops against the naive oracle: same results, same tokens, whatever the cells."""

from __future__ import annotations

import os
import random
from typing import Any

import pytest

from engine.history import History
from engine.opjson import from_json
from engine.ops import Append, Copy, EvictFront, Fork, Op, Remove, Rewind, Shift
from engine.rules import judge
from engine.terms import MAX_POSITION, Reason
from tests.helpers.naive import Naive
from tests.helpers.world import RandomOps, ShuffledPolicy, World

SEED = int(os.environ.get("BANKFLIP_SEED", "20261129"))
WORLDS = (
    # group size, capacity, window
    (4, 12, None),
    (4, 16, 8),
    (4, 9, 12),
    (4, 4, 4),
    (1, 5, 3),
    (3, 20, 12),
)
LONG, SHORT = 210_000, 9_000  # ops of all worlds together
PER_LIFE = 300


def compare(world: World, naive: Naive, told: str) -> None:
    assert world.read() == naive.live(), told
    assert world.read_slots() == naive.slots, told
    for seq, held in naive.live().items():
        assert world.history.of(seq).run.as_pair() == (min(held), max(held)), told
    world.history.check()


@pytest.mark.parametrize("sizes", WORLDS, ids=str)
def test_random_ops_do_what_the_oracle_does(
    sizes: tuple[int, int, int | None], long_profile: bool
) -> None:
    n_ops = (LONG if long_profile else SHORT) // len(WORLDS)
    seed = SEED + WORLDS.index(sizes)
    print(f"seed {seed}, {n_ops} ops")
    choice = random.Random(seed)
    results: dict[str, int] = {}
    for life in range(-(-n_ops // PER_LIFE)):
        policies = {"policy": ShuffledPolicy(seed + life)} if life % 2 else {}
        history = History.empty(*sizes, block=choice.choice((1, 4, 64)), **policies)
        world, naive = World(history), Naive(*sizes)
        ops = RandomOps(seed * 1000 + life)
        script: list[dict[str, Any]] = []
        for _ in range(PER_LIFE):
            op = ops.op(world)
            script.append(op)
            told = f"seed {seed}, life {life}, after {script[-5:]}"
            expected = naive.do(op)
            assert world.do(op) == expected, told
            naive.next_token = world.next_token = max(naive.next_token, world.next_token)
            compare(world, naive, told)
            check_nearest(world, op, told)
            results[expected] = results.get(expected, 0) + 1
            if choice.random() < 0.02:
                world.compact()
                assert world.history.n_cells == sum(n for _, n in world.history.live)
                compare(world, naive, told)
    assert results["ok"] > n_ops // 5, results
    assert {"overlap", "gap", "out-of-range", "negative"} <= set(results), results


ORDER = (
    Reason.DESTINATION_NOT_EMPTY,
    Reason.OUT_OF_RANGE,
    Reason.DUPLICATE,
    Reason.NOT_CONSECUTIVE,
    Reason.NEGATIVE,
    Reason.TOO_LARGE,
    Reason.OVERLAP,
    Reason.GAP,
    Reason.CAPACITY,
)


def check_nearest(world: World, op: dict[str, Any], told: str) -> None:
    """The nearest target of a refusal is legal, or refused only for a later reason."""
    refusal = world.refusal
    if refusal is None or refusal.nearest is None or op["op"] == "transaction":
        return
    better = with_nearest(from_json(op), refusal.reason, refusal.nearest, refusal.detail)
    if better is None:
        return
    left = judge(world.history, better)
    legal = left is None or ORDER.index(left.reason) > ORDER.index(refusal.reason)
    assert legal, f"{told}: {refusal}, tried {better}: {left}"


def with_nearest(op: Op, reason: Reason, nearest: int, detail: str) -> Op | None:
    """The op with its target moved to the nearest legal one."""
    match op:
        case Append() if reason is Reason.CAPACITY:
            return Append(op.seq, range(op.positions[0], nearest + 1))
        case Append() if reason in (Reason.DUPLICATE, Reason.NOT_CONSECUTIVE):
            ahead = range(op.positions[0], nearest + 1)
            return Append(op.seq, ahead) if len(ahead) <= len(op.positions) else None
        case Append():
            stop = min(nearest + len(op.positions), MAX_POSITION + 1)
            return Append(op.seq, range(nearest, stop))
        case Shift():
            return Shift(op.seq, nearest, op.start, op.stop)
        case Rewind():
            return Rewind(op.seq, nearest)
        case EvictFront():
            return EvictFront(op.seq, nearest)
        case Fork() if reason is Reason.DESTINATION_NOT_EMPTY:
            return Fork(op.src, nearest, op.stop)
        case Fork():
            return Fork(op.src, op.dst, nearest)
        case Remove() if reason is Reason.INTERNAL_HOLE:
            at_start = detail.startswith("start")
            start, stop = (nearest, op.stop) if at_start else (op.start, nearest)
            return Remove(op.seq, start, stop)
        case Remove():
            return Remove(op.seq, nearest, nearest + 1)
        case Copy() if reason in (Reason.OVERLAP, Reason.GAP):
            return Copy(op.src, op.dst, nearest, op.stop)
        case Copy() if reason is Reason.CAPACITY:
            return Copy(op.src, op.dst, op.start, nearest + 1)
        case Copy() if detail.startswith("start"):
            return Copy(op.src, op.dst, nearest, None)
        case Copy():
            return Copy(op.src, op.dst, op.start, nearest)
    return None
