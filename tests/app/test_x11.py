"""One smoke test in a real X11 window, driven end to end by keys and clicks.

Starts an X server of its own (Xvfb). In CI a missing one is a failure; elsewhere a reason.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def display(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The name of a display of this test."""
    program = shutil.which("Xvfb")
    if program is None:
        assert not os.environ.get("CI"), "CI needs Xvfb for the test in a real window"
        pytest.skip("needs Xvfb (Debian package xvfb)")
    read, write = os.pipe()
    server = subprocess.Popen(
        [program, "-displayfd", str(write), "-screen", "0", "1600x1000x24", "-nolisten", "tcp"],
        pass_fds=[write],
        stderr=subprocess.DEVNULL,
    )
    os.close(write)
    try:
        with os.fdopen(read) as pipe:
            number = pipe.readline().strip()
        assert number.isdigit(), "Xvfb did not start"
        yield f":{number}"
    finally:
        server.terminate()
        server.wait(20)


def run(display: str, code: str, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    env = {k: v for k, v in os.environ.items() if not k.startswith(("QT_", "WAYLAND", "XDG_"))}
    env |= {
        "DISPLAY": display,
        "PYTHONPATH": str(ROOT),
        "HOME": str(folder),
        "XDG_RUNTIME_DIR": str(folder),
    }
    command = [sys.executable, *(["-c", code] if code else ["-m", "app"]), *arguments]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=240, cwd=folder)


def test_the_window_is_driven_end_to_end(display: str, tmp_path: Path) -> None:
    result = run(display, DRIVE, tmp_path, str(tmp_path))
    assert result.returncode == 0, result.stdout + result.stderr
    told = json.loads(result.stdout.splitlines()[-1])
    assert told["platform"] == "xcb"
    assert told["outcomes"] == ["ok", "failed", "ok", "rejected"]
    assert told["same_digests"]
    assert told["size_kept"] == [1300, 850]
    assert told["docks_seen"] >= 5
    assert told["scheme_pixel_differs"]
    assert told["messages"] == []


DRIVE = """
import atexit, json, sys, time, traceback
from pathlib import Path
from PySide6.QtCore import Qt, qInstallMessageHandler
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
messages = []
qInstallMessageHandler(lambda kind, context, text: messages.append(text))
errors = []


def hook(kind, error, trace):
    errors.append(repr(error))
    traceback.print_exception(kind, error, trace)


sys.excepthook = hook
from app import theme
from app.settings import Settings
from app.views.main_window import MainWindow

folder = Path(sys.argv[1])
app = QApplication([])
theme.apply(app, "light")
settings = Settings(path=folder / "s.ini")
window = MainWindow(settings)
window.resize(1300, 850)
window.show()
QTest.qWaitForWindowExposed(window)

def wait(done, seconds=90):
    end = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < end, "too late"
        app.processEvents()
        time.sleep(0.002)

def settle():
    client.ping()
    wait(lambda: client.is_quiet)

client = window.client
atexit.register(client.stop)
QTest.mouseClick(window.start_page.demo, Qt.MouseButton.LeftButton)
wait(lambda: client.session is not None and client.feed.queued)
wait(lambda: window.actions_["run.chunk"].isEnabled())
detail = window.run_panel.detail
window.activateWindow()
assert QTest.qWaitForWindowActive(window, 10000), "no keyboard"
detail.setFocus()
QTest.keyClick(detail, Qt.Key.Key_F9)
wait(lambda: len(client.records) == 1)
from engine.commands import ArmFault
client.send(ArmFault("layer.3.qsa.select", "nonfinite"))
settle()
QTest.keyClick(detail, Qt.Key.Key_F9)
wait(lambda: len(client.records) == 2)
failed = client.records[1]
QTest.keyClick(detail, Qt.Key.Key_F9)
wait(lambda: len(client.records) == 3)
QTest.keyClick(detail, Qt.Key.Key_H, Qt.KeyboardModifier.ControlModifier)
wait(lambda: len(client.records) == 4)
settle()
QTest.keyClick(detail, Qt.Key.Key_H)
assert window.hub.selection.start == 12, window.hub.selection
QTest.keyClick(detail, Qt.Key.Key_G, Qt.KeyboardModifier.ControlModifier)
assert window.focusWidget() is window.time_bar.place
QTest.keyClicks(window.time_bar.place, "3")
QTest.keyClick(window.time_bar.place, Qt.Key.Key_Return)
assert window.hub.selection.start == 3
light = window.grab().toImage().pixel(650, 20)
window.set_scheme("dark")
QTest.qWait(100)
dark = window.grab().toImage().pixel(650, 20)
seen = sum(not d.visibleRegion().isEmpty() for d in window.docks.docks.values())
records = client.records
window.close()
again = MainWindow(settings)
again.show()
again.build_panels()
QTest.qWait(100)
size = [again.width(), again.height()]
again.close()
assert not errors, errors
print(json.dumps({
    "platform": app.platformName(),
    "outcomes": [r.outcome for r in records],
    "same_digests": failed.digests_before == failed.digests_after != (),
    "size_kept": size,
    "docks_seen": seen,
    "scheme_pixel_differs": light != dark,
    "messages": messages,
}))
"""


def test_the_command_opens_a_window_that_stays_until_it_is_closed(display, tmp_path: Path) -> None:
    env = {k: v for k, v in os.environ.items() if not k.startswith(("QT_", "WAYLAND", "XDG_"))}
    env |= {"DISPLAY": display, "PYTHONPATH": str(ROOT), "HOME": str(tmp_path)}
    process = subprocess.Popen(
        [sys.executable, "-m", "app", "--fresh"],
        env=env,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    log = tmp_path / ".local" / "state" / "bankflip" / "bankflip.log"
    try:
        end = time.monotonic() + 60
        while not log.exists() and time.monotonic() < end:
            assert process.poll() is None, process.communicate()
            time.sleep(0.05)
        time.sleep(1.0)
        assert process.poll() is None, process.communicate()
    finally:
        process.terminate()
        _, err = process.communicate(timeout=30)
    assert "Traceback" not in err
    assert log.exists()
