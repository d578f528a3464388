"""A file that is replaced at once: readers see the old content or all of the new."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def replacing(path: Path, suffix: str = "") -> Iterator[Path]:
    """An empty file beside the target to be written; synced and renamed at the end.

    A link stays one: what it leads to is replaced. Raises OSError; the target is then as it was.

    Args:
        suffix: what the name must end with, for writers that insist on one.
    """
    path = Path(os.path.realpath(path))
    handle, name = tempfile.mkstemp(suffix, f".{path.name[:40]}.", path.parent)
    try:
        yield Path(name)
        os.fsync(handle)
        os.chmod(name, 0o666 & ~_umask())
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    finally:
        os.close(handle)
    _sync_folder(path.parent)


def _umask() -> int:
    value = os.umask(0)
    os.umask(value)
    return value


def _sync_folder(folder: Path) -> None:
    """So that the new name outlives a loss of power, where folders can be synced."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
