"""What is selected, and why it is so: the inspector's tree.

Owns the rows of a position, a cell, an event, an owner or a stage. Every "why" row names the rule
and the journal event behind it, and leads there.
"""

from __future__ import annotations

from dataclasses import dataclass

from app.models import definitions, text
from app.models.definitions import OWNERS
from app.models.faults import proof, result_line
from app.models.journal import Journal
from app.models.provenance import Step, history_of_cell, lineage, released_by, token_of
from app.models.selection import Selection
from app.models.sequences import (
    WORD_OF,
    Kind,
    Track,
    counts_in,
    group_at,
    group_range,
    holes,
    is_broken,
    kind_at,
)
from app.models.state import State, cell_of, group_of, kind_of, position_in
from app.models.table import Cell, Jump
from app.models.tree import Node
from engine.snapshot import SequenceView, StageView

HINT = (
    "Select a position, cell or event.\n"
    "Ctrl+G goes to a position, the arrow keys move in a drawing, "
    "Enter takes a row of the journal."
)
RULES = {
    "group": "full group, counted from the first live position",
    "tail": "the last group is not full yet, so it stays raw",
    "evicted": "dropped from the front; no hole",
    "padding": "before the first live position; no hole",
    "forgotten": "live, but a hole or a repeated position broke its group; attention forgets it",
    "hole": "missing inside the run; its group is not pooled",
    "outside": "not in this run; next append is frontier + 1",
}
FOREIGN_RULES = {
    Kind.OUTSIDE: "outside",
    Kind.GROUP_A: "group",
    Kind.GROUP_B: "group",
    Kind.TAIL: "tail",
    Kind.PADDING: "padding",
    Kind.EVICTED: "evicted",
    Kind.FORGOTTEN: "forgotten",
    Kind.HOLE: "hole",
}


@dataclass(frozen=True, slots=True)
class Known:
    """All that the inspector may look at."""

    state: State
    journal: Journal
    stages: tuple[StageView, ...] = ()


def tree(known: Known, selection: Selection) -> tuple[Node, ...]:
    """Nodes for everything that is selected; empty when nothing is."""
    nodes: list[Node] = []
    view = known.state.sequence(selection.seq)
    if selection.start is not None and view is not None:
        nodes += _position_nodes(known, view, selection)
    if selection.cell is not None:
        nodes += _cell_nodes(known, selection.cell)
    if selection.event is not None:
        nodes += _event_nodes(known, selection.event)
    if selection.owner is not None:
        nodes += _owner_nodes(known.state, selection.owner)
    if selection.stage is not None:
        nodes += _stage_nodes(known.stages, selection.stage)
    return tuple(nodes)


def _fact(name: str, value: str, tip: str = "", copy: str = "") -> Node:
    return Node(name, Cell(value, tip=tip, copy=copy))


def _event_link(name: str, event: int, words: str) -> Node:
    return Node(name, Cell(f"event {text.count(event)}: {words}"), jump=Jump(event=event))


# positions -----------------------------------------------------------------------------------


def _position_nodes(known: Known, view: SequenceView, selection: Selection) -> list[Node]:
    position = selection.start or 0
    if selection.n_positions > 1:
        return [_range_node(view, position, selection.stop or position)]
    steps = lineage(known.journal, view.seq, position, known.state.event)
    kind = kind_of(view, position)
    group = group_of(view, position)
    cell = cell_of(view, position)
    facts = [
        _fact("position", text.count(position), text.position_tip(position), str(position)),
        _fact("sequence", str(view.seq)),
        _fact("kind", kind),
        _fact("group", _group_words(view, position, group)),
        Node("cell", Cell("none" if cell is None else text.count(cell)), jump=_cell_jump(cell)),
        _fact("token", _token(known, steps)),
    ]
    why = [_fact("rule", RULES[kind]), *_history(known, view, steps, kind)]
    return [Node("Position", children=tuple(facts)), Node("Why", children=tuple(why))]


def _cell_jump(cell: int | None) -> Jump | None:
    return None if cell is None else Jump(cell=cell)


def _range_node(view: SequenceView, start: int, stop: int) -> Node:
    live = max(0, min(stop, view.stop) - max(start, view.start))
    return Node(
        "Positions",
        children=(
            _fact("range", text.span(start, stop)),
            _fact("sequence", str(view.seq)),
            _fact("live", f"{text.count(live)} of {text.count(stop - start)}"),
        ),
    )


def _group_words(view: SequenceView, position: int, group: int | None) -> str:
    if group is not None:
        first = view.start + group * view.group_size
        return f"g{group:,}, positions {text.span(first, first + view.group_size)}"
    if kind_of(view, position) == "tail":
        return f"none yet: {view.n_tail} of {view.group_size} positions"
    return "none"


def _token(known: Known, steps: tuple[Step, ...]) -> str:
    token = token_of(known.journal, steps[-1]) if steps and steps[-1].wrote else None
    return "not kept" if token is None else text.count(token)


def _history(known: Known, view: SequenceView, steps: tuple[Step, ...], kind: str) -> list[Node]:
    if not steps:
        never = "not written in this session" if kind != "padding" else "never written"
        return [_fact("written by", never)]
    nodes = [_event_link("written by" if s.wrote else "then", s.event, s.sentence) for s in steps]
    if kind in ("evicted", "outside") and steps[0].wrote:
        gone = released_by(known.journal, steps[0], known.state.event)
        if gone is not None:
            nodes.insert(0, _event_link("released by", gone.number, gone.sentence))
    return nodes


# cells ---------------------------------------------------------------------------------------


def _cell_nodes(known: Known, cell: int) -> list[Node]:
    holders = [
        Node(
            f"sequence {view.seq}",
            Cell(f"position {text.count(position)}"),
            jump=Jump(seq=view.seq, positions=(position, position + 1)),
        )
        for view in known.state.sequences
        if (position := position_in(view, cell)) is not None
    ]
    if not holders:
        words = "leftover, seen by no sequence" if cell < known.state.n_cells else "never used"
        holders = [_fact("held by", words)]
    writes = []
    for item in history_of_cell(known.journal, known.state, cell):
        where = "" if item.position is None else f", position {text.count(item.position)}"
        word = "live" if item.live else "leftover, overwritten or released"
        writes.append(_event_link("written by", item.event, f"sequence {item.seq}{where}; {word}"))
    nodes = [Node("Cell", children=(_fact("cell", text.count(cell)), *holders))]
    return nodes + ([Node("Why", children=tuple(writes))] if writes else [])


# another engine's state ----------------------------------------------------------------------


def foreign_tree(tracks: tuple[Track, ...], selection: Selection) -> tuple[Node, ...]:
    """Nodes for a selected position of another engine's file, which has no journal."""
    track = next((track for track in tracks if track.seq == selection.seq), None)
    if track is None or selection.start is None:
        return ()
    start, stop = selection.start, selection.stop or selection.start + 1
    if selection.n_positions > 1:
        counts = counts_in(track, start, stop)
        found = [_fact(WORD_OF[kind], text.count(n)) for kind, n in counts]
        return (Node("Positions", children=(_fact("range", text.span(start, stop)), *found)),)
    kind, group = kind_at(track, start), group_at(track, start)
    whole = kind in (Kind.GROUP_A, Kind.GROUP_B)
    facts = [
        _fact("position", text.count(start), text.position_tip(start), str(start)),
        _fact("sequence", track.label.removeprefix("sequence ")),
        _fact("kind", WORD_OF[kind]),
        _fact("group", _foreign_group(track, group)),
    ]
    why = [_fact("rule", RULES[FOREIGN_RULES[kind]])]
    if group is not None and not whole:
        first, end = group_range(track, group)
        missing = [hole for hole in holes(track) if hole[0] < end and hole[1] > first]
        why += [_hole_link(track, hole) for hole in missing]
    return Node("Position", children=tuple(facts)), Node("Why", children=tuple(why))


def _foreign_group(track: Track, group: int | None) -> str:
    if group is None:
        return "none"
    words = f"g{group:,}, positions {text.span(*group_range(track, group))}"
    return f"{words}, broken" if is_broken(track, group) else words


def _hole_link(track: Track, hole: tuple[int, int]) -> Node:
    return Node("missing", Cell(text.span(*hole)), jump=Jump(seq=track.seq, positions=hole))


# events, owners, stages ------------------------------------------------------------------------


def _event_nodes(known: Known, event: int) -> list[Node]:
    row = known.journal.row_of(event)
    if row is None:
        return [Node("Event", children=(_fact("event", f"{text.count(event)}, not kept"),))]
    record = known.journal.records[row]
    facts = [
        _fact("event", text.count(event)),
        _fact("transaction", text.optional(record.txn)),
        _fact("op", record.op, record.op_json, record.op_json),
        _fact("sequence", str(record.seq)),
        _fact("result", record.result),
        _fact("what happened", result_line(record), result_line(record)),
    ]
    if record.expected is not None:
        facts.append(_fact("expected", text.count(record.expected)))
    if record.given is not None:
        facts.append(_fact("given", text.count(record.given)))
    if record.nearest is not None:
        facts.append(_fact("nearest legal", text.count(record.nearest)))
    if record.stage:
        facts.append(Node("stage", Cell(record.stage), jump=Jump(stage=record.stage)))
    if record.kind:
        facts.append(_fact("kind", record.kind))
    facts.append(_fact("time", text.duration(record.duration_ns)))
    evidence = proof(record)
    digests = [
        Node(
            row.cells[0].text, Cell(_before_after(row.cells), copy=_full(row.cells)), jump=row.jump
        )
        for row in evidence.table.rows
    ]
    why = Node("Proof", Cell(evidence.sentence), tuple(digests))
    return [Node("Event", children=tuple(facts)), why]


def _before_after(cells: tuple[Cell, ...]) -> str:
    before, after, verdict = cells[1].text, cells[2].text, cells[3].text
    return f"{before} {verdict}" if cells[1].plain == cells[2].plain else f"{before} → {after}"


def _full(cells: tuple[Cell, ...]) -> str:
    return f"{cells[1].plain} -> {cells[2].plain}"


def _owner_nodes(state: State, owner: str) -> list[Node]:
    view = next((item for item in state.owners if item.name == owner), None)
    value = dict(state.digests).get(owner)
    facts = [_fact("owner", owner)]
    if owner in OWNERS:
        facts.append(_fact("keeps", OWNERS[owner]))
    if value:
        facts.append(_fact("public digest", text.digest(value), value, value))
    if view is not None:
        private = view.private_digest
        facts += [
            _fact(
                "private digest", text.digest(private) if private else "unsealed", private, private
            ),
            _fact("private state", view.state),
            _fact("bytes a bank", text.size(view.n_bytes), f"{view.n_bytes:,} bytes"),
            _fact("per", view.unit),
        ]
        facts += [
            _fact(f"layer {layer}", text.digest(digest), digest, digest)
            for layer, digest in view.layers
        ]
    return [Node("Owner", children=tuple(facts))]


def _stage_nodes(stages: tuple[StageView, ...], name: str) -> list[Node]:
    stage = next((item for item in stages if item.name == name), None)
    if stage is None:
        return [Node("Stage", children=(_fact("stage", f"{name}, not in this plan"),))]
    facts = [
        _fact("stage", stage.name),
        _fact("does", definitions.of_stage(stage.name) or "not described"),
        _fact("state", stage.state),
        _fact("time", text.duration(stage.time_ns)),
        _fact("reads", ", ".join(stage.reads) or "nothing kept"),
        _fact("writes", ", ".join(stage.writes) or "nothing kept"),
    ]
    if stage.fail_kind:
        facts.append(_fact("failed with", stage.fail_kind))
    if stage.detail:
        facts.append(_fact("detail", stage.detail, stage.detail))
    facts += [_fact("armed", fault) for fault in stage.armed]
    return [Node("Stage", children=tuple(facts))]


def _short(digest: str) -> str:
    return text.digest(digest) if digest else "unsealed"
