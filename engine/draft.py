"""A history under construction: moves positions and cells, records effects, judges nothing.

A draft starts from a history, which it never changes; it is thrown away when an op is refused.
While a transaction is open a sequence may be in several pieces, in the order of its tokens.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TypeVar

from engine.cells import (
    NO_SPARE,
    Extent,
    Extents,
    NoRoom,
    SequenceCells,
    Space,
    ascending,
    cut,
    join,
    without,
)
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
from engine.history import History
from engine.run import EMPTY, Run


@dataclass(frozen=True, slots=True)
class Piece:
    """Consecutive positions and their cells, in logical order; never empty."""

    run: Run
    extents: Extents

    def part(self, start: int, stop: int) -> Piece | None:
        """The piece clipped to a range, None when nothing of it is there."""
        run = self.run.clip(start, stop)
        if not run:
            return None
        offset = run.start - self.run.start
        return Piece(run, cut(self.extents, offset, offset + run.n))


Pieces = tuple[Piece, ...]


def merged(pieces: Pieces) -> Pieces:
    """Pieces whose positions and tokens both follow on each other made one."""
    found: list[Piece] = []
    for piece in pieces:
        if found and found[-1].run.stop == piece.run.start:
            last = found[-1]
            run = Run(last.run.start, piece.run.stop)
            found[-1] = Piece(run, join(last.extents, piece.extents))
        else:
            found.append(piece)
    return tuple(found)


Name = TypeVar("Name", int, str)


def _in_order(
    found: dict[Name, SequenceCells], before: Mapping[Name, SequenceCells]
) -> Mapping[Name, SequenceCells]:
    """Names ascending; sorted anew only when there is another one."""
    if found.keys() - before.keys():
        found = dict(sorted(found.items()))
    return MappingProxyType(found)


class Draft:
    """The working copy of a history while one op is judged and executed."""

    def __init__(self, history: History) -> None:
        self.before = history
        self.space = history.space
        self.inside = False  # a transaction is open: holes are judged at its end
        self.inner = 0  # number of the op in the transaction
        self.effects: list[AnyEffect] = []
        self._spaces: list[Space] = []
        # only what was looked at or changed; all else is read from `before`
        self._pieces: dict[int, Pieces] = {}
        self._slots: dict[str, Pieces] = {}
        self._spares: dict[int, Extent] = {}
        self.touched: list[int] = []  # sequences and slots changed, in order
        self.saved: list[str] = []

    # what is there

    def pieces(self, seq: int) -> Pieces:
        """The sequence's pieces in the order of its tokens."""
        found = self._pieces.get(seq)
        if found is None:
            held = self.before.sequences.get(seq)
            found = () if held is None else (Piece(held.run, held.extents),)
            self._pieces[seq] = found
        return found

    def slot(self, slot: str) -> Pieces | None:
        """What is saved under a name, None when nothing is."""
        found = self._slots.get(slot)
        held = self.before.slots.get(slot)
        if found is None and held is not None:
            found = (Piece(held.run, held.extents),)
        return found

    def slot_names(self) -> tuple[str, ...]:
        return tuple(sorted({*self.before.slots, *self._slots}))

    def n_live(self, seq: int) -> int:
        return sum(piece.run.n for piece in self.pieces(seq))

    def span(self, seq: int) -> Run:
        """From the lowest live position to behind the highest; holes of a transaction included."""
        pieces = self.pieces(seq)
        if not pieces:
            return EMPTY
        return Run(min(p.run.start for p in pieces), max(p.run.stop for p in pieces))

    def sequences(self) -> Iterator[int]:
        """Sequences that are not empty."""
        return (seq for seq in {*self.before.sequences, *self._pieces} if self.pieces(seq))

    # changing it

    def append(self, seq: int, start: int, n: int, offset: int) -> None:
        """`n` new positions at the end of the sequence. Raises: NoRoom."""
        extents = self._take(seq, n)
        piece = Piece(Run(start, start + n), extents)
        self._put(seq, merged((*self.pieces(seq), piece)))
        self._record(Appended(seq, self.inner, self._cells(seq), start, n, extents, offset))

    def evict(self, seq: int, count: int) -> None:
        """Drop the `count` lowest positions; there are that many."""
        left, stop = count, 0
        for run in sorted(piece.run for piece in self.pieces(seq)):
            stop = run.start + min(run.n, left)
            left -= min(run.n, left)
            if left == 0:
                break
        self._drop(seq, 0, stop)
        self._record(Evicted(seq, self.inner, self._cells(seq), count))

    def truncate(self, seq: int, to: int) -> None:
        """Drop every position >= `to`."""
        span = self.span(seq)
        if to >= span.stop:
            return
        self._drop(seq, to, span.stop)
        self._record(Truncated(seq, self.inner, self._cells(seq), self.n_live(seq)))

    def remove(self, seq: int, start: int, stop: int) -> None:
        """Drop the live positions of a range; a prefix is evicted, a suffix truncated."""
        live, span = self.n_live(seq), self.span(seq)
        if start <= span.start:
            left = sum(p.run.n - p.run.clip(start, stop).n for p in self.pieces(seq))
            self.evict(seq, live - left)
        elif stop >= span.stop:
            self.truncate(seq, start)
        else:
            self._drop(seq, start, stop)
            self._record(Removed(seq, self.inner, self._cells(seq), start, stop))

    def shift(self, seq: int, delta: int, start: int, stop: int) -> None:
        """Add `delta` to the live positions of a range; they land on no other one."""
        if delta == 0:
            return
        moved: list[Piece] = []
        for piece in self.pieces(seq):
            inside = piece.part(start, stop)
            parts = (piece.part(0, start), inside, piece.part(stop, piece.run.stop))
            moved.extend(
                Piece(p.run.shifted(delta), p.extents) if p is inside else p
                for p in parts
                if p is not None
            )
        whole = all(piece.part(start, stop) == piece for piece in self.pieces(seq))
        self._put(seq, merged(tuple(moved)))
        self._record(Shifted(seq, self.inner, self._cells(seq), delta, start, stop, whole))

    def fork(self, src: int, dst: int, stop: int) -> None:
        """Share the positions of `src` below `stop` with the empty `dst`."""
        parts = (piece.part(0, stop) for piece in self.pieces(src))
        self._put(dst, tuple(part for part in parts if part is not None))
        self._record(Forked(dst, self.inner, self._cells(dst), src, self.n_live(dst)))

    def copy(self, src: int, dst: int, start: int, stop: int) -> None:
        """Share a range of `src`, all of it live, at the end of `dst`."""
        parts = (piece.part(start, stop) for piece in self.pieces(src))
        found = tuple(sorted((p for p in parts if p is not None), key=lambda p: p.run))
        onto_empty, from_first = not self.pieces(dst), start == self.span(src).start
        extents: Extents = ()
        for piece in found:
            extents = join(extents, piece.extents)
        self._put(dst, merged((*self.pieces(dst), *found)))
        cells = self._cells(dst)
        effect = Copied(dst, self.inner, cells, src, start, stop, extents, onto_empty, from_first)
        self._record(effect)

    def reset(self, seq: int) -> None:
        span = self.span(seq)
        self._drop(seq, span.start, span.stop)
        self._record(ResetSeq(seq, self.inner, ()))

    def save(self, seq: int, slot: str) -> None:
        old = self.slot(slot) or ()
        self._slots[slot] = self.pieces(seq)
        self.saved.append(slot)
        self._release(extent for piece in old for extent in piece.extents)
        cells = tuple(SequenceCells(piece.run, piece.extents) for piece in self.pieces(seq))
        self._record(Saved(seq, self.inner, cells, slot))

    def restore(self, seq: int, slot: str) -> None:
        old = self.pieces(seq)
        self._put(seq, self.slot(slot) or ())
        self._free_spare(seq)
        self._release(extent for piece in old for extent in piece.extents)
        self._record(Restored(seq, self.inner, self._cells(seq), slot))

    # the end of it

    def finish(self) -> Applied:
        """The history and how it came about; every sequence must be one run or empty."""
        sequences = dict(self.before.sequences)
        for seq in self._pieces:
            cells = self._cells(seq)
            if cells:
                sequences[seq] = cells[0]
            else:
                sequences.pop(seq, None)
        slots = dict(self.before.slots)
        for slot, pieces in self._slots.items():
            slots[slot] = SequenceCells(pieces[0].run, pieces[0].extents)
        history = replace(
            self.before,
            sequences=_in_order(sequences, self.before.sequences),
            slots=_in_order(slots, self.before.slots),
            space=self.space,
        )
        return Applied(self.before, history, tuple(self.effects), tuple(self._spaces))

    # cells

    def _take(self, seq: int, wanted: int) -> Extents:
        first, count = self._spare(seq)
        if count >= wanted:
            self._set_spare(seq, (first + wanted, count - wanted))
            return ((first, wanted),)
        pieces = self.pieces(seq)
        after = sum(pieces[-1].extents[-1]) if pieces else None
        if count:
            after = first + count
        try:
            space, taken, spare = self.space.take(wanted - count, after)
        except NoRoom:
            self._free_every_spare()
            space, taken, spare = self.space.take(wanted, first if count else after)
            count = 0
        self.space = space
        self._set_spare(seq, spare)
        return join(((first, count),), taken) if count else taken

    def _spare(self, seq: int) -> Extent:
        spare = self._spares.get(seq)
        return self.before.of(seq).spare if spare is None else spare

    def _set_spare(self, seq: int, spare: Extent) -> None:
        self.pieces(seq)  # so that `finish` writes the sequence anew
        self._spares[seq] = spare if spare[1] else NO_SPARE

    def _free_spare(self, seq: int) -> None:
        spare = self._spare(seq)
        if spare[1]:
            self.space = self.space.give((spare,))
            self._set_spare(seq, NO_SPARE)

    def _free_every_spare(self) -> None:
        for seq in (*self.before.sequences, *self._spares):
            self._free_spare(seq)

    def _drop(self, seq: int, start: int, stop: int) -> None:
        """Take the positions of a range away and free their cells where nobody shares them."""
        kept: list[Piece] = []
        dropped: list[Extent] = []
        last_gone = False
        for piece in self.pieces(seq):
            parts = (piece.part(0, start), piece.part(stop, piece.run.stop))
            kept.extend(part for part in parts if part is not None)
            gone = piece.part(start, stop)
            dropped.extend(gone.extents if gone is not None else ())
            last_gone = gone is not None and gone.run.stop == piece.run.stop
        self._put(seq, tuple(kept))
        self._release(dropped)
        if dropped and last_gone:  # what is reserved no longer follows the last cell
            self._free_spare(seq)
            if kept:
                self.space, spare = self.space.reserve(sum(kept[-1].extents[-1]))
                self._set_spare(seq, spare)

    def _release(self, dropped: Iterator[Extent] | list[Extent]) -> None:
        free = ascending(dropped)
        for extents in self._held():
            if not free:
                return
            free = without(free, extents)
        self.space = self.space.give(free)

    def _held(self) -> Iterator[Extents]:
        """The cells of every sequence and slot as they are now."""
        for seq, held in self.before.sequences.items():
            if seq not in self._pieces:
                yield held.extents
        for slot, held in self.before.slots.items():
            if slot not in self._slots:
                yield held.extents
        for pieces in (*self._pieces.values(), *self._slots.values()):
            for piece in pieces:
                yield piece.extents

    # bookkeeping

    def _put(self, seq: int, pieces: Pieces) -> None:
        self._pieces[seq] = pieces

    def _cells(self, seq: int) -> tuple[SequenceCells, ...]:
        pieces = self.pieces(seq)
        if not pieces:
            return ()
        first, last = pieces[:-1], pieces[-1]
        ahead = tuple(SequenceCells(piece.run, piece.extents) for piece in first)
        return (*ahead, SequenceCells(last.run, last.extents, self._spare(seq)))

    def _record(self, effect: AnyEffect) -> None:
        if effect.seq not in self.touched:
            self.touched.append(effect.seq)
        self.effects.append(effect)
        self._spaces.append(self.space)
