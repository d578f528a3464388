"""Row norms of llama.cpp payload blocks: floats of three widths and six quantised types.

Rows are dequantised block by block, a slice of cells at a time, so memory stays small.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import numpy.typing as npt

from engine.formats.llama.sections import TYPES, Block, Section
from engine.formats.opened import Floats, RowNorms
from engine.formats.source import Source

SLICE_BYTES = 4 << 20
IQ4_NL = np.array(
    [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113], np.float32
)
Bytes = npt.NDArray[np.uint8]
Doubles = npt.NDArray[np.float64]


def section_norms(source: Source, section: Section, cells: npt.NDArray[np.int64]) -> RowNorms:
    """Norms of every block of a section at the chosen cells: [n_blocks, n_cells].

    Blocks of a type that is not known, and PLE history, give NaN rows.
    """
    lines = section_lines(source, section)
    if not lines:
        return RowNorms((), np.empty((0, cells.size), np.float32))
    with np.errstate(all="ignore"):
        norms = np.stack([line[cells] for line in lines.values()]).astype(np.float32)
    return RowNorms(tuple(lines), norms)


def bad_cells(source: Source, section: Section) -> dict[str, npt.NDArray[np.bool_]]:
    """By block name, which cells hold a value that is not finite; blocks without any left out."""
    lines = section_lines(source, section, known_only=True)
    flags = {name: ~np.isfinite(line) for name, line in lines.items()}
    return {name: bad for name, bad in flags.items() if bad.any()}


def section_lines(source: Source, section: Section, known_only: bool = False) -> dict[str, Doubles]:
    """Norms of all cells by block name; `known_only` leaves out blocks that can't be judged."""
    sizes = np.bincount(section.cells.streams, minlength=section.n_stream)
    starts = np.concatenate(([0], np.cumsum(sizes)[:-1]))
    n_cells = int(section.cells.positions.size)
    lines: dict[str, Doubles] = {}
    seen: dict[tuple[str, int], int] = {}
    for block in section.blocks:
        layer = seen.get((block.what, block.stream), 0)
        seen[block.what, block.stream] = layer + 1
        if known_only and not judged(block):
            continue
        name = f"layer {layer} {block.what}"
        line = lines.setdefault(name, np.full(n_cells, 0.0 if known_only else np.nan))
        start, count = int(starts[block.stream]), int(sizes[block.stream])
        line[start : start + count] = block_norms(source, block, count)
    return lines


def judged(block: Block) -> bool:
    """Whether the values of a block are known."""
    return block.what != "PLE" and block.type in TYPES and block.row_bytes > 0


def block_norms(source: Source, block: Block, count: int) -> Doubles:
    """Norms of the `count` rows of one block: [count]; rows may hold any bits, NaN included."""
    if not judged(block) or not count:
        return np.full(count, np.nan)
    with np.errstate(all="ignore"):
        return transposed(source, block, count) if block.width else plain(source, block, count)


def plain(source: Source, block: Block, count: int) -> Doubles:
    norms = np.empty(count, np.float64)
    step = max(1, SLICE_BYTES // block.row_bytes)
    for start in range(0, count, step):
        n = min(step, count - start)
        offset = block.offset + start * block.row_bytes
        raw = source.array(np.uint8, offset, n * block.row_bytes).astype(np.uint8)
        norms[start : start + n] = norm(floats(raw, block.type).reshape(n, -1))
        source.release(offset, n * block.row_bytes)
    return norms


def transposed(source: Source, block: Block, count: int) -> Doubles:
    """Sum of squares over the `width` rows that hold one element of every cell each."""
    total = np.zeros(count, np.float64)
    row = count * block.row_bytes
    step = max(1, SLICE_BYTES // row)
    for start in range(0, block.width, step):
        n = min(step, block.width - start)
        offset = block.offset + start * row
        raw = source.array(np.uint8, offset, n * row).astype(np.uint8)
        values = floats(raw, block.type).reshape(n, count).astype(np.float64)
        total += (values * values).sum(axis=0)
        source.release(offset, n * row)
    norms: Doubles = np.sqrt(total)
    return norms


def norm(rows: Floats) -> Doubles:
    wide = rows.astype(np.float64)
    norms: Doubles = np.sqrt((wide * wide).sum(axis=1))
    return norms


def floats(raw: Bytes, type_id: int) -> Floats:
    """The values in packed bytes, as float32 in their order."""
    name, _, block_bytes = TYPES[type_id]
    if name == "f32":
        return raw.view("<f4")
    if name == "f16":
        return raw.view("<f2").astype(np.float32)
    if name == "bf16":
        return (raw.view("<u2").astype(np.uint32) << 16).view(np.float32)
    values: Floats = QUANTISED[name](raw.reshape(-1, block_bytes)).reshape(-1)
    return values


def half(blocks: Bytes, at: int) -> Floats:
    """The f16 at byte `at` of every block: [n, 1]."""
    return blocks[:, at : at + 2].copy().view("<f2").astype(np.float32)


def nibbles(packed: Bytes) -> Bytes:
    """Low halves, then high halves: [n, 32]."""
    return np.concatenate((packed & 15, packed >> 4), axis=1)


def fifth_bits(packed: Bytes) -> Bytes:
    """The 32 extra bits of 5-bit types, already at weight 16: [n, 32]."""
    return (np.unpackbits(packed, axis=1, bitorder="little") << 4).astype(np.uint8)


def q4_0(blocks: Bytes) -> Floats:
    return (nibbles(blocks[:, 2:]).astype(np.float32) - 8) * half(blocks, 0)


def q4_1(blocks: Bytes) -> Floats:
    return nibbles(blocks[:, 4:]).astype(np.float32) * half(blocks, 0) + half(blocks, 2)


def q5_0(blocks: Bytes) -> Floats:
    values = nibbles(blocks[:, 6:]) | fifth_bits(blocks[:, 2:6])
    return (values.astype(np.float32) - 16) * half(blocks, 0)


def q5_1(blocks: Bytes) -> Floats:
    values = nibbles(blocks[:, 8:]) | fifth_bits(blocks[:, 4:8])
    return values.astype(np.float32) * half(blocks, 0) + half(blocks, 2)


def q8_0(blocks: Bytes) -> Floats:
    return blocks[:, 2:].view(np.int8).astype(np.float32) * half(blocks, 0)


def iq4_nl(blocks: Bytes) -> Floats:
    return IQ4_NL[nibbles(blocks[:, 2:])] * half(blocks, 0)


QUANTISED: Final[dict[str, Callable[[Bytes], Floats]]] = {
    "q4_0": q4_0,
    "q4_1": q4_1,
    "q5_0": q5_0,
    "q5_1": q5_1,
    "q8_0": q8_0,
    "iq4_nl": iq4_nl,
}
