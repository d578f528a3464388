"""Judging arrays of positions that come from outside: is it one run, and what do groups cover?

Vectorised with NumPy. All results are plain integers. **Every range here is half-open**,
`(first, stop)`: `stop` is out. Reports that print ranges subtract one from the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from engine.terms import MAX_POSITION, Reason

Ranges: TypeAlias = tuple[tuple[int, int], ...]
"""Half-open ranges in ascending order, none empty, no two touching."""

Positions: TypeAlias = Sequence[int] | npt.NDArray[Any]

BLOCK = 1 << 16  # differences of a block stay in the cache; two scratch arrays serve them all


@dataclass(frozen=True, slots=True)
class Validation:
    """What an array of positions is; ranges are half-open positions."""

    n: int
    """Values given, repeated and illegal ones included."""
    first: int | None
    """Lowest legal position (0 to 2^31 - 1), None when there is none."""
    last: int | None
    """Highest legal position."""
    is_run: bool
    """True when each value is legal and its predecessor plus one, in the order given (or n = 0)."""
    holes: Ranges = ()
    """Positions between `first` and `last` that are missing."""
    duplicates: Ranges = ()
    """Positions that are there more than once."""
    n_repeated: int = 0
    """Values beyond the first of their position."""
    n_descents: int = 0
    """Places where a value is lower than the one before it."""
    first_descent: int | None = None
    """Index of the first such value."""
    step: int | None = None
    """The common distance, where at least three positions all lie that far apart, not 1."""
    n_negative: int = 0
    lowest: int | None = None
    """The lowest value given, legal or not."""
    n_too_large: int = 0
    highest: int | None = None
    """The highest value given, legal or not; exact also beyond 2^63."""

    @property
    def n_missing(self) -> int:
        """Positions inside holes."""
        return sum(stop - start for start, stop in self.holes)

    @property
    def is_whole(self) -> bool:
        """True when the positions are one run in whatever order they stand (cells have any)."""
        return not (self.holes or self.duplicates or self.n_negative or self.n_too_large)

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """Why an append of these would be refused, in the order in which reasons are checked."""
        found = (
            (Reason.DUPLICATE, bool(self.duplicates) or self.n_repeated > 0),
            (Reason.NOT_CONSECUTIVE, not self.is_run and bool(self.n_descents or self.holes)),
            (Reason.NEGATIVE, self.n_negative > 0),
            (Reason.TOO_LARGE, self.n_too_large > 0),
        )
        return tuple(reason for reason, there in found if there)


@dataclass(frozen=True, slots=True)
class Partition:
    """Groups counted from the first live position, and what they leave out; ranges half-open."""

    group_size: int
    anchor: int | None
    """First live position, from which groups are counted."""
    n_groups: int
    """Whole groups that the span from first to last has room for."""
    n_complete: int
    """Groups whose every position is there exactly once."""
    broken: Ranges
    """Numbers of the groups with a missing or repeated position."""
    tail: tuple[int, int] | None
    """Positions behind the last whole group; None when no value lies there."""
    n_tail: int
    """Values (cells) in the tail."""
    forgotten: Ranges
    """Live positions in neither a complete group nor the tail."""

    @property
    def n_broken(self) -> int:
        return self.n_groups - self.n_complete

    @property
    def n_forgotten(self) -> int:
        return sum(stop - start for start, stop in self.forgotten)


def validate(positions: Positions) -> Validation:
    """Say whether `positions` is one run, and if not, what is wrong with it.

    Args:
        positions: any length, any order; integers of any size (object arrays and uint64 too).
    Raises: TypeError when the values are not integers.
    """
    values = _as_array(positions)
    if values.size == 0:
        return Validation(0, None, None, is_run=True)
    low, high = int(values[0]), int(values[-1])
    if low >= 0 and high <= MAX_POSITION and ascends_by_one(values):
        return Validation(int(values.size), low, high, is_run=True, lowest=low, highest=high)
    return _find_faults(values)


def ascends_by_one(values: npt.NDArray[Any]) -> bool:
    """True when each value is its predecessor plus one.

    Differences wrap around in narrow types; the ends are compared as Python integers, and an
    array that had wrapped could not end `size - 1` above its start.
    """
    if values.size == 0:
        return True
    if int(values[-1]) - int(values[0]) != values.size - 1:
        return False
    if values.dtype.kind == "O":
        return bool((values[1:] - values[:-1] == 1).all())
    n = min(BLOCK, values.size - 1)
    steps, wrong = np.empty(n, values.dtype), np.empty(n, np.bool_)
    for start in range(0, values.size - 1, BLOCK):
        part = values[start : start + BLOCK + 1]
        n = part.size - 1
        np.subtract(part[1:], part[:-1], out=steps[:n])
        if np.not_equal(steps[:n], 1, out=wrong[:n]).any():
            return False
    return True


def partition(positions: Positions, group_size: int, known: Validation | None = None) -> Partition:
    """Groups and tail of `positions`; illegal values (negative, too large) count as not there.

    Args:
        group_size: positions in a group, at least 1.
        known: the result of `validate` for the same array, which makes a good run O(1).
    Raises: ValueError when group_size is below 1, TypeError when the values are not integers.
    """
    if group_size < 1:
        raise ValueError(f"a group needs at least 1 position, given {group_size}")
    found = validate(positions) if known is None else known
    if found.first is None or found.last is None:
        return Partition(group_size, None, 0, 0, (), None, 0, ())
    if found.is_run:
        return _whole(found.first, found.last, group_size)
    live, counts = np.unique(_legal(_as_array(positions)), return_counts=True)
    return _broken(live, counts, group_size)


def _whole(first: int, last: int, group_size: int) -> Partition:
    n_groups, n_tail = divmod(last - first + 1, group_size)
    tail = (last + 1 - n_tail, last + 1) if n_tail else None
    return Partition(group_size, first, n_groups, n_groups, (), tail, n_tail, ())


def _broken(
    live: npt.NDArray[np.int64], counts: npt.NDArray[np.intp], group_size: int
) -> Partition:
    anchor, last = int(live[0]), int(live[-1])
    n_groups = (last - anchor + 1) // group_size
    tail_start = anchor + n_groups * group_size
    in_tail = live >= tail_start
    numbers = (live - anchor) // group_size
    # a group is complete when group_size distinct positions stand in it, each once
    touched, where, distinct = np.unique(numbers[~in_tail], return_index=True, return_counts=True)
    values = np.add.reduceat(counts[~in_tail], where) if where.size else distinct
    good = (distinct == group_size) & (values == group_size)
    complete = touched[good]
    lost = live[~in_tail & ~np.isin(numbers, complete)]
    return Partition(
        group_size=group_size,
        anchor=anchor,
        n_groups=n_groups,
        n_complete=int(complete.size),
        broken=_complement(complete, 0, n_groups),
        tail=(tail_start, last + 1) if in_tail.any() else None,
        n_tail=int(counts[in_tail].sum()),
        forgotten=ranges_of(lost),
    )


def ranges_of(ascending: npt.NDArray[Any]) -> Ranges:
    """Half-open ranges of an ascending array without repeats."""
    if ascending.size == 0:
        return ()
    cuts = np.flatnonzero(np.diff(ascending) != 1)
    starts = ascending[np.concatenate(([0], cuts + 1))]
    stops = ascending[np.concatenate((cuts, [ascending.size - 1]))] + 1
    return tuple(zip(starts.tolist(), stops.tolist(), strict=True))


def _complement(ascending: npt.NDArray[Any], start: int, stop: int) -> Ranges:
    found: list[tuple[int, int]] = []
    at = start
    for low, high in ranges_of(ascending):
        if at < low:
            found.append((at, low))
        at = high
    if at < stop:
        found.append((at, stop))
    return tuple(found)


def _as_array(positions: Positions) -> npt.NDArray[Any]:
    if isinstance(positions, np.ndarray):
        values = positions.reshape(-1)
    elif isinstance(positions, range):
        values = np.arange(positions.start, positions.stop, positions.step, dtype=object)
        if _fits(positions):
            values = np.arange(positions.start, positions.stop, positions.step, dtype=np.int64)
    else:
        values = _from_sequence(positions)
    if values.dtype.kind == "O" and not all(_is_int(value) for value in values):
        raise TypeError("positions must be integers, given an array of other objects")
    if values.dtype.kind not in "iuO":
        raise TypeError(f"positions must be integers, given {values.dtype}")
    return values


def _fits(positions: range) -> bool:
    ends = (positions.start, positions.stop, positions.step)
    return all(-(2**63) <= end < 2**63 for end in ends)


def _from_sequence(positions: Sequence[int]) -> npt.NDArray[Any]:
    if not all(_is_int(value) for value in positions):
        raise TypeError("positions must be integers")
    try:
        return np.array(positions, dtype=np.int64)
    except OverflowError:
        values = np.empty(len(positions), dtype=object)
        values[:] = positions
        return values


def _is_int(value: object) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _legal(values: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """The values from 0 to 2^31 - 1, in their order."""
    legal: npt.NDArray[Any] = values[(values >= 0) & (values <= MAX_POSITION)]
    return legal.astype(np.int64)


def _find_faults(values: npt.NDArray[Any]) -> Validation:
    legal = _legal(values)
    live, counts = np.unique(legal, return_counts=True)
    steps = np.diff(live)
    gaps = np.flatnonzero(steps != 1)
    descents = np.flatnonzero(values[1:] < values[:-1]) + 1
    same_step = live.size >= 3 and int(steps[0]) != 1 and bool((steps == steps[0]).all())
    return Validation(
        n=int(values.size),
        first=int(live[0]) if live.size else None,
        last=int(live[-1]) if live.size else None,
        is_run=False,
        holes=tuple(zip((live[gaps] + 1).tolist(), live[gaps + 1].tolist(), strict=True)),
        duplicates=ranges_of(live[counts > 1]),
        n_repeated=int(legal.size - live.size),
        n_descents=int(descents.size),
        first_descent=int(descents[0]) if descents.size else None,
        step=int(steps[0]) if same_step else None,
        n_negative=int(np.count_nonzero(values < 0)),
        lowest=int(values.min()),
        n_too_large=int(np.count_nonzero(values > MAX_POSITION)),
        highest=int(values.max()),
    )
