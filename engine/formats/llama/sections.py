"""The two kinds of section in a llama.cpp state: attention caches and recurrent states.

Reads headers and cell tables, skips payloads by their stated size, and checks every field against
the limits of the format. Decides nothing about meaning.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np

from engine.formats.positions import Ints
from engine.formats.source import Damaged, Source

U32 = struct.Struct("<I")
U64 = struct.Struct("<Q")
K_HEAD = struct.Struct("<iQ")
TRANS_HEAD = struct.Struct("<iII")

TYPES: Final = {
    # ggml id: name, elements per block, bytes per block
    0: ("f32", 1, 4),
    1: ("f16", 1, 2),
    2: ("q4_0", 32, 18),
    3: ("q4_1", 32, 20),
    6: ("q5_0", 32, 22),
    7: ("q5_1", 32, 24),
    8: ("q8_0", 32, 34),
    20: ("iq4_nl", 32, 18),
    30: ("bf16", 1, 2),
}
MAX_TYPE = 255
"""Forks use further type ids; a number beyond this is no type."""
MAX_STREAMS, MAX_RECURRENT, MAX_SEQ, MAX_LAYERS = 256, 256, 256, 512
IMPLAUSIBLE_CELLS = 1 << 20
"""A cell count above this that does not fit is damage to the count, not a cut."""


@dataclass(frozen=True, slots=True)
class Block:
    """Rows of one layer in a section's payload."""

    what: str
    """`K`, `V`, `R`, `S` or `PLE`."""
    type: int
    row_bytes: int
    """Bytes of one cell's row; for a transposed V of one element."""
    width: int
    """Rows of a transposed V block; 0 where the block is not transposed."""
    offset: int
    stream: int = 0


@dataclass(frozen=True, slots=True)
class Cells:
    """A cell table in file order, over all streams of the section."""

    positions: Ints
    counts: Ints
    """Sequence ids of each cell."""
    ids: Ints
    """All ids one after another; cell c has `counts[c]` of them."""
    streams: Ints
    """Stream of each cell."""
    offsets: Ints
    """Byte offset of each cell's entry."""
    ext: Ints | None = None
    """[n, 3] x, y and token where the cells carry them (token 0 in the 8-byte form)."""

    @property
    def owner(self) -> Ints:
        """Cell number of each entry in `ids`."""
        return np.repeat(np.arange(self.counts.size, dtype=np.int64), self.counts)

    def of(self, seq: int) -> Ints:
        """Numbers of the cells that belong to a sequence, in file order."""
        members: Ints = self.owner[self.ids == seq]
        return members

    def sequences(self) -> list[int]:
        return [int(seq) for seq in np.unique(self.ids)]


@dataclass(frozen=True, slots=True)
class Section:
    """One attention cache or recurrent state of a file."""

    recurrent: bool
    start: int
    stop: int
    cells: Cells
    n_stream: int
    n_layer: int
    ext_bytes: int
    values: bool
    """Attention: whether V blocks stand in the file (true as well when there is no layer)."""
    blocks: tuple[Block, ...] = ()
    remarks: tuple[str, ...] = field(default=())

    def key(self) -> tuple[int, int, int]:
        """Equal for readings that mean the same."""
        return self.start, self.stop, int(self.cells.positions.size)


@dataclass(frozen=True, slots=True)
class Rules:
    """What the container says about the cells of its sections."""

    single: bool
    """A sequence file or blob: exactly one id in an attention cell, none in a recurrent one."""


def cell_dtype(n_seq: int, ext_bytes: int) -> np.dtype[np.void]:
    fields: list[tuple[str, str] | tuple[str, str, tuple[int]]] = [("pos", "<i4"), ("n", "<u4")]
    if ext_bytes:
        fields.append(("ext", "<i4", (ext_bytes // 4,)))
    if n_seq:
        fields.append(("ids", "<i4", (n_seq,)))
    return np.dtype(fields)


class TableReader:
    """Reads one cell table, run by run of cells with the same number of ids."""

    def __init__(self, source: Source, ext_bytes: int, allowed: range) -> None:
        self.source, self.ext_bytes, self.allowed = source, ext_bytes, allowed
        self.pos: list[Ints] = []
        self.counts: list[Ints] = []
        self.ids: list[Ints] = []
        self.offsets: list[Ints] = []
        self.ext: list[Ints] = []

    def read(self, offset: int, count: int) -> int:
        """Read `count` cells at `offset`; returns the byte behind them."""
        left, window = count, 64
        while left:
            _, n_seq = self.source.unpack(K_CELL, offset, "a cell")
            if n_seq not in self.allowed:
                raise Damaged("structure", offset + 4, allowed_text(self.allowed), str(n_seq))
            dtype = cell_dtype(n_seq, self.ext_bytes)
            self.source.need(offset, dtype.itemsize, "a cell")
            fit = (self.source.size - offset) // dtype.itemsize
            cells: Any = self.source.array(dtype, offset, min(left, window, fit))
            same = cells["n"] == n_seq
            n_same = int(same.argmin()) if not same.all() else cells.size
            window = window * 4 if n_same == cells.size else 64
            self.keep(cells[:n_same], offset, n_seq)
            offset += n_same * dtype.itemsize
            left -= n_same
        return offset

    def keep(self, cells: Any, offset: int, n_seq: int) -> None:
        size = cells.dtype.itemsize
        offsets = offset + np.arange(cells.size, dtype=np.int64) * size
        positions = cells["pos"].astype(np.int64)
        self.refuse(offsets, positions, positions < 0, "a position of 0 or more")
        if n_seq:
            ids = cells["ids"].astype(np.int64)
            outside = (ids < 0) | (ids >= MAX_SEQ)
            if n_seq > 1:
                outside[:, 1:] |= np.diff(ids, axis=1) <= 0
            where = outside.any(axis=1)
            worst = ids[np.arange(cells.size), outside.argmax(axis=1)]
            self.refuse(offsets + 8 + self.ext_bytes, worst, where, "ascending ids below 256")
            self.ids.append(ids.reshape(-1))
        if self.ext_bytes:
            ext = np.zeros((cells.size, 3), np.int64)
            ext[:, : self.ext_bytes // 4] = cells["ext"]
            self.ext.append(ext)
        self.pos.append(positions)
        self.counts.append(np.full(cells.size, n_seq, np.int64))
        self.offsets.append(offsets)

    @staticmethod
    def refuse(offsets: Ints, values: Ints, where: Any, expected: str) -> None:
        if where.any():
            first = int(where.argmax())
            raise Damaged("structure", int(offsets[first]), expected, str(int(values[first])))

    def cells(self, streams: Ints) -> Cells:
        return Cells(
            positions=join(self.pos),
            counts=join(self.counts),
            ids=join(self.ids),
            streams=streams,
            offsets=join(self.offsets),
            ext=np.concatenate(self.ext) if self.ext else None,
        )


K_CELL = struct.Struct("<iI")


def join(arrays: list[Ints]) -> Ints:
    return np.concatenate(arrays) if arrays else np.empty(0, np.int64)


def allowed_text(allowed: range) -> str:
    if len(allowed) == 1:
        return f"{allowed.start} sequence ids in a cell"
    return f"{allowed.start} to {allowed.stop - 1} sequence ids in a cell"


def bounded(source: Source, offset: int, what: str, low: int, high: int) -> int:
    """A u32 with limits."""
    (value,) = source.unpack(U32, offset, what)
    if not low <= value <= high:
        raise Damaged("structure", offset, f"{what} of {low} to {high}", str(value))
    return value


def check_rows(source: Source, offset: int, type_id: int, row_bytes: int, low: int) -> None:
    """Refuse a block header whose type or row size can't be."""
    if not 0 <= type_id <= MAX_TYPE:
        raise Damaged("structure", offset, "a ggml type", str(type_id))
    if not low <= row_bytes < 1 << 32:
        raise Damaged("structure", offset + 4, f"{low} to 2^32 - 1 row bytes", str(row_bytes))
    _, _, block_bytes = TYPES.get(type_id, ("", 1, 1))
    if row_bytes % block_bytes:
        raise Damaged(
            "structure", offset + 4, f"row bytes in multiples of {block_bytes}", str(row_bytes)
        )


def read_attention(
    source: Source, offset: int, rules: Rules, ext_bytes: int, values: bool, streamed: bool = True
) -> Section:
    """One ATT section at `offset`; `streamed` is false for bodies from before July 2025."""
    start, n_stream, n_layers = offset, 1, 0
    if streamed:
        n_stream = bounded(source, offset, "a number of streams", 1, MAX_STREAMS)
        offset += 4
    table = TableReader(source, ext_bytes, range(1, 2) if rules.single else range(MAX_SEQ + 1))
    sizes, blocks = [], []
    for stream in range(n_stream):
        (count,) = source.unpack(U32, offset, "a cell count")
        check_cells_fit(source, offset, count, ext_bytes, table)
        sizes.append(count)
        offset = table.read(offset + 4, count)
        if not count:
            continue
        transposed = bounded(source, offset, "a v_trans flag", 0, 1)
        layers = bounded(source, offset + 4, "a number of layers", 0, MAX_LAYERS)
        n_layers, offset = layers, offset + 8
        for _ in range(layers):
            block = plain_block(source, offset, "K", stream, 1)
            offset = end_of(source, block, count)
            blocks.append(block)
        for _ in range(layers if values else 0):
            read = transposed_block if transposed else plain_block
            block = read(source, offset, "V", stream, 1)
            offset = end_of(source, block, count)
            blocks.append(block)
    for what in ("K", "V"):
        same_types([block for block in blocks if block.what == what])
    streams = np.repeat(np.arange(n_stream, dtype=np.int64), sizes)
    cells = table.cells(streams)
    return Section(
        False, start, offset, cells, n_stream, n_layers, ext_bytes, values, tuple(blocks)
    )


def check_cells_fit(
    source: Source, offset: int, count: int, ext_bytes: int, table: TableReader
) -> None:
    """Refuse a cell count that does not fit, before anything of that size is allocated."""
    left = source.size - offset - 4
    if (8 + ext_bytes) * count <= left:
        return
    expected = f"cells that fit into {left} bytes"
    if count > IMPLAUSIBLE_CELLS:
        raise Damaged("structure", offset, expected, f"{count} cells")
    table.read(offset + 4, left // (12 + ext_bytes))  # damage before the cut is found first
    raise Damaged("truncated", source.size, f"{count} cells from byte {offset + 4} on", "the end")


def same_types(blocks: list[Block]) -> None:
    """A cache has one type for all its rows of a kind; a lone unknown number is damage."""
    types = {block.type for block in blocks}
    unknown = [block for block in blocks if block.type not in TYPES]
    if unknown and len(types) > 1:
        offset = unknown[0].offset - K_HEAD.size
        raise Damaged("structure", offset, "one known ggml type", f"type {unknown[0].type}")


def plain_block(source: Source, offset: int, what: str, stream: int, low: int) -> Block:
    type_id, row_bytes = source.unpack(K_HEAD, offset, f"the header of a {what} block")
    check_rows(source, offset, type_id, row_bytes, low)
    return Block(what, type_id, row_bytes, 0, offset + K_HEAD.size, stream)


def transposed_block(source: Source, offset: int, what: str, stream: int, low: int) -> Block:
    type_id, element, width = source.unpack(TRANS_HEAD, offset, f"the header of a {what} block")
    check_rows(source, offset, type_id, element, low)
    _, per_block, block_bytes = TYPES.get(type_id, ("", 1, element))
    if element != block_bytes or per_block != 1:
        raise Damaged("structure", offset + 4, f"{block_bytes} element bytes", str(element))
    if not width:
        raise Damaged("structure", offset + 8, "a width above 0", "0")
    return Block(what, type_id, element, width, offset + TRANS_HEAD.size, stream)


def end_of(source: Source, block: Block, count: int) -> int:
    """The byte behind a block's rows of `count` cells."""
    size = block.row_bytes * count * (block.width or 1)
    source.need(block.offset, size, f"the rows of a {block.what} block")
    return block.offset + size


def read_recurrent(source: Source, offset: int, rules: Rules, ple: bool) -> list[Section]:
    """Every plausible REC section at `offset`: the number of recurrent layers is not stored.

    Args:
        ple: try PLE history blocks between the R blocks as well.
    Raises: Damaged of the reading that came furthest, when there is none.
    """
    start = offset
    count = bounded(source, offset, "a recurrent cell count", 0, MAX_RECURRENT)
    table = TableReader(source, 0, range(1) if rules.single else range(MAX_SEQ + 1))
    offset = table.read(offset + 4, count)
    transposed = bounded(source, offset, "an s_trans flag", 0, 0)
    n_layer = bounded(source, offset + 4, "a number of layers", 1, MAX_LAYERS)
    cells = table.cells(np.zeros(count, np.int64))
    del transposed
    found = RecurrentBlocks(source, count, n_layer, ple)
    found.search(offset + 8)
    if not found.ends and found.failure is not None:
        raise found.failure
    return [
        Section(True, start, end, cells, 1, n_layer, 0, True, blocks, remarks)
        for end, blocks, remarks in found.ends
    ]


class RecurrentBlocks:
    """Search for the R, PLE and S blocks of a recurrent section."""

    BUDGET = 20_000
    """Header reads; a sound file needs a few for each layer."""

    def __init__(self, source: Source, count: int, n_layer: int, ple: bool) -> None:
        self.source, self.count, self.n_layer, self.ple = source, count, n_layer, ple
        self.ends: list[tuple[int, tuple[Block, ...], tuple[str, ...]]] = []
        self.failure: Damaged | None = None
        self.reads = 0

    def search(self, offset: int) -> None:
        """Collect every (end, blocks, remarks) whose blocks are plausible; most R blocks first."""
        todo: list[tuple[int, int, tuple[Block, ...]]] = [(offset, 0, ())]
        seen = set()
        while todo and self.reads < self.BUDGET:
            offset, n_r, blocks = todo.pop()
            if (offset, n_r) in seen:
                continue
            seen.add((offset, n_r))
            row = self.attempt(self.row_block, offset) if n_r < 2 * self.n_layer else None
            first = next((block for block in blocks if block.what == "R"), None)
            goes_on = row is not None and (first is None or same_rows(first, row[0]))
            if n_r and not goes_on:
                self.state_blocks(offset, n_r, blocks)
                self.equal_blocks(offset, blocks)
            if self.ple and n_r and blocks[-1].what == "R":
                history = self.attempt(self.history_block, offset)
                if history is not None:
                    todo.append((history[1], n_r, (*blocks, history[0])))
            if row is not None and goes_on:
                todo.append((row[1], n_r + 1, (*blocks, row[0])))

    def equal_blocks(self, offset: int, blocks: tuple[Block, ...]) -> None:
        """Add the reading in which R and S rows are equal: the second half of them are S."""
        rows = [block for block in blocks if block.what == "R"]
        n_r = len(rows) // 2
        histories = [block.offset for block in blocks if block.what == "PLE"]
        if len(rows) % 2 or n_r > self.n_layer or any(own > rows[n_r].offset for own in histories):
            return
        states = {block.offset for block in rows[n_r:]}
        named = tuple(
            replace(block, what="S") if block.offset in states else block for block in blocks
        )
        remark = "R and S rows are equal: fewer layers than the model has would read alike"
        self.ends.append((offset, named, (remark,)))

    def state_blocks(self, offset: int, n_r: int, blocks: tuple[Block, ...]) -> None:
        """Add the reading whose S blocks start here, if there are `n_r` equal ones."""
        if n_r > self.n_layer:
            return
        states: list[Block] = []
        for _ in range(n_r):
            state = self.attempt(self.state_block, offset)
            if state is None or (states and not same_rows(states[0], state[0])):
                return
            states.append(state[0])
            offset = state[1]
        self.ends.append((offset, (*blocks, *states), ()))

    def attempt(self, read: object, offset: int) -> tuple[Block, int] | None:
        self.reads += 1
        try:
            return read(offset)  # type: ignore[operator, no-any-return]
        except Damaged as failure:
            if self.failure is None or failure.offset > self.failure.offset:
                self.failure = failure
            return None

    def row_block(self, offset: int) -> tuple[Block, int]:
        block = plain_block(self.source, offset, "R", 0, 1)
        return block, end_of(self.source, block, self.count)

    def state_block(self, offset: int) -> tuple[Block, int]:
        block = plain_block(self.source, offset, "S", 0, 0)
        return block, end_of(self.source, block, self.count)

    def history_block(self, offset: int) -> tuple[Block, int]:
        (row_bytes,) = self.source.unpack(U64, offset, "the header of a PLE block")
        if not 0 < row_bytes < 1 << 32:
            raise Damaged("structure", offset, "1 to 2^32 - 1 row bytes", str(row_bytes))
        block = Block("PLE", 0, row_bytes, 0, offset + 8)
        return block, end_of(self.source, block, self.count)


def same_rows(first: Block, second: Block) -> bool:
    return (first.type, first.row_bytes) == (second.type, second.row_bytes)
