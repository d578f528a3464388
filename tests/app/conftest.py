"""What the tests of the window share; without Qt only the tests of `app/models` are collected."""

from __future__ import annotations

from importlib.util import find_spec

if find_spec("PySide6") is not None:
    from tests.app.qt_fixtures import *  # noqa: F403  fixtures, each by its name
else:
    collect_ignore_glob = ["adapters", "cli", "report", "views", "test_*.py"]
