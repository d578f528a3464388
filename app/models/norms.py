"""Row norms of a foreign cache as one picture: a line a tensor, a column a physical cell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from app.models import text
from app.models.tensor import MAX_COLUMNS, MAX_ROWS, Matrix
from engine.formats import RowNorms

ROLES = ("attention", "index", "window", "swa")


def parts_with_rows(report: dict[str, object], sequence: int) -> list[str]:
    """Names of the parts of a sequence that keep rows (a recurrent state keeps none)."""
    sequences = report.get("sequences")
    if not isinstance(sequences, list) or not 0 <= sequence < len(sequences):
        return []
    parts = sequences[sequence].get("parts") or ()
    return [str(part["name"]) for part in parts if part.get("role") != "recurrent"]


@dataclass(frozen=True, slots=True)
class Stack:
    """All lines over each other."""

    matrix: Matrix
    names: tuple[str, ...]
    """Name of each row of the picture."""
    n_zero: int
    """Rows of the file whose norm is zero."""


def stacked(found: Sequence[RowNorms]) -> Stack:
    """All lines over each other; where a line is shorter the picture is filled with zero."""
    names = [name for item in found for name in item.names][:MAX_ROWS]
    lines = [line for item in found for line in item.norms][:MAX_ROWS]
    longest = max((len(line) for line in lines), default=0)
    width = min(longest, MAX_COLUMNS)
    values = np.zeros((len(lines), width), np.float32)
    for row, line in zip(values, lines, strict=True):
        row[: min(len(line), width)] = line[:width]
    finite = np.isfinite(values)
    some = bool(finite.any())
    matrix = Matrix(
        values,
        0,
        float(values[finite].min()) if some else 0.0,
        float(values[finite].max()) if some else 0.0,
        sum(int(np.isnan(line).sum()) for line in lines),
        sum(int(np.isinf(line).sum()) for line in lines),
        (len(lines), longest),
        "float32",
        f"first {width:,} of {longest:,} cells" if longest > width else "",
    )
    return Stack(matrix, tuple(names), sum(int((line == 0).sum()) for line in lines))


def summary(stack: Stack) -> str:
    """One line: how many lines and cells, how many rows are zero or not finite."""
    matrix = stack.matrix
    if not matrix.values.size:
        return "This file has no rows to show."
    out = (
        f"norms of {text.plural(matrix.shape[0], 'tensor')} over "
        f"{text.plural(matrix.shape[1], 'cell')}: {text.plural(stack.n_zero, 'row')} zero, "
        f"{text.count(matrix.n_nan + matrix.n_inf)} not finite"
    )
    return f"{out} ({matrix.cut})" if matrix.cut else out
