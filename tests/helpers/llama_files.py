"""Write llama.cpp state files from the description of the format, for tests.

An independent writer: nothing of the reader is used. Payload rows hold random floats of the type.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

SESSION, SEQUENCE, RAW = 0x6767736E, 0x67677371, 0xAF143CD8
TYPE_BYTES = {0: (1, 4), 1: (1, 2), 2: (32, 18), 3: (32, 20), 6: (32, 22), 7: (32, 24)}
TYPE_BYTES |= {8: (32, 34), 20: (32, 18), 30: (1, 2)}


@dataclass
class Cell:
    pos: int
    seqs: tuple[int, ...] = (0,)
    ext: tuple[int, ...] | None = None

    def pack(self, ext_bytes: int) -> bytes:
        out = struct.pack("<iI", self.pos, len(self.seqs))
        if ext_bytes:
            ext = self.ext or (self.pos, self.pos, 7)
            out += struct.pack(f"<{ext_bytes // 4}i", *ext[: ext_bytes // 4])
        return out + struct.pack(f"<{len(self.seqs)}i", *self.seqs)


def text(positions: Iterable[int], seqs: tuple[int, ...] = (0,)) -> list[Cell]:
    return [Cell(pos, seqs) for pos in positions]


def image(pos: int, width: int, height: int, seqs: tuple[int, ...] = (0,)) -> list[Cell]:
    return [Cell(pos, seqs, (pos + x, pos + y, -1)) for y in range(height) for x in range(width)]


def rows(count: int, size: int, seed: int = 0) -> bytes:
    values = np.random.default_rng(seed + count + size).standard_normal(count * size // 4 + 1)
    return values.astype("<f4").tobytes()[: count * size]


def block(type_id: int, width: int, count: int) -> bytes:
    per, size = TYPE_BYTES.get(type_id, (1, 5))
    row = width // per * size
    return struct.pack("<iQ", type_id, row) + rows(count, row)


def transposed(type_id: int, width: int, count: int) -> bytes:
    size = TYPE_BYTES[type_id][1]
    return struct.pack("<iII", type_id, size, width) + rows(count, width * size)


def attention(
    streams: list[list[Cell]],
    *,
    ext: int = 0,
    layers: int = 2,
    key: int = 1,
    value: int | None = 1,
    trans: bool = False,
    width: int = 64,
    streamed: bool = True,
) -> bytes:
    """One ATT section; `value` None leaves V out."""
    out = struct.pack("<I", len(streams)) if streamed else b""
    for cells in streams:
        out += struct.pack("<I", len(cells))
        if not cells:
            continue
        out += b"".join(cell.pack(ext) for cell in cells)
        out += struct.pack("<II", int(trans), layers)
        out += b"".join(block(key, width, len(cells)) for _ in range(layers))
        if value is not None:
            write = transposed if trans else block
            out += b"".join(write(value, width, len(cells)) for _ in range(layers))
    return out


def recurrent(
    cells: list[Cell],
    *,
    n_layer: int = 4,
    m: int = 2,
    r_row: int = 24,
    s_row: int = 40,
    ple: tuple[int, ...] = (),
) -> bytes:
    """One REC section; `ple` names the R blocks that a history block follows."""
    count = len(cells)
    out = struct.pack("<I", count) + b"".join(cell.pack(0) for cell in cells)
    out += struct.pack("<II", 0, n_layer)
    for layer in range(m):
        out += struct.pack("<iQ", 0, r_row) + rows(count, r_row)
        if layer in ple:
            out += struct.pack("<Q", 16) + rows(count, 16)
    for _ in range(m):
        out += struct.pack("<iQ", 0, s_row) + rows(count, s_row)
    return out


def tokens(words: Iterable[int] = ()) -> bytes:
    listed = list(words)
    return struct.pack(f"<I{len(listed)}i", len(listed), *listed)


def name(arch: str) -> bytes:
    return struct.pack("<I", len(arch)) + arch.encode()


def sequence_file(*sections: bytes, words: Iterable[int] = (), version: int = 3) -> bytes:
    return struct.pack("<II", SEQUENCE, version) + tokens(words) + b"".join(sections)


def session_file(
    arch: str, *sections: bytes, words: Iterable[int] = (), version: int = 10
) -> bytes:
    head = struct.pack("<II", SESSION, version) + tokens(words)
    return head + name(arch) + b"".join(sections)


def raw_context(arch: str, *sections: bytes) -> bytes:
    return name(arch) + b"".join(sections)


def raw_sequence(seq: int, *sections: bytes) -> bytes:
    return struct.pack("<Ii", RAW, seq) + b"".join(sections)


def dsv4(full: bytes, window: bytes, mode: int = 0, layers: int = 2) -> bytes:
    out = struct.pack("<III", 0x34565344, 1, mode) + full + window
    if mode:
        return out
    tensor = struct.pack("<iQQQ", 1, 8, 3, 16) + rows(3, 16)
    for _ in range(3):
        out += struct.pack("<IIII", 2, 3, 1, layers)
        out += b"".join(struct.pack("<I", layer) + tensor for layer in range(layers))
    for _ in range(3):
        out += struct.pack("<IIIIII", 1, 4, 2, 8, 1, layers)
        out += b"".join(struct.pack("<I", layer) + tensor * 2 for layer in range(layers))
    return out
