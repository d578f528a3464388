"""The file that bookmarks and notes are kept in: JSON with a version, replaced at once.

Owns the form of the file, what is refused, and what happens when somebody else wrote it in the
meantime: their changes are merged, a file that is not ours is set aside. Knows no Qt.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec

from app.cli.common import sentence, write_atomically
from app.models.marks import (
    MOST_KEPT,
    Mark,
    Marks,
    Place,
    Span,
    clean_name,
    clean_note,
    merged,
    ordered,
)
from engine.printable import printable

FORMAT: Final = "bankflip-bookmarks"
VERSION: Final = 1
SUFFIX: Final = ".bookmarks.json"
LARGEST: Final = 64 * 2**20
"""Larger files are refused unread."""


class BadMarks(ValueError):
    """A file that holds no bookmarks of ours: one sentence with expected and found."""


class _Head(msgspec.Struct):
    format: str = ""
    version: int = 0


class Stored(msgspec.Struct, forbid_unknown_fields=True):
    """The whole file."""

    format: str
    version: int
    of: str
    """Name of what the bookmarks are in, for people."""
    saved: str
    """Date and time, UTC."""
    closed: bool
    """False while the window that wrote it may change it yet."""
    pid: int
    """Process that wrote it."""
    marks: list[Mark]


def encode(marks: Marks, of: str = "", closed: bool = True, pid: int = 0, saved: str = "") -> bytes:
    """The file's content; the marks in their order, so that the same give the same."""
    stored = Stored(FORMAT, VERSION, printable(of), saved, closed, pid, [*ordered(marks.values())])
    return msgspec.json.format(msgspec.json.encode(stored), indent=1) + b"\n"


def decode(content: bytes, name: str) -> tuple[dict[Place, Mark], Stored]:
    """The marks of a file. Raises: BadMarks, whose sentence begins with `name`."""
    if len(content) > LARGEST:
        raise BadMarks(f"{name}: expected at most {LARGEST:,} bytes, found {len(content):,}")
    try:
        head = msgspec.json.decode(content, type=_Head)
        if head.format == FORMAT and head.version != VERSION:
            raise BadMarks(f"{name}: expected version {VERSION}, found version {head.version}")
        if head.format != FORMAT:
            found = repr(printable(head.format[:40])) if head.format else "another file"
            raise BadMarks(f"{name}: expected format {FORMAT!r}, found {found}")
        stored = msgspec.json.decode(content, type=Stored)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise BadMarks(f"{name}: expected bookmarks as JSON: {sentence(str(error))}") from error
    return _checked(stored, name), stored


def _checked(stored: Stored, name: str) -> dict[Place, Mark]:
    """The marks by place, once what types can't say is looked at."""
    if len(stored.marks) > MOST_KEPT:
        found = f"{len(stored.marks):,}"
        raise BadMarks(f"{name}: expected at most {MOST_KEPT:,} bookmarks, found {found}")
    marks: dict[Place, Mark] = {}
    numbers: set[int] = set()
    for at, mark in enumerate(stored.marks):
        place = mark.place
        if isinstance(place, Span) and place.stop <= place.start:
            found = f"{place.start} to {place.stop}"
            raise BadMarks(f"{name}: bookmark {at}: expected start before stop, found {found}")
        if place in marks or (mark.number and mark.number in numbers):
            raise BadMarks(f"{name}: bookmark {at}: expected another place and number, found both")
        numbers.add(mark.number)
        kept = msgspec.structs.replace(mark, name=clean_name(mark.name), note=clean_note(mark.note))
        if not kept.is_empty:
            marks[place] = kept
    return marks


@dataclass(frozen=True, slots=True)
class Found:
    """What a file held."""

    marks: dict[Place, Mark]
    crashed: bool = False
    """The window that wrote it ended without closing it."""
    saved: str = ""


class MarkFile:
    """One file, and what it held when it was last read or written."""

    def __init__(self, path: Path, of: str = "", pid: int | None = None) -> None:
        self.path, self.of = path, of
        self.pid = os.getpid() if pid is None else pid
        self.base: dict[Place, Mark] = {}
        self._seen: bytes | None = None

    def read(self) -> Found:
        """The marks kept; none where there is no file. Raises: BadMarks, OSError."""
        content = self._content()
        if content is None:
            return Found({})
        marks, stored = decode(content, self.path.name)
        self.base, self._seen = marks, content
        gone = not stored.closed and stored.pid != self.pid and not _is_alive(stored.pid)
        return Found(dict(marks), gone, stored.saved)

    def write(self, marks: Marks, closed: bool) -> tuple[dict[Place, Mark], str]:
        """Keep the marks; returns what is kept now and a sentence where a file was set aside.

        Somebody else's changes since the last look are merged. Raises: OSError; the file is then
        as it was.
        """
        content, aside = self._content(), ""
        ours = dict(marks)
        if content is not None and content != self._seen:
            try:
                theirs, _ = decode(content, self.path.name)
                ours = merged(self.base, ours, theirs)
            except BadMarks as error:
                aside = f"{error}; it was kept as {self.set_aside('refused')}"
        if ours:
            saved = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
            content = encode(ours, self.of, closed, self.pid, saved)
            self.path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(self.path, content)
        else:
            self.path.unlink(missing_ok=True)
            content = None
        self.base, self._seen = ours, content
        return dict(ours), aside

    def _content(self) -> bytes | None:
        if self.path.exists() and not self.path.is_file():
            raise OSError(f"{self.path}: expected a file")  # a pipe would be waited for
        try:
            with self.path.open("rb") as file:
                return file.read(LARGEST + 1)
        except FileNotFoundError:
            return None

    def set_aside(self, why: str) -> str:
        """Give the file another name, one that no file has; returns it."""
        names = (f"{self.path.name}.{why}{n}" for n in ("", *map(str, range(2, 10_000))))
        target = next(
            path for name in names if not os.path.lexists(path := self.path.with_name(name))
        )
        self.path.rename(target)
        return target.name


def _is_alive(pid: int) -> bool:
    if pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return True
