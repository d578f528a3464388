"""The table form of a run: padding, evicted, groups, tail and what is in flight, with cells.

It is the accessible twin of the drawing and what Copy and CSV export use. One row a stretch of
one kind in consecutive cells; rows are made when they are looked at.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate

from app.models import text
from app.models.sequences import Kind, Track, visible_segments
from app.models.state import State
from app.models.table import Cell, Column, Jump
from engine.snapshot import OpenView, SequenceView

COLUMNS = (
    Column("Seq", "right", mono=True),
    Column("Kind"),
    Column("First", "right", mono=True),
    Column("Last", "right", mono=True),
    Column("Positions", "right", mono=True),
    Column("Groups", "right", mono=True),
    Column("Cells", "right", mono=True),
    Column("Owner"),
)
OWNERS = {
    "groups": "qsa.kv, qsa.index, qsa.groups",
    "tail": "qsa.kv, qsa.index",
    "padding": "none",
    "evicted": "none",
    "hole": "none",
    "in flight": "private bank only",
}
ROLES = {
    "groups": ("", "group_a"),
    "tail": ("", "tail"),
    "padding": ("", "padding"),
    "evicted": ("", "evicted"),
    "forgotten": ("cross", "forgotten"),
    "hole": ("cross", "hole"),
    "in flight": ("ring", "private"),
}
WORDS = {
    Kind.GROUP_A: "groups",
    Kind.TAIL: "tail",
    Kind.PADDING: "padding",
    Kind.EVICTED: "evicted",
    Kind.FORGOTTEN: "forgotten",
    Kind.HOLE: "hole",
}
"""Kind of a span for each kind of segment of another engine's state."""


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of positions of one kind."""

    seq: int
    kind: str
    start: int
    stop: int
    groups: tuple[int, int] | None = None
    """Half-open group numbers; of forgotten positions the broken groups."""
    cells: tuple[int, int] | None = None
    """Half-open physical cells."""
    name: str = ""
    """Sequence and part of another engine's state."""


def spans_of(view: SequenceView) -> list[Span]:
    """Spans of one sequence, in logical order."""
    out = []
    gone = max(0, view.start - view.evicted)
    if view.padding and gone > 0:
        out.append(Span(view.seq, "padding", max(0, gone - view.padding), gone))
    if view.evicted and view.start > gone:
        out.append(Span(view.seq, "evicted", gone, view.start))
    covered = view.start + view.n_groups * view.group_size
    out += _live(view, "groups", view.start, covered)
    out += _live(view, "tail", covered, view.stop)
    return out


def _live(view: SequenceView, kind: str, start: int, stop: int) -> list[Span]:
    """Live positions cut where the cells are not consecutive."""
    if stop <= start:
        return []
    if not view.extents:
        return [_span(view, kind, start, stop, None)]
    out = []
    ends = list(accumulate((n for _, n in view.extents), initial=view.start))
    for (cell, _), first, end in zip(view.extents, ends[:-1], ends[1:], strict=True):
        low, high = max(first, start), min(end, stop)
        if low < high:
            out.append(_span(view, kind, low, high, cell + low - first))
    return out


def _span(view: SequenceView, kind: str, start: int, stop: int, cell: int | None) -> Span:
    groups = None
    if kind == "groups":
        first = (start - view.start) // view.group_size
        groups = (first, (stop - 1 - view.start) // view.group_size + 1)
    return Span(
        view.seq, kind, start, stop, groups, None if cell is None else (cell, cell + stop - start)
    )


def in_flight(opened: OpenView) -> list[Span]:
    """What the open transaction writes into the private bank."""
    if opened.stop <= opened.start:
        return []
    if not opened.extents:
        return [Span(opened.seq, "in flight", opened.start, opened.stop)]
    out, position = [], opened.start
    for cell, n_cells in opened.extents:
        stop = min(position + n_cells, opened.stop)
        if stop > position:
            cells = (cell, cell + stop - position)
            out.append(Span(opened.seq, "in flight", position, stop, None, cells))
        position = stop
    return out


def spans_of_track(track: Track) -> list[Span]:
    """Spans of a run of another engine's state, holes and forgotten positions included."""
    out = []
    name = track.label.removeprefix("sequence ")
    for start, stop, kind in visible_segments(track, track.lo, track.hi, len(track.kinds)):
        groups = None
        if kind in (Kind.GROUP_A, Kind.FORGOTTEN):
            first, last = ((p - track.anchor) // track.group_size for p in (start, stop - 1))
            groups = (first, last + 1)
        out.append(Span(track.seq, WORDS[kind], start, stop, groups, None, name))
    return out


class SpanTable:
    """The spans of all sequences as a table: of a session's state, or of another engine's."""

    columns = COLUMNS

    def __init__(self, state: State | None, tracks: tuple[Track, ...] = ()) -> None:
        self.spans: list[Span] = []
        if state is None:
            self.spans = [span for track in tracks for span in spans_of_track(track)]
        if state is not None:
            for view in state.sequences:
                self.spans += spans_of(view)
            self.spans += in_flight(state.open) if state.open else []

    @property
    def n_rows(self) -> int:
        return len(self.spans)

    def cell(self, row: int, column: int) -> Cell:
        span = self.spans[row]
        match column:
            case 0:
                return Cell(span.name or str(span.seq))
            case 1:
                glyph, role = ROLES.get(span.kind, ("", ""))
                return Cell(span.kind, glyph=glyph or "square", role=role)
            case 2:
                return _number(span.start)
            case 3:
                return _number(span.stop - 1)
            case 4:
                return _number(span.stop - span.start)
            case 5:
                return Cell(_group_text(span))
            case 6:
                return Cell(text.NOTHING if span.cells is None else text.span(*span.cells))
            case _ if span.name:
                return Cell(text.NOTHING, role="text2")
            case _:
                return Cell(OWNERS.get(span.kind, ""), role="text2")

    def jump(self, row: int) -> Jump | None:
        span = self.spans[row]
        return Jump(seq=span.seq, positions=(span.start, span.stop))

    def key(self, row: int) -> str:
        span = self.spans[row]
        return f"{span.seq}/{span.kind}/{span.start}"

    def row_at(self, seq: int, position: int) -> int | None:
        """Row of the span that holds a position."""
        for row, span in enumerate(self.spans):
            if span.seq == seq and span.start <= position < span.stop:
                return row
        return None


def _number(value: int) -> Cell:
    return Cell(text.count(value), tip=text.position_tip(value), copy=str(value))


def _group_text(span: Span) -> str:
    if span.groups is None:
        return text.NOTHING
    first, stop = span.groups
    return f"g{first:,}" if stop == first + 1 else f"g{first:,} – g{stop - 1:,}"
