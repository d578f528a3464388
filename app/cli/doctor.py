"""`bankflip doctor`: what works on this machine, one line each."""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from app import about
from app.cli.display import display_problem
from app.resources import TINY_MODEL
from engine import diagnose
from engine.diagnose import ABSENT, FAILED, OK, Finding, guarded

HELP = "say what works on this machine"

QT_PROBE = (
    "from PySide6.QtWidgets import QApplication; import PySide6; from PySide6.QtGui import "
    "QFontDatabase; a = QApplication([]); "
    "print(PySide6.__version__, a.platformName(), len(QFontDatabase.families()))"
)
QT_TIMEOUT_S = 60


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument("--json", action="store_true", help="print JSON (schemas/doctor.json)")


def run(args: argparse.Namespace) -> int:
    """Look at everything; 1 when something that should work does not."""
    findings = examine()
    ok = all(finding.state != FAILED for finding in findings)
    if args.json:
        print(json.dumps(to_json(findings, ok), indent=1))
    else:
        width = max(len(finding.name) for finding in findings)
        for finding in findings:
            print(f"{finding.state:<7} {finding.name:<{width}}  {finding.detail}")
    return 0 if ok else 1


def examine() -> list[Finding]:
    """Every line, in the order in which things build on each other."""
    return [
        guarded("platform", system),
        guarded("python", python),
        *diagnose.backends(),
        guarded("qt", qt),
        guarded("display", display),
        guarded("kernels", diagnose.kernels),
        guarded("exactness", diagnose.exactness),
        guarded("sample run", lambda: diagnose.sample_run(TINY_MODEL)),
    ]


def to_json(findings: Sequence[Finding], ok: bool) -> dict[str, Any]:
    """The object of `doctor --json`."""
    return {
        "ok": ok,
        "version": about.VERSION,
        "checks": [
            {"name": f.name, "state": f.state, "detail": f.detail, "data": dict(f.data)}
            for f in findings
        ],
    }


def system() -> Finding:
    """The operating system."""
    words = f"{platform.system()} {platform.release()} {platform.machine()}"
    return Finding("platform", OK, f"{words}, {os.cpu_count()} cores")


def python() -> Finding:
    """The interpreter and the libraries."""
    found = about.library_versions()
    words = ", ".join(f"{name} {version}" for name, version in found.items())
    absent = [name for name, version in found.items() if version == "not installed"]
    state = FAILED if absent else OK
    return Finding("python", state, f"Python {platform.python_version()}, {words}")


def qt() -> Finding:
    """Qt in a child process without a display, since a broken Qt aborts instead of raising."""
    environment = {**os.environ, "QT_QPA_PLATFORM": "offscreen"}
    done = subprocess.run(
        [sys.executable, "-c", QT_PROBE],
        env=environment,
        capture_output=True,
        text=True,
        timeout=QT_TIMEOUT_S,
    )
    words = done.stdout.split()
    if done.returncode or len(words) < 3:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        return Finding("qt", FAILED, f"no pictures here: {last}")
    version, name, fonts = words[-3:]
    if fonts == "0":
        return Finding("qt", FAILED, f"PySide6 {version} finds no fonts: pictures lack all text")
    return Finding("qt", OK, f"PySide6 {version}, pictures through the {name} platform")


def display() -> Finding:
    """Whether the window can open."""
    problem = display_problem()
    if problem:
        return Finding(
            "display", ABSENT, f"{problem}: demo and screenshot work, the window does not"
        )
    return Finding("display", OK, "the window can open")
