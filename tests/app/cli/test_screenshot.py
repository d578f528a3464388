"""`bankflip screenshot`: size, colours of both themes, panels, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from app import resources, theme
from tests.helpers.commands import child

SEEN = ("group_a", "group_b", "tail", "hole", "padding", "private", "public", "accent")
"""Every one of these is in the picture of the tiny model's work."""


def pixels(path: Path) -> np.ndarray:
    """[rows, columns] 0xRRGGBB."""
    with Image.open(path) as image:
        table = np.asarray(image.convert("RGB"), np.uint32)
    return table[..., 0] << 16 | table[..., 1] << 8 | table[..., 2]


def share(table: np.ndarray, scheme: str, role: str) -> float:
    return float(np.mean(table == int(theme.load(scheme).colours[role][1:], 16)))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_window_shows_every_kind_in_the_colours_of_the_theme(tmp_path: Path, scheme) -> None:
    out = tmp_path / "w.png"
    done = child("screenshot", "--out", out, "--size", "1280x800", "--theme", scheme)
    assert done.status == 0, done.err
    table = pixels(out)
    assert table.shape == (800, 1280)
    assert share(table, scheme, "window") > 0.15
    few = {role: share(table, scheme, role) for role in SEEN}
    assert {role: value for role, value in few.items() if value < 100 / table.size} == {}
    assert few["group_a"] > 0.03
    other = "dark" if scheme == "light" else "light"
    assert share(table, other, "window") < 0.001


def test_a_panel_of_a_file_alone(tmp_path: Path) -> None:
    out = tmp_path / "f.png"
    sample = resources.SAMPLES / "llama-cpp-hole.seq"
    done = child("screenshot", sample, "--out", out, "--panel", "run", "--scale", "2")
    assert done.status == 0, done.err
    table = pixels(out)
    assert table.shape[1] > 1440, "two device pixels a pixel"
    assert share(table, "light", "hole") > 0.005
    assert share(table, "light", "group_a") > 0.1


def test_bookmarks_are_called_as_their_panel_or_by_their_id(tmp_path: Path) -> None:
    pictures = []
    for name in ("bookmarks", "marks"):
        out = tmp_path / f"{name}.png"
        done = child("screenshot", "hole-refused", "--out", out, "--panel", name)
        assert done.status == 0, done.err
        pictures.append(pixels(out).tolist())
    assert pictures[0] == pictures[1]
    helped = " ".join(child("screenshot", "--help").out.split())
    assert "bookmarks" in helped
    assert " marks," not in helped


def test_a_scenario_that_ships_by_its_name(tmp_path: Path) -> None:
    out = tmp_path / "s.png"
    done = child("screenshot", "hole-refused", "--out", out, "--panel", "journal")
    assert done.status == 0, done.err
    assert out.stat().st_size > 0


def test_a_file_without_sense_has_its_picture_and_says_so(tmp_path: Path) -> None:
    given, out = tmp_path / "given", tmp_path / "f.png"
    given.write_bytes(bytes(range(256)))
    done = child("screenshot", given, "--out", out)
    assert done.status == 2
    assert "given: at byte 0 expected the start of a known format" in done.one_sentence()
    assert pixels(out).shape == (900, 1440)


def test_what_stood_there_stays_when_no_picture_can_be_made(tmp_path: Path) -> None:
    kept = tmp_path / "notes.txt"
    kept.write_text("mine")
    for out in (kept, tmp_path, tmp_path / "none" / "w.png"):
        done = child("screenshot", "--start", "--out", out)
        assert done.status == 2
        assert str(out) in done.one_sentence()
    assert kept.read_text() == "mine"
    assert list(tmp_path.iterdir()) == [kept]


@pytest.mark.parametrize(("arguments", "words"), [
    (["--size", "9x9"], "expected a size such as 1280x800"),
    (["/no/such/file"], "there is no such file"),
    (["--start", "--panel", "nothing"], "expected a panel of run"),
    (["--theme", "pink"], "invalid choice"),
])  # fmt: skip
def test_what_is_wrong_is_said_and_no_picture_is_left(tmp_path: Path, arguments, words) -> None:
    out = tmp_path / "x.png"
    done = child("screenshot", *arguments, "--out", out)
    assert done.status == 2
    assert words in done.err
    assert "Traceback" not in done.err
    assert not out.exists()


def test_a_folder_that_is_not_there_is_said(tmp_path: Path) -> None:
    done = child("screenshot", "--start", "--out", tmp_path / "no" / "x.png")
    assert done.status == 2
    assert "does not exist" in done.one_sentence()
