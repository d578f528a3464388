"""The history of a session as a value: for every sequence and slot, its run and its cells.

Owns the value and its check. How it changes is in `engine.rules`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from engine.cells import (
    BLOCK,
    NOTHING,
    Extents,
    Policy,
    SequenceCells,
    Space,
    ascending,
    lowest_first,
    n_cells_in,
    without,
)
from engine.errors import InvariantBroken
from engine.terms import GROUP_SIZE


@dataclass(frozen=True, slots=True)
class History:
    """Which position is in which cell, for which sequence. Empty sequences are not listed.

    Build the first one with `History.empty`; `rules.apply` makes the others.
    """

    group_size: int
    capacity: int
    """The most live positions of one sequence."""
    window: int | None
    """Live positions that a token may not exceed without evicting the oldest group first."""
    sequences: Mapping[int, SequenceCells] = field(default_factory=lambda: MappingProxyType({}))
    slots: Mapping[str, SequenceCells] = field(default_factory=lambda: MappingProxyType({}))
    space: Space = field(default_factory=Space)

    @classmethod
    def empty(
        cls,
        group_size: int = GROUP_SIZE,
        capacity: int = 1 << 20,
        window: int | None = None,
        max_cells: int | None = None,
        policy: Policy = lowest_first,
        block: int = BLOCK,
    ) -> History:
        """A history without positions.

        Args:
            capacity: the most live positions of one sequence.
            window: a multiple of group_size, or None.
            max_cells: the most physical cells of all sequences and slots, None for no limit.
            block: cells reserved at a time.
        Raises: ValueError when a number makes no sense.
        """
        if group_size < 1 or capacity < 1 or block < 1:
            raise ValueError(
                "group_size, capacity and block must be at least 1, "
                f"given {group_size}, {capacity} and {block}"
            )
        if window is not None and (window < 1 or window % group_size):
            raise ValueError(f"window must be a multiple of {group_size}, given {window}")
        if max_cells is not None and max_cells < 0:
            raise ValueError(f"max_cells must be at least 0, given {max_cells}")
        space = Space(max_cells=max_cells, policy=policy, block=block)
        return cls(group_size, capacity, window, space=space)

    @property
    def n_cells(self) -> int:
        """High-water mark: every cell in use or reserved is below it."""
        return self.space.end

    def of(self, seq: int) -> SequenceCells:
        """Run and cells of a sequence; `NOTHING` when it is empty."""
        return self.sequences.get(seq, NOTHING)

    def holders(self) -> Iterator[SequenceCells]:
        """Every sequence and slot."""
        yield from self.sequences.values()
        yield from self.slots.values()

    @property
    def live(self) -> Extents:
        """Cells that a sequence or slot uses, each once, ascending."""
        return ascending(extent for held in self.holders() for extent in held.extents)

    def check(self) -> None:
        """Compare free, reserved and used cells. Raises: InvariantBroken."""
        for held in self.holders():
            if n_cells_in(held.extents) != held.run.n:
                _broken("cells of a run", str(held.run.n), str(n_cells_in(held.extents)))
        spares = tuple(held.spare for held in self.holders() if held.spare[1])
        kinds = {"used": self.live, "reserved": ascending(spares), "free": self.space.free}
        total = sum(n_cells_in(extents) for extents in kinds.values())
        if n_cells_in(ascending(spares)) != sum(count for _, count in spares):
            _broken("reserved cells", "each for one sequence", str(spares))
        everything = ascending(extent for extents in kinds.values() for extent in extents)
        whole = ((0, self.n_cells),) if self.n_cells else ()
        if everything != whole or total != self.n_cells:
            lost = without(whole, everything)
            found = f"{total} cells, {lost} in no list, {kinds}"
            _broken("used, reserved and free cells", f"{self.n_cells} cells, each once", found)
        limit = self.space.max_cells
        if limit is not None and self.n_cells > limit:
            _broken("high-water mark", f"at most {limit}", str(self.n_cells))


def _broken(what: str, expected: str, found: str) -> None:
    raise InvariantBroken(what, expected, found)
