"""Tracks of another engine's saved state, from the object that `check --json` prints. No Qt."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from app.models.sequences import Track, track_of_ranges

Ranges = list[tuple[int, int]]


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
    return [(_joined(names), part) for names, part in found.values()]


def _joined(names: list[str]) -> str:
    """`layer.2, layer.3`, or the ends of a long list."""
    return ", ".join(names) if len(names) <= 3 else f"{names[0]} to {names[-1]} ({len(names)})"


def _track(n: int, item: dict[str, Any], label: str, group_size: int) -> Track:
    run = half_open([item.get("run")] if isinstance(item.get("run"), list) else [])
    if not run:
        return track_of_ranges(n, (), (), group_size, label)
    live = without(run[0], half_open(item.get("holes")))
    evicted: Ranges = []
    for part in item.get("parts") or ():
        evicted += half_open(part.get("evicted"))
    before = sorted({(a, min(b, run[0][0])) for a, b in evicted if a < run[0][0]})
    return track_of_ranges(n, live, before, group_size, label, start=min(0, run[0][0]))


def renamed(track: Track, seq: int, file: str) -> Track:
    """The track under another number, with the name of its file: several files side by side."""
    return replace(track, seq=seq, label=f"{file}: {track.label}")
