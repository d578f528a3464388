"""Is there a display for the window? Asked before Qt, which aborts where there is none."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Mapping
from pathlib import Path

HEADLESS = ("offscreen", "minimal", "vnc")
CONNECT_TIMEOUT_S = 2.0


def display_problem(environment: Mapping[str, str] = os.environ) -> str:
    """Why the window can't open here; empty when it can."""
    chosen = environment.get("QT_QPA_PLATFORM", "").split(":")[0].split(";")[0]
    if chosen in HEADLESS:
        return f"QT_QPA_PLATFORM is {chosen}"
    if sys.platform == "darwin" or os.name == "nt":
        return ""
    wayland = environment.get("WAYLAND_DISPLAY")
    if wayland and chosen in ("", "wayland"):
        path = Path(environment.get("XDG_RUNTIME_DIR", "/")) / wayland
        if _answers(socket.AF_UNIX, str(path)):
            return ""
    name = environment.get("DISPLAY")
    if not name:
        return "no display (neither DISPLAY nor WAYLAND_DISPLAY is set)"
    return "" if x_answers(name) else f"the display {name} does not answer"


def x_answers(name: str) -> bool:
    """Whether an X server listens at a name such as `:0`, `host:10.0`."""
    host, _, rest = name.rpartition(":")
    number = rest.split(".")[0]
    if not (number.isascii() and number.isdigit()) or len(number) > 5:
        return False
    if host in ("", "unix"):
        path = f"/tmp/.X11-unix/X{number}"
        return _answers(socket.AF_UNIX, path) or _answers(socket.AF_UNIX, f"\0{path}")
    return _answers(socket.AF_INET, (host.strip("[]"), 6000 + int(number)))


def _answers(family: int, address: str | tuple[str, int]) -> bool:
    try:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.settimeout(CONNECT_TIMEOUT_S)
            probe.connect(address)
            return True
    except (OSError, ValueError, OverflowError):
        return False
