"""What a check of another engine's saved state says: verdict, findings, parts side by side.

Reads the object that `check --json` prints for one file. Findings lead to the positions they are
about.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from app.models import text
from app.models.foreign import joined
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


DRIFTS: Final = ("torn", "index_drift", "swa_drift", "recurrent_drift")
"""Findings that say that a part ends before the others."""


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
    """Every finding, then whatever else is marked, each once and with where it leads.

    A finding whose ranges are known is told by them, with the parts that each concerns; one
    without any has a row with the reason.
    """
    marked = [item for seq in report.get("sequences") or () for item in _ranges(seq)]
    rows = []
    found = tuple(report.get("findings") or ())
    for number, code in enumerate(found):
        own = [row for of, row in marked if of == code]
        words = WORDS.get(code, "")
        reason = report.get("reason") if number == 0 else ""
        said = f"{words}: {reason}" if reason else words
        rows += own or [_lone(report, code, said)]
    rows += [row for of, row in marked if of not in found]
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
    return Row(cells, jump, f"{code}/{seq}/{where}/{said}")


def _ranges(sequence: Report) -> Iterator[tuple[str, Row]]:
    """(finding, row) of every range that is marked."""
    parts = sequence.get("parts") or ()
    for key, code, words in RANGES:
        role = code if code == "forgotten" else "hole"
        for item in sequence.get(key) or ():
            where = half_open(item)
            concerned = [str(part.get("name")) for part in parts if _meets(part.get(key), where)]
            said = f"{words}, in {joined(concerned)}" if concerned else words
            yield code, _range_row(sequence, code, where, said, role)
    for key, code, words in PART_RANGES:
        names: dict[tuple[int, int], list[str]] = {}
        for part in parts:
            for item in list(part.get(key) or ())[:MOST_RANGES]:
                names.setdefault(half_open(item), []).append(str(part.get("name")))
        for where, concerned in names.items():
            said = f"{joined(concerned)}: {words}"
            yield code, _range_row(sequence, code, where, said, "hole")
    seq = sequence.get("id")
    for group in sequence.get("broken") or ():
        said = f"group g{group} has a missing or repeated position"
        row = _finding("broken group", seq, f"g{group}", said, Jump(group=group), "hole", "cross")
        yield "broken group", row


def _range_row(sequence: Report, code: str, where: tuple[int, int], said: str, role: str) -> Row:
    jump = _jump(sequence, *where)
    return _finding(code, sequence.get("id"), text.span(*where), said, jump, role, "cross")


def _meets(ranges: object, where: tuple[int, int]) -> bool:
    """True where one of the ranges of a part has a position of another range."""
    found = map(half_open, ranges if isinstance(ranges, list) else ())
    return any(start < where[1] and stop > where[0] for start, stop in found)


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


def _lone(report: Report, code: str, said: str) -> Row:
    """A finding without ranges of its own; parts that disagree say what can't be used."""
    behind = _behind(report) if code in DRIFTS else None
    if behind is None:
        return _finding(code, None, "", said, None, "failed", "cross")
    sequence, start, stop = behind
    where = text.span(start, stop)
    jump = _jump(sequence, start, stop)
    return _finding(code, sequence.get("id"), where, said, jump, "failed", "cross")


def _behind(report: Report) -> tuple[Report, int, int] | None:
    """The first sequence that can't be used to its end, and the half-open rest.

    One with a hole or a repeated position has a reason of its own, so the others come first.
    """
    found = []
    for sequence in report.get("sequences") or ():
        run, usable = sequence.get("run"), sequence.get("usable")
        if run and (not usable or usable[1] < run[1]):
            start = int(usable[1]) + 1 if usable else int(run[0])
            found.append((sequence, start, int(run[1]) + 1))
    own = [item for item in found if not (item[0].get("holes") or item[0].get("duplicates"))]
    return next(iter(own + found), None)


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
