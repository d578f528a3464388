"""Follow files and folders: what is new or changed is read again, once it holds still.

A file that is being written changes between two looks and is left for the next one, so half a
file is not reported as damaged.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from engine.errors import Unreadable
from engine.formats import Options, Report, open_file

Stamp = tuple[int, int, int]
"""Inode, size and time of the last change in ns."""


@dataclass(slots=True)
class Follower:
    """Files and folders under watch; call `poll` now and then."""

    paths: tuple[Path, ...]
    options: Options = field(default_factory=Options)
    seen: dict[Path, Stamp] = field(default_factory=dict)
    """Stamp of each file at the last look."""
    read: dict[Path, Stamp] = field(default_factory=dict)
    """Stamp of each file when it was read."""

    def poll(self) -> list[tuple[Path, Report | None]]:
        """Reports of files that changed and hold still since the last look; None: it is gone."""
        now = {path: stamp for path in self.files() if (stamp := stamp_of(path)) is not None}
        changed: list[tuple[Path, Report | None]] = []
        for path in sorted(set(self.read) - set(now)):
            del self.read[path]
            changed.append((path, None))
        for path, stamp in now.items():
            if self.seen.get(path) == stamp and self.read.get(path) != stamp:
                report = report_of(path, self.options)
                if report is not None:
                    self.read[path] = stamp
                    changed.append((path, report))
        self.seen = now
        return changed

    def files(self) -> list[Path]:
        found: list[Path] = []
        for path in self.paths:
            try:
                found += sorted(path.iterdir()) if path.is_dir() else [path]
            except OSError:
                continue
        return [path for path in found if not path.name.startswith(".")]


def stamp_of(path: Path) -> Stamp | None:
    """Stamp of a regular file; None for anything else."""
    try:
        info = path.stat()
    except OSError:
        return None
    return (info.st_ino, info.st_size, info.st_mtime_ns) if path.is_file() else None


def report_of(path: Path, options: Options) -> Report | None:
    """The report of a file; None when it vanished meanwhile."""
    try:
        with open_file(path, options) as opened:
            return opened.report
    except Unreadable:
        return None
