"""What this program and its libraries are, for captures, reports and `doctor`; no Qt import."""

from __future__ import annotations

import platform
import shlex
from importlib import metadata

from app import given
from engine.printable import printable
from engine.snapshot import Snapshot

VERSION = "0.1.0"
LIBRARIES = ("mlx", "numpy", "PySide6-Essentials")


def library_versions() -> dict[str, str]:
    """Installed versions, without importing anything."""
    found = {}
    for name in LIBRARIES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found


def versions() -> dict[str, str]:
    """Everything with a version, as reports list it."""
    return {
        "Bankflip": VERSION,
        "Python": platform.python_version(),
        **library_versions(),
        "System": f"{platform.system()} {platform.machine()}",
    }


def command_line() -> str:
    """The command as a person would type it."""
    return shlex.join(["bankflip", *given.arguments])


def of_session(start: Snapshot, title: str = "", command: str | None = None) -> dict[str, str]:
    """The `about` of a capture."""
    words = "; ".join(f"{name} {version}" for name, version in versions().items())
    found = {
        "title": title,
        "model": start.model,
        "backend": start.backend,
        "exact": start.exact,
        "versions": words,
        "command_line": command_line() if command is None else command,
    }
    return {name: printable(value) for name, value in found.items()}
