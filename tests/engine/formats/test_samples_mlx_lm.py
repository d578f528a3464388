"""Every mlx-lm sample gives its expected verdict, findings, runs, slots, holes and facts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.formats import CellMap, open_file

FOLDER = Path(__file__).parents[2] / "data" / "samples" / "mlx-lm"
FILES: dict[str, Any] = json.loads((FOLDER / "expected.json").read_text())["files"]


@pytest.mark.parametrize("name", FILES)
def test_verdict_and_findings(name: str) -> None:
    with open_file(FOLDER / name) as opened:
        report = opened.report.to_json()
    assert report["format"] == "mlx-lm"
    assert report["verdict"] == FILES[name]["verdict"]
    assert report["findings"] == FILES[name]["findings"]


@pytest.mark.parametrize("name", [name for name in FILES if FILES[name]["layers"]])
def test_layers(name: str) -> None:
    """Runs, holes, evicted and non-finite positions of every layer and sequence."""
    with open_file(FOLDER / name) as opened:
        sequences = opened.report.to_json()["sequences"]
    for layer in FILES[name]["layers"]:
        for number, expected in enumerate(layer.get("sequences", [layer])):
            parts = {part["name"]: part for part in sequences[number]["parts"]}
            part = parts[f"layer.{layer['layer']}"]
            assert part["class"] == layer["class"]
            for key in ("run", "holes", "non_finite", "evicted"):
                if key in expected:
                    assert part[key] == expected[key], (layer["layer"], key)
            if "non_finite_tensors" in expected:
                assert part["run"] is None


def slots_of(cells: CellMap) -> dict[int, int]:
    """Row of every position."""
    rows = np.flatnonzero(cells.positions >= 0)
    return dict(zip(cells.positions[rows].tolist(), rows.tolist(), strict=True))


@pytest.mark.parametrize("name", [name for name in FILES if FILES[name]["layers"]])
def test_cell_map_is_that_of_a_layer(name: str) -> None:
    """The map of a sequence shows the slots of one of its layers with the sequence's run."""
    layers = [layer for layer in FILES[name]["layers"] if layer.get("run", True)]
    with open_file(FOLDER / name) as opened:
        for number in range(len(opened.report.sequences)):
            shown = slots_of(opened.cell_map(number))
            expected = [
                {
                    position: slot
                    for entry in layer.get("sequences", [layer])[number]["slots"]
                    for position, slot in zip(
                        range(entry["positions"][0], entry["positions"][1] + 1),
                        range(entry["slots"][0], entry["slots"][1] + 1),
                        strict=True,
                    )
                }
                for layer in layers
            ]
            assert shown in expected


@pytest.mark.parametrize("name", FILES)
def test_facts(name: str) -> None:
    expected = FILES[name]
    with open_file(FOLDER / name) as opened:
        report = opened.report
    assert report.fact("layout") == expected["writer"]["layout"]
    unproved = [f"layer.{layer}" for layer in expected.get("unprovable_layers", [])]
    assert list(report.unproved) == unproved
    for fact in ("groups", "torn_positions"):
        if fact in expected:
            assert report.fact(fact) == expected[fact]
    if expected["layers"]:
        assert (report.fact("unused_values") or []) == expected.get("unused_values", [])
    for part in [part for sequence in report.sequences for part in sequence.parts]:
        stale = [[start, stop - 1] for start, stop in part.stale]
        assert stale == expected.get("stale_rows", stale), part.name
