"""Capture files `*.bankflip`: every record of a session, written while it runs.

One SQLite file, one row an op (`capture_rows` has the schema, `capture_writer` the thread that
writes). Here is the reader: opening reads only the head and two counts from indexes, so that a
capture of any length opens at once; rows are decoded when they are asked for.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import threading
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final, Self

import msgspec
import numpy as np
import numpy.typing as npt

from engine.capture_rows import (
    COLUMNS,
    SCHEMA_VERSION,
    SQLITE_MAGIC,
    apply_sequences,
    check_types,
    digests_from_json,
    is_capture,
    read_head,
    record_from_row,
)
from engine.capture_writer import CaptureWriter
from engine.errors import Unreadable
from engine.snapshot import Digests, OwnerView, Record, SequenceView, Snapshot

__all__ = ["Capture", "CaptureWriter", "Line", "is_capture", "snapshot_after"]

_PAGE: Final = 256
_NONSENSE: Final = (
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    RecursionError,
    DeprecationWarning,
)
_DAMAGE: Final = (sqlite3.Error, OverflowError, UnicodeDecodeError)
"""What reading a damaged database raises; its message itself may hold bytes that are no text."""


@dataclass(frozen=True, slots=True)
class Line:
    """What a journal shows of a record, read without its digests, stages and sequences."""

    number: int
    txn: int | None
    op: str
    seq: int
    result: str
    outcome: str
    sentence: str
    n_tokens: int
    duration_ns: int
    flips: int
    stage: str
    kind: str


class Capture:
    """A capture file opened for reading; rows are read when asked for.

    Positions in the file are numbered from 0 (`index`), whatever number the records carry.
    Every method raises Unreadable when the file is damaged where it reads.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._lock = threading.RLock()
        self._layouts: dict[int, list[Any]] = {}
        self._database = _open_database(self.path)
        try:
            self._read_head()
        except BaseException:
            self.close()
            raise

    def _read_head(self) -> None:
        tables = dict(self._all("SELECT name, type FROM sqlite_master"))
        for name in ("about", "layouts", "records"):
            if tables.get(name) != "table":
                raise Unreadable(str(self.path), f"table {name} is missing from the capture")
        columns = [name for _, name, *_ in self._all("PRAGMA table_info(records)")]
        if columns != list(COLUMNS):
            odd = sorted(set(COLUMNS) ^ set(columns))
            sentence = f"other columns than a capture has, first {odd[0] if odd else 'their order'}"
            raise Unreadable(str(self.path), sentence, str(len(COLUMNS)), str(len(columns)))
        with self._decoding("about"):
            self.about = {str(key): str(value) for key, value in self._all("SELECT * FROM about")}
            self.start = msgspec.json.decode(self.about["start"], type=Snapshot)
        self.with_text = self.about.get("with_text") != "0"
        low, high = self._all(
            "SELECT (SELECT min(row) FROM records), (SELECT max(row) FROM records)"
        )[0]
        if (low, high) != (None, None) and low != 1:
            raise Unreadable(str(self.path), "rows are missing at the start of the capture")
        self._count = int(high or 0)

    def __len__(self) -> int:
        return self._count

    def refresh(self) -> int:
        """Look for rows written since (a session may still be recording); returns the count."""
        self._count = int(self._all("SELECT max(row) FROM records")[0][0] or 0)
        return self._count

    def counts(self) -> dict[str, int]:
        """Records by outcome, from the index."""
        return {
            str(outcome): int(n)
            for outcome, n in self._all("SELECT outcome, count(*) FROM records GROUP BY outcome")
        }

    def indexes(self, outcome: str, limit: int | None = None) -> list[int]:
        """Where records with this outcome stand."""
        query = "SELECT row FROM records WHERE outcome = ? ORDER BY row LIMIT ?"
        return [row - 1 for (row,) in self._all(query, outcome, -1 if limit is None else limit)]

    def changed_by_refusals(self) -> list[int]:
        """Where an op that published nothing has other digests after it than before; none, ever."""
        query = """SELECT r.row FROM records r LEFT JOIN records p ON p.row = r.row - 1
            WHERE r.outcome IN (SELECT DISTINCT outcome FROM records WHERE outcome != 'ok')
            AND COALESCE(r.digests_before, p.digests_after) IS NOT r.digests_after ORDER BY r.row"""
        return [row - 1 for (row,) in self._all(query)]

    def lines(self, start: int = 0, stop: int | None = None) -> list[Line]:
        """Journal lines of a half-open range of indexes."""
        names = ", ".join(Line.__dataclass_fields__)
        query = f"SELECT {names} FROM records WHERE row > ? AND row <= ? ORDER BY row"
        lines = [Line(*row) for row in self._all(query, start, self._stop(stop))]
        with self._decoding(f"a row after {start}"):
            for line in lines:
                check_types(asdict(line))
        return lines

    def number_columns(
        self, expressions: Sequence[str], start: int, stop: int
    ) -> npt.NDArray[np.int64]:
        """[expressions, stop - start] integers of a half-open range of indexes.

        SQLite joins each column to one text, which NumPy reads; twenty times as fast as a Python
        object a value.

        Args:
            expressions: columns of `records`, or SQL over them; never from outside the program.
        """
        joined = ", ".join(f"group_concat({e})" for e in ("row", *expressions))
        query = f"SELECT {joined} FROM (SELECT * FROM records WHERE row > ? AND row <= ?)"
        (texts,) = self._all(query, start, stop)
        with self._decoding(f"a row after {start}"), warnings.catch_warnings():
            warnings.simplefilter("error")
            columns = [np.fromstring(text or "", np.int64, sep=",") for text in texts]
            if not np.array_equal(columns[0], np.arange(start + 1, stop + 1)):
                raise ValueError("rows are missing")
            return np.stack(columns[1:])

    def word_columns(self, names: Sequence[str], start: int, stop: int) -> list[tuple[str, ...]]:
        """The same for columns of text, one tuple a column."""
        query = f"SELECT {', '.join(names)} FROM records WHERE row > ? AND row <= ? ORDER BY row"
        rows = self._all(query, start, stop)
        return list(zip(*rows, strict=True)) if rows else [()] * len(names)

    def record(self, index: int) -> Record:
        """The record at `index` (negative: from the end)."""
        index = self._index(index)
        return next(self.records(index, index + 1))

    def records(self, start: int = 0, stop: int | None = None) -> Iterator[Record]:
        """Records of a half-open range of indexes, read in pages."""
        stop = self._stop(stop)
        if start >= stop:
            return
        with self._decoding(f"row {start + 1}"):
            keyframe = self._keyframe(start)
            views: dict[int, SequenceView] = {}
            between = "SELECT sequences FROM records WHERE row >= ? AND row <= ? ORDER BY row"
            for (column,) in self._all(between, keyframe, start):
                views = apply_sequences(views, column, self._layout)
            previous = self._digests_after(start - 1)
        for page in range(start, stop, _PAGE):
            last = min(stop, page + _PAGE)
            query = "SELECT * FROM records WHERE row > ? AND row <= ? ORDER BY row"
            rows = self._all(query, page, last)
            if [row[0] for row in rows] != list(range(page + 1, last + 1)):
                raise Unreadable(str(self.path), f"rows are missing after row {page}")
            for values in rows:
                row = dict(zip(COLUMNS, values, strict=True))
                with self._decoding(f"row {row['row']}"):
                    if row["keyframe"] == row["row"]:
                        views = {}
                    views = apply_sequences(views, row["sequences"], self._layout)
                    stored = row["digests_before"]
                    before = previous if stored is None else digests_from_json(stored)
                    record = record_from_row(row, before, tuple(_ordered(views, row)), self._layout)
                previous = record.digests_after
                yield record

    def snapshot_at(self, index: int) -> Snapshot:
        """The public state right after the record at `index`; -1: before the first."""
        if index < 0 or not self._count:
            return self.start
        return snapshot_after(self.start, self.record(index))

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- reading ---------------------------------------------------------------------------

    def _index(self, index: int) -> int:
        wanted = index + self._count if index < 0 else index
        if not 0 <= wanted < self._count:
            raise IndexError(f"record {index} of a capture with {self._count}")
        return wanted

    def _stop(self, stop: int | None) -> int:
        return self._count if stop is None else min(stop, self._count)

    def _keyframe(self, index: int) -> int:
        found = self._all("SELECT keyframe FROM records WHERE row = ?", index + 1)
        if not found or not 1 <= found[0][0] <= index + 1:
            raise ValueError("no keyframe")
        return int(found[0][0])

    def _digests_after(self, index: int) -> Digests:
        if index < 0:
            return ()
        found = self._all("SELECT digests_after FROM records WHERE row = ?", index + 1)
        return digests_from_json(found[0][0]) if found else ()

    def _layout(self, number: int) -> list[Any]:
        if number not in self._layouts:
            found = self._all("SELECT value FROM layouts WHERE id = ?", number)
            if not found:
                raise ValueError(f"no layout {number}")
            self._layouts[number] = list(json.loads(found[0][0]))
        return self._layouts[number]

    def _all(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        try:
            with self._lock:
                return self._database.execute(query, values).fetchall()
        except _DAMAGE as error:
            raise Unreadable(str(self.path), f"damaged capture: {_short(error)}") from error

    @contextlib.contextmanager
    def _decoding(self, where: str) -> Iterator[None]:
        try:
            yield
        except _NONSENSE as error:
            sentence = f"damaged capture: {where} has no legal values ({_short(error)})"
            raise Unreadable(str(self.path), sentence) from error


def _short(error: Exception) -> str:
    """What went wrong, in a line; the database quotes whole rows."""
    return " ".join(str(error).split())[:160]


def _ordered(views: dict[int, SequenceView], row: dict[str, Any]) -> list[SequenceView]:
    """A keyframe keeps the order it was written in; the rows after one go by sequence number."""
    if row["keyframe"] == row["row"]:
        return list(views.values())
    return [views[seq] for seq in sorted(views)]


def _open_database(path: Path) -> sqlite3.Connection:
    if path.is_dir():
        raise Unreadable(str(path), "not a capture", "a file", "a folder")
    head = read_head(path)
    if not is_capture(head):
        found = "an empty file" if not head else "other bytes"
        if head[:16] == SQLITE_MAGIC:
            found = "an SQLite file of another program"
        raise Unreadable(str(path), "not a capture", "an SQLite file marked BFlp", found, offset=0)
    version = int.from_bytes(head[60:64], "big")
    if version != SCHEMA_VERSION:
        raise Unreadable(
            str(path), "unknown version of the capture", str(SCHEMA_VERSION), str(version), 60
        )
    uri = path.absolute().as_uri()
    problem: Exception | None = None
    # a folder that can't be written has no room for the log's index: read the file as it stands
    for mode in ("mode=ro", "mode=ro&immutable=1"):
        database = sqlite3.connect(f"{uri}?{mode}", uri=True, check_same_thread=False)
        try:
            database.execute("PRAGMA trusted_schema=OFF")
            database.execute("PRAGMA cell_size_check=ON")
            database.execute("SELECT count(*) FROM sqlite_master").fetchone()
            return database
        except _DAMAGE as error:
            problem = error
            database.close()
    raise Unreadable(str(path), f"damaged capture: {problem}")


def snapshot_after(start: Snapshot, record: Record) -> Snapshot:
    """The public state that a record left, as a snapshot; what it does not hold is `start`'s.

    The private bank then lacks exactly this op, if it flipped: its digests are not known.
    """
    digests = dict(record.digests_after)
    known = {owner.name: owner for owner in start.owners}
    blank = OwnerView("", "", 0, "", "", "same", 0)
    owners = tuple(
        replace(
            known.get(name, replace(blank, name=name)),
            public_digest=digest,
            private_digest="" if record.outcome == "ok" else digest,
            state="stale" if record.outcome == "ok" else "same",
            layers=(),
        )
        for name, digest in digests.items()
    )
    cells = [cell + n for view in record.sequences for cell, n in view.extents]
    return replace(
        start,
        number=record.number,
        txn=record.txn if record.txn is not None else start.txn,
        flips=record.flips,
        public_bank=record.public_bank,
        n_cells=max([start.n_cells, *cells]),
        sequences=record.sequences,
        owners=owners or start.owners,
        open=None,
    )
