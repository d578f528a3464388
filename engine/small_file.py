"""Reads what a person handed in, never more of it than a limit, and waits for nobody.

A device has no end, and a pipe that nobody writes to no beginning.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Final

from engine.errors import Malformed

LARGEST_TEXT: Final = 64 * 2**20
"""Scenarios and lists of tokens larger than this are refused; no tool of ours writes such."""


def at_once(path: str, flags: int) -> int:
    """Opener for `open` that does not wait for the other end of a pipe."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def content_of(path: Path, most: int = LARGEST_TEXT) -> bytes:
    """All bytes of a file or of a pipe that somebody writes to.

    Raises: Malformed when there are more than `most`; OSError.
    """
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    with open(path, "rb", opener=at_once) as file:
        if hasattr(os, "set_blocking"):
            os.set_blocking(file.fileno(), True)
        content = file.read(most + 1)
    if len(content) > most:
        raise Malformed(str(path), "the file is too large", f"at most {most:,} bytes", "more")
    return content
