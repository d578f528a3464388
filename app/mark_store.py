"""Keeps a window's bookmarks and notes in files: found by what is open, autosaved, merged.

A saved session has its file beside it. What is opened read-only is never touched: its bookmarks
lie in the state folder under the hash of its content, those of a session without a file under
that of what it was started from. Shows nothing.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import IO

from PySide6.QtCore import QObject, QTimer, Signal

from app.models import text
from app.models.marks import Mark, Place, merged
from app.models.marks_file import SUFFIX, BadMarks, MarkFile
from app.views.mark_book import MarkBook

AUTOSAVE_MS = 30_000
PIECE_BYTES = 2**20
"""Read and hashed in one turn of the event loop."""


class ContentHash(QObject):
    """SHA-256 of files, a piece in each turn of the event loop."""

    finished = Signal(str)
    failed = Signal(str)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._paths: list[Path] = []
        self._file: IO[bytes] | None = None
        self._hash = hashlib.sha256()
        self._timer = QTimer(self)
        self._timer.setInterval(0)
        self._timer.timeout.connect(self._turn)

    @property
    def is_running(self) -> bool:
        """True until it is known or given up."""
        return self._timer.isActive()

    def start(self, paths: list[Path]) -> None:
        """Begin; what still runs is given up."""
        self.cancel()
        self._paths, self._hash = list(paths), hashlib.sha256()
        self._timer.start()

    def cancel(self) -> None:
        """Give up; nothing is told."""
        self._timer.stop()
        self._close()

    def finish(self) -> None:
        """Read the rest at once."""
        while self.is_running:
            self._turn()

    def _turn(self) -> None:
        try:
            if self._file is None and self._paths:
                self._file = self._paths.pop(0).open("rb")
            piece = self._file.read(PIECE_BYTES) if self._file is not None else b""
        except OSError as error:
            self.cancel()
            self.failed.emit(str(error))
            return
        self._hash.update(piece)
        if piece:
            return
        self._close()
        if not self._paths:
            self._timer.stop()
            self.finished.emit(self._hash.hexdigest())

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


class MarkStore(QObject):
    """The files of one window's `MarkBook`."""

    told = Signal(str)
    """Something came back or was merged: a sentence."""
    refused = Signal(str)
    """A file was refused or could not be written: a sentence."""

    def __init__(self, folder: Path | None, book: MarkBook, parent: QObject | None = None) -> None:
        """`folder` None: nothing is read and nothing is written."""
        super().__init__(parent)
        self.folder, self.book = folder, book
        self.homes: list[MarkFile] = []
        """Where the marks are kept: one file, and one more beside a session saved since."""
        self._started = ""
        self._paths: list[Path] = []
        self._name = ""
        self._kept: dict[Place, Mark] = {}
        self._carried: dict[Place, Mark] = {}
        self._open_file = False
        """A file says that a window may change it yet."""
        self._hash = ContentHash(self)
        self._hash.finished.connect(self._hashed)
        self._hash.failed.connect(self._not_hashed)
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(AUTOSAVE_MS)
        self._timer.timeout.connect(self.autosave)
        book.changed.connect(self._changed)

    # what is open -----------------------------------------------------------------------------

    def open_started(self, key: str, name: str) -> None:
        """A session that has no file; `key` says what it was started from."""
        digest = hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest()
        if digest == self._started:
            return  # the same again: what is there stays, Undo included
        self._leave()
        self._started = digest
        self._come_to(self._kept_under(digest), name)

    def open_files(self, paths: list[Path]) -> None:
        """Files that are only read; their bookmarks are found by the content."""
        same = paths == self._paths
        carried = dict(self.book.marks) if same else {}
        self._leave()
        self._paths, self._carried = paths, carried
        self._name = ", ".join(path.name for path in paths)
        if self.folder is not None:
            self._hash.start(paths)
        else:
            self.book.replace(carried)

    def open_beside(self, session: Path) -> None:
        """A saved session: its bookmarks lie beside it, or where that can't be as of a file."""
        path = beside(session)
        if path.exists() or os.access(session.parent, os.W_OK):
            self._leave()
            self._come_to(path, session.name)
        else:
            self.open_files([session])

    def also_beside(self, session: Path) -> None:
        """The session was saved: from now on its bookmarks are kept there, too."""
        path = beside(session)
        if self.folder is None or any(home.path == path for home in self.homes):
            self.autosave()
            return
        del self.homes[1:]
        home = MarkFile(path, session.name)
        try:
            others = home.read().marks
        except (BadMarks, OSError):
            others = {}  # set aside, with a sentence, when it is written
        if any(self.book.marks.get(place) != mark for place, mark in others.items()):
            kept = home.set_aside("replaced")
            self.told.emit(f"{path.name} belonged to the session saved there before; now {kept}")
        self.homes.append(home)
        self.autosave(always=True)

    def close(self) -> None:
        """Nothing is open any more."""
        self._leave()

    def _kept_under(self, digest: str) -> Path | None:
        return None if self.folder is None else self.folder / f"{digest}{SUFFIX}"

    def _leave(self) -> None:
        """Keep what there is and forget it."""
        self.flush()
        self._hash.cancel()
        self.homes, self._paths, self._carried, self._kept = [], [], {}, {}
        self._started, self._open_file = "", False
        self.book.begin({})
        self._timer.stop()

    def _hashed(self, digest: str) -> None:
        """The content is known: what was kept of it joins what was marked in the meantime."""
        path = self._kept_under(digest)
        if path is not None and not path.exists() and self._carried:
            # the same file with other content: every row says whether its place is still there
            self.book.replace(merged({}, dict(self.book.marks), self._carried))
        self._come_to(path, self._name)

    def _not_hashed(self, error: str) -> None:
        self.refused.emit(f"{error}; bookmarks on it can't be kept")

    def _come_to(self, path: Path | None, name: str) -> None:
        if self.folder is None or path is None:
            return
        home = MarkFile(path, name)
        self.homes = [home]
        try:
            found = home.read()
        except (BadMarks, OSError) as error:
            self.refused.emit(f"{error}; these bookmarks are not shown, the file is kept")
            return
        self._kept = dict(found.marks)
        self.book.replace(merged({}, dict(self.book.marks), found.marks))
        if found.crashed:
            self._open_file = True
            many = text.plural(len(found.marks), "bookmark or note", "bookmarks and notes")
            self.told.emit(
                f"The last window with {name} ended without closing: {many} came back, "
                f"as of {found.saved}"
            )

    # keeping ----------------------------------------------------------------------------------

    @property
    def is_dirty(self) -> bool:
        """True while there is something to keep."""
        return self.folder is not None and self.book.marks != self._kept

    def _changed(self) -> None:
        if self.is_dirty and not self._timer.isActive():
            self._timer.start()

    def autosave(self, always: bool = False) -> None:
        """Keep the marks while the window stays open."""
        if (self.is_dirty or always) and self.homes:
            self._write(closed=False)
        elif self.is_dirty and self._hash.is_running:
            self._timer.start()

    def flush(self) -> None:
        """Keep the marks for good: the session or the window is closed."""
        if self.is_dirty and self._hash.is_running:
            self._hash.finish()
        if (self.is_dirty or self._open_file) and self.homes:
            self._write(closed=True)

    def _write(self, closed: bool) -> None:
        self._timer.stop()
        marks = dict(self.book.marks)
        for home in self.homes:
            try:
                marks, aside = home.write(marks, closed)
            except OSError as error:
                self.refused.emit(f"Bookmarks can't be kept: {error}")
                self._timer.start()  # perhaps there is room by then
                continue
            if aside:
                self.refused.emit(aside)
        self._open_file = not closed
        if not self._timer.isActive():
            self._kept = marks
        self.book.replace(marks)


def beside(session: Path) -> Path:
    """The file of bookmarks next to a saved session."""
    return session.with_name(session.name + SUFFIX)
