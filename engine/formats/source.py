"""A file to read: bytes by offset, never trusting a length that the file states.

Files up to 4 MiB are read at once (a file that another process shortens meanwhile can't hurt);
larger ones are mapped read-only, and `release` gives back the pages of a scan.
"""

from __future__ import annotations

import bisect
import errno
import mmap
import os
import stat
import struct
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from engine.errors import Unreadable

SMALL = 4 << 20
MAX_EXTENTS = 65_536
FAULT_AROUND = 2 << 20


class Damaged(Exception):
    """A field of a file does not hold: what was expected and found at which byte.

    Readers turn it into a finding; it never leaves the formats package.
    """

    def __init__(self, word: str, offset: int, expected: str, found: str) -> None:
        super().__init__(word, offset, expected, found)
        self.word = word
        """`magic`, `version`, `truncated`, `structure` or `trailing`."""
        self.offset, self.expected, self.found = offset, expected, found

    def sentence(self) -> str:
        return f"at byte {self.offset} expected {self.expected}, found {self.found}"


@dataclass
class Source:
    """An open file: `data` is its bytes (bytes or a read-only map)."""

    path: Path
    data: bytes | mmap.mmap
    size: int
    closed: bool = field(default=False)
    extents: tuple[tuple[int, int], ...] | None = None
    """Byte ranges that the file system holds; the rest reads as zeros. None: all of it."""

    @classmethod
    def open(cls, path: Path) -> Source:
        """Open `path`; raises Unreadable where it isn't a readable regular file."""
        try:
            flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
            descriptor = os.open(path, flags)
        except (OSError, ValueError) as error:
            raise Unreadable(str(path), getattr(error, "strerror", None) or str(error)) from None
        try:
            info = os.fstat(descriptor)
            if not stat.S_ISREG(info.st_mode):
                raise Unreadable(str(path), "not a regular file")
            if info.st_size > SMALL:
                data: bytes | mmap.mmap = mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ)
                extents = extents_of(descriptor, info.st_size)
            else:
                data, extents = read_all(descriptor, info.st_size), None
        except (OSError, ValueError) as error:
            raise Unreadable(str(path), str(error)) from None
        finally:
            os.close(descriptor)
        return cls(path, data, len(data), extents=extents)

    def close(self) -> None:
        """Unmap; arrays that were made from the file must be gone (else the map stays)."""
        if not self.closed and isinstance(self.data, mmap.mmap):
            try:
                self.data.close()
            except BufferError:
                return
        self.closed = True

    def bytes(self, offset: int, count: int) -> bytes:
        """`count` bytes at `offset`; fewer at the end of the file."""
        return bytes(self.data[offset : offset + count])

    def need(self, offset: int, count: int, what: str) -> None:
        """Raise Damaged unless `count` bytes stand at `offset`."""
        if count > self.size - offset:
            left = max(0, self.size - offset)
            raise Damaged("truncated", offset, f"{what} ({count} bytes)", f"{left} bytes left")

    def unpack(self, layout: struct.Struct, offset: int, what: str) -> tuple[int, ...]:
        self.need(offset, layout.size, what)
        return layout.unpack_from(self.data, offset)

    def array(self, dtype: npt.DTypeLike, offset: int, count: int) -> npt.NDArray[np.generic]:
        """Read-only view of `count` items at `offset`, which may be unaligned."""
        return np.frombuffer(self.data, dtype=dtype, count=count, offset=offset)

    def is_hole(self, offset: int, count: int) -> bool:
        """Whether the file system holds nothing of a range, so that all of it is zero."""
        if self.extents is None:
            return False
        after = bisect.bisect_right(self.extents, (offset + count - 1, self.size))
        return after == 0 or self.extents[after - 1][1] <= offset

    def release(self, offset: int, count: int) -> None:
        """Drop the mapped pages of a range from memory; they can be read again.

        A fault maps pages around it, too, so the range begins somewhat earlier.
        """
        if not isinstance(self.data, mmap.mmap) or not hasattr(mmap, "MADV_DONTNEED"):
            return
        page = mmap.PAGESIZE
        start = max(0, offset - FAULT_AROUND) // page * page
        length = min(offset + count, self.size) - start
        if length > 0:
            self.data.madvise(mmap.MADV_DONTNEED, start, length)


def read_all(descriptor: int, size: int) -> bytes:
    """The first `size` bytes of a file, fewer where it ended meanwhile."""
    chunks, left = [], size
    while left:
        chunk = os.read(descriptor, left)
        if not chunk:
            break
        chunks.append(chunk)
        left -= len(chunk)
    return b"".join(chunks)


def extents_of(descriptor: int, size: int) -> tuple[tuple[int, int], ...] | None:
    """Written byte ranges of a sparse file; None where all is written or it can't be told."""
    if not hasattr(os, "SEEK_DATA"):
        return None
    found: list[tuple[int, int]] = []
    stop = 0
    try:
        while stop < size and len(found) < MAX_EXTENTS:
            start = os.lseek(descriptor, stop, os.SEEK_DATA)
            stop = os.lseek(descriptor, start, os.SEEK_HOLE)
            found.append((start, stop))
    except OSError as error:
        if error.errno != errno.ENXIO:  # ENXIO: no data behind the last range
            return None
    if len(found) >= MAX_EXTENTS or found == [(0, size)]:
        return None
    return tuple(found)
