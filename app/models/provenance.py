"""Who wrote a position or a cell: which chunk, op, bank and cell, and what is left over.

Walks the journal backwards from the shown event. A shift moves positions, a fork, copy or restore
brings them from elsewhere; each such step is named. Needs the records only, no tensor.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np

from app.models.journal import Journal
from app.models.state import State, position_in
from engine.snapshot import Record

MOVERS = ("shift", "fork", "copy", "restore")
BLOCK = 65_536
"""Rows looked at in one go."""


@dataclass(frozen=True, slots=True)
class Step:
    """One event that made a position what it is, newest first."""

    event: int
    sentence: str
    seq: int
    position: int
    """The position's number before the event, or as it was written."""
    wrote: bool = False
    """True for the event that wrote it."""


@dataclass(frozen=True, slots=True)
class Leftover:
    """An old value in a physical cell that no sequence sees any more, or a live one."""

    event: int
    seq: int
    position: int | None
    live: bool


def lineage(journal: Journal, seq: int, position: int, upto: int | None) -> tuple[Step, ...]:
    """Events that made `position` of `seq` what it is after event `upto` (None: the newest)."""
    stop = row = len(journal) if upto is None else (journal.row_of(upto) or 0) + 1
    steps: list[Step] = []
    while (found := _previous(journal, seq, position, row)) is not None:
        row, record = found
        if journal.undone().get(row, stop) < stop:
            continue
        for op in reversed(_plain_ops(record)):
            step = _through(journal, record, row, op, seq, position)
            if step is None:
                continue
            steps.append(step)
            if step.wrote:
                return tuple(steps)
            seq, position = step.seq, step.position
            if op.get("op") == "restore":
                row = _save_row(journal, row, str(op.get("slot"))) + 1
    return tuple(steps)


def token_of(journal: Journal, step: Step) -> int | None:
    """Token id of the position that a step wrote; None where the journal has no tokens."""
    row = journal.row_of(step.event)
    if row is None:
        return None
    record = journal.records[row]
    if not record.op_json or record.positions_written is None:
        return None
    tokens = json.loads(record.op_json).get("tokens") or ()
    at = step.position - record.positions_written[0]
    return int(tokens[at]) if 0 <= at < len(tokens) else None


def _previous(journal: Journal, seq: int, position: int, before: int) -> tuple[int, Record] | None:
    """Newest published record before a row that could have touched the position.

    Looks at a block of rows at a time, so that a long journal costs what is looked at.
    """
    vocabulary = journal.vocabulary
    good = vocabulary["outcome"].get("ok", -1)
    movers = [vocabulary["op"].get(name, -1) for name in MOVERS]
    several = vocabulary["op"].get("transaction", -1)
    for stop in range(before, 0, -BLOCK):
        part = slice(max(0, stop - BLOCK), stop)
        op, own = journal.codes("op")[part], journal.numbers("seq")[part] == seq
        wrote = (journal.numbers("start")[part] <= position) & (
            journal.numbers("stop")[part] > position
        )
        candidates = (own & (wrote | np.isin(op, movers))) | (op == several)
        rows = np.flatnonzero(candidates & (journal.codes("outcome")[part] == good))
        if len(rows):
            row = part.start + int(rows[-1])
            return row, journal.records[row]
    return None


def _plain_ops(record: Record) -> list[dict[str, Any]]:
    """The op of a record as JSON objects; the inner ones of a transaction."""
    if record.op == "append":  # its positions may be a long list, and are in the record as a range
        return [{"op": "append", "seq": record.seq}]
    op: dict[str, Any] = (
        json.loads(record.op_json) if record.op_json else {"op": record.op, "seq": record.seq}
    )
    return list(op["ops"]) if op.get("op") == "transaction" else [op]


def _through(
    journal: Journal, record: Record, row: int, op: dict[str, Any], seq: int, position: int
) -> Step | None:
    """What one op did to the position, seen from after it; None when it did nothing."""
    name = str(op.get("op"))
    if name == "append" and op.get("seq", record.seq) == seq:
        if _covers(record, op, position):
            return Step(record.number, _wrote(record), seq, position, wrote=True)
    elif name == "shift" and op.get("seq") == seq:
        return _unshifted(record, op, seq, position)
    elif name in ("fork", "copy") and op.get("dst") == seq:
        return _from_source(record, op, position)
    elif name == "restore" and op.get("seq") == seq:
        return _from_slot(journal, record, row, op, position)
    return None


def _covers(record: Record, op: dict[str, Any], position: int) -> bool:
    """Whether an append wrote the position; inside a transaction its own list says so."""
    inner = op.get("positions")
    start, stop = record.positions_written or (0, 0)
    if isinstance(inner, list) and inner:
        start, stop = int(inner[0]), int(inner[-1]) + 1
    return start <= position < stop


def _wrote(record: Record) -> str:
    chunk = f"chunk of {record.n_tokens:,} tokens, " if record.n_tokens > 1 else ""
    return f"{chunk}published by flip {record.flips:,}"


def _unshifted(record: Record, op: dict[str, Any], seq: int, position: int) -> Step | None:
    delta = int(op.get("delta", 0))
    before = position - delta
    start, stop = op.get("start"), op.get("stop")
    inside = (start is None or before >= start) and (stop is None or before < stop)
    if not inside or delta == 0:
        return None
    words = f"moved by {delta:+,}: it was position {before:,}"
    return Step(record.number, words, seq, before)


def _from_source(record: Record, op: dict[str, Any], position: int) -> Step | None:
    start, stop = op.get("start"), op.get("stop")
    if (start is not None and position < start) or (stop is not None and position >= stop):
        return None
    source = int(op["src"])
    return Step(record.number, f"{op['op']} of sequence {source}, cell shared", source, position)


def _from_slot(
    journal: Journal, record: Record, row: int, op: dict[str, Any], position: int
) -> Step | None:
    saved = _save_row(journal, row, str(op.get("slot")))
    if saved < 0:
        return None
    source = journal.records[saved].seq
    words = f"restored from slot {op.get('slot')}, saved at event {journal.records[saved].number:,}"
    return Step(record.number, words, source, position)


def _save_row(journal: Journal, before: int, slot: str) -> int:
    """Row of the newest save of a slot before a row; -1 when it is not in the journal."""
    code = journal.vocabulary["op"].get("save", -1)
    good = journal.vocabulary["outcome"].get("ok", -1)
    window = slice(0, before)
    rows = np.flatnonzero(
        (journal.codes("op")[window] == code) & (journal.codes("outcome")[window] == good)
    )
    for row in reversed(rows):
        if str(json.loads(journal.records[int(row)].op_json).get("slot")) == slot:
            return int(row)
    return -1


def released_by(journal: Journal, step: Step, upto: int | None) -> Record | None:
    """The first published event after a write that took the position away again."""
    first = journal.row_of(step.event)
    stop = len(journal) if upto is None else (journal.row_of(upto) or 0) + 1
    if first is None:
        return None
    good = journal.vocabulary["outcome"].get("ok", -1)
    part = slice(first + 1, stop)
    own = (journal.numbers("seq")[part] == step.seq) & (journal.codes("outcome")[part] == good)
    for row in np.flatnonzero(own) + first + 1:
        if journal.undone().get(int(row), stop) < stop:
            continue
        record = journal.records[int(row)]
        view = next((view for view in record.sequences if view.seq == step.seq), None)
        if view is None or not view.start <= step.position < view.stop:
            return record
    return None


def history_of_cell(
    journal: Journal, state: State, cell: int, limit: int = 8
) -> tuple[Leftover, ...]:
    """Events that wrote a physical cell, newest first; only the newest can still be live."""
    stop = len(journal) if state.event is None else (journal.row_of(state.event) or 0) + 1
    low, high = journal.numbers("cell_low")[:stop], journal.numbers("cell_high")[:stop]
    held = any(position_in(view, cell) is not None for view in state.sequences)
    out: list[Leftover] = []
    good = False
    for row in reversed(np.flatnonzero((low <= cell) & (high > cell))):
        record = journal.records[int(row)]
        if not any(first <= cell < first + n for first, n in record.cells_written):
            continue
        newest = not good and record.outcome == "ok"
        good = good or newest
        where = _written_at(record, cell)
        out.append(Leftover(record.number, record.seq, where, newest and held))
        if len(out) == limit:
            break
    return tuple(out)


def _written_at(record: Record, cell: int) -> int | None:
    """Position that a record wrote into a cell; None where it can't be told."""
    if record.positions_written is None:
        return None
    position = record.positions_written[0]
    for first, n_cells in record.cells_written:
        if first <= cell < first + n_cells:
            return position + cell - first
        position += n_cells
    return None
