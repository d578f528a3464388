"""Arithmetic over the positions that a foreign cache holds: run, holes, groups, forgotten ranges.

Unlike the engine's own runs these positions may have holes and duplicates, so they are surveyed,
not validated. Knows no file.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine.formats.report import Span

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Survey:
    """What the positions of one part look like. Ranges are half-open."""

    run: Span | None = None
    """First live position to one past the last."""
    live: int = 0
    """Number of cells, repeated positions counted each time."""
    holes: tuple[Span, ...] = ()
    duplicates: tuple[int, ...] = ()
    stepped: bool = False
    """At least two positions, and no two neighbours differ by one."""
    complete_groups: int = 0
    broken: tuple[Span, ...] = ()
    """Numbers of groups with a missing or repeated position, as half-open ranges."""
    tail: int = 0
    forgotten: tuple[Span, ...] = ()
    clean_stop: int = 0
    """One past the last position before the first hole or duplicate; run start when none."""


def survey(positions: Ints, group_size: int) -> Survey:
    """Survey of `positions` [n] in any order; groups are counted from the first live position."""
    if not positions.size:
        return Survey()
    distinct, counts = np.unique(positions, return_counts=True)
    first, last = int(distinct[0]), int(distinct[-1])
    steps = np.diff(distinct)
    gaps = np.flatnonzero(steps > 1)
    holes = tuple((int(distinct[i]) + 1, int(distinct[i + 1])) for i in gaps)
    repeated = distinct[counts > 1]
    n_groups = (last - first + 1) // group_size
    group = (distinct - first) // group_size
    complete = complete_groups(group, counts, group_size, n_groups)
    in_complete = np.isin(group, complete, assume_unique=False)
    clean_stop = int(distinct[gaps[0]]) + 1 if gaps.size else last + 1
    if repeated.size:
        clean_stop = min(clean_stop, int(repeated[0]))
    return Survey(
        run=(first, last + 1),
        live=int(positions.size),
        holes=holes,
        duplicates=tuple(int(position) for position in repeated),
        stepped=bool(distinct.size > 1 and not (steps == 1).any()),
        complete_groups=int(complete.size),
        broken=complement(complete, n_groups),
        tail=int(counts[group == n_groups].sum()),
        forgotten=spans(distinct[(group < n_groups) & ~in_complete]),
        clean_stop=clean_stop,
    )


def complete_groups(group: Ints, counts: Ints, group_size: int, n_groups: int) -> Ints:
    """Numbers of the groups below `n_groups` with every position exactly once, ascending."""
    numbers, starts, members = np.unique(group, return_index=True, return_counts=True)
    most = np.maximum.reduceat(counts, starts)
    complete: Ints = numbers[(members == group_size) & (most == 1) & (numbers < n_groups)]
    return complete


def complement(numbers: Ints, stop: int) -> tuple[Span, ...]:
    """The half-open ranges of 0..stop that ascending `numbers` leave out."""
    edges = np.concatenate(([-1], numbers, [stop]))
    wide = np.flatnonzero(np.diff(edges) > 1)
    return tuple((int(edges[i]) + 1, int(edges[i + 1])) for i in wide)


def spans(ascending: Ints) -> tuple[Span, ...]:
    """Distinct ascending positions as half-open ranges."""
    if not ascending.size:
        return ()
    cuts = np.flatnonzero(np.diff(ascending) != 1)
    starts = ascending[np.concatenate(([0], cuts + 1))]
    stops = ascending[np.concatenate((cuts, [ascending.size - 1]))] + 1
    return tuple(zip(starts.tolist(), stops.tolist(), strict=True))


def expand(ranges: Iterable[Span]) -> Ints:
    """Positions of half-open ranges, ascending and distinct."""
    arrays = [np.arange(start, stop, dtype=np.int64) for start, stop in ranges]
    return np.unique(np.concatenate(arrays)) if arrays else np.empty(0, np.int64)


def usable_prefix(first: int, reaches: Iterable[Span]) -> Span | None:
    """The longest prefix to which every part can be cut.

    Args:
        first: first live position of the sequence.
        reaches: for each part the half-open range of last positions at which it can stand.
    Returns: half-open range from `first`, None where no end suits every part.
    """
    low, stop = first, None
    for start, end in reaches:
        low = max(low, start)
        stop = end if stop is None else min(stop, end)
    return None if stop is None or stop <= low else (first, stop)
