"""The records of a capture as a sequence that reads a row when it is looked at.

Owns a small cache of decoded rows, and the columns that a journal filters and searches. A window
holds one of these in place of a list, so that a capture of any length opens at once.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, overload

import numpy as np
import numpy.typing as npt

from engine.capture import Capture
from engine.snapshot import Record

PAGE: Final = 64
"""Rows decoded at a time; the distance of two rows that hold every sequence."""
PAGES_KEPT: Final = 64
ROWS_A_STEP: Final = 8_192
NUMBERS: Final = {
    # name: the column, or what stands for an absent value
    "event": "number",
    "txn": "COALESCE(txn, -1)",
    "seq": "seq",
    "start": "COALESCE(written_first, -1)",
    "stop": "COALESCE(written_last + 1, -1)",
    "tokens": "n_tokens",
    "time": "duration_ns",
    "flips": "flips",
    "cell_low": "lowest_cell",
    "cell_high": "cells_end",
}
WORDS: Final = ("op", "outcome", "stage", "kind", "reason")
REFUSED: Final = 500
"""Refusals that are read at once, at most."""

Numbers = dict[str, npt.NDArray[np.int64]]
Codes = dict[str, npt.NDArray[np.int32]]


class CaptureRecords(Sequence[Record]):
    """Records by index, newest last. Close it when it is no longer looked at."""

    def __init__(self, capture: Capture) -> None:
        self.capture = capture
        self._pages: OrderedDict[int, list[Record]] = OrderedDict()
        self._numbers: Numbers = {}
        self._codes: Codes = {}
        self._vocabulary: dict[str, tuple[str, ...]] = {}

    def __len__(self) -> int:
        return len(self.capture)

    @overload
    def __getitem__(self, index: int) -> Record: ...
    @overload
    def __getitem__(self, index: slice) -> list[Record]: ...
    def __getitem__(self, index: int | slice) -> Record | list[Record]:
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            if step == 1:
                return list(self.capture.records(start, stop))
            return [self[at] for at in range(start, stop, step)]
        at = index + len(self) if index < 0 else index
        if not 0 <= at < len(self):
            raise IndexError(f"record {index} of a capture with {len(self)}")
        number, offset = divmod(at, PAGE)
        return self._page(number)[offset]

    def __iter__(self) -> Iterator[Record]:
        return self.capture.records()

    def _page(self, number: int) -> list[Record]:
        page = self._pages.get(number)
        if page is None:
            page = list(self.capture.records(number * PAGE, (number + 1) * PAGE))
            self._pages[number] = page
            if len(self._pages) > PAGES_KEPT:
                self._pages.popitem(last=False)
        else:
            self._pages.move_to_end(number)
        return page

    def refused(self, limit: int = REFUSED) -> list[Record]:
        """The first records that published nothing."""
        places = [
            place
            for outcome in self.capture.counts()
            if outcome != "ok"
            for place in self.capture.indexes(outcome, limit)
        ]
        return [self.capture.record(place) for place in sorted(places)[:limit]]

    def read_columns(self) -> Iterator[int]:
        """Read the columns of all rows; yields how many rows are done, so a caller can pause."""
        known: dict[str, defaultdict[str, int]] = {}
        for name in WORDS:
            known[name] = defaultdict(None, {"": 0})
            known[name].default_factory = known[name].__len__
        numbers: list[npt.NDArray[np.int64]] = []
        codes: list[npt.NDArray[np.int32]] = []
        for start in range(0, len(self), ROWS_A_STEP):
            stop = min(len(self), start + ROWS_A_STEP)
            numbers.append(self.capture.number_columns(tuple(NUMBERS.values()), start, stop))
            columns = self.capture.word_columns(WORDS, start, stop)
            # a loop in C: the codes of all words of a column
            words = [
                list(map(known[n].__getitem__, c)) for n, c in zip(WORDS, columns, strict=True)
            ]
            codes.append(np.array(words, np.int32))
            yield stop
        whole = np.concatenate([np.empty((len(NUMBERS), 0), np.int64), *numbers], axis=1)
        coded = np.concatenate([np.empty((len(WORDS), 0), np.int32), *codes], axis=1)
        self._numbers = dict(zip(NUMBERS, whole, strict=True))
        self._codes = dict(zip(WORDS, coded, strict=True))
        self._vocabulary = {name: tuple(map(str, words)) for name, words in known.items()}

    def columns(self) -> tuple[Numbers, Codes, Mapping[str, Sequence[str]]]:
        """Number columns, word columns as codes, and the words by code; read once.

        Raises: Unreadable where the file is damaged.
        """
        if not self._vocabulary:
            for _ in self.read_columns():
                pass
        return self._numbers, self._codes, self._vocabulary

    def outcome(self, at: int) -> str:
        """The outcome of one row, from the columns."""
        _, codes, words = self.columns()
        return str(words["outcome"][int(codes["outcome"][at])])

    def close(self) -> None:
        """Close the file; what was read stays."""
        self.capture.close()
