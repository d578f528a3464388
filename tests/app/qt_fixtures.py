"""A Qt application with fixed looks, settings of its own for each test, and hand-made values."""

from __future__ import annotations

import os
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PySide6.QtCore import QStandardPaths
from PySide6.QtWidgets import QApplication

from app import theme
from app.settings import Settings

__all__ = [
    "_away_from_home",
    "caught",
    "light",
    "no_thread_left",
    "settings",
    "wait",
]


@pytest.fixture(scope="session", autouse=True)
def _away_from_home() -> None:
    """Settings, caches and state of tests never touch the home folder."""
    QStandardPaths.setTestModeEnabled(True)


@pytest.fixture(autouse=True)
def light(qapp: QApplication) -> None:
    """Every test starts in the light colours."""
    theme.apply(qapp, "light")
    theme.set_reduced_motion(True)
    theme.set_patterns(False)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Settings in a file of this test."""
    return Settings(path=tmp_path / "settings.ini")


@pytest.fixture
def caught(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Tracebacks of errors that reached the hook of the interpreter; a test looks at them."""
    found: list[str] = []

    def hook(kind, error, trace) -> None:
        found.append("".join(traceback.format_exception(kind, error, trace)))

    monkeypatch.setattr(sys, "excepthook", hook)
    return found


@pytest.fixture(autouse=True)
def no_thread_left() -> Iterator[None]:
    """A test that leaves a thread of ours running fails."""
    before = set(threading.enumerate())
    yield
    left = [t for t in threading.enumerate() if t not in before and not t.daemon]
    assert not left, f"threads left running: {left}"


@pytest.fixture
def wait(qapp: QApplication) -> Callable[..., None]:
    """Turn the event loop until something is so."""

    def until(done: Callable[[], bool], seconds: float = 60.0, what: str = "") -> None:
        end = time.monotonic() + seconds
        while not done():
            assert time.monotonic() < end, f"not within {seconds} s: {what or done}"
            qapp.processEvents()
            time.sleep(0.001)

    return until
