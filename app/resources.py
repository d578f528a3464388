"""Where icons, themes, scenarios, samples and models lie inside the package `resources`.

Owns paths only. Knows no Qt and reads no file beyond looking at what is there.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

import resources

ROOT = Path(resources.__file__).resolve().parent
ICONS = ROOT / "icons"
THEMES = ROOT / "themes"
MODELS = ROOT / "models"
SCENARIOS = ROOT / "scenarios"
SAMPLES = ROOT / "samples"

TINY_MODEL = "qwen4exp-tiny"


def icon_path(name: str) -> Path:
    """The SVG file of an icon; FileNotFoundError where no such icon ships."""
    path = ICONS / f"{name}.svg"
    if not path.is_file():
        raise FileNotFoundError(f"no icon named {name!r} in {ICONS}")
    return path


def theme_path(name: str) -> Path:
    """The TOML file of a theme."""
    return THEMES / f"{name}.toml"


def models() -> tuple[Path, ...]:
    """Built-in model folders, by name."""
    return tuple(sorted(p.parent for p in MODELS.glob("*/config.json")))


def scenarios() -> tuple[Path, ...]:
    """Shipped scenarios, by name."""
    return tuple(sorted(p for p in SCENARIOS.glob("*") if p.suffix in (".json", ".toml")))


def samples() -> tuple[tuple[Path, str, str], ...]:
    """(path, title, one line) of the shipped files of other engines, in their order."""
    with (SAMPLES / "samples.toml").open("rb") as file:
        table = tomllib.load(file)
    return tuple((SAMPLES / name, str(v["title"]), str(v["line"])) for name, v in table.items())
