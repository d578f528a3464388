"""What a check of another engine's saved state says: verdict, findings, parts side by side.

Reads the object that `check --json` prints for one file. Findings lead to the positions they are
about.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from app.models import text
from app.models.table import Cell, Column, Jump, Row, Table

Report = dict[str, Any]
WORDS = {
    "unreadable": "wrong magic, version or structure",
    "truncated": "the file ends too early",
    "undecodable": "a class or encoding that is not known",
    "missing": "something that should be there is not",
    "inconsistent": "two places that should agree do not",
    "non_finite": "values that are no numbers",
    "torn": "parts of one sequence end at different positions",
    "index_drift": "the index disagrees with the main cache",
    "swa_drift": "the sliding window disagrees with the main cache",
    "recurrent_drift": "the recurrent state disagrees with the main cache",
    "duplicate": "a position stands twice",
    "step": "positions advance by a stride other than one",
    "hole": "a position inside the run is missing",
    "lost_events": "events were lost",
    "unknown_parent": "a block whose parent is not known",
}
FINDING_COLUMNS = (
    Column("Finding"),
    Column("Sequence", "right", mono=True),
    Column("Positions", "right", mono=True),
    Column("What it means"),
)
PART_COLUMNS = (
    Column("Sequence", "right", mono=True),
    Column("Part"),
    Column("Role"),
    Column("First", "right", mono=True),
    Column("Last", "right", mono=True),
    Column("Live", "right", mono=True),
    Column("Against the run"),
    Column("Marks"),
    Column("Class"),
)
PART_RANGES = (
    # key of a part: (finding, words)
    ("non_finite", "non_finite", "rows that are not finite"),
    ("stale", "stale", "rows that an earlier write left over"),
)
MOST_RANGES = 50
"""Ranges of one part that are listed; its row counts all."""
RANGES = (
    # key of a sequence: (finding, words)
    ("holes", "hole", "missing inside the run"),
    ("duplicates", "duplicate", "stands more than once"),
    ("forgotten", "forgotten", "live, but in no complete group and not in the tail"),
)


def verdict(report: Report) -> tuple[str, bool]:
    """(one sentence, sound)."""
    word = str(report.get("verdict", ""))
    reason = report.get("reason") or report.get("detail") or ""
    name = f"{report.get('format') or 'unknown format'}"
    if word == "ok":
        n_sequences = len(report.get("sequences") or ())
        return f"Sound: {name}, {text.plural(n_sequences, 'sequence')}", True
    return f"{word}: {reason or WORDS.get(word, '')}", False


def finding_table(report: Report) -> Table:
    """Every finding, then every range that is marked, each with where it leads."""
    rows = []
    for number, code in enumerate(report.get("findings") or ()):
        words = WORDS.get(code, "")
        reason = report.get("reason") if number == 0 else ""
        said = f"{words}: {reason}" if reason else words
        rows.append(_finding(code, None, "", said, _first_jump(report, code), "failed", "cross"))
    for sequence in report.get("sequences") or ():
        rows += list(_ranges(sequence))
    for name in report.get("unproved") or ():
        said = f"{name}: the file cannot show how far it has come"
        rows.append(_finding("unproved", None, "", said, None, "warning", "warning"))
    return Table(FINDING_COLUMNS, tuple(rows))


def _finding(
    code: str,
    seq: object,
    where: str,
    said: str,
    jump: Jump | None,
    role: str,
    glyph: str,
) -> Row:
    cells = (
        Cell(code.replace("_", " "), role=role, glyph=glyph),
        Cell(text.NOTHING if seq is None else str(seq)),
        Cell(where or text.NOTHING),
        Cell(said, tip=said),
    )
    return Row(cells, jump, f"{code}/{seq}/{where}")


def _ranges(sequence: Report) -> Iterator[Row]:
    seq = sequence.get("id")
    for key, code, words in RANGES:
        for item in sequence.get(key) or ():
            start, stop = half_open(item)
            jump = _jump(sequence, start, stop)
            yield _finding(code, seq, text.span(start, stop), words, jump, "hole", "cross")
    for part in sequence.get("parts") or ():
        for key, code, words in PART_RANGES:
            for item in list(part.get(key) or ())[:MOST_RANGES]:
                start, stop = half_open(item)
                said = f"{part.get('name')}: {words}"
                jump = _jump(sequence, start, stop)
                yield _finding(code, seq, text.span(start, stop), said, jump, "hole", "cross")
    for group in sequence.get("broken") or ():
        said = f"group g{group} has a missing or repeated position"
        yield _finding("broken group", seq, f"g{group}", said, Jump(group=group), "hole", "cross")


def half_open(item: object) -> tuple[int, int]:
    """A position or an inclusive pair as a half-open range."""
    if isinstance(item, (list, tuple)):
        return int(item[0]), int(item[-1]) + 1
    if isinstance(item, int):
        return item, item + 1
    raise TypeError(f"expected a position or a pair of positions, given {item!r}")


def _jump(sequence: Report, start: int, stop: int) -> Jump:
    seq = sequence.get("id")
    return Jump(seq=seq if isinstance(seq, int) else 0, positions=(start, stop))


def _first_jump(report: Report, code: str) -> Jump | None:
    """Where a finding leads: the first marked range, or the end of the shortest part."""
    keys = {"hole": "holes", "duplicate": "duplicates"}
    for sequence in report.get("sequences") or ():
        for item in sequence.get(keys.get(code, "")) or ():
            return _jump(sequence, *half_open(item))
        if code in ("torn", "index_drift", "swa_drift", "recurrent_drift"):
            usable = sequence.get("usable")
            if usable:
                return _jump(sequence, usable[1], usable[1] + 1)
    return None


def part_table(report: Report) -> Table:
    """Every part of every sequence against the sequence's own run."""
    rows = []
    for sequence in report.get("sequences") or ():
        rows.append(_run_row(sequence))
        rows += [_part_row(sequence, part) for part in sequence.get("parts") or ()]
    return Table(PART_COLUMNS, tuple(rows))


def _ends(item: Report) -> tuple[int | None, int | None]:
    run = item.get("run")
    return (int(run[0]), int(run[1])) if run else (None, None)


def _run_row(sequence: Report) -> Row:
    first, last = _ends(sequence)
    usable = text.inclusive(sequence.get("usable"))
    groups = f"{sequence.get('complete_groups', 0)} groups, tail {sequence.get('tail', 0)}"
    cells = (
        Cell(str(sequence.get("id"))),
        Cell("whole run", bold=True),
        Cell(text.NOTHING),
        Cell(text.optional(first)),
        Cell(text.optional(last)),
        Cell(text.count(int(sequence.get("live") or 0))),
        Cell(f"usable {usable}"),
        Cell(groups),
        Cell(""),
    )
    jump = None if first is None or last is None else _jump(sequence, first, last + 1)
    return Row(cells, jump, f"{sequence.get('id')}")


def _part_row(sequence: Report, part: Report) -> Row:
    first, last = _ends(part)
    cells = (
        Cell(str(sequence.get("id"))),
        Cell(str(part.get("name"))),
        Cell(str(part.get("role") or text.NOTHING)),
        Cell(text.optional(first)),
        Cell(text.optional(last)),
        Cell(text.optional(part.get("live"))),
        _against(sequence, first, last),
        _marks(part),
        Cell(str(part.get("class") or ""), role="text2"),
    )
    end = None if last is None else _jump(sequence, last, last + 1)
    return Row(cells, end, f"{sequence.get('id')}/{part.get('name')}")


def _against(sequence: Report, first: int | None, last: int | None) -> Cell:
    _, end = _ends(sequence)
    if last is None or end is None:
        return Cell("no positions", role="text2")
    if last == end:
        return Cell("reaches the end", role="done", glyph="tick")
    word = "behind" if last < end else "ahead"
    return Cell(f"{word} by {text.count(abs(end - last))}", role="failed", glyph="cross", bold=True)


def _marks(part: Report) -> Cell:
    """Ranges of a part that are missing, stale, evicted or not finite."""
    out = []
    for key, word in (
        ("holes", "hole"),
        ("non_finite", "not finite"),
        ("stale", "stale"),
        ("evicted", "evicted"),
    ):
        for item in list(part.get(key) or ())[:3]:
            where = text.span(*half_open(item)) if isinstance(item, (int, list, tuple)) else item
            out.append(f"{word} {where}")
    bad = any(part.get(key) for key in ("holes", "non_finite"))
    said = ", ".join(out)
    return Cell(said, tip=said, role="hole" if bad else "", glyph="cross" if bad else "")
