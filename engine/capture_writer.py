"""Writes records to a capture file from a thread of its own.

`record` only puts a frozen value in a queue, so that the engine never waits for the disk. Records
are never dropped: a queue at its limit makes `record` wait for the writer, and a file that can't
be written makes it raise. Each batch is one SQLite transaction in a write-ahead log, so whatever
moment the process is killed at, the file holds a whole prefix of the session.
"""

from __future__ import annotations

import contextlib
import os
import queue
import sqlite3
import threading
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import msgspec

from engine.capture_rows import (
    APPLICATION_ID,
    COLUMNS,
    HELP,
    SCHEMA,
    SCHEMA_VERSION,
    RowWriter,
    is_capture,
    read_head,
)
from engine.errors import Unreadable
from engine.snapshot import Record, Snapshot

QUEUE_LIMIT: Final = 65_536
"""Records that may wait for the writer; about 100 MB of frozen values at the most."""
BATCH: Final = 256
_FULL_WAIT_S: Final = 0.05

_INSERT = f"INSERT INTO records VALUES ({', '.join('?' * len(COLUMNS))})"


def _side_files(path: Path) -> tuple[Path, ...]:
    return tuple(path.with_name(path.name + end) for end in ("-wal", "-shm", "-journal"))


class CaptureWriter:
    """An open capture file.

    `start` is the state before the first record. `about` is free text by key (model, command
    line, seed, versions ...). Without `with_text` no token id reaches the file.
    Raises Unreadable when the path holds something else than an earlier capture.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        start: Snapshot,
        about: Mapping[str, str] | None = None,
        *,
        with_text: bool = True,
        queue_limit: int = QUEUE_LIMIT,
    ) -> None:
        self.path = Path(path)
        self.trouble = ""
        """Why the last write failed; empty while all is well."""
        self._limit = queue_limit
        self._queue: queue.SimpleQueue[Record | threading.Event | None] = queue.SimpleQueue()
        self._closed = False
        self._dead = False
        self._make_way()
        self._layouts: dict[tuple[str, str], int] = {}
        self._database = _create(self.path)
        self._rows = RowWriter(self._intern, with_text)
        facts = {"help": HELP, "with_text": str(int(with_text)), **(about or {})}
        facts["start"] = msgspec.json.encode(start).decode()
        with self._database:
            self._database.executemany("INSERT INTO about VALUES (?, ?)", facts.items())
        self._thread = threading.Thread(target=self._work, name="capture", daemon=True)
        self._thread.start()

    def _make_way(self) -> None:
        """Remove an earlier capture (or an empty file); refuse to replace anything else."""
        if self.path.is_dir():
            raise Unreadable(str(self.path), "can't be written", "a file", "a folder")
        if self.path.exists():
            head = read_head(self.path)
            if head and not is_capture(head):
                raise Unreadable(
                    str(self.path), "will not be replaced", "a capture or no file", "another file"
                )
            if head and _in_use(self.path):
                raise Unreadable(
                    str(self.path),
                    "will not be replaced",
                    "a capture that no one uses",
                    "one that another program writes or reads",
                )
            self.path.unlink()
        for side in _side_files(self.path):
            side.unlink(missing_ok=True)

    def record(self, record: Record) -> None:
        """Queue a record; waits only when the queue is full. Raises OSError if it can't be kept."""
        if self._closed:
            raise OSError(f"{self.path}: the capture is closed")
        while self._queue.qsize() >= self._limit and not self._dead:
            event = threading.Event()
            self._queue.put(event)
            event.wait(_FULL_WAIT_S)
        if self._dead:
            raise OSError(f"{self.path}: {self.trouble}")
        self._queue.put(record)

    def flush(self) -> None:
        """Return when every record so far is committed. Raises OSError when one could not be."""
        event = threading.Event()
        self._queue.put(event)
        while not event.wait(_FULL_WAIT_S):
            if not self._thread.is_alive():
                break
        if self.trouble:
            raise OSError(f"{self.path}: {self.trouble}")

    def close(self) -> None:
        """Write what waits and leave one file without side files. Raises OSError on trouble."""
        if self._closed:
            return
        self._closed = True
        self._queue.put(None)
        self._thread.join()
        if self.trouble:
            raise OSError(f"{self.path}: {self.trouble}")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self.close()
        except OSError as trouble:
            if error is None:
                raise
            error.add_note(str(trouble))

    # -- the writer's thread ---------------------------------------------------------------

    def _intern(self, kind: str, value: str) -> int:
        key = (kind, value)
        if key not in self._layouts:
            number = len(self._layouts) + 1
            self._database.execute("INSERT INTO layouts VALUES (?, ?, ?)", (number, kind, value))
            self._layouts[key] = number
        return self._layouts[key]

    def _work(self) -> None:
        going = True
        try:
            while going:
                batch, events, going = self._next_batch()
                if batch:
                    self._write(batch)
                for event in events:
                    event.set()
            self._finish()
        except (sqlite3.Error, OSError) as error:
            self.trouble = f"the capture can't be written: {error}"
        finally:
            self._dead = True
            self._database.close()

    def _next_batch(self) -> tuple[list[Record], list[threading.Event], bool]:
        """Wait for something, then take what is there, at most `BATCH` records."""
        batch: list[Record] = []
        events: list[threading.Event] = []
        item = self._queue.get()
        while True:
            if item is None:
                return batch, events, False
            if isinstance(item, threading.Event):
                events.append(item)
            else:
                batch.append(item)
            if len(batch) >= BATCH:
                return batch, events, True
            try:
                item = self._queue.get_nowait()
            except queue.Empty:
                return batch, events, True

    def _write(self, batch: list[Record]) -> None:
        with self._database:
            for record in batch:
                # one statement a row: the interpreter is free for the engine inside each
                self._database.execute(_INSERT, self._rows.row(record))

    def _finish(self) -> None:
        self._database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self._database.execute("PRAGMA journal_mode=DELETE")


def _in_use(path: Path) -> bool:
    """Is a capture that was not closed still open somewhere? One that was killed is not."""
    if not _side_files(path)[0].exists():
        return False
    try:
        with contextlib.closing(sqlite3.connect(path, timeout=0)) as database:
            # the mode changes only when no one else has the file open
            return bool(database.execute("PRAGMA journal_mode=DELETE").fetchone()[0] != "delete")
    except sqlite3.OperationalError as error:
        return "locked" in str(error)
    except sqlite3.DatabaseError:
        return False


def _create(path: Path) -> sqlite3.Connection:
    try:
        database = sqlite3.connect(path, check_same_thread=False)
        database.execute(f"PRAGMA application_id={APPLICATION_ID}")
        database.execute(f"PRAGMA user_version={SCHEMA_VERSION}")
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("PRAGMA synchronous=NORMAL")
        database.executescript(SCHEMA)
    except sqlite3.Error as error:
        raise Unreadable(str(path), f"can't be written: {error}") from error
    return database
