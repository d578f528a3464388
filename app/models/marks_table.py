"""Bookmarks and notes as a table: where each leads, and whether that is there now. No Qt."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from app.models import sequences, text
from app.models.marks import (
    CellAt,
    EventAt,
    Mark,
    Place,
    Span,
    check_of,
    order_of,
    place_words,
)
from app.models.sequences import LIVE_KINDS, Kind, Track
from app.models.state import State, position_in
from app.models.table import Cell, Column, Row, Table
from engine.snapshot import Record

COLUMNS = (
    Column("No.", "right", mono=True, tip="Ctrl with this number goes there", width=4),
    Column("Name", tip="F2 changes it", width=14),
    Column("Where", width=28),
    Column("Now", tip="Whether the place is there in the state that is shown"),
    Column("Note"),
)
NAME_COLUMN = 1


@dataclass(frozen=True, slots=True)
class Presence:
    """Whether a place is there, in words."""

    there: bool
    words: str


@dataclass(frozen=True, slots=True)
class Shown:
    """What the window shows now, as far as places need it."""

    tracks: Sequence[Track] = ()
    state: State | None = None
    record_of: Callable[[int], Record | None] = lambda number: None
    """The record with a number; None where the journal has none."""


def presence(place: Place, shown: Shown) -> Presence:
    """Whether a place is there in what is shown."""
    match place:
        case Span():
            track = next((track for track in shown.tracks if track.seq == place.seq), None)
            return _of_span(place, track)
        case CellAt():
            return _of_cell(place.cell, shown.state)
        case EventAt():
            record = shown.record_of(place.number)
            if record is None:
                return Presence(False, "no such event here")
            if check_of(record) != place.check:
                return Presence(False, "another event is here now")
            return Presence(True, f"{record.op}: {record.result}")


def _of_span(place: Span, track: Track | None) -> Presence:
    if track is None:
        return Presence(False, f"no sequence {place.seq} here")
    counts = dict(sequences.counts_in(track, place.start, place.stop))
    n_live = sum(counts.get(kind, 0) for kind in LIVE_KINDS)
    n_all = place.stop - place.start
    forgotten = counts.get(Kind.FORGOTTEN, 0)
    if n_live == n_all and forgotten:
        some = "" if forgotten == n_all else f"{text.count(forgotten)} of {text.count(n_all)} "
        return Presence(True, f"live, {some}forgotten")
    if n_live == n_all:
        return Presence(True, _live_words(place, track))
    outside = n_all - sum(counts.values())
    gone = [
        f"{text.count(n)} {sequences.WORD_OF[kind]}"
        for kind, n in counts.items()
        if kind not in LIVE_KINDS
    ]
    if outside:
        gone.append(f"{text.count(outside)} not in the run")
    if n_live:
        return Presence(
            True, f"{text.count(n_live)} of {text.count(n_all)} live, " + ", ".join(gone)
        )
    if len(gone) == 1:
        kind = next(iter(counts), None)
        return Presence(False, sequences.WORD_OF[kind] if kind is not None else "not in the run")
    return Presence(False, ", ".join(gone))


def _live_words(place: Span, track: Track) -> str:
    first = sequences.group_at(track, place.start)
    last = sequences.group_at(track, place.stop - 1)
    if first is None or last is None:
        return "live, tail" if first is None else "live"
    if first == last:
        whole = sequences.group_range(track, first) == (place.start, place.stop)
        return (
            f"live, group {text.count(first)}" if whole else f"live, in group {text.count(first)}"
        )
    return f"live, groups {text.count(first)} to {text.count(last)}"


def _of_cell(cell: int, state: State | None) -> Presence:
    if state is None:
        return Presence(False, "no cells here")
    if cell >= state.n_cells:
        return Presence(False, "never used here")
    for view in state.sequences:
        position = position_in(view, cell)
        if position is not None:
            return Presence(True, f"holds position {text.count(position)} of sequence {view.seq}")
    return Presence(True, "leftover, seen by no sequence")


def key_of(place: Place) -> str:
    """Names a row over updates."""
    return repr(order_of(place))


def table_of(listed: Sequence[Mark], shown: Shown) -> Table:
    """A row for each mark, in the order given."""
    return Table(COLUMNS, tuple(_row(mark, presence(mark.place, shown)) for mark in listed))


def _row(mark: Mark, now: Presence) -> Row:
    one_line = " ".join(mark.note.split())
    cells = (
        Cell(
            text.count(mark.number) if mark.number else "",
            tip=mark.words,
            role="accent",
            glyph=mark.glyph,
            copy=str(mark.number) if mark.number else "note",
        ),
        Cell(mark.name, tip=mark.name or "No name: F2 gives it one"),
        Cell(place_words(mark.place)),
        Cell(
            now.words,
            role="done" if now.there else "warning",
            glyph="tick" if now.there else "dash",
        ),
        Cell(one_line, tip=mark.note, copy=mark.note),
    )
    return Row(cells, None, key_of(mark.place))
