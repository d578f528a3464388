"""The journal as columns: filter by NumPy masks, jump targets, last good state.

Owns one row a record. Text columns are kept as small codes, so that a million rows are filtered
in milliseconds; a row's sentence is made when it is looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter

import numpy as np
import numpy.typing as npt

from app.models import text
from app.models.filters import Query
from app.models.marks import Mark, check_of
from app.models.table import Cell, Column, Jump, StableRows
from engine.snapshot import Record

COLUMNS = (
    Column("Event", "right", mono=True, width=7),
    Column("Txn", "right", mono=True, tip="Transaction; none when refused before reserve"),
    Column("Seq", "right", mono=True),
    Column("Op", width=11),
    Column("Result", width=12),
    Column("Positions", "right", mono=True, tip="Positions that the op wrote"),
    Column("Time", "right", mono=True, width=7),
    Column("Why", tip="Stage and kind of a failure, reason of a refusal"),
    Column("What happened"),
)
OUTCOMES = {
    # outcome: (glyph, colour role)
    "ok": ("tick", "done"),
    "rejected": ("cross", "warning"),
    "failed": ("cross", "failed"),
    "cancelled": ("dash", "pending"),
}
MARKED_COLUMNS = (0, len(COLUMNS) - 1)
"""Columns that show a bookmark or a note: the shape, and the shape with its label."""
WORDS = ("op", "outcome", "stage", "kind", "reason")
NO_NUMBER = -1
NOWHERE = (NO_NUMBER, NO_NUMBER)
_NUMBER_OF: dict[str, Callable[[Record], int]] = {
    "event": attrgetter("number"),
    "txn": lambda record: NO_NUMBER if record.txn is None else record.txn,
    "seq": attrgetter("seq"),
    "start": lambda record: (record.positions_written or NOWHERE)[0],
    "stop": lambda record: (record.positions_written or NOWHERE)[1],
    "tokens": attrgetter("n_tokens"),
    "time": attrgetter("duration_ns"),
    "flips": attrgetter("flips"),
    "cell_low": lambda record: min((first for first, _ in record.cells_written), default=0),
    "cell_high": lambda record: max((first + n for first, n in record.cells_written), default=0),
}
NUMBERS = tuple(_NUMBER_OF)


class Journal:
    """Columns of all records so far; grows at the end only."""

    def __init__(self, records: Sequence[Record] = ()) -> None:
        """`records` is read, not copied, when a row is looked at."""
        self.records: Sequence[Record] = records
        self.vocabulary: dict[str, dict[str, int]] = {name: {"": 0} for name in WORDS}
        self._numbers = {name: np.empty(0, np.int64) for name in NUMBERS}
        self._codes = {name: np.empty(0, np.int32) for name in WORDS}
        self._length = 0
        self._undone: dict[int, int] = {}
        self._undone_of = 0
        self.catch_up()

    @classmethod
    def of_columns(
        cls,
        records: Sequence[Record],
        numbers: Mapping[str, npt.NDArray[np.int64]],
        codes: Mapping[str, npt.NDArray[np.int32]],
        words: Mapping[str, Sequence[str]],
    ) -> Journal:
        """A journal whose columns are known already, as a capture file has them.

        Args:
            records: read one at a time, when a row is looked at.
            numbers: columns of `NUMBERS`, each as long as `records`; absent ones are -1.
            codes: columns of `WORDS` as indices into `words`; absent ones are empty words.
        """
        journal = cls()
        journal.records, journal._length = records, len(records)
        for name in NUMBERS:
            empty = np.full(len(records), NO_NUMBER, np.int64)
            journal._numbers[name] = np.asarray(numbers.get(name, empty), np.int64)
        for name in WORDS:
            none = np.zeros(len(records), np.int32)
            journal._codes[name] = np.asarray(codes.get(name, none), np.int32)
            if name in words:
                journal.vocabulary[name] = {word: code for code, word in enumerate(words[name])}
        return journal

    @classmethod
    def of(cls, records: Sequence[Record]) -> Journal:
        """A journal that has yet to catch up; of a capture a whole one, its columns are there."""
        columns = getattr(records, "columns", None)
        if columns is not None:
            return cls.of_columns(records, *columns())
        journal = cls()
        journal.records = records
        return journal

    def __len__(self) -> int:
        return self._length

    @property
    def n_behind(self) -> int:
        """Records that came and were not read yet."""
        return len(self.records) - self._length

    def catch_up(self, at_most: int | None = None) -> int:
        """Read the records that came since, or the first `at_most` of them; returns how many."""
        stop = len(self.records)
        if at_most is not None:
            stop = min(stop, self._length + at_most)
        n_new = stop - self._length
        if n_new <= 0:
            return 0
        self._reserve(stop)
        part = slice(self._length, stop)
        self._read(part, self.records[part])
        self._length = stop
        return n_new

    def _reserve(self, n_rows: int) -> None:
        """Make room for `n_rows`, doubling, so that growing stays cheap."""
        room = len(self._numbers["event"])
        if n_rows <= room:
            return
        size = max(n_rows, 2 * room, 256)
        for name, numbers in self._numbers.items():
            self._numbers[name] = np.concatenate([numbers, np.zeros(size - room, np.int64)])
        for name, codes in self._codes.items():
            self._codes[name] = np.concatenate([codes, np.zeros(size - room, np.int32)])

    def _read(self, part: slice, records: Sequence[Record]) -> None:
        """Fill a slice of all columns, a column at a time."""
        n_rows = len(records)
        for name, value in _NUMBER_OF.items():
            self._numbers[name][part] = np.fromiter(map(value, records), np.int64, n_rows)
        for name in WORDS:
            known = self.vocabulary[name]
            words = list(map(attrgetter(name), records))
            for word in dict.fromkeys(words):
                known.setdefault(word, len(known))
            self._codes[name][part] = np.fromiter(map(known.__getitem__, words), np.int32, n_rows)

    def numbers(self, name: str) -> npt.NDArray[np.int64]:
        """One number column, [rows] int64, without a copy."""
        return self._numbers[name][: self._length]

    def codes(self, name: str) -> npt.NDArray[np.int32]:
        """One word column as codes into `vocabulary[name]`, [rows] int32, without a copy."""
        return self._codes[name][: self._length]

    def matching(self, query: Query) -> npt.NDArray[np.int64]:
        """Rows that a query lets through, in order."""
        mask = np.ones(self._length, bool)
        for term in query.terms:
            hits = np.zeros(self._length, bool)
            for name in term.words:
                words = self.vocabulary[name]
                table = np.fromiter((term.text in word for word in words), bool, len(words))
                hits |= table[self.codes(name)]
            if term.number == "position":
                hits |= (self.numbers("start") < term.high) & (self.numbers("stop") > term.low)
            elif term.number:
                column = self.numbers(term.number)
                hits |= (column >= term.low) & (column < term.high)
            mask &= ~hits if term.negated else hits
        return np.flatnonzero(mask)

    def row_of(self, event: int) -> int | None:
        """Row of the record with this number; None where there is none."""
        column = self.numbers("event")
        row = int(np.searchsorted(column, event))
        return row if row < self._length and column[row] == event else None

    def last_good(self, before: int | None = None) -> int | None:
        """Row of the newest record before row `before` that published; None where none did."""
        codes = self.codes("outcome")[:before]
        good = self.vocabulary["outcome"].get("ok", -1)
        rows = np.flatnonzero(codes == good)
        return int(rows[-1]) if len(rows) else None

    def undone(self) -> Mapping[int, int]:
        """Rows of transactions that were taken back, each with the row of its undo."""
        if self._undone_of == self._length:
            return self._undone
        good = self.codes("outcome") == self.vocabulary["outcome"].get("ok", -1)
        undo = self.codes("op") == self.vocabulary["op"].get("undo", -1)
        done = np.flatnonzero(good & ~undo)
        found: dict[int, int] = {}
        for row in np.flatnonzero(good & undo):
            at = int(np.searchsorted(done, row)) - 1
            while at >= 0 and int(done[at]) in found:
                at -= 1
            if at >= 0:
                found[int(done[at])] = int(row)
        self._undone, self._undone_of = found, self._length
        return self._undone

    def next_problem(self, row: int, step: int) -> int | None:
        """Nearest row after (`step` 1) or before (-1) `row` that did not publish."""
        good = self.vocabulary["outcome"].get("ok", -1)
        rows = np.flatnonzero(self.codes("outcome") != good)
        rows = rows[rows > row] if step > 0 else rows[rows < row]
        return int(rows[0 if step > 0 else -1]) if len(rows) else None


class JournalTable(StableRows):
    """The rows of a journal that a query lets through, as a table."""

    columns = COLUMNS

    def __init__(
        self,
        journal: Journal,
        query: Query | None = None,
        marks: Mapping[tuple[int, str], Mark] | None = None,
    ) -> None:
        """`marks` are the bookmarks and notes on events, by number and check."""
        self.journal = journal
        self.marks = marks or {}
        self._marked = {number for number, _ in self.marks}
        self.query = query or Query(())
        self.rows = self._find()

    def _find(self) -> npt.NDArray[np.int64]:
        if not self.query.terms:
            return np.arange(len(self.journal), dtype=np.int64)
        return self.journal.matching(self.query)

    @property
    def n_rows(self) -> int:
        return len(self.rows)

    def record(self, row: int) -> Record:
        """The record behind a row."""
        return self.journal.records[int(self.rows[row])]

    def shown_at(self, journal_row: int) -> int | None:
        """Where a row of the journal stands in this table; None when it is filtered out."""
        row = int(np.searchsorted(self.rows, journal_row))
        return row if row < len(self.rows) and self.rows[row] == journal_row else None

    def cell(self, row: int, column: int) -> Cell:
        record = self.record(row)
        cell = record_cell(record, column)
        if record.number in self._marked and column in MARKED_COLUMNS:
            mark = self.marks.get((record.number, check_of(record)))
            return cell if mark is None else marked_cell(cell, column, mark)
        return cell

    def jump(self, row: int) -> Jump | None:
        record = self.record(row)
        written = record.positions_written
        return Jump(
            seq=record.seq,
            positions=written if written and written[1] > written[0] else None,
            event=record.number,
            stage=record.stage or None,
        )

    def key(self, row: int) -> str:
        return str(self.record(row).number)


def record_cell(record: Record, column: int) -> Cell:
    """One cell of a record's row."""
    match column:
        case 0:
            return Cell(text.count(record.number), copy=str(record.number))
        case 1:
            return Cell(text.optional(record.txn), tip="" if record.txn is not None else "no txn")
        case 2:
            return Cell(str(record.seq))
        case 3:
            return Cell(record.op)
        case 4:
            glyph, role = OUTCOMES.get(record.outcome, ("dash", "pending"))
            return Cell(record.outcome, record.result, role, glyph)
        case 5:
            start, stop = record.positions_written or (0, 0)
            return Cell(text.span(start, stop) if stop > start else text.NOTHING)
        case 6:
            return Cell(text.duration(record.duration_ns), tip=f"{record.duration_ns:,} ns")
        case 7:
            failed = f"{record.kind} at {record.stage}" if record.stage else record.kind
            return Cell(record.reason or failed)
        case _:
            return Cell(record.sentence, tip=record.sentence)


def marked_cell(cell: Cell, column: int, mark: Mark) -> Cell:
    """The cell of a row that has a bookmark or a note."""
    cell = replace(cell, glyph=mark.glyph, role="accent", tip=mark.words)
    return cell if column == 0 else replace(cell, text=f"{mark.label} · {cell.text}")


def compared(records: Iterable[Record], events: tuple[int, int]) -> tuple[Record, Record] | None:
    """The two records with these numbers, older first; None unless both are kept."""
    low, high = sorted(events)
    found = {record.number: record for record in records if record.number in (low, high)}
    return (found[low], found[high]) if len(found) == 2 else None
