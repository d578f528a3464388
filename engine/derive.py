"""What an op means for the owners of a model: the history's effects become work, in order.

Everything is decided before the first stage: which effects can be given a meaning, which
checkpoint a way back starts from, and how tokens are cut into pieces (at the caller's chunk size
and at every multiple of `CHECKPOINT_TOKENS`). Nothing is written here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from engine.bank import Bank
from engine.effects import (
    AnyEffect,
    Appended,
    Applied,
    Copied,
    Evicted,
    Forked,
    Removed,
    ResetSeq,
    Restored,
    Saved,
    Shifted,
    Truncated,
)
from engine.errors import Rejected
from engine.history import History
from engine.lineage import Lineage
from engine.ops import Append, Op, Remove, Transaction
from engine.owner import Key
from engine.terms import Reason

CHECKPOINT_TOKENS: Final = 64
"""Checkpoints stand at every multiple of this many consumed tokens."""

Ids = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Piece:
    """Tokens that run through the graph at once."""

    key: int
    tokens: Ids
    effect: int
    """Number of the effect it belongs to."""
    at: int
    """Tokens of the sequence consumed before it."""
    offset: int
    """Index of its first token within the effect's tokens."""
    replay: bool
    fence: bool
    """Evaluate after it: the last piece of a caller's chunk."""


@dataclass(frozen=True, slots=True)
class Quiet:
    """An effect without tokens to run: `effect` is its number."""

    effect: int


@dataclass(frozen=True, slots=True)
class GoBack:
    """Fixed-size owners of `key` go back to `count`, from the checkpoint at `origin` (0: none).

    Pieces that follow replay the tokens in between.
    """

    effect: int
    key: int
    count: int
    origin: int


@dataclass(frozen=True, slots=True)
class Arrive:
    """The replay is over: the lineage of `key` is clipped to `count`."""

    effect: int
    key: int
    count: int


@dataclass(frozen=True, slots=True)
class Forget:
    """Every position of `key` was removed: the sequence is as if it had never been."""

    effect: int
    key: int


Work = Piece | Quiet | GoBack | Arrive | Forget


@dataclass(slots=True)
class _Line:
    """What planning knows of a key: its lineage so far and where checkpoints will stand."""

    lineage: Lineage
    counts: frozenset[int]


class Planner:
    """Turns the effects of one op into work. Raises `Rejected` when one has no meaning."""

    def __init__(self, bank: Bank, op: Op, op_number: int, kept: int) -> None:
        self.bank, self.op, self.op_number = bank, op, op_number
        self.kept = kept
        """Checkpoints that a sequence keeps; older ones leave the ring."""
        self.lines: dict[Key, _Line] = {}
        self.work: list[Work] = []

    def plan(self, applied: Applied, vocab_size: int) -> list[Work]:
        """The work of all effects, in order."""
        for number, (effect, state) in enumerate(zip(applied.effects, applied.states, strict=True)):
            self._effect(number, effect, state, vocab_size)
        return self.work

    def _line(self, key: Key) -> _Line:
        if key not in self.lines:
            counts = frozenset(c.count for c in self.bank.checkpoints.get(key, ()))
            self.lines[key] = _Line(self.bank.tokens.of(key), counts)
        return self.lines[key]

    def _refuse(self, effect: AnyEffect, reason: Reason, detail: str, **fields: int) -> Rejected:
        inner = self._inner(effect)
        return Rejected(
            inner.name, inner.seq, reason, op_number=self.op_number, detail=detail, **fields
        )

    def _inner(self, effect: AnyEffect) -> Op:
        return self.op.ops[effect.inner] if isinstance(self.op, Transaction) else self.op

    def _effect(
        self, number: int, effect: AnyEffect, state: History | None, vocab_size: int
    ) -> None:
        line = self._line(effect.seq)
        if state is None or isinstance(effect, Removed):
            raise self._refuse(effect, Reason.NOT_DERIVABLE, "a model has no meaning for a hole")
        if isinstance(effect, Appended):
            self._append(number, effect, line, vocab_size)
        elif _removes_all(effect, self._inner(effect), state):
            self.lines[effect.seq] = _Line(Lineage.empty(), frozenset())
            self.work.append(Forget(number, effect.seq))
        elif isinstance(effect, Truncated):
            count = line.lineage.evicted + effect.n_left
            self._go_back(number, effect, effect.seq, line, count)
        elif isinstance(effect, Shifted) and not effect.whole and effect.delta:
            detail = "with a model only the whole run can be shifted"
            raise self._refuse(effect, Reason.NOT_DERIVABLE, detail)
        elif isinstance(effect, (Forked, Copied)):
            self._fork(number, effect, state)
        else:
            self._quiet(effect, line)
            self.work.append(Quiet(number))

    def _quiet(self, effect: AnyEffect, line: _Line) -> None:
        if isinstance(effect, Evicted):
            line.lineage = line.lineage.with_event("evict", effect.n)
        elif isinstance(effect, Shifted):
            line.lineage = line.lineage.with_event("shift", effect.delta)
        elif isinstance(effect, ResetSeq):
            self.lines[effect.seq] = _Line(Lineage.empty(), frozenset())
        elif isinstance(effect, Saved):
            self.lines[effect.slot] = _Line(line.lineage, line.counts)
        elif isinstance(effect, Restored):
            source = self._line(effect.slot)
            self.lines[effect.seq] = _Line(source.lineage, source.counts)

    # appends

    def _append(self, number: int, effect: Appended, line: _Line, vocab_size: int) -> None:
        op = self._inner(effect)
        assert isinstance(op, Append)
        part = slice(effect.offset, effect.offset + effect.n)
        if op.tokens is None:
            ids = tokens_for(range(effect.start, effect.start + effect.n), vocab_size)
        else:
            ids = self._ids(effect, op.tokens[part], vocab_size)
        at = line.lineage.consumed
        self._pieces(number, effect.seq, at, ids, op.chunk, replay=False)
        line.lineage = line.lineage.appended(effect.start, ids)
        self._add_counts(line, at)

    def _ids(self, effect: Appended, tokens: tuple[int, ...], vocab_size: int) -> Ids:
        """The tokens as int64. Raises: Rejected naming the first that the model does not have."""
        given = np.asarray(tokens)
        if given.dtype.kind in "iu":
            wrong = np.flatnonzero((given < 0) | (given >= vocab_size))
        else:
            # something that is not an integer, or an integer of any size
            wrong = np.array([i for i, t in enumerate(tokens) if not _is_id(t, vocab_size)])
        if wrong.size:
            at = int(wrong[0])
            token, what = tokens[at], f"must be from 0 to {vocab_size - 1}"
            raise self._refuse(
                effect,
                Reason.TOKEN,
                f"token at position {effect.start + at} {what}",
                expected=vocab_size - 1,
                **({"given": int(token)} if isinstance(token, (int, np.integer)) else {}),
            )
        return np.array(tokens, np.int64)

    def _add_counts(self, line: _Line, at: int) -> None:
        step = CHECKPOINT_TOKENS
        new = range((at // step + 1) * step, line.lineage.consumed + 1, step)
        line.counts = frozenset(sorted(line.counts.union(new))[-self.kept :])

    def _pieces(
        self,
        number: int,
        key: int,
        at: int,
        ids: Ids,
        chunk: int | None,
        replay: bool,
        moves: Iterable[int] = (),
    ) -> None:
        size = chunk or CHECKPOINT_TOKENS
        low = 0
        while low < len(ids):
            ends = [len(ids), (low // size + 1) * size if chunk else len(ids)]
            ends.append(CHECKPOINT_TOKENS - (at + low) % CHECKPOINT_TOKENS + low)
            # a piece has one run of positions: it ends where a shift took effect
            ends += [count - at for count in moves if count > at + low]
            high = min(ends)
            fence = chunk is None or high == len(ids) or high % size == 0
            self.work.append(Piece(key, ids[low:high], number, at + low, low, replay, fence))
            low = high

    # going back in time

    def _fork(self, number: int, effect: Forked | Copied, state: History) -> None:
        if isinstance(effect, Copied) and not (effect.onto_empty and effect.from_first):
            detail = "with a model a copy starts at the source's first position, onto nothing"
            raise self._refuse(effect, Reason.NOT_DERIVABLE, detail)
        source = self._line(effect.src)
        self.lines[effect.seq] = line = _Line(source.lineage, source.counts)
        self.work.append(Quiet(number))
        count = source.lineage.evicted + state.of(effect.seq).n
        if count != source.lineage.consumed:
            self._go_back(number, effect, effect.seq, line, count)

    def _go_back(self, number: int, effect: AnyEffect, key: int, line: _Line, count: int) -> None:
        lineage = line.lineage
        if count == lineage.consumed:
            self.work.append(Quiet(number))
            return
        origin = usable_origin(lineage, line.counts, count)
        if origin is None:
            least = lineage.evicted + (not isinstance(effect, Truncated))  # a fork takes something
            best = nearest_count(lineage, line.counts, count, least)
            moved = lineage.last_move()
            first = first_position(lineage)
            raise self._refuse(
                effect,
                Reason.NO_CHECKPOINT,
                f"positions that were evicted or moved after token {moved} are needed to replay",
                given=first + count - lineage.evicted,
                nearest=first + best - lineage.evicted,
            )
        self.work.append(GoBack(number, key, count, origin))
        ids, moves = lineage.log.slice(origin, count), [event.count for event in lineage.events]
        self._pieces(number, key, origin, ids, None, replay=True, moves=moves)
        self.work.append(Arrive(number, key, count))
        line.lineage = lineage.clipped(count)
        step = CHECKPOINT_TOKENS
        new = range((origin // step + 1) * step, count + 1, step)
        kept = {c for c in line.counts if c <= count}
        line.counts = frozenset(sorted(kept.union(new))[-self.kept :])


def _is_id(token: object, vocab_size: int) -> bool:
    return isinstance(token, (int, np.integer)) and 0 <= int(token) < vocab_size


def _removes_all(effect: AnyEffect, op: Op, state: History) -> bool:
    """A removal that is prefix and suffix at once: nothing is left to remember anything."""
    return (
        isinstance(effect, (Evicted, Truncated))
        and isinstance(op, Remove)
        and not state.of(effect.seq).n
    )


def first_position(lineage: Lineage) -> int:
    """Position of the first live token."""
    base = 0
    for event in lineage.events:
        if event.kind == "start":
            base = event.value - event.count
        elif event.kind == "shift":
            base += event.value
    return base + lineage.evicted


def usable_origin(lineage: Lineage, counts: frozenset[int], count: int) -> int | None:
    """Consumed count to replay from to reach `count`: a usable checkpoint, or 0 for the start.

    A checkpoint is usable when nothing that the replayed tokens saw was evicted or moved since.
    """
    if count == 0:
        return 0
    moved = lineage.last_move()
    usable = [c for c in counts if c <= count and (c == count or c >= moved)]
    if usable:
        return max(usable)
    return 0 if lineage.evicted == 0 else None


def nearest_count(
    lineage: Lineage, counts: frozenset[int], count: int, least: int | None = None
) -> int:
    """The legal target nearest to `count` that is still live; ties go to the lower one.

    Args:
        least: the lowest count that the op allows, None for all that is evicted.
    """
    least = lineage.evicted if least is None else least
    exact = {c for c in counts if least <= c <= lineage.consumed}
    moved = lineage.last_move()
    open_from = [c for c in exact if c >= moved]
    candidates = exact | {lineage.consumed}
    if open_from:
        candidates |= {max(count, min(open_from))}
    return min(candidates, key=lambda c: (abs(c - count), c))


def tokens_for(positions: Sequence[int] | range, vocab_size: int) -> Ids:
    """Token ids for scenarios that name positions only: a fixed scramble of the position."""
    scrambled = np.asarray(positions, np.int64) * 2654435761 + 40503
    return (scrambled >> 7) % vocab_size


def checkpoint_counts(bank: Bank) -> Mapping[Key, frozenset[int]]:
    """Where checkpoints stand, by key (for limits)."""
    return {key: frozenset(c.count for c in marks) for key, marks in bank.checkpoints.items()}
