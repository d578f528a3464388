"""Files are read up to a limit, and nothing is waited for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from engine.errors import Malformed
from engine.small_file import content_of


def test_a_file_of_exactly_the_limit_is_read_and_one_byte_more_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_bytes(b"x" * 8)
    assert content_of(file, 8) == b"x" * 8
    with pytest.raises(Malformed, match=r"f: the file is too large, expected at most 7 bytes"):
        content_of(file, 7)


def test_what_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert content_of(tmp_path / "pipe") == b""
    for path in (tmp_path, tmp_path / "none"):
        with pytest.raises(OSError, match=path.name):
            content_of(path)
