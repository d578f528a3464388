"""Reading files beside the session: a capture row by row, other engines' state in a child process.

Both can be cancelled at any time and leave nothing half-open. Nothing here shows anything.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject, QProcess, QProcessEnvironment, QTimer, Signal

from engine.errors import EngineError

if TYPE_CHECKING:
    from engine.capture_records import CaptureRecords


class CaptureReader(QObject):
    """Opens a capture: its head at once, the columns of its journal in turns of the event loop."""

    progressed = Signal(int, int)
    finished = Signal(object, object)
    """(Capture, `CaptureRecords`, which read the file when they are looked at)."""
    failed = Signal(str)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._records: CaptureRecords | None = None
        self._steps: Iterator[int] | None = None
        self._timer = QTimer(self)
        self._timer.setInterval(0)
        self._timer.timeout.connect(self._turn)

    def start(self, path: str) -> None:
        """Begin to read; a reading in progress is given up."""
        from engine.capture import Capture
        from engine.capture_records import CaptureRecords

        self.cancel()
        try:
            self._records = CaptureRecords(Capture(path))
        except (EngineError, OSError) as error:
            self.failed.emit(str(error))
            return
        self._steps = self._records.read_columns()
        self._timer.start()

    def cancel(self) -> None:
        """Give up; nothing is told."""
        self._timer.stop()
        if self._records is not None:
            self._records.close()
        self._records, self._steps = None, None

    def _turn(self) -> None:
        records, steps = self._records, self._steps
        if records is None or steps is None:
            self._timer.stop()
            return
        try:
            done = next(steps, None)
        except (EngineError, OSError) as error:
            self.cancel()
            self.failed.emit(str(error))
            return
        if done is not None:
            self.progressed.emit(done, len(records))
            return
        self._timer.stop()
        self._records = self._steps = None
        self.finished.emit(records.capture, records)


class ChildCommand(QObject):
    """Runs a `bankflip` command in a child process; one at a time."""

    ended = Signal(int, str, str)
    """(exit status, standard output, standard error); also told when it could not start."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._process: QProcess | None = None

    @property
    def is_running(self) -> bool:
        """True while the child runs."""
        return self._process is not None

    def start(self, arguments: list[str]) -> None:
        """Begin; what still runs is killed."""
        self.cancel()
        process = QProcess(self)
        environment = QProcessEnvironment.systemEnvironment()
        root = str(Path(__file__).resolve().parent.parent)
        known = environment.value("PYTHONPATH", "")
        environment.insert("PYTHONPATH", root + (f":{known}" if known else ""))
        process.setProcessEnvironment(environment)
        process.setProgram(sys.executable)
        process.setArguments(["-m", "app", *arguments])
        process.finished.connect(self._finished)
        process.errorOccurred.connect(self._could_not_start)
        self._process = process
        process.start()

    def cancel(self) -> None:
        """Kill the child; nothing is told."""
        process, self._process = self._process, None
        if process is not None:
            process.finished.disconnect(self._finished)
            process.errorOccurred.disconnect(self._could_not_start)
            process.kill()
            process.waitForFinished(2000)
            process.deleteLater()

    def _could_not_start(self, error: QProcess.ProcessError) -> None:
        if error == QProcess.ProcessError.FailedToStart:
            self._tell(-1, "", f"could not start {sys.executable}")

    def _finished(self, status: int, _how: QProcess.ExitStatus) -> None:
        process = self._process
        if process is not None:
            out = bytes(process.readAllStandardOutput().data()).decode("utf-8", "replace")
            err = bytes(process.readAllStandardError().data()).decode("utf-8", "replace")
            self._tell(status, out, err)

    def _tell(self, status: int, out: str, err: str) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.deleteLater()
        self.ended.emit(status, out, err.strip())


class ForeignReader(QObject):
    """Runs `bankflip check --json` on files in a child process and tells its objects."""

    finished = Signal(list)
    """One object a file, as `check --json` prints them."""
    failed = Signal(str)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._child = ChildCommand(self)
        self._child.ended.connect(self._ended)
        self._paths: list[str] = []

    @property
    def is_running(self) -> bool:
        """True while a child process reads."""
        return self._child.is_running

    def start(self, paths: list[str]) -> None:
        """Begin to read; a reading in progress is given up."""
        self._paths = paths
        self._child.start(["check", "--json", "--", *paths])

    def cancel(self) -> None:
        """Kill the child; nothing is told."""
        self._child.cancel()

    def _ended(self, status: int, out: str, err: str) -> None:
        reports = _objects(out)
        if reports:
            self.finished.emit(reports)
            return
        name = ", ".join(self._paths)
        self.failed.emit(err.splitlines()[-1] if err else f"{name}: the reader ended with {status}")


def _objects(text: str) -> list[dict[str, Any]]:
    """The JSON objects of a list; nothing where it is no such list."""
    try:
        value = json.loads(text)
    except ValueError:
        return []
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
