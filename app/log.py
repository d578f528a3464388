"""Log, crash trace and the hooks that catch what no one else does. Knows no widget."""

from __future__ import annotations

import faulthandler
import logging
import logging.handlers
import platform
import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import IO

from PySide6.QtCore import QMessageLogContext, QtMsgType, qInstallMessageHandler

log = logging.getLogger("bankflip")

LOG_BYTES, LOG_FILES = 2**20, 3
LAST_LINES = 200

ErrorSink = Callable[[str, str], None]
"""Called with one sentence and the traceback."""


class Logging:
    """Log to a folder, catch exceptions of slots and threads, keep a trace of crashes."""

    def __init__(self, folder: Path, level: str = "INFO") -> None:
        self.folder = folder
        self.file = folder / "bankflip.log"
        self.crash_file = folder / "crash.txt"
        self._sinks: list[ErrorSink] = []
        self._places: set[str] = set()
        self._crash: IO[str] | None = None
        self._handler: logging.Handler | None = None
        self._level = level

    def install(self) -> str:
        """Set everything up; returns the trace of the last run's crash, empty where none."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._handler = logging.handlers.RotatingFileHandler(
                self.file, maxBytes=LOG_BYTES, backupCount=LOG_FILES - 1, encoding="utf-8"
            )
            last = self.crash_file.read_text("utf-8") if self.crash_file.exists() else ""
            self._crash = self.crash_file.open("w", encoding="utf-8")
        except OSError as error:
            log.warning("no log in %s: %s", self.folder, error)
            last = ""
        root = logging.getLogger()
        if self._handler is not None:
            form = "%(asctime)s %(levelname)s %(name)s: %(message)s"
            self._handler.setFormatter(logging.Formatter(form))
            root.addHandler(self._handler)
            root.setLevel(self._level)
        if self._crash is not None:
            faulthandler.enable(self._crash)
        sys.excepthook = self._caught
        threading.excepthook = lambda args: self._caught(
            args.exc_type, args.exc_value or Exception(), args.exc_traceback
        )
        qInstallMessageHandler(_qt_message)
        return last.strip()

    def close(self) -> None:
        """Undo `install`; an empty crash file says that all went well."""
        sys.excepthook = sys.__excepthook__
        threading.excepthook = threading.__excepthook__
        qInstallMessageHandler(None)
        if self._crash is not None:
            faulthandler.disable()
            self._crash.close()
        if self._handler is not None:
            logging.getLogger().removeHandler(self._handler)
            self._handler.close()

    def tell(self, sink: ErrorSink) -> None:
        """Also tell caught errors to `sink`, once a place in the code."""
        self._sinks.append(sink)

    def _caught(
        self, kind: type[BaseException], error: BaseException, trace: TracebackType | None
    ) -> None:
        text = "".join(traceback.format_exception(kind, error, trace))
        log.error("uncaught %s", text)
        if issubclass(kind, KeyboardInterrupt):
            sys.__excepthook__(kind, error, trace)
            return
        last = traceback.extract_tb(trace)[-1:] if trace is not None else []
        place = f"{last[0].filename}:{last[0].lineno}" if last else str(kind)
        if place in self._places:
            return
        self._places.add(place)
        for sink in self._sinks:
            sink(f"An error was recorded: {kind.__name__}: {error}", text)

    def last_lines(self) -> str:
        """The end of the log."""
        try:
            lines = self.file.read_text("utf-8", "replace").splitlines()
        except OSError:
            return ""
        return "\n".join(lines[-LAST_LINES:])


_LEVELS = {
    QtMsgType.QtDebugMsg: logging.DEBUG,
    QtMsgType.QtInfoMsg: logging.INFO,
    QtMsgType.QtWarningMsg: logging.WARNING,
    QtMsgType.QtCriticalMsg: logging.ERROR,
    QtMsgType.QtFatalMsg: logging.CRITICAL,
}


def _qt_message(kind: QtMsgType, context: QMessageLogContext, message: str) -> None:
    logging.getLogger("qt").log(_LEVELS.get(kind, logging.INFO), message)


def diagnostics(backend: str, extra: str = "") -> str:
    """Versions and platform; no contents of files."""
    import numpy
    import PySide6
    from PySide6.QtGui import QGuiApplication

    screen = QGuiApplication.primaryScreen()
    scale = screen.devicePixelRatio() if screen is not None else 0
    lines = [
        f"Python {platform.python_version()} on {platform.platform()}",
        f"PySide6 {PySide6.__version__}, NumPy {numpy.__version__}",
        f"Qt platform {QGuiApplication.platformName()}, scale {scale}",
        f"backend {backend}",
    ]
    return "\n".join([*lines, extra]).strip() + "\n"
