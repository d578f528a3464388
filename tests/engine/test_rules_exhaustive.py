"""Every op from every distinct state that three ops can reach, in a small world.

The world: capacity 9, group size 4, two sequences, one slot, positions 0 to 12. States are distinct
when a run of theirs is; two that differ only in which sequence is which count as one, since the ops
tried are the same for both sequences (a test below). CI takes a seeded sample of the states and
`--long` all of them: about 19,000 states, 2,490 ops from each.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from typing import Any

import pytest

from engine.errors import Rejected
from engine.history import History
from engine.opjson import from_json
from engine.ops import Op
from engine.rules import apply
from tests.helpers.naive import Naive
from tests.helpers.world import World

SEED = int(os.environ.get("BANKFLIP_SEED", "20261129"))
CAPACITY, GROUP_SIZE, LAST = 9, 4, 12
SAMPLE = 120  # states that CI takes, at the end of three random legal ops
PARTS = 16  # of the states that --long takes
PLACES = range(LAST + 2)
Json = dict[str, Any]


def one_sequence_ops(seq: int) -> Iterator[Json]:
    for start in PLACES:
        for stop in range(start + 1, LAST + 2):
            yield {"op": "append", "seq": seq, "positions": range(start, stop)}
            yield {"op": "remove", "seq": seq, "start": start, "stop": stop}
    for wrong in ((0, 2), (3, 3), (4, 3), (-1,), (-1, 0), (5, 6, 8), (12, 11), (0, 1, 0)):
        yield {"op": "append", "seq": seq, "positions": wrong}
    for place in (*PLACES, -1, LAST + 2):
        yield {"op": "remove", "seq": seq, "start": None, "stop": place}
        yield {"op": "remove", "seq": seq, "start": place, "stop": None}
        yield {"op": "remove", "seq": seq, "start": place, "stop": place}
        yield {"op": "rewind", "seq": seq, "to": place}
        yield {"op": "evict_front", "seq": seq, "count": place}
    yield {"op": "remove", "seq": seq, "start": None, "stop": None}
    yield {"op": "reset", "seq": seq}
    yield {"op": "save", "seq": seq, "slot": "a"}
    yield {"op": "restore", "seq": seq, "slot": "a"}


def shifts(seq: int) -> Iterator[Json]:
    inner = [(start, stop) for start in range(1, LAST, 3) for stop in range(start + 1, LAST, 3)]
    ends = [(None, place) for place in PLACES] + [(place, None) for place in PLACES]
    for start, stop in ((None, None), *ends, *inner):
        whole = start is None and stop is None
        for delta in range(-LAST, LAST + 1) if whole else (-LAST, -9, -4, -1, 0, 1, 2, 5, LAST):
            yield {"op": "shift", "seq": seq, "delta": delta, "start": start, "stop": stop}


def pair_ops(src: int, dst: int) -> Iterator[Json]:
    for stop in (None, *PLACES):
        yield {"op": "fork", "src": src, "dst": dst, "stop": stop}
        yield {"op": "copy", "src": src, "dst": dst, "start": None, "stop": stop}
        yield {"op": "copy", "src": src, "dst": dst, "start": stop, "stop": None}
    for start in PLACES:
        for stop in range(start, LAST + 2):
            yield {"op": "copy", "src": src, "dst": dst, "start": start, "stop": stop}


def transactions(seq: int) -> Iterator[Json]:
    for start in range(LAST):
        for stop in range(start + 1, LAST + 1):
            remove = {"op": "remove", "seq": seq, "start": start, "stop": stop}
            shift = {"op": "shift", "seq": seq, "start": stop, "stop": None}
            for off in (0, 1, -1):
                yield transaction(remove, {**shift, "delta": start - stop + off})
    for place in PLACES:
        one = {"op": "append", "seq": seq, "positions": (place,)}
        other = {"op": "append", "seq": 1 - seq, "positions": (place, place + 1)}
        yield transaction(one, other)
        yield transaction({"op": "evict_front", "seq": seq, "count": 1}, one)
        yield transaction({"op": "save", "seq": seq, "slot": "a"}, one)
        yield transaction(one, {"op": "rewind", "seq": seq, "to": place})
        up = {"op": "shift", "seq": seq, "delta": LAST, "start": None, "stop": place}
        yield transaction(up, {**up, "start": place, "stop": LAST, "delta": 9})


def transaction(*ops: Json) -> Json:
    return {"op": "transaction", "ops": list(ops)}


def every_op() -> list[tuple[Json, Op]]:
    found = [*one_sequence_ops(0), *one_sequence_ops(1), *shifts(0), *shifts(1)]
    for src, dst in ((0, 0), (0, 1), (1, 0), (1, 1)):
        found.extend(pair_ops(src, dst))
    found.extend((*transactions(0), *transactions(1)))
    return [(op, from_json(as_lists(op))) for op in found]


def as_lists(op: Json) -> Json:
    listed = {k: list(v) if isinstance(v, (range, tuple)) else v for k, v in op.items()}
    if "ops" in op:
        listed["ops"] = [as_lists(inner) for inner in op["ops"]]
    return listed


def key(naive: Naive) -> tuple[object, ...]:
    one, other, slot = (
        (min(held), max(held)) if held else (-1, -1)
        for held in (naive.seqs.get(0), naive.seqs.get(1), naive.slots.get("a"))
    )
    return min(one, other), max(one, other), slot


def in_world(naive: Naive) -> bool:
    held = (*naive.seqs.values(), *naive.slots.values())
    return all(max(positions, default=0) <= LAST for positions in held)


Path = tuple[int, ...]


def reachable(ops: list[tuple[Json, Op]]) -> list[Path]:
    """For each distinct state within three ops, the numbers of the ops that lead there.

    Computed by the oracle alone.
    """
    start = Naive(GROUP_SIZE, CAPACITY)
    seen = {key(start)}
    found: list[Path] = [()]
    frontier: list[tuple[Path, Naive]] = [((), start)]
    for _ in range(3):
        following: list[tuple[Path, Naive]] = []
        for path, naive in frontier:
            seqs, slots = naive.seqs, naive.slots
            for number, (op, _) in enumerate(ops):
                naive.seqs, naive.slots = {k: dict(v) for k, v in seqs.items()}, dict(slots)
                if naive.do(op) == "ok" and in_world(naive) and key(naive) not in seen:
                    seen.add(key(naive))
                    found.append((*path, number))
                    following.append((found[-1], taken(naive)))
        frontier = following
    return found


def taken(naive: Naive) -> Naive:
    other = Naive(GROUP_SIZE, CAPACITY)
    other.seqs, other.slots, other.next_token = naive.seqs, naive.slots, naive.next_token
    return other


def try_every_op(path: Path, ops: list[tuple[Json, Op]], results: dict[str, int]) -> None:
    """Results, runs and the token of every position, each op from the state at the path's end."""
    world, naive = World(History.empty(GROUP_SIZE, CAPACITY)), Naive(GROUP_SIZE, CAPACITY)
    for number in path:
        assert world.do(ops[number][1]) == naive.do(ops[number][0]) == "ok"
        naive.next_token = world.next_token
    seqs, slots = naive.seqs, naive.slots
    for op, made in ops:
        naive.seqs, naive.slots = {k: dict(v) for k, v in seqs.items()}, dict(slots)
        naive.next_token = world.next_token
        expected = naive.do(op)
        results[expected] = results.get(expected, 0) + 1
        try:
            applied = apply(world.history, made)
        except Rejected as refusal:
            assert refusal.reason == expected, (seqs, slots, op)  # noqa: PT017
            continue
        assert expected == "ok", (seqs, slots, op)
        other = world.branch()
        other.execute(applied)
        assert other.read() == naive.live(), (seqs, slots, op)
        assert other.read_slots() == naive.slots, (seqs, slots, op)
    assert world.read() == {seq: held for seq, held in seqs.items() if held}


@pytest.mark.long
@pytest.mark.parametrize("part", range(PARTS))
def test_every_op_from_every_state_three_ops_away(part: int) -> None:
    """All parts together are all states; a part takes some minutes, so `-n` shares them out."""
    ops = every_op()
    paths = reachable(ops)
    assert len(paths) > 7000
    judge_all(paths[part::PARTS], ops)


def test_every_op_from_random_states_three_ops_away() -> None:
    print(f"seed {SEED}")
    ops, choice = every_op(), random.Random(SEED)
    legal = [n for n, (op, _) in enumerate(ops) if op["op"] != "shift"]
    judge_all([legal_path(ops, legal, choice) for _ in range(SAMPLE)], ops)


def judge_all(paths: list[Path], ops: list[tuple[Json, Op]]) -> None:
    """Every op from the end of every path, and every reason at least once."""
    results: dict[str, int] = {}
    for path in paths:
        try_every_op(path, ops, results)
    print(f"{len(paths)} states, {len(ops)} ops from each, {results}")
    # the reasons that an op can have here, none of them missing
    reasons = {"overlap", "gap", "capacity", "negative", "duplicate", "not-consecutive"}
    reasons |= {"out-of-range", "internal-hole", "destination-not-empty", "unknown-slot"}
    assert set(results) == reasons | {"ok"}


def test_the_ops_are_the_same_for_both_sequences() -> None:
    def exchanged(op: Json) -> Json:
        found = {k: 1 - v if k in ("seq", "src", "dst") else v for k, v in op.items()}
        return found | ({"ops": [exchanged(o) for o in op["ops"]]} if "ops" in op else {})

    ops = [op for op, _ in every_op()]
    assert {repr(exchanged(op)) for op in ops} == {repr(op) for op in ops}


def legal_path(ops: list[tuple[Json, Op]], numbers: list[int], choice: random.Random) -> Path:
    """Three random ops in a row that the oracle takes."""
    naive = Naive(GROUP_SIZE, CAPACITY)
    path: list[int] = []
    while len(path) < 3:
        number = choice.choice(numbers)
        before = {k: dict(v) for k, v in naive.seqs.items()}, dict(naive.slots)
        if naive.do(ops[number][0]) == "ok":
            if in_world(naive):
                path.append(number)
            else:
                naive.seqs, naive.slots = before
    return tuple(path)
