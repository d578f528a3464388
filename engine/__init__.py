"""The engine's front door: sessions, commands, snapshots, errors. All else is private to it.

Names are looked up at first use, so that importing `engine` loads no array library.
"""

from __future__ import annotations

import importlib
from typing import Any, Final

_WHERE: Final = {
    "Engine": "engine.engine",
    "append": "engine.engine",
    "open_engine": "engine.opening",
    "builtin_models": "engine.opening",
    "model_folder": "engine.opening",
    "Driver": "engine.driver",
    "CancelToken": "engine.progress",
    "Progress": "engine.progress",
    "run_check": "engine.checks",
    "save_session": "engine.session_file",
    "load_session": "engine.session_file",
    "read_about": "engine.session_file",
    "Rejected": "engine.errors",
    "StepFailed": "engine.errors",
    "InvariantBroken": "engine.errors",
    "Unreadable": "engine.errors",
    "Malformed": "engine.errors",
    "Snapshot": "engine.snapshot",
    "Record": "engine.snapshot",
}
__all__ = sorted(_WHERE)


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'engine' has no attribute {name!r}")
    return getattr(importlib.import_module(_WHERE[name]), name)
