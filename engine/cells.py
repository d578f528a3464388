"""Which physical cells hold which positions: extents, and the free space between them.

Owns cell arithmetic and allocation. Everything is a value: taking or giving back cells makes a new
`Space`. Who shares a cell is derived from the extents, so there are no counts that could drift.
Knows no rules and no arrays.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from engine.run import EMPTY, Run

Extent: TypeAlias = tuple[int, int]
Extents: TypeAlias = tuple[Extent, ...]
"""(first cell, number of cells), none empty; in logical order, or ascending for free space."""

NO_SPARE: Extent = (0, 0)
BLOCK = 64  # cells reserved at a time, so that sequences decoding in turn stay in long extents
UNBOUNDED = 1 << 62

Policy: TypeAlias = Callable[[Extents, int, int | None], Extents]
"""(free extents, cells wanted, cell after the sequence's last one or None) -> the cells to take.

The last free extent is the room behind the highest cell ever used. The logical result of an op
never depends on the choice.
"""


class NoRoom(Exception):
    """Fewer cells are free than were asked for; internal, becomes a refusal in the rules."""

    def __init__(self, available: int) -> None:
        super().__init__(f"{available} cells are free")
        self.available = available


@dataclass(frozen=True, slots=True)
class SequenceCells:
    """A run and the cells that hold it, in logical order; `spare` cells are reserved behind it."""

    run: Run = EMPTY
    extents: Extents = ()
    spare: Extent = NO_SPARE

    @property
    def n(self) -> int:
        return self.run.n

    def cells_of(self, start: int, stop: int) -> Extents:
        """Cells of live positions `start` (in) to `stop` (out). Raises: IndexError outside."""
        if not self.run.start <= start <= stop <= self.run.stop:
            raise IndexError(f"positions {start} to {stop} are not all in {self.run}")
        return cut(self.extents, start - self.run.start, stop - self.run.start)

    def cells(self) -> npt.NDArray[np.int64]:
        """Every cell in logical order, [n] int64."""
        return as_array(self.extents)


NOTHING = SequenceCells()


def n_cells_in(extents: Extents) -> int:
    """Cells in all extents together."""
    return sum(count for _, count in extents)


def as_array(extents: Extents) -> npt.NDArray[np.int64]:
    """The cells one by one, [n] int64."""
    if not extents:
        return np.empty(0, dtype=np.int64)
    return np.concatenate([np.arange(a, a + n, dtype=np.int64) for a, n in extents])


def join(left: Extents, right: Extents) -> Extents:
    """`right` behind `left`; touching ends become one extent."""
    if not left or not right:
        return left or right
    (a, n), (b, m) = left[-1], right[0]
    if a + n == b:
        return (*left[:-1], (a, n + m), *right[1:])
    return left + right


def cut(extents: Extents, start: int, stop: int) -> Extents:
    """The cells number `start` (in) to `stop` (out), counted along the extents."""
    found: list[Extent] = []
    at = 0
    for first, count in extents:
        low, high = max(start - at, 0), min(stop - at, count)
        if low < high:
            found.append((first + low, high - low))
        at += count
        if at >= stop:
            break
    return tuple(found)


def ascending(extents: Iterable[Extent]) -> Extents:
    """The same set of cells as ascending extents that neither touch nor overlap."""
    found: list[Extent] = []
    for first, count in sorted(extents):
        if count == 0:
            continue
        if found and first <= found[-1][0] + found[-1][1]:
            start, length = found[-1]
            found[-1] = (start, max(length, first + count - start))
        else:
            found.append((first, count))
    return tuple(found)


def without(extents: Extents, taken: Extents) -> Extents:
    """Ascending `extents` less the cells of `taken`, which may stand in any order."""
    found = extents
    for first, count in taken:
        if not found:
            return ()
        found = _without_one(found, first, first + count)
    return found


def _without_one(extents: Extents, start: int, stop: int) -> Extents:
    low = bisect_left(extents, (start, 0))
    if low and sum(extents[low - 1]) > start:
        low -= 1
    high = bisect_left(extents, (stop, 0))
    if low >= high:
        return extents
    head = (extents[low][0], start - extents[low][0])
    tail = (stop, sum(extents[high - 1]) - stop)
    kept = tuple(extent for extent in (head, tail) if extent[1] > 0)
    return extents[:low] + kept + extents[high:]


def lowest_first(free: Extents, wanted: int, after: int | None) -> Extents:
    """Go on right behind the last cell where cells were given back, then take the lowest free ones.

    The room behind the high-water mark comes last of all, or a window would march on for ever.
    """
    found: list[Extent] = []
    left = wanted
    if after is not None:
        index = bisect_left(free, (after, 0))
        if index < len(free) - 1 and free[index][0] == after:
            found.append((after, min(left, free[index][1])))
            left -= found[0][1]
    for first, count in free:
        if left == 0:
            break
        if found and first == found[0][0]:
            first, count = first + found[0][1], count - found[0][1]
        if count > 0:
            found.append((first, min(left, count)))
            left -= min(left, count)
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Space:
    """The free cells. `end` is the high-water mark: no cell at or behind it was ever used."""

    free: Extents = ()
    """Ascending, below `end`."""
    end: int = 0
    max_cells: int | None = None
    policy: Policy = lowest_first
    block: int = BLOCK

    def candidates(self) -> Extents:
        """Free cells; the last extent, maybe empty, is the room behind the high-water mark."""
        room = UNBOUNDED if self.max_cells is None else self.max_cells - self.end
        return (*self.free, (self.end, room))

    @property
    def n_available(self) -> int:
        return n_cells_in(self.candidates())

    def take(self, wanted: int, after: int | None) -> tuple[Space, Extents, Extent]:
        """Take `wanted` cells and reserve some that follow the last of them.

        Returns: the space without them, the cells in logical order, the reserved extent.
        Raises: NoRoom when `max_cells` does not allow it.
        """
        free = self.candidates()
        if self.max_cells is not None and n_cells_in(free) < wanted:
            raise NoRoom(n_cells_in(free))
        taken = self.policy(free, wanted, after)
        free = without(free, taken)
        spare = _following(free, sum(taken[-1]), -wanted % self.block)
        free = without(free, (spare,)) if spare[1] else free
        end = max(self.end, sum(spare), *(sum(extent) for extent in taken))
        left = without(free, ((end, UNBOUNDED * 2),))
        return Space(left, end, self.max_cells, self.policy, self.block), taken, spare

    def reserve(self, cell: int) -> tuple[Space, Extent]:
        """Reserve at most a block of the free cells that start at `cell`."""
        spare = _following(self.free, cell, self.block)
        if not spare[1]:
            return self, spare
        free = without(self.free, (spare,))
        return Space(free, self.end, self.max_cells, self.policy, self.block), spare

    def give(self, extents: Extents) -> Space:
        """With `extents` free again; they must be in nobody's use."""
        if not extents:
            return self
        free = ascending(self.free + extents)
        return Space(free, self.end, self.max_cells, self.policy, self.block)


def _following(free: Extents, cell: int, wanted: int) -> Extent:
    """At most `wanted` free cells that start at `cell`."""
    index = bisect_left(free, (cell, 0))
    if wanted and index < len(free) and free[index][0] == cell:
        return (cell, min(wanted, free[index][1]))
    return NO_SPARE
