"""`bankflip sweep`: both grids, what fails is shown, the picture shows the same."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from app.cli import sweep as command
from engine.engine import Engine
from engine.ops import Append, Op
from engine.snapshot import Record
from tests.helpers.commands import Command, valid


def write(path: Path, n: int, capacity: int) -> Path:
    op = {"op": "append", "seq": 0, "positions": list(range(7, 7 + n))}
    path.write_text(json.dumps({"capacity": capacity, "ops": [op]}))
    return path


def test_the_grid_of_a_plain_append(bankflip: Command, tmp_path: Path) -> None:
    done = bankflip("sweep", write(tmp_path / "s.json", 6, 8), "--json")
    swept = valid("sweep", done.json)
    assert done.status == 0
    assert swept["ok"]
    edges, cuts = swept["grids"]
    found = {int(cell["column"].split()[0]): cell["result"] for cell in edges["cells"]}
    assert found == dict.fromkeys((3, 4, 5, 7, 8), "ok") | {9: "rejected: capacity"}
    assert len(cuts["cells"]) == 5 * 6 // 2
    assert swept["tried"] == len(edges["cells"]) + len(cuts["cells"])


def test_every_cut_of_a_models_prompt_gives_the_same_bytes(
    bankflip: Command, tmp_path: Path
) -> None:
    op = {"op": "append", "seq": 0, "positions": list(range(6)), "tokens": [9, 8, 77, 31, 200, 12]}
    path = tmp_path / "s.json"
    path.write_text(json.dumps({"capacity": 64, "model": "qwen4exp-tiny", "ops": [op]}))
    done = bankflip("sweep", path, "--cuts", 3, "--most", 9, "--json", "--backend", "cpu")
    swept = valid("sweep", done.json)
    assert done.status == 0
    edges, cuts = swept["grids"]
    assert [cell["result"] for cell in cuts["cells"]] == ["ok"] * 6
    assert len(edges["cells"]) == 6
    assert all(cell["ok"] for cell in (*edges["cells"], *cuts["cells"]))
    assert edges["left_out"] == ["capacity at 64 is beyond the limit of 9"]
    assert cuts["left_out"] == ["cuts after more than 3 of 6 tokens"]


def test_a_cell_that_fails_is_status_1_and_says_why(
    bankflip: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = Engine.apply

    def lying(self: Engine, op: Op, **more: object) -> Record:
        """An engine that takes one position too many for refused."""
        record = honest(self, op, **more)  # type: ignore[arg-type]
        if isinstance(op, Append) and len(op.positions) == 8:
            return replace(record, result="rejected: capacity", outcome="rejected")
        return record

    monkeypatch.setattr(Engine, "apply", lying)
    path, picture = write(tmp_path / "s.json", 6, 8), tmp_path / "p.png"
    done = bankflip("sweep", path, "--json", "--out", picture)
    assert done.status == 1
    bad = [cell for cell in done.json["grids"][0]["cells"] if not cell["ok"]]
    assert [cell["column"].split()[0] for cell in bad] == ["8"]
    assert "expected ok, got rejected: capacity" in bad[0]["reason"]
    assert "refused, and yet state changed" in bad[0]["reason"]
    text = bankflip("sweep", path)
    assert "1 FAIL" in text.out
    assert "X op 0, sequence 0, 8 (two groups)" in text.out


def red_share(path: Path) -> float:
    """Share of pixels in the colour of a failed cell."""
    pixels = np.asarray(Image.open(path).convert("RGB")).reshape(-1, 3).astype(int)
    return float((np.abs(pixels - (0xDE, 0x43, 0x1F)).max(axis=1) < 8).mean())


def test_the_picture_is_whole_and_the_same_twice(bankflip: Command, tmp_path: Path) -> None:
    path = write(tmp_path / "s.json", 6, 8)
    for name in ("a.png", "b.png"):
        assert bankflip("sweep", path, "--out", tmp_path / name).status == 0
    assert bankflip("sweep", path, "--out", tmp_path / "d.png", "--theme", "dark").status == 0
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()
    light, dark = (np.asarray(Image.open(tmp_path / n).convert("L")) for n in ("a.png", "d.png"))
    assert light.shape == dark.shape
    assert light[2, 2] > 240 > 60 > dark[2, 2]
    # only the legend shows the colour of failing
    assert 0 < red_share(tmp_path / "a.png") < 0.01


def test_text_is_for_people(bankflip: Command, tmp_path: Path) -> None:
    done = bankflip("sweep", write(tmp_path / "s.json", 6, 8))
    lines = done.out.splitlines()
    assert lines[0] == "s: 21 variants, all pass"
    assert "  op 0, sequence 0  + + + + + r" in lines
    assert command.mark(None) == "."
