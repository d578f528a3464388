"""What the offscreen platform of Qt says for nothing, kept away from the person's terminal."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Final

from PySide6.QtCore import QMessageLogContext, QtMsgType, qInstallMessageHandler

NOISE: Final = "This plugin does not support"
"""What the offscreen platform says of window hints, once a widget."""


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Drop what the offscreen platform says about window hints; all else goes on."""

    def handle(kind: QtMsgType, where: QMessageLogContext, text: str) -> None:
        if text.startswith(NOISE):
            return
        if previous is not None:
            previous(kind, where, text)
        else:
            print(text, file=sys.stderr)

    previous = qInstallMessageHandler(handle)
    try:
        yield
    finally:
        qInstallMessageHandler(previous)
