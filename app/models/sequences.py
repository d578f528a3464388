"""The run of a sequence as something to draw: segments of kinds, and what stands at a position.

A track keeps segments, never an array as long as the run, so a run of a million positions and
left padding of two thousand million cost the same: what is counted is columns of pixels. No Qt.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from engine.snapshot import OpenView, SequenceView

Codes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]
Ranges = tuple[tuple[int, int], ...]

MOST_HOLE_DRAWN = 4096
"""A refused append far behind the frontier is drawn with at most this many missing positions."""


class Kind(IntEnum):
    """What a position is, numbered by loudness: a louder one wins a column of pixels."""

    OUTSIDE = 0
    GROUP_A = 1
    GROUP_B = 2
    MIX = 3
    TAIL = 4
    PADDING = 5
    EVICTED = 6
    FORGOTTEN = 7
    HOLE = 8


SEGMENT_KINDS = (
    Kind.GROUP_A,
    Kind.TAIL,
    Kind.PADDING,
    Kind.EVICTED,
    Kind.FORGOTTEN,
    Kind.HOLE,
)
"""Kinds of segments; `GROUP_A` stands for any positions that belong to complete groups."""

LIVE_KINDS = (Kind.GROUP_A, Kind.TAIL, Kind.FORGOTTEN)
"""Kinds of segments of live positions; our own engine never has the last."""

ROLE_OF = {
    Kind.OUTSIDE: "base",
    Kind.GROUP_A: "group_a",
    Kind.GROUP_B: "group_b",
    Kind.MIX: "group_mix",
    Kind.TAIL: "tail",
    Kind.PADDING: "padding",
    Kind.EVICTED: "evicted",
    Kind.FORGOTTEN: "forgotten",
    Kind.HOLE: "hole",
}
"""Colour role of each code."""

WORD_OF = {
    Kind.OUTSIDE: "outside the run",
    Kind.GROUP_A: "complete group",
    Kind.GROUP_B: "complete group",
    Kind.MIX: "complete group",
    Kind.TAIL: "raw tail",
    Kind.PADDING: "left padding",
    Kind.EVICTED: "evicted",
    Kind.FORGOTTEN: "forgotten",
    Kind.HOLE: "hole",
}

MEANING_OF = {
    Kind.GROUP_A: "Positions of complete groups; each group is pooled to one index row.",
    Kind.TAIL: "Positions after the last complete group, kept raw until the group is full.",
    Kind.PADDING: "Places before the first position that never held a token.",
    Kind.EVICTED: "Positions that were dropped from the front of the run.",
    Kind.FORGOTTEN: "Live positions in neither a complete group nor the tail: "
    "their group has a hole or a repeated position, so sparse attention never sees them.",
    Kind.HOLE: "A missing position inside the run: never legal, refused before any planning.",
}


@dataclass(frozen=True, slots=True, eq=False)
class Track:
    """One sequence along the axis of positions; segments tile [lo, hi)."""

    seq: int
    bounds: Ints
    """[S + 1] first position of each segment, then the end."""
    kinds: Codes
    """[S] one of `SEGMENT_KINDS`."""
    totals: dict[Kind, Ints]
    """Per kind of segment that occurs: [S + 1] positions of it before each bound."""
    anchor: int
    """First live position, from which groups are counted."""
    group_size: int
    n_groups: int
    """Whole groups that the live positions span, broken ones included."""
    frontier: int | None
    label: str = ""
    ghost: tuple[int, int] | None = None
    """Half-open range that the private bank is about to append."""
    refused: str = ""
    """The sentence of a refused attempt that is drawn as a hole."""
    wanted: Ranges = ()
    """Half-open ranges that the refused attempt asked for."""

    @property
    def lo(self) -> int:
        """First position of the axis."""
        return int(self.bounds[0])

    @property
    def hi(self) -> int:
        """One behind the last position of the axis, a ghost and a refused range included."""
        ends = [int(self.bounds[-1])]
        ends += [stop for _, stop in self.wanted]
        ends += [self.ghost[1]] if self.ghost is not None else []
        return max(ends)

    @property
    def n_live(self) -> int:
        """Live positions."""
        return sum(self.count(kind) for kind in LIVE_KINDS)

    @property
    def n_whole(self) -> int:
        """Groups that are complete; the others of `n_groups` are broken."""
        return self.count(Kind.GROUP_A) // self.group_size

    def count(self, kind: Kind) -> int:
        """Positions of a kind of segment."""
        totals = self.totals.get(kind)
        return 0 if totals is None else int(totals[-1])


def tiled(segments: Iterable[tuple[int, int, Kind]]) -> tuple[Ints, Codes]:
    """Segments in order and without gaps as bounds and kinds; neighbours of a kind are one."""
    kept: list[tuple[int, int, Kind]] = []
    for start, stop, kind in segments:
        if stop <= start:
            continue
        assert not kept or kept[-1][1] == start, "segments tile the axis"
        if kept and kept[-1][2] == kind:
            kept[-1] = (kept[-1][0], stop, kind)
        else:
            kept.append((start, stop, kind))
    if not kept:
        return np.zeros(1, np.int64), np.zeros(0, np.uint8)
    bounds = np.array([s for s, _, _ in kept] + [kept[-1][1]], np.int64)
    return bounds, np.array([k for _, _, k in kept], np.uint8)


def totals_of(bounds: Ints, kinds: Codes) -> dict[Kind, Ints]:
    """Positions of each kind before every bound."""
    lengths = np.diff(bounds)
    result: dict[Kind, Ints] = {}
    for kind in SEGMENT_KINDS:
        chosen = kinds == kind
        if chosen.any():
            total = np.zeros(len(bounds), np.int64)
            np.cumsum(np.where(chosen, lengths, 0), out=total[1:])
            result[kind] = total
    return result


@dataclass(frozen=True, slots=True)
class Refusal:
    """A refused append: the positions it asked for, in ranges, and what was missing."""

    asked: Ranges
    """Half-open ranges of the positions asked for, ascending."""
    sentence: str

    @property
    def start(self) -> int:
        """First position asked for."""
        return self.asked[0][0]


def track_of(
    view: SequenceView, open_view: OpenView | None = None, refusal: Refusal | None = None
) -> Track:
    """The track of a sequence of our own engine: padding, evicted, groups, tail, refused hole."""
    evicted_from = max(0, view.start - view.evicted)
    padding_from = max(0, evicted_from - view.padding)
    groups_to = view.start + view.n_groups * view.group_size
    segments = [
        (padding_from, evicted_from, Kind.PADDING),
        (evicted_from, view.start, Kind.EVICTED),
        (view.start, groups_to, Kind.GROUP_A),
        (groups_to, view.stop, Kind.TAIL),
    ]
    wanted: Ranges = ()
    if refusal is not None:
        end = view.stop if view.n_live else refusal.start
        segments = segments if view.n_live else []
        missing, wanted = _refused_segments(end, refusal.asked)
        segments += missing
    bounds, kinds = tiled(segments)
    if len(kinds) == 0:
        bounds = np.array([view.start], np.int64)
    ghost = None
    if open_view is not None and open_view.seq == view.seq and open_view.stop > open_view.start:
        ghost = (open_view.start, open_view.stop)
    return Track(
        seq=view.seq,
        bounds=bounds,
        kinds=kinds,
        totals=totals_of(bounds, kinds),
        anchor=view.start,
        group_size=view.group_size,
        n_groups=view.n_groups,
        frontier=view.stop - 1 if view.stop > view.start else None,
        label=f"sequence {view.seq}",
        ghost=ghost,
        refused=refusal.sentence if wanted and refusal else "",
        wanted=wanted,
    )


def _refused_segments(end: int, asked: Ranges) -> tuple[list[tuple[int, int, Kind]], Ranges]:
    """Holes between the frontier and what was asked for, and the ranges asked for."""
    segments: list[tuple[int, int, Kind]] = []
    wanted: list[tuple[int, int]] = []
    at = shown = end
    for start, stop in asked:
        if start < at:
            continue
        gap = min(start - at, MOST_HOLE_DRAWN)
        length = min(stop - start, MOST_HOLE_DRAWN)
        segments += [(shown, shown + gap, Kind.HOLE)]
        segments += [(shown + gap, shown + gap + length, Kind.OUTSIDE)]
        wanted.append((shown + gap, shown + gap + length))
        at, shown = stop, shown + gap + length
    return segments, tuple(wanted)


# one position ---------------------------------------------------------------------------------


def kind_at(track: Track, position: int) -> Kind:
    """What a position is; A and B are told apart."""
    if not track.lo <= position < int(track.bounds[-1]) or len(track.kinds) == 0:
        return Kind.OUTSIDE
    n = int(np.searchsorted(track.bounds, position, side="right")) - 1
    kind = Kind(int(track.kinds[n]))
    if kind is Kind.GROUP_A and ((position - track.anchor) // track.group_size) % 2:
        return Kind.GROUP_B
    return kind


def group_at(track: Track, position: int) -> int | None:
    """Number of the group, complete or broken, that a position or a hole of it belongs to."""
    if position < track.anchor:
        return None
    group = (position - track.anchor) // track.group_size
    return group if group < track.n_groups else None


def is_broken(track: Track, group: int) -> bool:
    """True for a group that a hole or a repeated position keeps from being complete."""
    return kind_at(track, group_range(track, group)[0]) not in (Kind.GROUP_A, Kind.GROUP_B)


def group_range(track: Track, group: int) -> tuple[int, int]:
    """Half-open positions of a group."""
    start = track.anchor + group * track.group_size
    return start, start + track.group_size


def segment_at(track: Track, position: int) -> tuple[int, int] | None:
    """What a double click fits: the group, or the whole segment of another kind."""
    kind = kind_at(track, position)
    if kind is Kind.OUTSIDE:
        return None
    if kind in (Kind.GROUP_A, Kind.GROUP_B):
        return group_range(track, (position - track.anchor) // track.group_size)
    n = int(np.searchsorted(track.bounds, position, side="right")) - 1
    return int(track.bounds[n]), int(track.bounds[n + 1])


def visible_segments(
    track: Track, first: int, stop: int, limit: int
) -> list[tuple[int, int, Kind]]:
    """Segments that meet [first, stop), at most `limit` of them."""
    if len(track.kinds) == 0:
        return []
    n = max(0, int(np.searchsorted(track.bounds, first, side="right")) - 1)
    result: list[tuple[int, int, Kind]] = []
    while n < len(track.kinds) and int(track.bounds[n]) < stop and len(result) < limit:
        result.append((int(track.bounds[n]), int(track.bounds[n + 1]), Kind(int(track.kinds[n]))))
        n += 1
    return result


def holes(track: Track) -> list[tuple[int, int]]:
    """Half-open ranges of missing positions, in order."""
    at = np.flatnonzero(track.kinds == Kind.HOLE)
    return [(int(track.bounds[n]), int(track.bounds[n + 1])) for n in at]


def next_hole(track: Track, position: int | None, step: int = 1) -> tuple[int, int] | None:
    """The hole after (step 1) or before (step -1) a position, round the end; None without any."""
    found = holes(track)
    if not found:
        return None
    if step > 0:
        at = -1 if position is None else position
        return next((hole for hole in found if hole[0] > at), found[0])
    at = track.hi if position is None else position
    return next((hole for hole in reversed(found) if hole[0] < at), found[-1])


def below(bounds: npt.NDArray[np.float64], totals: Ints, positions: Ints) -> Ints:
    """Positions of one kind below each of `positions` (piecewise linear, exact below 2^53)."""
    return np.asarray(np.rint(np.interp(positions, bounds, totals)), np.int64)


def counts_in(track: Track, first: int, stop: int) -> list[tuple[Kind, int]]:
    """Positions of each kind in [first, stop), the loudest first."""
    bounds = track.bounds.astype(np.float64)
    at = np.array([first, stop], np.int64)
    result: list[tuple[Kind, int]] = []
    for kind in reversed(SEGMENT_KINDS):
        totals = track.totals.get(kind)
        if totals is not None:
            low, high = below(bounds, totals, at)
            if high > low:
                result.append((kind, int(high - low)))
    return result
