"""Reads row norms of a foreign cache file beside the window; NumPy and file reads only."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QObject, QThreadPool, Signal, Slot

from engine.errors import EngineError


class _Job(QObject):
    """Carries the answer of one reading over to the main thread."""

    done = Signal(int, object)
    failed = Signal(int, str)


class NormsReader(QObject):
    """One reading at a time counts; an older answer is dropped."""

    read = Signal(object)
    """List of `engine.formats.RowNorms`, one a part."""
    failed = Signal(str)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._ticket = 0
        self._job = _Job(self)
        self._job.done.connect(self._done)
        self._job.failed.connect(self._failed)

    def start(self, path: str, parts: list[str], sequence: int) -> None:
        """Begin to read these parts of a sequence."""
        self._ticket += 1
        ticket, job = self._ticket, self._job

        def work() -> None:
            try:
                job.done.emit(ticket, _norms(path, parts, sequence, self, ticket))
            except (EngineError, OSError, KeyError, ValueError) as error:
                job.failed.emit(ticket, str(error))

        QThreadPool.globalInstance().start(work)

    def cancel(self) -> None:
        """Let the reading in progress end early; nothing is told."""
        self._ticket += 1

    def wants(self, ticket: int) -> bool:
        """Whether the reading with this number still counts."""
        return ticket == self._ticket

    @Slot(int, object)
    def _done(self, ticket: int, found: object) -> None:
        if self.wants(ticket):
            self.read.emit(found)

    @Slot(int, str)
    def _failed(self, ticket: int, sentence: str) -> None:
        if self.wants(ticket):
            self.failed.emit(sentence)


def _norms(
    path: str, parts: list[str], sequence: int, reader: NormsReader, ticket: int
) -> list[object]:
    """Norms of each part; an empty list once the reading does not count any more."""
    from engine.formats import open_file

    with open_file(Path(path)) as opened:
        out: list[object] = []
        for part in parts:
            if not reader.wants(ticket):
                return []
            out.append(opened.row_norms(part, sequence))
        return out
