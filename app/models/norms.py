"""Row norms of a foreign cache as one picture: a line a tensor, a column a physical cell."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

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


def stacked(found: Sequence[RowNorms]) -> tuple[Matrix, tuple[str, ...]]:
    """All lines over each other; where a line is shorter there is not-a-number.

    Returns: the picture, and the name of each of its rows.
    """
    names = [name for item in found for name in item.names][:MAX_ROWS]
    lines = [line for item in found for line in item.norms][:MAX_ROWS]
    width = min(max((len(line) for line in lines), default=0), MAX_COLUMNS)
    values = np.full((len(lines), width), np.nan, np.float32)
    for row, line in zip(values, lines, strict=True):
        row[: min(len(line), width)] = line[:width]
    finite = np.isfinite(values)
    some = bool(finite.any())
    longest = max((len(line) for line in lines), default=0)
    n_bad = sum(int((~np.isfinite(line)).sum()) for line in lines)
    matrix = Matrix(
        values,
        0,
        float(values[finite].min()) if some else 0.0,
        float(values[finite].max()) if some else 0.0,
        n_bad,
        0,
        (len(lines), longest),
        "float32",
        f"first {width:,} of {longest:,} cells" if longest > width else "",
    )
    return matrix, tuple(names)


def summary(matrix: Matrix) -> str:
    """One line: how many lines and cells, how many rows are zero or not finite."""
    if not matrix.values.size:
        return "This file has no rows to show."
    n_zero = int((matrix.values == 0).sum())
    out = f"norms of {matrix.shape[0]:,} tensors over {matrix.shape[1]:,} cells"
    out += f", {n_zero:,} rows are zero, {matrix.n_nan:,} not finite"
    return f"{out} ({matrix.cut})" if matrix.cut else out
