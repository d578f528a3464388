"""Tracks of another engine's saved state, from the object that `check --json` prints. No Qt."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from app.models.sequences import Kind, Track, tiled, totals_of

Ranges = list[tuple[int, int]]
Segments = list[tuple[int, int, Kind]]


def half_open(pairs: Any) -> Ranges:
    """Inclusive pairs (or single positions) as half-open ranges, sorted; nonsense is left out."""
    found: Ranges = []
    for item in pairs if isinstance(pairs, list) else ():
        if isinstance(item, int):
            found.append((item, item + 1))
        elif isinstance(item, list) and len(item) == 2 and all(isinstance(p, int) for p in item):
            found.append((item[0], item[1] + 1))
    return sorted(found)


def without(whole: tuple[int, int], gaps: Ranges) -> Ranges:
    """What is left of a range after taking out others."""
    left: Ranges = []
    at = whole[0]
    for start, stop in gaps:
        start, stop = max(start, whole[0]), min(stop, whole[1])
        if start > at:
            left.append((at, start))
        at = max(at, stop)
    if at < whole[1]:
        left.append((at, whole[1]))
    return left


def tracks_of(report: dict[str, Any], group_size: int = 4) -> tuple[Track, ...]:
    """One track a sequence of the file, each followed by those parts that differ from it.

    Parts with the same positions share a track, so a torn cache of 64 layers shows two. A track
    is numbered by its sequence's id where that is a number, one of parts by -1, -2 and so on.
    """
    tracks: list[Track] = []
    n_parts = 0
    for n, sequence in enumerate(report.get("sequences") or ()):
        id = sequence.get("id", n)
        name = f"sequence {id}"
        tracks.append(_track(id if isinstance(id, int) else n, sequence, name, group_size))
        for label, part in _different(sequence):
            n_parts += 1
            tracks.append(_track(-n_parts, part, f"{name} {label}", group_size))
    return tuple(tracks)


def _different(sequence: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """(names, part) of the parts whose run or holes are not those of the sequence."""

    def shape(item: dict[str, Any]) -> str:
        return repr((item.get("run"), item.get("holes") or []))

    found: dict[str, tuple[list[str], dict[str, Any]]] = {}
    for part in sequence.get("parts") or ():
        key = shape(part)
        if key != shape(sequence) and isinstance(part.get("run"), list):
            found.setdefault(key, ([], part))[0].append(str(part.get("name", "part")))
    return [(joined(names), part) for names, part in found.values()]


def joined(names: list[str]) -> str:
    """`layer.2, layer.3`, or the ends of a long list."""
    return ", ".join(names) if len(names) <= 3 else f"{names[0]} to {names[-1]} ({len(names)})"


def _track(n: int, item: dict[str, Any], label: str, group_size: int) -> Track:
    run = half_open([item.get("run")] if isinstance(item.get("run"), list) else [])
    if not run:
        return track_of_ranges(n, (), (), group_size, label)
    live = without(run[0], half_open(item.get("holes")))
    evicted = half_open(item.get("evicted"))
    for part in item.get("parts") or ():
        evicted += half_open(part.get("evicted"))
    gone = sorted({(a, min(b, run[0][0])) for a, b in evicted if a < run[0][0]})
    gone += _gone_inside(item, live, evicted)
    repeated = half_open(item.get("duplicates"))
    start = min(0, run[0][0])
    return track_of_ranges(n, live, gone, group_size, label, start, repeated)


def _gone_inside(item: dict[str, Any], live: Ranges, evicted: Ranges) -> Ranges:
    """Evicted positions between live ones, as a rotating cache has that keeps its first tokens.

    A sequence whose windowed layers alone let them go still has them in the others: they are
    gone where they make up what the count of live positions lacks.
    """
    inside = [pair for a, b in live for pair in _within(merged(evicted), a, b)]
    lacking = sum(b - a for a, b in live) - int(item.get("live") or 0)
    return inside if lacking and sum(b - a for a, b in inside) == lacking else []


def _within(ranges: Ranges, start: int, stop: int) -> Ranges:
    """The parts of ranges that lie in [start, stop)."""
    clipped = ((max(a, start), min(b, stop)) for a, b in ranges)
    return [(a, b) for a, b in clipped if a < b]


def tracks_of_files(reports: list[dict[str, Any]], group_size: int = 4) -> tuple[Track, ...]:
    """The tracks of one or more files; those of several are numbered anew and named by file."""
    if len(reports) == 1:
        return tracks_of(reports[0], group_size)
    tracks: list[Track] = []
    for report in reports:
        name = str(report.get("file", "")).rsplit("/", 1)[-1]
        first = len(tracks)
        found = tracks_of(report, group_size)
        tracks += [renamed(track, first + n, name) for n, track in enumerate(found)]
    return tuple(tracks)


def renamed(track: Track, seq: int, file: str) -> Track:
    """The track under another number, with the name of its file: several files side by side."""
    return replace(track, seq=seq, label=f"{file}: {track.label}")


# from ranges to segments ---------------------------------------------------------------------


def track_of_ranges(
    seq: int,
    live: Iterable[tuple[int, int]],
    evicted: Iterable[tuple[int, int]] = (),
    group_size: int = 4,
    label: str = "",
    start: int = 0,
    repeated: Iterable[tuple[int, int]] = (),
) -> Track:
    """The track of foreign state: half-open live ranges, what lies between is a hole.

    A range before the first live one that is not evicted is padding. Groups are counted from
    the first live position; the tail is what follows the last full group. Live positions of a
    group that a hole or a `repeated` position breaks are forgotten. What is evicted inside of a
    live range was let go on purpose: it breaks nothing.
    """
    evicted = list(evicted)
    live, label = merged(live), label or f"sequence {seq}"
    if not live:
        _, kinds = tiled(())
        bounds = np.array([start], np.int64)
        return Track(seq, bounds, kinds, {}, start, group_size, 0, None, label)
    anchor, end = live[0][0], live[-1][1]
    n_groups = (end - anchor) // group_size
    segments = _before(min(start, anchor), anchor, sorted(evicted))
    groups = _Groups(anchor, group_size, repeated)
    groups_to, at = anchor + n_groups * group_size, anchor
    for a, b in live:
        segments.append((at, a, Kind.HOLE))
        segments += groups.cut(a, min(b, groups_to))
        segments.append((max(a, groups_to), b, Kind.TAIL))
        at = b
    bounds, kinds = tiled(_overlaid(segments, _within(merged(evicted), anchor, end)))
    return Track(
        seq=seq,
        bounds=bounds,
        kinds=kinds,
        totals=totals_of(bounds, kinds),
        anchor=anchor,
        group_size=group_size,
        n_groups=n_groups,
        frontier=end - 1,
        label=label,
    )


def _before(at: int, anchor: int, evicted: Ranges) -> Segments:
    """Padding and evicted positions before the first live one."""
    at = min([at, *(a for a, _ in evicted)])
    segments: Segments = []
    for a, b in evicted:
        b = min(b, anchor)
        if a >= anchor or b <= at:
            continue
        segments += [(at, a, Kind.PADDING), (max(a, at), b, Kind.EVICTED)]
        at = b
    return [*segments, (at, anchor, Kind.PADDING)]


def _overlaid(segments: Segments, gone: Ranges) -> Segments:
    """The segments with the ranges of `gone` as evicted; both ascend."""
    if not gone:
        return segments
    found: Segments = []
    for start, stop, kind in segments:
        at = start
        for a, b in _within(gone, start, stop):
            found += [(at, a, kind), (a, b, Kind.EVICTED)]
            at = b
        found.append((at, stop, kind))
    return found


def merged(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """Ascending half-open ranges, those that touch as one."""
    found: Ranges = []
    for start, stop in sorted(ranges):
        if stop <= start:
            continue
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], stop))
        else:
            found.append((start, stop))
    return found


class _Groups:
    """Cuts live positions into those of complete groups and the forgotten ones."""

    def __init__(self, anchor: int, size: int, repeated: Iterable[tuple[int, int]]) -> None:
        self.anchor, self.size = anchor, size
        self.spoilt = merged((self.floor(a), self.ceil(b)) for a, b in repeated)

    def floor(self, position: int) -> int:
        """Where the group that holds a position begins."""
        return position - (position - self.anchor) % self.size

    def ceil(self, position: int) -> int:
        """The first beginning of a group at or after a position."""
        return position + (self.anchor - position) % self.size

    def cut(self, start: int, stop: int) -> Segments:
        """The live range [start, stop), which has no hole, in segments."""
        at = min(self.ceil(start), stop)
        end = max(at, self.floor(stop))
        segments = [(start, at, Kind.FORGOTTEN)]
        for n in range(max(0, bisect(self.spoilt, (at, at)) - 1), len(self.spoilt)):
            a, b = max(self.spoilt[n][0], at), min(self.spoilt[n][1], end)
            if a >= end:
                break
            if a < b:
                segments += [(at, a, Kind.GROUP_A), (a, b, Kind.FORGOTTEN)]
                at = b
        return [*segments, (at, end, Kind.GROUP_A), (end, stop, Kind.FORGOTTEN)]
