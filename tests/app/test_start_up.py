"""What starting imports, what happens without a display, and the calls that PySide may lose."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SLOW = ("pyqtgraph", "mlx", "jinja2", "asyncio", "zmq", "sqlite3")


def python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    env = {k: v for k, v in os.environ.items() if k not in ("DISPLAY", "WAYLAND_DISPLAY")}
    env |= {"QT_QPA_PLATFORM": "offscreen", "PYTHONPATH": str(ROOT), **environment}
    return subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=120
    )


def test_importing_the_main_window_imports_nothing_slow() -> None:
    names = ", ".join(map(repr, SLOW))
    code = (
        "import sys, app.views.main_window, app.main\n"
        f"print([m for m in ({names}) if m in sys.modules])"
    )
    result = python(code)
    assert result.stdout.strip() == "[]", result.stdout + result.stderr


def test_the_first_picture_needs_no_commands_of_the_engine() -> None:
    """Sixty-odd frozen types take as long to make as a tenth of the start."""
    code = (
        "import sys\n"
        "from PySide6.QtWidgets import QApplication\n"
        "from app.views.main_window import MainWindow\n"
        "app = QApplication([]); window = MainWindow(); window.show(); window.repaint()\n"
        "print([m for m in ('engine.commands', 'engine.ops', 'numpy.random') if m in sys.modules])"
    )
    result = python(code)
    assert result.stdout.strip() == "[]", result.stdout + result.stderr


@pytest.mark.parametrize("arguments", [[], ["--fresh"]])
def test_without_a_display_a_sentence_and_status_two(arguments: list[str]) -> None:
    env = {k: v for k, v in os.environ.items() if not k.startswith(("DISPLAY", "WAYLAND", "QT_"))}
    env["PYTHONPATH"] = str(ROOT)
    result = subprocess.run(
        [sys.executable, "-m", "app", *arguments],
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert result.returncode == 2
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) == 1
    assert "bankflip demo" in result.stderr
    assert "bankflip screenshot" in result.stderr


def test_a_file_that_is_not_there_is_status_two() -> None:
    code = "import sys; from app.cli.window import main; sys.exit(main(['/no/such/file']))"
    result = python(code)
    assert result.returncode == 2
    assert "there is no such file, nor a command of that name" in result.stderr


def test_a_command_behind_an_option_is_told_where_it_belongs() -> None:
    code = (
        "import sys; from app.cli.window import main; sys.exit(main(['--theme', 'dark', 'demo']))"
    )
    result = python(code)
    assert result.returncode == 2
    assert "demo is a command, which comes first: bankflip demo --help" in result.stderr


def test_twenty_thousand_calls_that_return_nothing_do_not_abort() -> None:
    code = (
        "from PySide6.QtCore import QObject, Signal\n"
        "class O(QObject):\n"
        "    s = Signal(int)\n"
        "o = O(); n = []; o.s.connect(n.append)\n"
        "for i in range(20000): o.s.emit(i); o.setObjectName('x')\n"
        "print(len(n))"
    )
    result = python(code)
    assert result.stdout.strip() == "20000", result.stderr


def test_a_file_that_the_desktop_opens_is_handed_on() -> None:
    code = (
        "from PySide6.QtCore import QUrl\n"
        "from PySide6.QtGui import QFileOpenEvent\n"
        "from app.views.application import Application\n"
        "a = Application([]); a.file_opened.connect(print)\n"
        "a.sendEvent(a, QFileOpenEvent(QUrl.fromLocalFile('/tmp/x.bankflip')))"
    )
    result = python(code)
    assert result.stdout.strip() == "/tmp/x.bankflip", result.stderr


def test_the_first_window_is_no_larger_than_the_screen() -> None:
    """The offscreen platform has a screen of 800 by 800 pixels."""
    code = (
        "from app.views import main_window\n"
        "shown = main_window.MainWindow.showEvent\n"
        "def show(self, event):\n"
        "    room = self.screen().availableSize()\n"
        "    print(self.width() <= room.width(), self.height() <= room.height())\n"
        "    shown(self, event)\n"
        "main_window.MainWindow.showEvent = show\n"
        "from app.main import Start, run_window\n"
        "run_window(Start(fresh=True, quit_after_s=0.2))\n"
    )
    result = python(code)
    assert result.returncode == 0, result.stderr
    assert set(result.stdout.split()) == {"True"}
