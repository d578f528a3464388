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


def content_of(path: Path, most: int = LARGEST_TEXT) -> bytes:
    """All bytes of a file or of a pipe that somebody writes to.

    Raises: Malformed when there are more than `most`; OSError.
    """
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with os.fdopen(handle, "rb") as file:
        if hasattr(os, "set_blocking"):
            os.set_blocking(handle, True)
        content = file.read(most + 1)
    if len(content) > most:
        raise Malformed(str(path), "the file is too large", f"at most {most:,} bytes", "more")
    return content
