"""An owner's rows as a matrix to look at: range, colours, difference of the two banks.

Owns how an array of any rank becomes a picture: rows are positions (or the first axis), the other
axes are laid out in a line. Copies nothing larger than what was asked for.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from app.models import text
from engine.snapshot import ArraySlice

MAX_ROWS = 4096
MAX_COLUMNS = 8192
VIEWS = ("public", "private", "difference")

SEQUENTIAL = ("#00204D", "#31446B", "#666970", "#958F78", "#CBBA69", "#FFEA46")
"""Cividis at six points: one hue order, readable with any colour vision."""
DIVERGING = ("#2D3FA8", "#7F8FD9", "#F2F2F2", "#E39A63", "#A34A00")
"""Blue to orange through grey, for differences: zero is the middle."""


@dataclass(frozen=True, slots=True)
class Matrix:
    """A picture's numbers: [rows, columns] float32, not-a-number where not finite."""

    values: npt.NDArray[np.float32]
    first: int
    """Number of the first row (a live position, or 0)."""
    low: float
    high: float
    n_nan: int
    n_inf: int
    shape: tuple[int, ...]
    """Shape of the array before it was laid out."""
    dtype: str
    cut: str = ""
    """What was left out, in words."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Colours run from `low` to `high`; beyond them the end colours are used."""

    low: float
    high: float


def matrix_of(array: ArraySlice) -> Matrix:
    """Lay an array out as rows and columns."""
    return _matrix(array.values, array.start)


def difference(public: ArraySlice, private: ArraySlice) -> Matrix | str:
    """Private minus public over the rows that both have, or why there is none."""
    one, other = public.values, private.values
    if one.ndim != other.ndim or one.shape[1:] != other.shape[1:]:
        return f"no difference: the public shape is {one.shape}, the private one {other.shape}"
    start = max(public.start, private.start)
    stop = min(public.start + _n_rows(one), private.start + _n_rows(other))
    if stop <= start:
        return "no difference: the banks have no row in common"
    if one.ndim == 0:
        return _matrix(other.astype(np.float32) - one.astype(np.float32), 0)
    left = one[start - public.start : stop - public.start].astype(np.float32)
    right = other[start - private.start : stop - private.start].astype(np.float32)
    return _matrix(right - left, start)


def _n_rows(values: npt.NDArray[np.generic]) -> int:
    return int(values.shape[0]) if values.ndim else 1


def _matrix(values: npt.NDArray[np.generic], first: int) -> Matrix:
    shape, dtype = values.shape, str(values.dtype)
    flat = np.asarray(values).reshape(_n_rows(values), -1) if values.size else np.zeros((0, 0))
    cut = []
    if flat.shape[0] > MAX_ROWS:
        cut.append(f"first {MAX_ROWS:,} of {flat.shape[0]:,} rows")
    if flat.shape[1] > MAX_COLUMNS:
        cut.append(f"first {MAX_COLUMNS:,} of {flat.shape[1]:,} columns")
    picture = np.asarray(flat[:MAX_ROWS, :MAX_COLUMNS], dtype=np.float32)
    finite = np.isfinite(picture)
    some = bool(finite.any())
    low = float(np.min(picture, where=finite, initial=np.inf)) if some else 0.0
    high = float(np.max(picture, where=finite, initial=-np.inf)) if some else 0.0
    n_nan = int(np.isnan(picture).sum())
    n_inf = int(picture.size - finite.sum()) - n_nan
    return Matrix(picture, first, low, high, n_nan, n_inf, shape, dtype, ", ".join(cut))


def automatic(matrix: Matrix, view: str) -> Limits:
    """Range of the colours that fits the values; symmetric around zero for a difference."""
    if view == "difference":
        reach = max(abs(matrix.low), abs(matrix.high)) or 1.0
        return Limits(-reach, reach)
    if matrix.low == matrix.high:
        return Limits(matrix.low - 0.5, matrix.high + 0.5)
    return Limits(matrix.low, matrix.high)


def palette(view: str) -> npt.NDArray[np.uint8]:
    """256 colours, [256, 4] uint8, red green blue alpha."""
    stops = DIVERGING if view == "difference" else SEQUENTIAL
    points = np.array([[int(c[i : i + 2], 16) for i in (1, 3, 5)] for c in stops], float)
    at = np.linspace(0, len(stops) - 1, 256)
    colours = [np.interp(at, np.arange(len(stops)), points[:, i]) for i in range(3)]
    return np.stack([*colours, np.full(256, 255.0)], axis=1).round().astype(np.uint8)


def facts(matrix: Matrix, view: str = "public") -> str:
    """Shape, type, range and values that are not finite, in one line."""
    if view == "difference" and matrix.values.size and matrix.low == matrix.high == 0:
        return f"shape {list(matrix.shape)}: no difference, every value is equal"
    if not matrix.values.size:
        return f"shape {list(matrix.shape)}, {matrix.dtype}: no values"
    out = [
        f"shape {list(matrix.shape)} {matrix.dtype}",
        f"{text.real(matrix.low)} to {text.real(matrix.high)}",
    ]
    if matrix.n_nan or matrix.n_inf:
        out.append(f"not finite: {matrix.n_nan:,} NaN, {matrix.n_inf:,} Inf")
    else:
        out.append("all finite")
    return " · ".join([*out, matrix.cut] if matrix.cut else out)


def value_line(matrix: Matrix, row: int, column: int, rows_are_positions: bool) -> str:
    """What lies under the pointer; empty outside."""
    n_rows, n_columns = matrix.values.shape
    if not (0 <= row < n_rows and 0 <= column < n_columns):
        return ""
    word = "position" if rows_are_positions else "row"
    value = float(matrix.values[row, column])
    return f"{word} {matrix.first + row:,}, column {column:,}: {text.real(value)}"
