"""How a record of the journal stands in a row of a capture file, and back.

Owns the schema of the SQLite file and the coding of its columns. Knows neither threads nor files.
Every column holds a number, a word or JSON, so that any SQLite tool can read it; what repeats
from row to row (plans of stages, layouts of parts, digests, unchanged sequences) stands once.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import msgspec

from engine.snapshot import Digests, PartView, Record, SequenceView, StageView

APPLICATION_ID: Final = 0x42466C70
"""`BFlp`, big-endian at byte 68 of the file: what tells a capture from any other SQLite file."""

SQLITE_MAGIC: Final = b"SQLite format 3\0"
SCHEMA_VERSION: Final = 1
KEYFRAME_EVERY: Final = 64
"""Rows between two rows that hold every sequence; the rows between hold only what changed."""

SCHEMA: Final = """
CREATE TABLE about (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE layouts (id INTEGER PRIMARY KEY, kind TEXT NOT NULL, value TEXT NOT NULL);
CREATE TABLE records (
  row INTEGER PRIMARY KEY, number INTEGER NOT NULL, txn INTEGER, op TEXT NOT NULL,
  seq INTEGER NOT NULL, op_json TEXT NOT NULL, result TEXT NOT NULL, outcome TEXT NOT NULL,
  sentence TEXT NOT NULL, n_tokens INTEGER NOT NULL, duration_ns INTEGER NOT NULL,
  wall_ns INTEGER NOT NULL, public_bank INTEGER NOT NULL, flips INTEGER NOT NULL,
  stage TEXT NOT NULL, kind TEXT NOT NULL, reason TEXT NOT NULL, expected INTEGER, given INTEGER,
  nearest INTEGER, bad_value TEXT NOT NULL, written_first INTEGER, written_last INTEGER,
  cells_written TEXT NOT NULL, lowest_cell INTEGER NOT NULL, cells_end INTEGER NOT NULL,
  stage_layout INTEGER NOT NULL, stage_ns TEXT NOT NULL,
  stage_marks TEXT NOT NULL, digests_before TEXT, digests_after TEXT NOT NULL,
  keyframe INTEGER NOT NULL, sequences TEXT NOT NULL);
CREATE INDEX records_by_outcome ON records (outcome);
CREATE VIEW runs AS
  SELECT records.row, records.number, json_extract(changed.value, '$.seq') AS seq,
    json_extract(changed.value, '$.run[0]') AS first,
    json_extract(changed.value, '$.run[1]') AS last,
    json_extract(changed.value, '$.groups') AS complete_groups,
    json_extract(changed.value, '$.tail') AS tail,
    json_extract(changed.value, '$.cells') AS cells
  FROM records, json_each(records.sequences, '$.set') AS changed;
"""

COLUMNS: Final = (
    "row",
    "number",
    "txn",
    "op",
    "seq",
    "op_json",
    "result",
    "outcome",
    "sentence",
    "n_tokens",
    "duration_ns",
    "wall_ns",
    "public_bank",
    "flips",
    "stage",
    "kind",
    "reason",
    "expected",
    "given",
    "nearest",
    "bad_value",
    "written_first",
    "written_last",
    "cells_written",
    "lowest_cell",
    "cells_end",
    "stage_layout",
    "stage_ns",
    "stage_marks",
    "digests_before",
    "digests_after",
    "keyframe",
    "sequences",
)

HELP: Final = (
    "One row of `records` is one op in the order of the session. `sequences` holds those that "
    "changed since the row before (`set`) and the ids that went (`gone`); a row whose `keyframe` "
    "equals its `row` holds all of them. Runs are [first, last], cells [first cell, count]. "
    "`digests_before` is null where it equals `digests_after` of the row before. `stage_ns` has "
    "one time for each stage named in `layouts`; `stage_marks` names those that are not just done."
)

WORDS: Final = frozenset(
    ["op", "op_json", "result", "outcome", "sentence", "stage", "kind", "reason", "bad_value"]
)
"""Columns that hold text in every row."""
NUMBERS: Final = frozenset(
    ["number", "seq", "n_tokens", "duration_ns", "wall_ns", "public_bank", "flips"]
)
"""Columns that hold an integer in every row."""

Intern = Callable[[str, str], int]
"""(kind, JSON value) to the id of its row in `layouts`."""
Layout = Callable[[int], list[Any]]

_encode = msgspec.json.Encoder().encode


def is_capture(head: bytes) -> bool:
    """Whether a file's first 72 bytes are those of a capture."""
    return head[:16] == SQLITE_MAGIC and head[68:72] == APPLICATION_ID.to_bytes(4, "big")


def read_head(path: Path) -> bytes:
    """The SQLite header of a file, or as much of it as there is."""
    with path.open("rb") as file:
        return file.read(100)


def dump(value: object) -> str:
    """JSON text of plain values."""
    return _encode(value).decode()


def without_text(op_json: str) -> str:
    """The op without token ids, at any depth (`n_tokens` says how many there were)."""

    def strip(value: Any) -> Any:
        if isinstance(value, dict):
            return {k: strip(v) for k, v in value.items() if k not in ("tokens", "token")}
        return [strip(item) for item in value] if isinstance(value, list) else value

    try:
        return dump(strip(json.loads(op_json)))
    except ValueError:
        return "{}"


def textless(record: Record) -> Record:
    """The record without token ids: none in the op, none in a refusal of a token."""
    stripped = replace(record, op_json=without_text(record.op_json))
    if record.reason != "token":
        return stripped
    sentence = f"{record.op} on sequence {record.seq}: token"
    return replace(stripped, given=None, sentence=sentence)


def sequence_to_json(view: SequenceView, intern: Intern) -> dict[str, Any]:
    """One sequence as JSON; the owners and layers of its parts stand once in `layouts`."""
    heads = dump([(part.owner, part.layer) for part in view.parts])
    return {
        "seq": view.seq,
        "run": [view.start, view.stop - 1] if view.n_live else None,
        "start": view.start,
        "group_size": view.group_size,
        "groups": view.n_groups,
        "tail": view.n_tail,
        "cells": view.extents,
        "consumed": view.consumed,
        "evicted": view.evicted,
        "padding": view.padding,
        "part_layout": intern("parts", heads),
        "parts": [(part.first, part.last, part.count) for part in view.parts],
    }


def sequence_from_json(value: dict[str, Any], layout: Layout) -> SequenceView:
    """The inverse of `sequence_to_json`; raises ValueError, KeyError or TypeError on nonsense."""
    run = value["run"]
    parts = tuple(
        PartView(str(owner), int(layer), first, last, int(count))
        for (owner, layer), (first, last, count) in zip(
            layout(value["part_layout"]), value["parts"], strict=True
        )
    )
    return SequenceView(
        seq=int(value["seq"]),
        start=int(value["start"]),
        stop=int(run[1]) + 1 if run else int(value["start"]),
        group_size=int(value["group_size"]),
        n_groups=int(value["groups"]),
        n_tail=int(value["tail"]),
        extents=tuple((int(cell), int(count)) for cell, count in value["cells"]),
        consumed=int(value["consumed"]),
        evicted=int(value["evicted"]),
        padding=int(value["padding"]),
        parts=parts,
    )


def stages_to_json(record: Record, intern: Intern) -> tuple[int, str, str]:
    """Layout id, times and marks of the record's stages."""
    heads = [(s.name, s.kind, s.piece, s.reads, s.writes) for s in record.stages]
    marks = [
        (i, s.state, s.seq, s.fail_kind, s.detail, s.armed)
        for i, s in enumerate(record.stages)
        if s.state != "done" or s.seq != record.seq or s.fail_kind or s.detail or s.armed
    ]
    layout = intern("stages", dump(heads))
    return layout, dump([s.time_ns for s in record.stages]), dump(marks)


def stages_from_json(seq: int, heads: list[Any], times: str, marks: str) -> tuple[StageView, ...]:
    """The inverse of `stages_to_json`; `seq` is the record's sequence."""
    marked = {mark[0]: mark[1:] for mark in json.loads(marks)}
    stages = []
    for i, ((name, kind, piece, reads, writes), time_ns) in enumerate(
        zip(heads, json.loads(times), strict=True)
    ):
        state, stage_seq, fail_kind, detail, armed = marked.get(i, ("done", seq, "", "", ()))
        stages.append(
            StageView(
                name=str(name),
                kind=str(kind),
                state=str(state),
                time_ns=int(time_ns),
                piece=int(piece),
                seq=int(stage_seq),
                fail_kind=str(fail_kind),
                detail=str(detail),
                reads=tuple(map(str, reads)),
                writes=tuple(map(str, writes)),
                armed=tuple(map(str, armed)),
            )
        )
    return tuple(stages)


def digests_to_json(digests: Digests) -> str:
    """An object from owner to hex digits, in the order of the owners."""
    return dump(dict(digests))


def digests_from_json(text: str) -> Digests:
    """The inverse of `digests_to_json`."""
    return tuple((str(name), str(digest)) for name, digest in json.loads(text).items())


def _numbers(record: Record) -> tuple[int | None, int | None, int | None]:
    return record.expected, record.given, record.nearest


def _fit(value: int | None) -> int | str | None:
    """SQLite's integers have 64 bits; a refused position may be any number, then kept as text."""
    return value if value is None or -(2**63) <= value < 2**63 else str(value)


def _number(value: int | str | None) -> int | None:
    return None if value is None else int(value)


class RowWriter:
    """Records in, rows out: remembers only what the next row leaves out."""

    def __init__(self, intern: Intern, with_text: bool) -> None:
        self._intern = intern
        self._with_text = with_text
        self._row = 0
        self._keyframe = 0
        self._sequences: dict[int, SequenceView] = {}
        self._digests: str | None = None

    def row(self, record: Record) -> tuple[Any, ...]:
        """Values for `COLUMNS`."""
        if not self._with_text:
            record = textless(record)
        self._row += 1
        layout, times, marks = stages_to_json(record, self._intern)
        before, after = (
            digests_to_json(record.digests_before),
            digests_to_json(record.digests_after),
        )
        previous, self._digests = self._digests, after
        written = record.positions_written
        first, last = (written[0], written[1] - 1) if written else (None, None)
        sequences = self._sequence_column(record)
        return (
            *(self._row, record.number, record.txn, record.op, record.seq, record.op_json),
            *(record.result, record.outcome, record.sentence, record.n_tokens),
            *(record.duration_ns, record.wall_ns, record.public_bank, record.flips),
            *(record.stage, record.kind, record.reason, *map(_fit, _numbers(record))),
            *(record.bad_value, first, last, dump(record.cells_written)),
            min((cell for cell, _ in record.cells_written), default=0),
            max((cell + n for cell, n in record.cells_written), default=0),
            *(layout, times, marks, None if before == previous else before, after),
            *(self._keyframe, sequences),
        )

    def _sequence_column(self, record: Record) -> str:
        present = {view.seq: view for view in record.sequences}
        ordered = list(present) == sorted(present)
        if not ordered or not self._keyframe or self._row - self._keyframe >= KEYFRAME_EVERY:
            self._keyframe, changed, gone = self._row, list(record.sequences), []
        else:
            old = self._sequences
            changed = [view for seq, view in present.items() if old.get(seq) != view]
            gone = [seq for seq in old if seq not in present]
        self._sequences = present
        return dump(
            {"set": [sequence_to_json(view, self._intern) for view in changed], "gone": gone}
        )


def check_types(row: dict[str, Any]) -> None:
    """Raise TypeError where a column holds another type than the writer puts there."""
    for name, value in row.items():
        if name in WORDS and not isinstance(value, str):
            raise TypeError(f"{name} is not text")
        if name in NUMBERS and not isinstance(value, int):
            raise TypeError(f"{name} is not an integer")
    if not isinstance(row["txn"], int | None):
        raise TypeError("txn is not an integer")


def apply_sequences(
    views: dict[int, SequenceView], column: str, layout: Layout
) -> dict[int, SequenceView]:
    """The sequences after a row, from those before it and the row's `sequences` column."""
    value = json.loads(column)
    result = {seq: view for seq, view in views.items() if seq not in value["gone"]}
    for item in value["set"]:
        view = sequence_from_json(item, layout)
        result[view.seq] = view
    return result


def record_from_row(
    row: dict[str, Any], before: Digests, sequences: tuple[SequenceView, ...], layout: Layout
) -> Record:
    """The record of one row; `before` and `sequences` come from this row and those before it."""
    check_types(row)
    written = None
    if row["written_first"] is not None:
        written = (int(row["written_first"]), int(row["written_last"]) + 1)
    heads = layout(row["stage_layout"])
    return Record(
        number=row["number"],
        txn=row["txn"],
        op=row["op"],
        seq=row["seq"],
        op_json=row["op_json"],
        result=row["result"],
        outcome=row["outcome"],
        sentence=row["sentence"],
        n_tokens=row["n_tokens"],
        duration_ns=row["duration_ns"],
        public_bank=row["public_bank"],
        flips=row["flips"],
        stage=row["stage"],
        kind=row["kind"],
        reason=row["reason"],
        expected=_number(row["expected"]),
        given=_number(row["given"]),
        nearest=_number(row["nearest"]),
        bad_value=row["bad_value"],
        stages=stages_from_json(row["seq"], heads, row["stage_ns"], row["stage_marks"]),
        digests_before=before,
        digests_after=digests_from_json(row["digests_after"]),
        sequences=sequences,
        cells_written=tuple((int(c), int(n)) for c, n in json.loads(row["cells_written"])),
        positions_written=written,
        wall_ns=row["wall_ns"],
    )
