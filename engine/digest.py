"""Canonical bytes, block hashes and digests of owners.

A digest is xxh3-128 over a header (version, the owner's name, dtype, shape) and, part by part in
a fixed order, integers that name the part and the 16-byte hashes of its visible content in
logical order, in blocks of `BLOCK_TOKENS` tokens aligned to the consumed count. All integers are
little-endian int64. The physical layout never enters. Knows no array library.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import xxhash

BLOCK_TOKENS: Final = 64
HASH_BYTES: Final = 16
VERSION: Final = b"bankflip-digest-1"

Part = tuple[tuple[int, ...], bytes]
"""Integers that name a part (sequence, layer, part number, rows, ...) and its block hashes."""


def integers(values: Iterable[int]) -> bytes:
    """Little-endian int64 bytes of some integers."""
    return np.fromiter(values, dtype="<i8").tobytes()


def canonical(rows: npt.NDArray[Any]) -> bytes:
    """Little-endian, C-ordered bytes of an array."""
    if rows.dtype.byteorder == ">":
        rows = rows.astype(rows.dtype.newbyteorder("<"))
    return np.ascontiguousarray(rows).tobytes()


def block_hash(data: bytes) -> bytes:
    """16 bytes, little-endian xxh3-128 of one block."""
    return xxhash.xxh3_128_intdigest(data).to_bytes(HASH_BYTES, "little")


def owner_digest(name: str, dtype: str, shape: Sequence[int], parts: Iterable[Part]) -> str:
    """32 hex digits that identify an owner's visible content."""
    label = f"{name}\0{dtype}".encode()
    hasher = xxhash.xxh3_128(VERSION)
    hasher.update(integers((len(label), len(shape), *shape)))
    hasher.update(label)
    for numbers, hashes in parts:
        hasher.update(integers((len(numbers), *numbers, len(hashes))))
        hasher.update(hashes)
    return hasher.intdigest().to_bytes(HASH_BYTES, "little").hex()


Ranges = list[tuple[int, int]]


@dataclass(slots=True)
class BlockHashes:
    """Block hashes of units [lo, hi) of one part; blocks are aligned to multiples of `block`.

    A block that the range cuts (at the front after an eviction, at the end while it fills) is
    hashed over the units that are there.
    """

    block: int
    lo: int = 0
    hi: int = 0
    hashes: bytes = b""

    def keep(self, lo: int, hi: int, dirty: int) -> tuple[Ranges, Ranges]:
        """Move to units [lo, hi) whose content is new from unit `dirty` on.

        Returns the unit ranges before and after the kept blocks that `fill` needs hashes of; an
        append leaves only the last block and what follows.
        """
        size = self.block
        first, stop = lo // size, -(-hi // size)
        kept_first = first if lo == self.lo else max(-(-lo // size), -(-self.lo // size))
        end = min(self.hi, hi, dirty)
        kept_stop = stop if end == self.hi == hi else end // size
        if kept_stop <= kept_first or self.lo >= self.hi:
            kept_first = kept_stop = first
        base = self.lo // size
        kept = self.hashes[(kept_first - base) * HASH_BYTES : (kept_stop - base) * HASH_BYTES]
        self.lo, self.hi, self.hashes = lo, hi, kept if kept_stop > kept_first else b""

        def clip(a: int, b: int) -> Ranges:
            return [(max(i * size, lo), min((i + 1) * size, hi)) for i in range(a, b)]

        return clip(first, kept_first), clip(kept_stop, stop) if lo < hi else []

    def fill(self, before: Sequence[bytes], after: Sequence[bytes]) -> None:
        """Put in the hashes of the ranges that `keep` returned."""
        self.hashes = b"".join((*before, self.hashes, *after))

    def copy(self) -> BlockHashes:
        """An equal value of its own."""
        return BlockHashes(self.block, self.lo, self.hi, self.hashes)


def hash_blocks(lo: int, block: int, rows: npt.NDArray[Any]) -> bytes:
    """Block hashes of the units from `lo` on, one a row: what an audit compares with."""
    hashes, start, hi = bytearray(), lo, lo + len(rows)
    while start < hi:
        stop = min(hi, (start // block + 1) * block)
        hashes += block_hash(canonical(rows[start - lo : stop - lo]))
        start = stop
    return bytes(hashes)
