"""Adapters need Qt; where it is not installed their tests are not collected."""

from __future__ import annotations

from importlib.util import find_spec

if find_spec("PySide6") is None:
    collect_ignore_glob = ["test_*.py"]
