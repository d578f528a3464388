"""What the positions of a foreign cache look like: a survey, by the engine's own run arithmetic.

Unlike the engine's runs these positions may have holes and duplicates, so they are surveyed, not
refused. Knows no file.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine.formats.report import Part, Sequence, Span
from engine.run import partition, validate
from engine.validate import ranges_of

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

    @property
    def clean(self) -> Span | None:
        """The positions before the first hole or duplicate."""
        if self.run is None or self.clean_stop <= self.run[0]:
            return None
        return self.run[0], self.clean_stop

    def sequence(self, name: int | str, usable: Span | None, parts: tuple[Part, ...]) -> Sequence:
        """A report's sequence with these positions."""
        return Sequence(
            id=name,
            run=self.run,
            usable=usable,
            live=self.live,
            holes=self.holes,
            duplicates=self.duplicates,
            complete_groups=self.complete_groups,
            broken=self.broken,
            tail=self.tail,
            forgotten=self.forgotten,
            parts=parts,
        )


def survey(positions: Ints, group_size: int) -> Survey:
    """Survey of `positions` [n] in any order; groups are counted from the first live position."""
    if not positions.size:
        return Survey()
    values = np.sort(positions)
    found = validate(values)
    groups = partition(values, group_size, found)
    if found.first is None or found.last is None:
        return Survey()
    starts = [found.last + 1]
    starts += [found.holes[0][0]] if found.holes else []
    starts += [found.duplicates[0][0]] if found.duplicates else []
    n_distinct = found.n - found.n_repeated
    return Survey(
        run=(found.first, found.last + 1),
        live=found.n,
        holes=found.holes,
        duplicates=tuple(expand(found.duplicates).tolist()),
        stepped=n_distinct > 1 and len(found.holes) == n_distinct - 1,
        complete_groups=groups.n_complete,
        broken=groups.broken,
        tail=groups.n_tail,
        forgotten=groups.forgotten,
        clean_stop=min(starts),
    )


def spans(positions: Ints) -> tuple[Span, ...]:
    """Positions in any order as half-open ranges, each once."""
    return ranges_of(np.unique(positions))


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


def survey_ranges(ranges: Iterable[Span], group_size: int) -> Survey:
    """`survey` of positions given as ascending ranges, none touching: work by range, not position.

    Chains of blocks share prefixes of any length, so their positions are never listed.
    """
    live = [span for span in ranges if span[0] < span[1]]
    if not live:
        return Survey()
    first, last = live[0][0], live[-1][1]
    n_groups = (last - first) // group_size
    tail_start = first + n_groups * group_size
    complete = []
    forgotten: list[Span] = []
    for start, stop in live:
        low, high = -((first - start) // group_size), min((stop - first) // group_size, n_groups)
        if low < high:
            complete.append((low, high))
            edges = ((start, first + low * group_size), (first + high * group_size, stop))
        else:
            edges = ((start, stop), (stop, stop))
        forgotten += [(a, min(b, tail_start)) for a, b in edges if a < min(b, tail_start)]
    return Survey(
        run=(first, last),
        live=sum(stop - start for start, stop in live),
        holes=between(live, first, last),
        complete_groups=sum(high - low for low, high in complete),
        broken=between(complete, 0, n_groups),
        tail=sum(stop - max(start, tail_start) for start, stop in live if stop > tail_start),
        forgotten=tuple(forgotten),
        clean_stop=live[0][1],
    )


def between(ranges: Iterable[Span], start: int, stop: int) -> tuple[Span, ...]:
    """What ascending ranges leave out of `start` to `stop`."""
    left: list[Span] = []
    for low, high in ranges:
        if start < low:
            left.append((start, low))
        start = max(start, high)
    if start < stop:
        left.append((start, stop))
    return tuple(left)
