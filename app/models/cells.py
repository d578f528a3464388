"""Which position is in which physical cell, as arrays to draw. No Qt."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from app.models.sequences import WORD_OF, Codes, Kind
from engine.snapshot import Extents, SequenceView

LEFTOVER = max(Kind) + 1
"""Code of a cell that was used once and holds nothing live now; drawn beside the kinds."""


@dataclass(frozen=True, slots=True, eq=False)
class CellGrid:
    """Every physical cell that was ever used."""

    codes: Codes
    """[n_cells] a `Kind` or `LEFTOVER`."""
    positions: npt.NDArray[np.int64]
    """[n_cells] logical position in the sequence of `seqs`, -1 where none."""
    seqs: npt.NDArray[np.int32]
    """[n_cells] a sequence that has the cell (the chosen one where it does), -1 where none."""
    sharing: npt.NDArray[np.uint8]
    """[n_cells] how many sequences have the cell, 255 for more."""
    ghost: Extents = ()
    """Cells that the private bank is writing."""

    @property
    def n_cells(self) -> int:
        """Cells drawn."""
        return len(self.codes)

    def count(self, code: int) -> int:
        """Cells with a code."""
        return int(np.count_nonzero(self.codes == code))


def expand(extents: Extents) -> npt.NDArray[np.int64]:
    """Physical cells of extents, one by one, in logical order."""
    if not extents:
        return np.zeros(0, np.int64)
    pairs = np.array(extents, np.int64).reshape(-1, 2)
    first, count = pairs[:, 0], pairs[:, 1]
    ends = np.cumsum(count)
    return np.repeat(first - (ends - count), count) + np.arange(ends[-1])


def grid_of(
    sequences: tuple[SequenceView, ...], n_cells: int, chosen: int = 0, ghost: Extents = ()
) -> CellGrid:
    """The cells after a transaction; where sequences share one, the chosen sequence is shown."""
    # a state of the past may lie in cells that were given back since
    held = (extent for view in sequences for extent in view.extents)
    used = max([n_cells, *(first + n for first, n in held)])
    reach = max([used, *(first + n for first, n in ghost)])
    codes = np.full(reach, LEFTOVER, np.uint8)
    codes[used:] = Kind.OUTSIDE
    positions = np.full(reach, -1, np.int64)
    seqs = np.full(reach, -1, np.int32)
    sharing = np.zeros(reach, np.uint8)
    for view in sorted(sequences, key=lambda v: v.seq == chosen):
        cells = expand(view.extents)[: view.n_live]
        at = np.arange(view.start, view.start + len(cells))
        group = (at - view.start) // view.group_size
        code = np.where(group % 2 == 0, Kind.GROUP_A, Kind.GROUP_B)
        code[group >= view.n_groups] = Kind.TAIL
        codes[cells] = code
        positions[cells] = at
        seqs[cells] = view.seq
        np.add(sharing, 1, out=sharing, where=_mask(cells, reach) & (sharing < 255))
    return CellGrid(codes, positions, seqs, sharing, ghost)


def _mask(cells: npt.NDArray[np.int64], reach: int) -> npt.NDArray[np.bool_]:
    """True at the cells."""
    result = np.zeros(reach, np.bool_)
    result[cells] = True
    return result


def cell_of(view: SequenceView, position: int) -> int | None:
    """Physical cell of a live position, None outside the run."""
    offset = position - view.start
    if not 0 <= offset < view.n_live:
        return None
    for first, count in view.extents:
        if offset < count:
            return first + offset
        offset -= count
    return None


def cell_ranges(view: SequenceView, start: int, stop: int) -> list[tuple[int, int]]:
    """Half-open ranges of physical cells of the live positions in [start, stop)."""
    low, high = max(start, view.start) - view.start, min(stop, view.stop) - view.start
    result: list[tuple[int, int]] = []
    at = 0
    for first, count in view.extents:
        a, b = max(low, at), min(high, at + count)
        if a < b:
            result.append((first + a - at, first + b - at))
        at += count
        if at >= high:
            break
    return result


def columns_for(width: int, n_cells: int, height: int) -> int:
    """Columns of the grid: a multiple of 16 such that the cells fill the space best.

    Args: width and height in pixels; n_cells at least 0.
    """
    best, best_size = 16, 0.0
    for columns in range(16, max(17, min(4096, n_cells + 16)), 16):
        rows = max(1, -(-n_cells // columns))
        size = min(width / columns, height / rows)
        if size > best_size:
            best, best_size = columns, size
    return best


def words_at(grid: CellGrid, cell: int) -> str:
    """What a cell is, in words, for the pointer and for screen readers."""
    if not 0 <= cell < grid.n_cells:
        return "no cell"
    code = int(grid.codes[cell])
    if code == LEFTOVER:
        return f"cell {cell:,}, free: holds nothing live"
    if code == Kind.OUTSIDE:
        return f"cell {cell:,}, being written in the private bank"
    text = (
        f"cell {cell:,}, position {int(grid.positions[cell]):,} of sequence {int(grid.seqs[cell])}"
    )
    if code == Kind.FORGOTTEN:
        text += f", {WORD_OF[Kind.FORGOTTEN]}"
    n = int(grid.sharing[cell])
    return f"{text}, shared by {n} sequences" if n > 1 else text
