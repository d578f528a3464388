"""Two checked files side by side: verdicts, runs and parts, and what differs.

Reads the objects that `check --json` prints for a file.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from app.models import text
from app.models.table import Cell, Column, Jump, Row, Table

Report = dict[str, Any]
COLUMNS = (Column("What"), Column("First file"), Column("Second file"), Column("Difference"))
FACTS = (
    ("run", "run"),
    ("usable", "usable"),
    ("live", "live positions"),
    ("complete_groups", "complete groups"),
    ("tail", "tail"),
    ("holes", "holes"),
    ("duplicates", "duplicates"),
    ("forgotten", "forgotten"),
    ("broken", "broken groups"),
)
JUMPING = ("run", "holes", "duplicates", "forgotten")


def compare_files(one: Report, two: Report) -> tuple[str, bool, Table]:
    """(sentence, same, table with one row a fact)."""
    rows = list(_rows(one, two))
    differing = [row.cells[0].text for row in rows if row.cells[3].text == "differs"]
    names = f"{_name(one)} and {_name(two)}"
    if not differing:
        return f"{names}: the same runs, parts and findings", True, Table(COLUMNS, tuple(rows))
    said = f"{names}: {len(differing)} of {text.plural(len(rows), 'fact')} differ, "
    return f"{said}first {differing[0]}", False, Table(COLUMNS, tuple(rows))


def _name(report: Report) -> str:
    return str(report.get("file", "")).rsplit("/", 1)[-1]


def _rows(one: Report, two: Report) -> Iterator[Row]:
    for key in ("format", "verdict"):
        yield _row(key, str(one.get(key)), str(two.get(key)), None)
    left, right = _by_id(one), _by_id(two)
    for seq in dict.fromkeys([*left, *right]):
        yield from _sequence_rows(seq, left.get(seq), right.get(seq))


def _by_id(report: Report) -> dict[str, Report]:
    return {str(sequence.get("id")): sequence for sequence in report.get("sequences") or ()}


def _sequence_rows(seq: str, one: Report | None, two: Report | None) -> Iterator[Row]:
    name = f"sequence {seq}"
    if one is None or two is None:
        left, right = ("absent" if side is None else "present" for side in (one, two))
        yield _row(name, left, right, None)
        return
    for key, words in FACTS:
        jump = _jump(seq, one.get(key), two.get(key)) if key in JUMPING else None
        yield _row(f"{name}: {words}", _said(key, one.get(key)), _said(key, two.get(key)), jump)
    sides = [{part.get("name"): part for part in s.get("parts") or ()} for s in (one, two)]
    for part in dict.fromkeys([*sides[0], *sides[1]]):
        runs = [side.get(part, {}).get("run") for side in sides]
        said = [
            text.inclusive(run) if part in side else "absent"
            for run, side in zip(runs, sides, strict=True)
        ]
        yield _row(f"{name}: {part}", said[0], said[1], _jump(seq, runs[0], runs[1]))


def _said(key: str, value: object) -> str:
    if key in ("run", "usable"):
        return text.inclusive(value)
    if isinstance(value, list):
        return ", ".join(_range(item) for item in value[:8]) or "none"
    return text.NOTHING if value is None else str(value)


def _range(item: object) -> str:
    return text.inclusive(item) if isinstance(item, list) else str(item)


def _jump(seq: str, one: object, two: object) -> Jump | None:
    """To the first position where two runs, or two lists of ranges, part."""
    if one == two or not (seq.isascii() and seq.isdigit() and len(seq) < 20):
        return None
    sides = [side for side in (one, two) if isinstance(side, list) and side]
    if not sides:
        return None
    runs = [side for side in sides if all(isinstance(end, int) for end in side)]
    if len(runs) == 2 and runs[0][0] == runs[1][0]:
        position = min(run[-1] for run in runs) + 1
    elif runs:
        position = min(run[0] for run in runs)
    else:
        position = min(_starts(one) ^ _starts(two) or _starts(one) | _starts(two))
    return Jump(seq=int(seq), positions=(position, position + 1))


def _starts(ranges: object) -> set[int]:
    """First positions of a list of ranges."""
    items = ranges if isinstance(ranges, list) else []
    return {int(item[0]) for item in items if isinstance(item, list) and item}


def _row(name: str, one: str, two: str, jump: Jump | None) -> Row:
    same = one == two
    verdict = (
        Cell("same", role="done", glyph="tick")
        if same
        else Cell("differs", role="warning", glyph="warning")
    )
    return Row((Cell(name), Cell(one), Cell(two), verdict), jump, name)
