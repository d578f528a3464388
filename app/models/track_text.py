"""A run in words: one line over the map, a table of its segments, and text for Copy. No Qt."""

from __future__ import annotations

from app.models.sequences import WORD_OF, Kind, Track, visible_segments

LOUD = (
    (Kind.HOLE, "holes"),
    (Kind.FORGOTTEN, "forgotten"),
    (Kind.EVICTED, "evicted"),
    (Kind.PADDING, "padding"),
)


def summary(track: Track) -> str:
    """One line over the map: counts of all that occurs."""
    parts = [
        plural(track.n_live, "position"),
        group_words(track),
        f"tail {track.count(Kind.TAIL):,}",
    ]
    for kind, word in LOUD:
        if n := track.count(kind):
            parts.append(f"{word} {n:,}")
    return " · ".join(parts)


def group_words(track: Track) -> str:
    """`7 groups`, or `5 of 7 groups whole` where the others are broken."""
    spanned = plural(track.n_groups, "group")
    return spanned if track.n_whole == track.n_groups else f"{track.n_whole:,} of {spanned} whole"


def plural(n: int, word: str) -> str:
    """`1 group`, `2 groups`, `1,290 positions`."""
    return f"{n:,} {word}" + ("" if n == 1 else "s")


def spans(track: Track) -> list[tuple[int, int, str, str]]:
    """(first, last, kind in words, groups) of every segment: the map as a table.

    The groups of forgotten positions are the broken ones that they are members of.
    """
    rows: list[tuple[int, int, str, str]] = []
    for start, stop, kind in visible_segments(track, track.lo, track.hi, len(track.kinds)):
        groups, word = "", WORD_OF[kind]
        if kind is Kind.OUTSIDE:
            word = "asked for and refused"
        if kind in (Kind.GROUP_A, Kind.FORGOTTEN):
            first = (start - track.anchor) // track.group_size
            last = (stop - 1 - track.anchor) // track.group_size
            groups = f"g{first:,}" if first == last else f"g{first:,} to g{last:,}"
        rows.append((start, stop - 1, word, groups))
    return rows


def as_text(track: Track, start: int | None = None, stop: int | None = None) -> str:
    """The map (or the part of it in [start, stop)) as lines of text, for Copy."""
    lines = [f"{track.label}: {summary(track)}"]
    low, high = (track.lo if start is None else start), (track.hi if stop is None else stop)
    for first, last, word, groups in spans(track):
        first, last = max(first, low), min(last, high - 1)
        if first > last:
            continue
        where = f"position {first}" if first == last else f"positions {first} to {last}"
        lines.append(f"{where}: {word}" + (f" {groups}" if groups and start is None else ""))
    if track.refused:
        lines.append(f"refused: {track.refused}")
    return "\n".join(lines)
