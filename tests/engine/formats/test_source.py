"""Files by offset: bounds, maps, holes of sparse files."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest

from engine.errors import Unreadable
from engine.formats.source import SMALL, Damaged, Source

U32 = struct.Struct("<I")


def test_a_field_beyond_the_end_is_truncated() -> None:
    source = Source(Path("made"), b"\x01\x00\x00\x00\x02", 5)
    assert source.unpack(U32, 0, "a count") == (1,)
    with pytest.raises(Damaged) as error:
        source.unpack(U32, 2, "a count")
    assert error.value.word == "truncated"
    assert error.value.sentence() == "at byte 2 expected a count (4 bytes), found 3 bytes left"
    with pytest.raises(Damaged):
        source.need(1 << 70, 1, "anything")


@pytest.mark.parametrize("size", [0, 10, SMALL, SMALL + 1])
def test_small_files_are_read_and_large_ones_mapped(tmp_path: Path, size: int) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * size)
    source = Source.open(path)
    assert source.size == size
    assert isinstance(source.data, bytes) == (size <= SMALL)
    assert source.bytes(size - 2 if size else 0, 5) == b"x" * min(size, 2)
    source.release(0, size)
    source.close()


@pytest.mark.skipif(not hasattr(os, "SEEK_DATA"), reason="the system can't tell holes")
def test_holes_of_a_sparse_file_are_all_zero(tmp_path: Path) -> None:
    path = tmp_path / "sparse"
    with path.open("wb") as out:
        out.write(b"head")
        out.seek(32 << 20)
        out.write(b"tail")
        out.truncate(64 << 20)
    source = Source.open(path)
    if source.extents is None:
        pytest.skip("this file system keeps no holes")
    for offset, count in ((0, 4), (1 << 20, 1 << 20), (31 << 20, 2 << 20), (40 << 20, 1 << 20)):
        if source.is_hole(offset, count):
            assert not any(source.bytes(offset, count))
    assert source.is_hole(8 << 20, 1 << 20)
    assert source.is_hole(48 << 20, 1 << 20)
    assert not source.is_hole(0, 4)
    assert not source.is_hole((32 << 20) - 100, 200)
    source.close()


def test_what_is_no_regular_file(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (tmp_path, pipe, tmp_path / "none"):
        with pytest.raises(Unreadable):
            Source.open(path)
