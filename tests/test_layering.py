"""Layers: the contracts hold, and what is below the window works where Qt is not installed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
BLOCK = """
import importlib, importlib.abc, pkgutil, sys

class Block(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {blocked!r}:
            raise ImportError(f"{{name}} is blocked here")

sys.meta_path.insert(0, Block())
names = []
for top in {tops!r}:
    package = importlib.import_module(top)
    names += [m.name for m in pkgutil.walk_packages(package.__path__, top + ".")]
names = [n for n in names if not n.endswith("__main__")]
for name in names:
    importlib.import_module(name)
print(len(names))
"""


def python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=200,
    )


@pytest.mark.parametrize(
    ("tops", "blocked"),
    [
        (("engine", "metal", "app.models"), ("PySide6", "shiboken6", "pyqtgraph")),
        (("metal",), ("PySide6", "pyqtgraph", "engine", "app")),
        (("engine",), ("PySide6", "pyqtgraph", "app")),
    ],
    ids=["no Qt", "metal alone", "engine without app"],
)
def test_everything_below_imports_without(tops: tuple[str, ...], blocked: tuple[str, ...]) -> None:
    result = python(BLOCK.format(tops=tops, blocked=blocked))
    assert result.returncode == 0, result.stderr
    assert int(result.stdout) > 5


def test_importing_the_front_door_loads_no_array_library() -> None:
    result = python("import sys, engine; print([m for m in ('mlx', 'numpy') if m in sys.modules])")
    assert result.stdout.strip() == "[]", result.stderr


def test_the_contracts_hold() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    n = len(contracts["contracts"])
    assert n >= 4
    result = subprocess.run(
        [sys.executable, "-c", "from importlinter.cli import lint_imports_command as c; c()"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=250,
    )
    assert f"{n} kept, 0 broken" in result.stdout, result.stdout + result.stderr


def test_no_source_below_the_window_names_qt() -> None:
    """What an import contract cannot see: imports by name, and Qt's words."""
    for folder in ("engine", "metal", "app/models"):
        for file in sorted((ROOT / folder).rglob("*.py")):
            text = file.read_text()
            assert not re.search(r"import_module\([^)]*(PySide6|pyqtgraph|[\"']app)", text), file
