"""Results of the one-click checks, as a sentence and a grid of pass and fail."""

from __future__ import annotations

from app.models.table import Cell, Column, Row, Table
from engine.snapshot import CheckResult

CHECKS = (
    (
        "same-as-fresh",
        "Same as fresh",
        "Replay every lineage in a new session and compare every byte",
    ),
    ("audit", "Audit digests", "Recompute all digests of both banks from the bytes"),
    (
        "boundary-sweep",
        "Boundary sweep",
        "Try N-1, N, N+1 around group size, capacity and wrap, and every cut into chunks",
    ),
)
NAMES = tuple(name for name, _, _ in CHECKS)
MARKS = {
    "pass": ("tick", "done"),
    "ok": ("tick", "done"),
    "same": ("tick", "done"),
    "equal": ("tick", "done"),
    "fail": ("cross", "failed"),
    "failed": ("cross", "failed"),
    "differs": ("cross", "failed"),
    "different": ("cross", "failed"),
    "rejected": ("dash", "warning"),
    "skipped": ("dash", "text2"),
}


def mark(value: str) -> Cell:
    """A cell of the grid: pass and fail have a shape as well as a colour."""
    word = value.split(":", 1)[0].strip().lower()
    glyph, role = MARKS.get(word, ("", ""))
    return Cell(value, tip=value, role=role, glyph=glyph, bold=role == "failed")


def result_table(result: CheckResult) -> Table:
    """Rows and columns as the check gave them."""
    width = max([len(result.columns), *(len(row) for row in result.rows)], default=0)
    titles = [*result.columns, *("" for _ in range(width - len(result.columns)))]
    rows = [
        Row(tuple(mark(value) for value in [*row, *[""] * (width - len(row))]), key="/".join(row))
        for row in result.rows
    ]
    return Table(tuple(Column(title) for title in titles), tuple(rows))


def counts(result: CheckResult) -> tuple[int, int]:
    """(passed, failed) cells of the grid."""
    marks = [mark(value).role for row in result.rows for value in row]
    return marks.count("done"), marks.count("failed")
