"""An opened file: its report, and what a window asks for beyond it, computed from the map."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from engine.formats.positions import Ints
from engine.formats.report import Report
from engine.formats.source import Source

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class CellMap:
    """Physical cells of a sequence's main part, in the order in which they stand."""

    positions: Ints
    """[n_cells] logical position of each cell, -1 where a cell has none."""
    member: npt.NDArray[np.bool_]
    """[n_cells] whether the cell belongs to the sequence that was asked for."""
    owners: npt.NDArray[np.int64]
    """[n_cells] how many sequences the cell belongs to."""


@dataclass(frozen=True, slots=True)
class RowNorms:
    """Euclidean norms of rows in physical order; NaN or inf where a row is not finite."""

    names: tuple[str, ...]
    """Name of each line, such as `layer 3 K`."""
    norms: Floats
    """[n_lines, n_cells]."""


def no_cells(index: int) -> CellMap:
    """The map of a format that has no physical cells."""
    empty = np.empty(0, np.int64)
    return CellMap(empty, np.empty(0, np.bool_), empty)


def no_norms(part: str, index: int) -> RowNorms:
    """The norms of a format that has no rows."""
    return RowNorms((), np.empty((0, 0), np.float32))


@dataclass
class Opened:
    """A read file. Close it, or use it in a `with` statement, to give the map back."""

    report: Report
    source: Source | None = None
    cells: Callable[[int], CellMap] = field(default=no_cells, repr=False)
    norms: Callable[[str, int], RowNorms] = field(default=no_norms, repr=False)

    def cell_map(self, index: int) -> CellMap:
        """Cells of `report.sequences[index]`; IndexError beyond the last."""
        self.report.sequences[index]
        return self.cells(index)

    def row_norms(self, part: str, index: int = 0) -> RowNorms:
        """Row norms of the part of that name of `report.sequences[index]`, read now.

        Raises: KeyError when the sequence has no such part.
        """
        if part not in {own.name for own in self.report.sequences[index].parts}:
            raise KeyError(part)
        return self.norms(part, index)

    def close(self) -> None:
        if self.source is not None:
            self.source.close()

    def __enter__(self) -> Opened:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
