"""Two events side by side: which owners differ, and the first position that does.

Digests say for certain whether an owner differs. Which position is first follows from the runs
and from what the events in between wrote or moved; no tensor of the past is kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from app.models import text
from app.models.banks import digest_cell
from app.models.table import Cell, Column, Jump, Row, Table
from engine.snapshot import Record, SequenceView

COLUMNS = (
    Column("What"),
    Column("Before", mono=True),
    Column("After", mono=True),
    Column("Difference"),
)


@dataclass(frozen=True, slots=True)
class Comparison:
    """What differs between the states after two events."""

    sentence: str
    same: bool
    first_seq: int | None
    first_position: int | None
    first_owner: str
    table: Table


def compare(old: Record, new: Record, between: Iterable[Record] = ()) -> Comparison:
    """Compare the states after `old` and after `new`; `between` are the records after `old`
    up to and including `new`."""
    before, after = dict(old.digests_after), dict(new.digests_after)
    names = list(dict.fromkeys([*before, *after]))
    differing = [name for name in names if before.get(name) != after.get(name)]
    first = _first_position(old, new, tuple(between))
    rows = [_run_row(old, new, seq, first.get(seq)) for seq in _seqs(old, new)]
    rows += [_owner_row(name, before.get(name, ""), after.get(name, ""), new) for name in names]
    seq = min(first, key=lambda s: (first[s], s)) if first else None
    position = None if seq is None else first[seq]
    owner = differing[0] if differing else ""
    same = not differing and not first
    return Comparison(
        _sentence(old, new, seq, position, owner, len(differing), len(names)),
        same,
        seq,
        position,
        owner,
        Table(COLUMNS, tuple(rows)),
    )


def _seqs(old: Record, new: Record) -> list[int]:
    return sorted({view.seq for record in (old, new) for view in record.sequences})


def _sentence(
    old: Record,
    new: Record,
    seq: int | None,
    position: int | None,
    owner: str,
    n_differing: int,
    n_owners: int,
) -> str:
    events = f"events {text.count(old.number)} and {text.count(new.number)}"
    if not n_differing and position is None:
        known = f", all {text.plural(n_owners, 'owner')} agree" if n_owners else ""
        return f"{events}: the same state{known}"
    out = f"{events}: {n_differing} of {text.plural(n_owners, 'owner')} differ"
    if owner:
        out += f", first {owner}"
    if position is not None:
        out += f"; first position {text.count(position)} of sequence {seq}"
    return out


def _run_of(record: Record, seq: int) -> SequenceView | None:
    view = next((item for item in record.sequences if item.seq == seq), None)
    return view if view is not None and view.n_live else None


def _run_words(view: SequenceView | None) -> str:
    return "empty" if view is None else text.span(view.start, view.stop)


def _run_row(old: Record, new: Record, seq: int, first: int | None) -> Row:
    one, two = _run_of(old, seq), _run_of(new, seq)
    if first is None:
        verdict = Cell("same", role="done", glyph="tick")
        jump = Jump(seq=seq)
    else:
        verdict = Cell(f"from position {text.count(first)}", role="warning", glyph="warning")
        jump = Jump(seq=seq, positions=(first, first + 1))
    cells = (Cell(f"run of sequence {seq}"), Cell(_run_words(one)), Cell(_run_words(two)), verdict)
    return Row(cells, jump, f"seq/{seq}")


def _owner_row(name: str, before: str, after: str, new: Record) -> Row:
    same = before == after
    verdict = (
        Cell("same", role="done", glyph="tick")
        if same
        else Cell("differs", role="warning", glyph="warning")
    )
    cells = (Cell(name), digest_cell(before), digest_cell(after), verdict)
    return Row(cells, Jump(owner=name, event=new.number), name)


def _first_position(old: Record, new: Record, between: Sequence[Record]) -> dict[int, int]:
    """First position of each sequence that differs, for sequences where one does."""
    out: dict[int, int] = {}
    for seq in _seqs(old, new):
        one, two = _run_of(old, seq), _run_of(new, seq)
        candidates = [] if _same_run(one, two) else [_first_of_runs(one, two)]
        for record in between:
            if record.seq != seq or record.outcome != "ok":
                continue
            written = record.positions_written
            if written is not None and written[1] > written[0]:
                candidates.append(written[0])
            elif record.op in ("shift", "restore", "fork", "copy") and two is not None:
                candidates.append(two.start)
        live = [c for c in candidates if c is not None]
        if live and (one or two):
            out[seq] = min(live)
    return out


def _same_run(one: SequenceView | None, two: SequenceView | None) -> bool:
    if one is None or two is None:
        return one is two
    return (one.start, one.stop) == (two.start, two.stop)


def _first_of_runs(one: SequenceView | None, two: SequenceView | None) -> int:
    """First position that is live in one of two different runs only."""
    if one is None or two is None:
        only = one or two
        return only.start if only is not None else 0
    return min(one.start, two.start) if one.start != two.start else min(one.stop, two.stop)
