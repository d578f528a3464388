"""What an op did, step by step, for those who own the contents of cells.

Effects stand in the order of execution. Ranges are half-open. An effect's `pieces` are the
sequence (for `Saved`: the slot) after it: one entry as a rule, none when empty, several only inside
a transaction that has taken a middle range out and not yet closed the hole.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TypeAlias

from engine.cells import NOTHING, Extents, SequenceCells, Space
from engine.errors import InvariantBroken
from engine.history import History


@dataclass(frozen=True, slots=True)
class Effect:
    """Base: `seq` is the changed sequence, `inner` the number of the op in its transaction."""

    seq: int
    inner: int
    pieces: tuple[SequenceCells, ...]

    @property
    def is_whole(self) -> bool:
        """True when the sequence is empty or one run after this effect."""
        return len(self.pieces) <= 1

    @property
    def after(self) -> SequenceCells:
        """The sequence after this effect. Raises: InvariantBroken when it is in pieces."""
        if not self.is_whole:
            raise InvariantBroken("sequence in the middle of a transaction", "one run", "pieces")
        return self.pieces[0] if self.pieces else NOTHING


@dataclass(frozen=True, slots=True)
class Appended(Effect):
    """`n` new positions from `start`; `offset` counts along the positions of the op."""

    start: int
    n: int
    extents: Extents
    offset: int


@dataclass(frozen=True, slots=True)
class Evicted(Effect):
    """The `n` oldest positions are gone."""

    n: int


@dataclass(frozen=True, slots=True)
class Truncated(Effect):
    """Only the `n_left` oldest positions are left."""

    n_left: int


@dataclass(frozen=True, slots=True)
class Removed(Effect):
    """Live positions `start` to `stop` are gone from the middle; only inside a transaction."""

    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class Shifted(Effect):
    """`delta` was added to the live positions `start` to `stop` (numbers before the shift)."""

    delta: int
    start: int
    stop: int
    whole: bool
    """True when these were all positions of the sequence."""


@dataclass(frozen=True, slots=True)
class Forked(Effect):
    """The empty sequence `seq` shares the `n` oldest positions of `src`."""

    src: int
    n: int

    @property
    def dst(self) -> int:
        return self.seq


@dataclass(frozen=True, slots=True)
class Copied(Effect):
    """`seq` shares positions `start` to `stop` of `src`, added at its end."""

    src: int
    start: int
    stop: int
    extents: Extents
    onto_empty: bool
    from_first: bool
    """True when `start` is the first position of `src`."""

    @property
    def dst(self) -> int:
        return self.seq


@dataclass(frozen=True, slots=True)
class ResetSeq(Effect):
    """The sequence is empty."""


@dataclass(frozen=True, slots=True)
class Saved(Effect):
    """The sequence is kept as `slot`."""

    slot: str


@dataclass(frozen=True, slots=True)
class Restored(Effect):
    """The sequence is what `slot` holds."""

    slot: str


@dataclass(frozen=True, slots=True)
class Moved(Effect):
    """Cells were moved for all sequences and slots at once; `seq` means nothing here.

    `moves` are (old first cell, new first cell, count), new cells ascending; a move may overlap
    cells that a later one reads, so gather all before scattering.
    """

    moves: tuple[tuple[int, int, int], ...]


AnyEffect: TypeAlias = (
    Appended
    | Evicted
    | Truncated
    | Removed
    | Shifted
    | Forked
    | Copied
    | ResetSeq
    | Saved
    | Restored
    | Moved
)


@dataclass(frozen=True, slots=True)
class Applied:
    """The result of a legal op: the new history, and how it came about."""

    before: History
    history: History
    effects: tuple[AnyEffect, ...]
    spaces: tuple[Space, ...] = ()
    """The free cells after each effect."""

    @property
    def states(self) -> tuple[History | None, ...]:
        """The history after each effect; None while a sequence or slot is in pieces."""
        found: list[History | None] = []
        sequences, slots = dict(self.before.sequences), dict(self.before.slots)
        broken: set[int | str] = set()
        for effect, space in zip(self.effects, self.spaces, strict=True):
            if isinstance(effect, Moved):
                found.append(self.history)
                continue
            key = effect.slot if isinstance(effect, Saved) else effect.seq
            (broken.discard if effect.is_whole else broken.add)(key)
            if effect.is_whole and isinstance(effect, Saved):
                slots[effect.slot] = effect.after
            elif effect.pieces and effect.is_whole:
                sequences[effect.seq] = effect.after
            else:
                sequences.pop(effect.seq, None)
            found.append(None if broken else self._state(sequences, slots, space))
        return tuple(found)

    def _state(
        self, sequences: dict[int, SequenceCells], slots: dict[str, SequenceCells], space: Space
    ) -> History:
        return replace(
            self.before,
            sequences=MappingProxyType(dict(sequences)),
            slots=MappingProxyType(dict(slots)),
            space=space,
        )
