"""llama.cpp debug logs: cell snapshots, position errors, shifts and restores, line by line.

A snapshot is what `find_slot` prints with LLAMA_KV_CACHE_DEBUG: the state before a micro batch.
The columns of the sequence map are not reliable for ids of two digits or shared cells; then the
positions of a sequence are not derived from it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec

from engine.formats.source import Source

PREFIX = re.compile(r"^\d+\.\d\d\.\d{3}\.\d{3} [DIWE] ")
COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
SNAPSHOT = re.compile(
    r"find_slot: stream\[(\d{1,4})\], n =\s*(\d{1,9}), used =\s*(\d{1,9}), head =\s*(\d{1,9}), "
    r"size =\s*(\d{1,9}), n_swa =\s*(\d{1,9})"
)
MINMAX = re.compile(
    r"find_slot: stream\[(\d{1,4})\] min\[(\d{1,4})\] =\s*(-?\d{1,10}), "
    r"max\[\d{1,4}\] =\s*(-?\d{1,10})"
)
BAD_START = re.compile(
    r"init: the tokens of sequence (\d{1,9}) in the input batch have inconsistent "
    r"sequence positions"
)
LAST_STORED = re.compile(r"for sequence (\d{1,9}) is X = (-?\d{1,10})")
FIRST_GIVEN = re.compile(
    r"for sequence (\d{1,9}) in the input batch have a starting position of Y = (-?\d{1,10})"
)
SINGLE = (
    # one-line relatives of a position error, as they stand in the log
    re.compile(r"init: sequence (\d{1,9}) positions are not continuous"),
    re.compile(r"init: sequence (\d{1,9}) positions are decreasing \(not allowed\)"),
    re.compile(
        r"init: sequence (\d{1,9}) is coupled to \d{1,9} in the input batch, but have divereged"
    ),
    re.compile(
        r"find_slot: non-consecutive token position \d{1,10} after \d{1,10} for sequence (\d{1,9})"
    ),
)
RESTORE = (
    # a restore that was refused: the file does not fit, the cache is as it was
    re.compile(r"state_read_meta: (?:failed to find|invalid seq_id|mirrored slot|cell \d)"),
    re.compile(r"state_read_data: mismatched"),
    re.compile(r"state_(?:seq_)?load_file: (?:unknown|did not read)"),
)
MAP_LINE = re.compile(r"^[.0-9][.0-9 ]*\*?\s*$")  # one class of characters: no backtracking
SEQUENCE_MAP = re.compile(r"^[.M0-9]+(?: \*)?$")
MARKERS = (
    b"find_slot:",
    b"ubatch_print:",
    b"inconsistent sequence positions",
    b"apply_ubatch:",
    b"state_read_meta:",
    b"state_read_data:",
    b"load_file: ",
    b"llama_decode:",
    b"memory_seq_rm",
    b"positions are not continuous",
    b"slot context shift",
)
HEAD_BYTES = 1 << 20
LINE_BYTES = 1 << 16
MAX_CELLS = 1 << 22
COLUMN, COLUMNS = 5, 64
LISTED = 4096


@dataclass(slots=True)
class Snapshot:
    """One cache as one `find_slot` printed it."""

    stream: int
    n: int
    used: int
    size: int
    n_swa: int
    offset: int
    """Byte of its first line."""
    minmax: dict[int, tuple[int, int]] = field(default_factory=dict)
    cells: list[int] = field(default_factory=list)
    """Position map: one entry a cell, -1 where it is empty."""
    owners: str = ""
    """Sequence map, one character a cell where its columns are reliable."""

    @property
    def mapped(self) -> bool:
        return bool(self.cells) and len(self.cells) == self.size


@dataclass(slots=True)
class PositionError:
    seq: int
    stored: int | None = None
    given: int | None = None
    offset: int = 0
    words: str = ""


@dataclass(slots=True)
class Log:
    """What a log says."""

    snapshots: dict[tuple[int, int, int], Snapshot] = field(default_factory=dict)
    """The last one of each cache, which window and size tell apart, and stream."""
    last: Snapshot | None = None
    last_minmax: Snapshot | None = None
    last_map: Snapshot | None = None
    errors: list[PositionError] = field(default_factory=list)
    others: list[PositionError] = field(default_factory=list)
    """Errors that come without X and Y."""
    restores: list[str] = field(default_factory=list)
    """Lines about restores that were refused."""
    shifts: int = 0
    miscounted: list[Snapshot] = field(default_factory=list)
    """Snapshots whose map shows another number of cells than `used`."""


def is_llama_log(source: Source) -> bool:
    """Text with a line that llama.cpp prints."""
    head = source.bytes(0, HEAD_BYTES)
    if b"\0" in head[:4096]:
        return False
    return any(marker in head for marker in MARKERS)


def messages(source: Source) -> Iterator[tuple[int, str]]:
    """Offset and text of every line, without prefix and colours; JSON messages split into lines."""
    start = 0
    while start < source.size:
        stop = source.data.find(b"\n", start)
        stop = stop if stop >= 0 else source.size
        text = source.bytes(start, min(stop - start, LINE_BYTES)).decode("utf-8", "replace")
        for line in plain_lines(text.rstrip("\r")):
            yield start, line
        start = stop + 1


def plain_lines(text: str) -> list[str]:
    text = COLOUR.sub("", text) if "\x1b" in text else text
    if text.startswith("{") and '"msg"' in text:
        try:
            record = msgspec.json.decode(text)
        except (msgspec.DecodeError, RecursionError, ValueError):
            return [text]
        if isinstance(record, dict) and isinstance(record.get("msg"), str):
            text = record["msg"].rstrip("\n")
            return [PREFIX.sub("", line) for line in text.split("\n")]
    return [PREFIX.sub("", text)]


class Parser:
    """Reads lines one after another; `log` holds what they said."""

    def __init__(self) -> None:
        self.log = Log()
        self.open: Snapshot | None = None
        self.pending: PositionError | None = None

    def line(self, offset: int, text: str) -> None:
        if self.open is not None and self.map_line(text):
            return
        if "find_slot: stream[" in text:
            self.snapshot_line(offset, text)
        elif self.pending is not None and " is X = " in text:
            found = LAST_STORED.search(text)
            self.pending.stored = int(found[2]) if found else None
        elif self.pending is not None and "position of Y = " in text:
            found = FIRST_GIVEN.search(text)
            self.pending.given = int(found[2]) if found else None
            self.pending = None
        elif "init:" in text or "state_" in text or "non-consecutive" in text:
            self.error_line(offset, text)
        elif "slot context shift" in text or "applying K-shift" in text:
            self.log.shifts += 1

    def snapshot_line(self, offset: int, text: str) -> None:
        found = SNAPSHOT.search(text)
        if found is not None:
            self.finish()
            stream, n, used, _, size, n_swa = map(int, found.groups())
            self.open = Snapshot(stream, n, used, size, n_swa, offset)
            self.log.last = self.open
            if len(self.log.snapshots) < LISTED:
                self.log.snapshots[n_swa, size, stream] = self.open
            return
        found = MINMAX.search(text)
        if found is not None and self.log.last is not None:
            self.finish()
            _, seq, low, high = map(int, found.groups())
            self.log.last.minmax[seq] = (low, high)
            self.log.last_minmax = self.log.last

    def map_line(self, text: str) -> bool:
        """Take a line of a map; False when the maps of the open snapshot have ended."""
        snapshot = self.open
        assert snapshot is not None
        bare = text.rstrip()
        if not bare:
            return True
        wide = MAP_LINE.match(text) and (" " in bare.removesuffix(" *") or snapshot.cells)
        if SEQUENCE_MAP.match(bare) and not wide and not snapshot.cells:
            snapshot.owners += bare.removesuffix(" *")
            return len(snapshot.owners) <= MAX_CELLS
        if MAP_LINE.match(text) and len(snapshot.cells) < min(snapshot.size, MAX_CELLS):
            snapshot.cells += cells_of(text)
            return True
        self.finish()
        return False

    def error_line(self, offset: int, text: str) -> None:
        found = BAD_START.search(text)
        if found is not None:
            self.pending = PositionError(int(found[1]), offset=offset)
            self.log.errors.append(self.pending)
            return
        for pattern in RESTORE:
            found = pattern.search(text)
            if found is not None and len(self.log.restores) < LISTED:
                self.log.restores.append(text[found.start() : found.start() + 160].strip())
                return
        for pattern in SINGLE:
            found = pattern.search(text)
            if found is not None:
                words = text[found.start() : found.start() + 160].strip()
                self.log.others.append(PositionError(int(found[1]), None, None, offset, words))
                return

    def finish(self) -> None:
        """Close the open snapshot's maps."""
        snapshot, self.open = self.open, None
        if snapshot is None or not snapshot.mapped:
            return
        self.log.last_map = snapshot
        if sum(cell >= 0 for cell in snapshot.cells) != snapshot.used:
            self.log.miscounted.append(snapshot)


def cells_of(text: str) -> list[int]:
    """Cells of one line of a position map: columns of five characters, 64 a line."""
    text = text.rstrip("\r\n")
    text = text[:-2] if text.endswith(" *") else text
    cells = []
    for start in range(0, min(len(text), COLUMN * COLUMNS), COLUMN):
        word = text[start : start + COLUMN].strip()
        if word == ".":
            cells.append(-1)
        elif word.isascii() and word.isdigit():
            cells.append(int(word))
        elif word:
            return wide_cells(text)
    return cells


def wide_cells(text: str) -> list[int]:
    """The same where positions of six digits have moved the columns: by words."""
    words = [word for word in text.split() if word == "." or (word.isascii() and word.isdigit())]
    return [-1 if word == "." or len(word) > 9 else int(word) for word in words]


def read_log(source: Source) -> Log:
    parser = Parser()
    for offset, text in messages(source):
        parser.line(offset, text)
    parser.finish()
    return parser.log


def owners_of(snapshot: Snapshot) -> list[int] | None:
    """Sequence of each cell, -1 where empty; None where the map's columns are not reliable."""
    owners = snapshot.owners
    if not snapshot.mapped or len(owners) != snapshot.size or "M" in owners:
        return None
    found = [-1 if owner == "." else int(owner) for owner in owners]
    agree = all((a < 0) == (b < 0) for a, b in zip(found, snapshot.cells, strict=True))
    return found if agree else None


def errors_json(log: Log) -> list[dict[str, Any]]:
    return [
        {"seq": error.seq, "X": error.stored, "Y": error.given} for error in log.errors[:LISTED]
    ]
