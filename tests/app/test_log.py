"""The log: errors are caught once a place, Qt's messages are kept, a crash leaves a trace."""

from __future__ import annotations

import logging
import subprocess
import sys
from pathlib import Path

import pytest

from app.log import Logging, diagnostics

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def log(tmp_path: Path):
    found = Logging(tmp_path / "state")
    before = (sys.excepthook, logging.getLogger().level)
    assert found.install() == ""
    yield found
    found.close()
    sys.excepthook = before[0]
    logging.getLogger().setLevel(before[1])


def fail(words: str) -> None:
    try:
        raise RuntimeError(words)
    except RuntimeError as error:
        sys.excepthook(type(error), error, error.__traceback__)


def test_an_error_is_told_once_a_place_and_logged_every_time(log: Logging) -> None:
    told: list[tuple[str, str]] = []
    log.tell(lambda sentence, trace: told.append((sentence, trace)))
    fail("one")
    fail("two")
    assert [sentence for sentence, _ in told] == ["An error was recorded: RuntimeError: one"]
    assert "test_log.py" in told[0][1]
    lines = log.last_lines()
    assert "RuntimeError: one" in lines
    assert "RuntimeError: two" in lines


def test_only_the_last_lines_are_copied(log: Logging) -> None:
    for n in range(300):
        logging.getLogger("x").warning("line %d", n)
    lines = log.last_lines().splitlines()
    assert len(lines) == 200
    assert lines[-1].endswith("line 299")


def test_closing_gives_the_hooks_back(tmp_path: Path) -> None:
    log = Logging(tmp_path)
    log.install()
    log.close()
    assert sys.excepthook is sys.__excepthook__


def test_a_folder_that_cannot_be_made_is_no_reason_to_fail(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    log = Logging(tmp_path / "file" / "below")
    assert log.install() == ""
    log.close()
    assert log.last_lines() == ""


def test_a_crash_leaves_a_trace_for_the_next_start(tmp_path: Path) -> None:
    code = (
        "import sys, faulthandler; from pathlib import Path; from app.log import Logging\n"
        "Logging(Path(sys.argv[1])).install()\n"
        "faulthandler._sigsegv()"
    )
    result = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], cwd=ROOT, capture_output=True, timeout=60
    )
    assert result.returncode != 0
    after = Logging(tmp_path)
    trace = after.install()
    after.close()
    assert "Segmentation fault" in trace
    again = Logging(tmp_path)
    assert again.install() == ""
    again.close()


def test_qt_messages_go_to_the_log(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from PySide6.QtCore import qWarning\n"
        "from app.log import Logging\n"
        "log = Logging(Path(sys.argv[1])); log.install(); qWarning('a word of Qt'); log.close()"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], cwd=ROOT, check=True, timeout=60)
    assert "WARNING qt: a word of Qt" in (tmp_path / "bankflip.log").read_text()


def test_diagnostics_name_versions_and_no_paths(qapp) -> None:
    text = diagnostics("cpu", "extra")
    assert "PySide6" in text
    assert "backend cpu" in text
    assert text.endswith("extra\n")
