"""Judges an op against a history: a new history, or a named reason; nothing in between.

Owns the meaning of every op. Reasons are checked in the order of the op table, the whole op before
anything of it is kept. In a `Rejected`, `expected`, `given` and `nearest` are
- append, copy, remove: positions; with `capacity` live positions, and the last one that still fits;
- shift: where the first moved position should and would land, and the nearest legal delta;
- rewind: `to`; evict_front: the count;
- fork: `stop`; where the destination is taken its live positions, and the first empty sequence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType
from typing import Any, NoReturn

from engine.cells import NoRoom, SequenceCells
from engine.compaction import compact
from engine.draft import Draft, Pieces
from engine.effects import Applied
from engine.errors import Rejected
from engine.history import History
from engine.ops import (
    Append,
    Copy,
    EvictFront,
    Fail,
    Fork,
    Op,
    PlainOp,
    Remove,
    Reset,
    Restore,
    Rewind,
    Save,
    Shift,
    Transaction,
)
from engine.run import Run
from engine.terms import MAX_POSITION, Reason

__all__ = ["Applied", "History", "SequenceCells", "apply", "compact", "judge"]


def apply(history: History, op: Op, op_number: int = 0) -> Applied:
    """Execute one op; a `Fail` is only judged and must be executed by its runner.

    Args:
        op_number: number of the op in its scenario or session, for the refusal.
    Raises: Rejected, and `history` is as it was; TypeError for a `Fail`.
    """
    if isinstance(op, Fail):
        raise TypeError("a fail op has no result of its own: apply what is in flight during it")
    draft = Draft(history)
    try:
        if isinstance(op, Transaction):
            _transaction(draft, op)
        else:
            _RULES[type(op)](draft, op)
    except Rejected as refusal:
        refusal.op_number = op_number
        raise
    return draft.finish()


def judge(history: History, op: Op, op_number: int = 0) -> Rejected | None:
    """The refusal that `apply` would raise (for a `Fail`: for what is in flight), or None."""
    try:
        apply(history, op.during if isinstance(op, Fail) else op, op_number)
    except Rejected as refusal:
        return refusal
    return None


@dataclass(frozen=True, slots=True)
class _Ask:
    """Op and sequence that a refusal names."""

    op: str
    seq: int

    def refuse(
        self,
        reason: Reason,
        expected: int | None = None,
        given: int | None = None,
        nearest: int | None = None,
        detail: str = "",
    ) -> NoReturn:
        raise Rejected(self.op, self.seq, reason, expected, given, nearest, detail=detail)


# append


def _append(draft: Draft, op: Append) -> None:
    ask = _Ask(op.name, op.seq)
    positions = op.positions
    if not positions:
        ask.refuse(Reason.OUT_OF_RANGE, 1, 0, 1, "an append needs at least one position")
    _check_consecutive(ask, positions)
    start, n = positions[0], len(positions)
    span = draft.span(op.seq)
    following = span.stop if span else None
    _check_bounds(ask, start, n, following)
    if following is not None and start != following:
        _check_follows(ask, draft, start, following)
    _check_capacity(ask, draft, op.seq, n, start)
    at = start
    for verb, count in _window_steps(draft.before, draft.n_live(op.seq), n):
        if verb == "evict":
            draft.evict(op.seq, count)
            continue
        try:
            draft.append(op.seq, at, count, at - start)
        except NoRoom as room:
            _refuse_room(ask, draft, start, at, count, room.available)
        at += count


def _check_consecutive(ask: _Ask, positions: range | tuple[int, ...]) -> None:
    if isinstance(positions, range):
        if positions.step == 1:
            return
        repeat = None  # a range has no repeats, whatever its step
    else:
        seen: set[int] = set()
        repeat = next((i for i, p in enumerate(positions) if p in seen or seen.add(p)), None)  # type: ignore[func-returns-value]
    if repeat is not None:
        expected = positions[repeat - 1] + 1
        ask.refuse(Reason.DUPLICATE, expected, positions[repeat], expected)
    for i in range(1, len(positions)):
        expected = positions[i - 1] + 1
        if positions[i] != expected:
            ask.refuse(Reason.NOT_CONSECUTIVE, expected, positions[i], expected)


def _check_bounds(ask: _Ask, start: int, n: int, following: int | None) -> None:
    if start < 0:
        nearest = 0 if following is None else following
        ask.refuse(Reason.NEGATIVE, 0, start, nearest if nearest <= MAX_POSITION else None)
    last = start + n - 1
    if last > MAX_POSITION:
        nearest = max(MAX_POSITION + 1 - n, 0) if following is None else following
        fits = nearest + n - 1 <= MAX_POSITION
        ask.refuse(Reason.TOO_LARGE, MAX_POSITION, last, nearest if fits else None)


def _check_follows(ask: _Ask, draft: Draft, start: int, following: int) -> None:
    nearest = following if following <= MAX_POSITION else None
    if start < following:
        ask.refuse(Reason.OVERLAP, following, start, nearest)
    if not draft.inside:
        ask.refuse(Reason.GAP, following, start, nearest)


def _check_capacity(ask: _Ask, draft: Draft, seq: int, n: int, start: int) -> None:
    capacity, window = draft.before.capacity, draft.before.window
    live = draft.n_live(seq)
    if (window is None or window > capacity) and live + n > capacity:
        room = capacity - live
        nearest = start + room - 1 if room > 0 else None
        ask.refuse(Reason.CAPACITY, capacity, live + n, nearest)


def _refuse_room(
    ask: _Ask, draft: Draft, start: int, at: int, count: int, available: int
) -> NoReturn:
    limit = draft.before.space.max_cells or 0
    nearest = at + available - 1 if at + available > start else None
    detail = f"{available} of {limit} cells are free, {count} more are needed"
    ask.refuse(Reason.OOM, limit, limit - available + count, nearest, detail)


def _window_steps(history: History, live: int, n: int) -> Iterator[tuple[str, int]]:
    """`("add", n)` and `("evict", n)` as one token after the other would bring them about."""
    window, size = history.window, history.group_size
    if window is None:
        yield "add", n
        return
    while n > 0:
        while live >= window:
            yield "evict", size
            live -= size
        count = min(n, window - live)
        yield "add", count
        live += count
        n -= count


# remove, evict_front, rewind


def _remove(draft: Draft, op: Remove) -> None:
    ask = _Ask(op.name, op.seq)
    span = draft.span(op.seq)
    start = span.start if op.start is None else op.start
    stop = span.stop if op.stop is None else op.stop
    hit = [run for p in draft.pieces(op.seq) if (run := p.run.clip(start, stop))]
    if not hit:
        nearest = None if not span else span.start if start <= span.start else span.stop - 1
        ask.refuse(Reason.OUT_OF_RANGE, nearest, start, nearest, _nothing_there(span))
    if not draft.inside and start > span.start and stop < span.stop:
        towards_front = start - span.start <= span.stop - stop
        nearest = span.start if towards_front else span.stop
        word = "start" if towards_front else "stop"
        given = start if towards_front else stop
        ask.refuse(Reason.INTERNAL_HOLE, nearest, given, nearest, f"{word} at {nearest}")
    draft.remove(op.seq, min(run.start for run in hit), max(run.stop for run in hit))


def _nothing_there(span: Run) -> str:
    if not span:
        return "the sequence is empty"
    return f"no live position there, the run is {span.start} to {span.stop - 1}"


def _evict_front(draft: Draft, op: EvictFront) -> None:
    live = draft.n_live(op.seq)
    if not 1 <= op.count <= live:
        nearest = min(max(op.count, 1), live) if live else None
        detail = f"{live} live positions"
        _Ask(op.name, op.seq).refuse(Reason.OUT_OF_RANGE, nearest, op.count, nearest, detail)
    draft.evict(op.seq, op.count)


def _rewind(draft: Draft, op: Rewind) -> None:
    span = draft.span(op.seq)
    if not span or not span.start <= op.to <= span.stop:
        nearest = min(max(op.to, span.start), span.stop) if span else None
        detail = "" if span else "the sequence is empty"
        _Ask(op.name, op.seq).refuse(Reason.OUT_OF_RANGE, nearest, op.to, nearest, detail)
    draft.truncate(op.seq, op.to)


# shift


def _shift(draft: Draft, op: Shift) -> None:
    ask = _Ask(op.name, op.seq)
    span = draft.span(op.seq)
    start = span.start if op.start is None else op.start
    stop = span.stop if op.stop is None else op.stop
    hit = sorted(run for p in draft.pieces(op.seq) if (run := p.run.clip(start, stop)))
    if not hit:
        ask.refuse(Reason.OUT_OF_RANGE, None, start, None, _nothing_there(span))
    moved = Run(hit[0].start, hit[-1].stop)
    rest = _outside(draft.pieces(op.seq), moved)
    low, high = _legal_deltas(moved, rest, draft.inside)
    nearest = min(max(op.delta, low), high)
    landing = moved.start + op.delta
    if landing < 0:
        ask.refuse(Reason.NEGATIVE, moved.start + nearest, landing, nearest)
    if moved.stop - 1 + op.delta > MAX_POSITION:
        ask.refuse(Reason.TOO_LARGE, moved.start + nearest, landing, nearest)
    landed = [run.shifted(op.delta) for run in hit]
    if any(a.start < b.stop and b.start < a.stop for a in landed for b in rest):
        ask.refuse(Reason.OVERLAP, moved.start + nearest, landing, nearest)
    if not draft.inside and rest and op.delta:
        # both sides of one run: any move opens a gap, unless they change places
        touching = sorted([*landed, *rest])
        whole = all(a.stop == b.start for a, b in pairwise(touching))
        reason = Reason.OVERLAP if whole else Reason.GAP
        detail = "the moved positions would change places with the others" if whole else ""
        ask.refuse(reason, moved.start + nearest, landing, nearest, detail)
    draft.shift(op.seq, op.delta, moved.start, moved.stop)


def _outside(pieces: Pieces, moved: Run) -> list[Run]:
    """Live positions that the shift leaves where they are."""
    parts = (p.run.clip(low, high) for p in pieces for low, high in _around(moved))
    return sorted(run for run in parts if run)


def _around(moved: Run) -> tuple[tuple[int | None, int | None], ...]:
    return ((None, moved.start), (moved.stop, None))


def _legal_deltas(moved: Run, rest: list[Run], inside: bool) -> tuple[int, int]:
    """Lowest and highest delta that keep the order, the bounds and, outside, the one run."""
    if rest and not inside:
        return 0, 0
    below = max((run.stop for run in rest if run.stop <= moved.start), default=0)
    above = min((run.start for run in rest if run.start >= moved.stop), default=MAX_POSITION + 1)
    return below - moved.start, above - moved.stop


# fork, copy, reset, save, restore


def _fork(draft: Draft, op: Fork) -> None:
    taken = draft.n_live(op.dst)
    if taken:
        used = set(draft.sequences())
        nearest = next(seq for seq in range(len(used) + 1) if seq not in used)
        detail = f"{taken} live positions, sequence {nearest} is empty"
        _Ask(op.name, op.dst).refuse(Reason.DESTINATION_NOT_EMPTY, 0, taken, nearest, detail)
    span = draft.span(op.src)
    stop = span.stop if op.stop is None else op.stop
    if not span or not span.start + 1 <= stop <= span.stop:
        nearest_stop = min(max(stop, span.start + 1), span.stop) if span else None
        detail = "" if span else "the source is empty"
        ask = _Ask(op.name, op.src)
        ask.refuse(Reason.OUT_OF_RANGE, nearest_stop, op.stop, nearest_stop, detail)
    draft.fork(op.src, op.dst, stop)


def _copy(draft: Draft, op: Copy) -> None:
    span = draft.span(op.src)
    start = span.start if op.start is None else op.start
    stop = span.stop if op.stop is None else op.stop
    _check_source(_Ask(op.name, op.src), draft, start, stop)
    ask = _Ask(op.name, op.dst)
    following = draft.span(op.dst).stop
    if draft.n_live(op.dst) and start != following:
        nearest = following if span.start <= following < stop else None
        if start < following:
            ask.refuse(Reason.OVERLAP, following, start, nearest)
        if not draft.inside:
            ask.refuse(Reason.GAP, following, start, nearest)
    _check_capacity(ask, draft, op.dst, stop - start, start)
    at = start
    for verb, count in _window_steps(draft.before, draft.n_live(op.dst), stop - start):
        if verb == "evict":
            draft.evict(op.dst, count)
        else:
            draft.copy(op.src, op.dst, at, at + count)
            at += count


def _check_source(ask: _Ask, draft: Draft, start: int, stop: int) -> None:
    """Every position of the range is live in the source, and there is at least one."""
    span = draft.span(ask.seq)
    live = sum(piece.run.clip(start, stop).n for piece in draft.pieces(ask.seq))
    if start < stop and live == stop - start:
        return
    if not span:
        ask.refuse(Reason.OUT_OF_RANGE, None, start, None, "the source is empty")
    if not span.start <= start < span.stop:
        nearest = min(max(start, span.start), span.stop - 1)
        ask.refuse(Reason.OUT_OF_RANGE, nearest, start, nearest, f"start at {nearest}")
    nearest = min(max(stop, start + 1), span.stop)
    ask.refuse(Reason.OUT_OF_RANGE, nearest, stop, nearest, f"stop at {nearest}")


def _reset(draft: Draft, op: Reset) -> None:
    draft.reset(op.seq)


def _save(draft: Draft, op: Save) -> None:
    if not draft.n_live(op.seq):
        detail = "an empty sequence can't be saved"
        _Ask(op.name, op.seq).refuse(Reason.OUT_OF_RANGE, 1, 0, None, detail)
    draft.save(op.seq, op.slot)


def _restore(draft: Draft, op: Restore) -> None:
    if draft.slot(op.slot) is None:
        known = draft.slot_names()
        there = f"slots are {', '.join(map(repr, known[:5]))}" if known else "nothing is saved"
        detail = f"no slot {op.slot!r:.80}, {there}"
        _Ask(op.name, op.seq).refuse(Reason.UNKNOWN_SLOT, detail=detail)
    draft.restore(op.seq, op.slot)


# transaction


def _transaction(draft: Draft, op: Transaction) -> None:
    draft.inside = True
    for number, inner in enumerate(op.ops):
        draft.inner = number
        try:
            _RULES[type(inner)](draft, inner)
        except Rejected as refusal:
            where = f"inner op {number}, {refusal.op}"
            refusal.detail = f"{where}: {refusal.detail}" if refusal.detail else where
            refusal.op = op.name
            raise
    _check_result(draft, op)


def _check_result(draft: Draft, op: Transaction) -> None:
    """Every sequence and slot that the transaction changed is one run: first overlap, then gap."""
    ends = [(seq, f"result of sequence {seq}", draft.pieces(seq)) for seq in draft.touched]
    for slot in draft.saved:
        ends.append((op.seq, f"result in slot {slot!r:.80}", draft.slot(slot) or ()))
    broken = [(_Ask(op.name, seq), where, pieces) for seq, where, pieces in ends if pieces[1:]]
    for ask, where, pieces in broken:
        runs = sorted(piece.run for piece in pieces)
        if all(one.stop == following.start for one, following in pairwise(runs)):
            # consecutive, but not in the order of the tokens
            ask.refuse(Reason.OVERLAP, pieces[0].run.stop, pieces[1].run.start, None, where)
    for ask, where, pieces in broken:
        runs = sorted(piece.run for piece in pieces)
        one, following = next((a, b) for a, b in pairwise(runs) if a.stop != b.start)
        ask.refuse(Reason.GAP, one.stop, following.start, one.stop, where)


_RULES: MappingProxyType[type[PlainOp], Callable[[Draft, Any], None]] = MappingProxyType(
    {
        Append: _append,
        Remove: _remove,
        EvictFront: _evict_front,
        Rewind: _rewind,
        Shift: _shift,
        Fork: _fork,
        Copy: _copy,
        Reset: _reset,
        Save: _save,
        Restore: _restore,
    }
)
