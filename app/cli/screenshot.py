"""`bankflip screenshot`: one picture of the window or of a panel, without a display."""

from __future__ import annotations

import argparse
import os
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app.cli.common import UsageError, check_output, sentence, write_atomically
from app.cli.run import shipped
from app.views import PANELS
from engine.errors import EngineError

if TYPE_CHECKING:
    from app.views.main_window import MainWindow

HELP = "make one picture of the window or a panel"
WAIT_S = 60.0
"""Longest wait for a file to be opened and its panels to be filled."""
OTHER_NAMES = {"marks": "bookmarks"}
"""Panels that are called here as their titles are; their own ids are taken, too."""
SETTLE_S = 0.3
"""Panels redraw at most every 50 ms; after this all of them have."""


def size(text: str) -> tuple[int, int]:
    """`1280x800` as a pair; 320x240 to 7680x4320."""
    match = re.fullmatch(r"([0-9]{3,4})x([0-9]{3,4})", text)
    if match is None:
        raise argparse.ArgumentTypeError(f"expected a size such as 1280x800, given {text!r}")
    width, height = int(match[1]), int(match[2])
    if not (320 <= width <= 7680 and 240 <= height <= 4320):
        raise argparse.ArgumentTypeError(f"expected 320x240 to 7680x4320, given {text}")
    return width, height


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument(
        "file",
        nargs="?",
        metavar="FILE",
        help="what to open: any file that the window opens, or the name of a scenario that ships "
        "(default: tiny model)",
    )
    parser.add_argument("--out", required=True, metavar="F.png", help="picture to write")
    parser.add_argument(
        "--size", type=size, default=(1440, 900), metavar="WxH", help="pixels (1440x900)"
    )
    parser.add_argument(
        "--theme", choices=("light", "dark", "contrast"), default="light", help="colours (light)"
    )
    ids = ", ".join(("run", *(OTHER_NAMES.get(panel.id, panel.id) for panel in PANELS)))
    parser.add_argument("--panel", metavar="ID", help=f"only this panel: {ids}")
    parser.add_argument(
        "--scale", type=int, choices=(1, 2), default=1, help="device pixels a pixel"
    )
    parser.add_argument(
        "--start", action="store_true", help="picture of the start page instead of a session"
    )


def run(args: argparse.Namespace) -> int:
    """Write the picture; nothing is left behind when it can't be made."""
    check_output(Path(args.out))
    os.environ["QT_QPA_PLATFORM"] = "offscreen"
    os.environ["QT_SCALE_FACTOR"] = str(args.scale)
    from PySide6.QtWidgets import QApplication

    from app import offscreen, theme
    from app.cli.check import check_file
    from app.models.opening import FileKind, kind_of
    from app.settings import Settings
    from app.views.main_window import MainWindow
    from engine.formats import Options

    if args.file is not None:
        if not Path(args.file).exists():
            args.file = str(shipped().get(args.file, args.file))
        verdict = kind_of(Path(args.file))
        if verdict.kind is None:
            raise EngineError(verdict.reason)
    application = QApplication.instance() or QApplication(["bankflip"])
    assert isinstance(application, QApplication)
    theme.apply(application, args.theme)
    with offscreen.quiet():
        _shoot(MainWindow(Settings(fresh=True)), args)
    if args.file is not None and verdict.kind is FileKind.FOREIGN:
        # the picture shows what is wrong; the status says so
        report = check_file(args.file, Options())
        if report.exit_status == 2:
            told = sentence(f"{args.file}: {report.reason}")
            print(f"bankflip screenshot: {told}", file=sys.stderr)
            return 2
    return 0


def _shoot(window: MainWindow, args: argparse.Namespace) -> None:
    try:
        window.resize(*args.size)
        window.show()
        window.build_panels()
        if not args.start:
            _open(window, args.file)
        wait(lambda: True)
        _write(window, args)
    finally:
        window.close()


def _open(window: MainWindow, file: str | None) -> None:
    """Open the file (or run the tiny model a little) and wait until all is shown."""
    if file is None:
        window.open_tiny()
    else:
        window.open_path(file)
    wait(lambda: not window.is_opening)
    if window.client.session is None or window.client.offline:
        return
    if file is None:
        show_work(window)
    elif window.client.scenario is not None:
        play(window)


def play(window: MainWindow) -> None:
    """All ops of the scenario that was opened."""
    panel: Any = window.docks.panels.get("scenario")
    if panel is not None:
        panel.play_all()
        wait(lambda: len(panel.player.results) == len(panel.player.ops))
    window.client.ping()
    wait(lambda: window.client.is_quiet)


def show_work(window: MainWindow) -> None:
    """Chunks that succeed, one made to fail, a hole that is refused, and a chunk in flight."""
    from app.models.goto import made_up
    from engine.commands import ArmFault, ClearFeed, Feed, Run, StepStage

    client = window.client
    client.send(Run(to_position=42))
    client.ping()
    wait(lambda: client.is_quiet)
    client.send(ArmFault("layer.3.qsa.select", "nonfinite"))
    client.send(Run())
    client.ping()
    wait(lambda: client.is_quiet)
    window.append_hole()
    client.send(ClearFeed(0))
    client.send(Feed(1, made_up(40, seed=7), start=16))
    client.send(Run(to_position=34))
    client.ping()
    wait(lambda: client.is_quiet)
    for _ in range(20):
        client.send(StepStage())
    client.ping()
    wait(lambda: client.is_quiet)
    window.run_panel.go_to(39)


def wait(done: Callable[[], bool]) -> None:
    """Turn the event loop until something is so, then until all drawings are fresh."""
    from PySide6.QtWidgets import QApplication

    end = time.monotonic() + WAIT_S
    while not done():
        if time.monotonic() > end:
            raise EngineError(f"the window was not ready within {WAIT_S:.0f} seconds")
        QApplication.processEvents()
        time.sleep(0.002)
    settled = time.monotonic() + SETTLE_S
    while time.monotonic() < settled:
        QApplication.processEvents()
        time.sleep(0.002)


def _write(window: MainWindow, args: argparse.Namespace) -> None:
    from PySide6.QtCore import QBuffer, QByteArray
    from PySide6.QtWidgets import QWidget

    target: QWidget = window
    if args.panel is not None:
        known = {"run": window.run_panel, **window.docks.panels}
        inner = {name: id for id, name in OTHER_NAMES.items()}
        id = inner.get(args.panel, args.panel)
        if id not in known:
            names = ", ".join(OTHER_NAMES.get(name, name) for name in known)
            raise EngineError(f"expected a panel of {names}, given {args.panel!r}")
        if id != "run":
            window.go_to_panel(id)
            wait(lambda: True)  # text that wraps asks for its place twice
        target = known[id]
    message = window.error_bar.whole().strip() if window.error_bar.isVisible() else ""
    if message and window.client.session is None and not window.client.offline:
        raise EngineError(message.splitlines()[0])
    content = QByteArray()
    if not target.grab().save(QBuffer(content), Path(args.out).suffix[1:] or "png"):
        raise UsageError(f"{args.out}: expected a picture, F.png, given another kind of file")
    write_atomically(Path(args.out), bytes(content.data()))
