"""Physical cells: extents, allocation, reuse, sharing, compaction, and what an append costs."""

from __future__ import annotations

import random
import sys
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from types import FrameType
from typing import Any

import pytest

from engine.cells import NoRoom, Space, ascending, cut, join, lowest_first, n_cells_in, without
from engine.effects import Appended, Evicted
from engine.errors import InvariantBroken, Rejected
from engine.history import History
from engine.ops import (
    Append,
    Copy,
    EvictFront,
    Fork,
    Op,
    Reset,
    Restore,
    Rewind,
    Save,
    Shift,
    Transaction,
)
from engine.rules import apply, compact
from engine.terms import Reason
from tests.helpers.world import ShuffledPolicy, cells


def after(history: History, *ops: Op) -> History:
    for op in ops:
        history = apply(history, op).history
        history.check()
    return history


def test_set_arithmetic_of_extents() -> None:
    choice = random.Random(7)
    for _ in range(2000):
        left = [(choice.randrange(30), choice.randrange(6)) for _ in range(choice.randrange(5))]
        right = [(choice.randrange(30), choice.randrange(6)) for _ in range(choice.randrange(5))]
        left_cells, right_cells = set(cells(tuple(left))), set(cells(tuple(right)))
        found = ascending(left)
        assert cells(found) == sorted(left_cells)
        assert all(a + n < b for (a, n), (b, _) in pairwise(found))
        assert cells(without(found, tuple(right))) == sorted(left_cells - right_cells)
        assert all(count for _, count in without(found, tuple(right)))
        line = cells(tuple(left))
        start, stop = sorted((choice.randrange(20), choice.randrange(20)))
        assert cells(cut(tuple(left), start, stop)) == line[start:stop]
        assert cells(join(tuple(left), tuple(right))) == line + cells(tuple(right))


def test_the_lowest_free_cells_are_taken_first() -> None:
    space = Space(free=((2, 3), (9, 2)), end=20, block=1)
    taken = space.take(4, None)
    assert taken[1:] == (((2, 3), (9, 1)), (0, 0))
    assert taken[0].free == ((10, 1),)
    assert lowest_first(((2, 3), (9, 2), (20, 99)), 3, 9) == ((9, 2), (2, 1))


def test_a_limit_on_cells_is_kept() -> None:
    space = Space(max_cells=10)
    space, taken, spare = space.take(6, None)
    assert (taken, spare, space.end) == (((0, 6),), (6, 4), 10)
    with pytest.raises(NoRoom):
        space.take(1, None)


def test_sequences_decoding_in_turn_stay_in_long_extents() -> None:
    history = History.empty(capacity=4000)
    for position in range(2000):
        for seq in range(3):
            history = apply(history, Append(seq, (position,))).history
    history.check()
    assert all(len(history.of(seq).extents) <= 2000 // 64 + 1 for seq in range(3))
    assert history.n_cells <= 3 * 2000 + 3 * 64


def test_rewinding_a_draft_again_and_again_keeps_extents_long() -> None:
    choice = random.Random(3)
    history = History.empty(capacity=9000)
    for _ in range(1500):
        for seq in range(3):
            stop = history.of(seq).run.stop
            history = apply(history, Append(seq, range(stop, stop + 5))).history
            history = apply(history, Rewind(seq, stop + choice.randint(1, 5))).history
    history.check()
    for seq in range(3):
        held = history.of(seq)
        assert held.n / len(held.extents) > 32


def test_a_window_goes_round_in_the_same_cells() -> None:
    history = History.empty(capacity=64, window=32)
    for position in range(500):
        history = apply(history, Append(0, (position,))).history
        history.check()
    assert history.n_cells <= 32 + 64
    assert len(history.of(0).extents) <= 3
    history = after(History.empty(capacity=64, window=32), Append(0, range(5000)))
    assert history.n_cells <= 32 + 64


def test_freed_cells_are_used_again() -> None:
    history = after(History.empty(block=1), Append(0, range(8)), Append(1, range(4)))
    assert history.of(1).extents == ((8, 4),)
    history = after(history, Reset(0), Append(2, range(5)))
    assert (history.of(2).extents, history.n_cells) == (((0, 5),), 12)


def test_a_fork_costs_no_cell_and_no_copy_of_positions() -> None:
    history = after(History.empty(block=1), Append(0, range(1000)))
    forked = after(history, Fork(0, 1, 600))
    assert forked.n_cells == history.n_cells
    assert forked.of(1).extents == ((0, 600),)
    applied = apply(forked, Append(1, (600,)))
    assert applied.history.of(1).extents == ((0, 600), (1000, 1))
    assert applied.history.of(0) == forked.of(0)


def test_shared_cells_are_freed_when_nobody_uses_them_any_more() -> None:
    history = after(
        History.empty(block=1),
        Append(0, range(8)),
        Save(0, "a"),
        Fork(0, 1, 6),
        Rewind(0, 2),
        Append(0, (2,)),
    )
    assert history.of(0).extents == ((0, 2), (8, 1))
    history = after(history, Reset(1), Reset(0))
    assert history.live == ((0, 8),)
    history = after(history, Append(2, range(3)), Save(2, "a"))
    assert history.live == ((8, 1), (9, 2)) or n_cells_in(history.live) == 3
    assert n_cells_in(history.space.free) == history.n_cells - 3


def test_one_sequence_may_hold_a_cell_twice_and_frees_it_once() -> None:
    history = after(
        History.empty(block=1),
        Append(0, range(4)),
        Transaction((Fork(0, 1), Shift(1, 4), Copy(1, 0), Reset(1))),
    )
    assert history.of(0).extents == ((0, 4), (0, 4))
    history = after(history, EvictFront(0, 4))
    assert history.space.free == ()
    history = after(history, EvictFront(0, 4))
    assert history.space.free == ((0, 4),)


def test_compaction_leaves_no_free_cell_and_moves_shared_cells_once() -> None:
    history = after(
        History.empty(block=4),
        Append(0, range(10)),
        Append(1, range(7)),
        Fork(0, 2, 9),
        Save(2, "a"),
        EvictFront(0, 3),
        Reset(1),
        Append(2, (9, 10)),
    )
    applied = compact(history)
    applied.history.check()
    assert applied.history.n_cells == n_cells_in(history.live)
    assert applied.history.space.free == ()
    moved = {old + i: new + i for old, new, n in applied.effects[0].moves for i in range(n)}
    assert sorted(moved.values()) == list(range(len(moved)))
    for name in history.sequences:
        before, now = history.of(name), applied.history.of(name)
        assert now.run == before.run
        assert [moved[cell] for cell in cells(before.extents)] == cells(now.extents)
    assert applied.states == (applied.history,)


def test_physical_room_is_refused_by_name_and_does_not_depend_on_the_layout() -> None:
    for policy in (lowest_first, ShuffledPolicy(5)):
        history = History.empty(max_cells=10, capacity=64, block=4, policy=policy)
        history = after(history, Append(0, range(6)), Fork(0, 1), Append(1, (6, 7)))
        with pytest.raises(Rejected) as refused:
            apply(history, Append(2, range(3)))
        assert (refused.value.reason, refused.value.nearest) == (Reason.OOM, 1)
        assert (refused.value.expected, refused.value.given) == (10, 11)
        history = after(history, Append(2, range(2)))
        with pytest.raises(Rejected) as refused:
            apply(history, Append(0, (6,)))
        assert refused.value.nearest is None
        history = after(history, Rewind(1, 6), Append(0, (6, 7)))
        assert n_cells_in(history.live) == 10


def test_a_lost_or_doubled_cell_is_noticed() -> None:
    history = after(History.empty(block=1), Append(0, range(8)), EvictFront(0, 2))
    for space in (Space((), 8), Space(((0, 3),), 8), Space(((0, 2),), 9)):
        with pytest.raises(InvariantBroken):
            replace(history, space=space).check()


# what it costs, counted


def n_lines(do: Callable[[], object]) -> int:
    """Lines of Python that run during `do`, a count that no clock and no load changes."""
    count = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    old = sys.gettrace()
    sys.settrace(trace)
    try:
        do()
    finally:
        sys.settrace(old)
    return count


def peak_bytes(do: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        do()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("window", [None, 1 << 24])
def test_an_append_costs_the_same_at_any_length_of_history(window: int | None) -> None:
    lines, memory = [], []
    for n in (1 << 10, 1 << 20, 10 << 20):  # the same room behind the last cell
        history = after(History.empty(capacity=1 << 24, window=window), Append(0, range(n)))
        history = after(history, Append(0, range(n, n + 70)))
        op = Append(0, range(n + 70, n + 70 + 40))
        apply(history, op)
        lines.append(n_lines(lambda h=history, o=op: apply(h, o)))
        memory.append(peak_bytes(lambda h=history, o=op: apply(h, o)))
    assert max(lines) == min(lines), lines
    assert max(memory) < min(memory) + 2000, memory


def test_an_append_does_not_cost_more_for_more_positions_either() -> None:
    history = after(History.empty(capacity=1 << 24), Append(0, range(100)))
    lines = [
        n_lines(lambda n=n: apply(history, Append(0, range(100, 100 + n)))) for n in (200, 10**6)
    ]
    assert lines[0] == lines[1]


def test_restore_and_fork_do_not_cost_positions() -> None:
    lines = []
    for n in (1 << 10, 1 << 20):
        history = after(History.empty(capacity=1 << 24), Append(0, range(n)), Save(0, "a"))
        lines.append(n_lines(lambda h=history: after(h, Fork(0, 1), Restore(2, "a"), Shift(2, 5))))
    assert lines[0] == lines[1]


def test_a_chunk_longer_than_the_window_reuses_cells_inside_the_op() -> None:
    applied = apply(History.empty(window=8, block=1), Append(0, range(20)))
    kinds = [type(effect) for effect in applied.effects]
    assert kinds == [Appended, Evicted, Appended, Evicted, Appended, Evicted, Appended]
    assert applied.history.n_cells == 8
    offsets = [e.offset for e in applied.effects if isinstance(e, Appended)]
    assert offsets == [0, 8, 12, 16]
