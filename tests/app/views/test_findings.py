"""Findings of real sample files: tables without trouble, row norms by one click."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import Qt

from app import theme
from app.views.findings import FindingsPanel
from engine.formats import open_file

SAMPLES = Path(__file__).parents[2] / "data" / "samples"
FILES = sorted(p for p in SAMPLES.rglob("*") if p.is_file() and p.suffix not in (".md", ".json"))


def report_of(path: Path) -> dict:
    with open_file(path) as opened:
        return {**opened.report.to_json(), "file": str(path)}


@pytest.mark.parametrize("folder", sorted({path.parent.name for path in FILES}))
def test_every_sample_is_shown(desk, folder):
    panel = desk.open(FindingsPanel, (900, 400))
    for path in (path for path in FILES if path.parent.name == folder):
        report = report_of(path)
        panel.show_report(report)
        sound = report["verdict"] == "ok"
        assert panel.line.text().startswith(
            f"{path.name}: {'Sound' if sound else report['verdict']}"
        )
        assert panel.found.table.rowCount() >= len(report["findings"])
        n_parts = sum(1 + len(s.get("parts") or ()) for s in report.get("sequences") or ())
        assert panel.parts.table.rowCount() == n_parts


def read(desk, panel, name):
    path = next(path for path in FILES if path.name == name)
    panel.show_report(report_of(path))
    with desk.qtbot.waitSignal(panel.reader.read):
        desk.qtbot.mouseClick(panel.ask_norms, Qt.MouseButton.LeftButton)
    return path


def test_rows_that_are_not_finite_stand_out(desk):
    panel = desk.open(FindingsPanel, (900, 500))
    path = read(desk, panel, "nan-rows-llama.safetensors")
    assert panel.map.isVisible()
    with open_file(path) as opened:
        parts = [part.name for part in opened.report.sequences[0].parts]
        wanted = np.concatenate([opened.row_norms(part, 0).norms for part in parts])
    assert np.array_equal(panel.stack.matrix.values, wanted, equal_nan=True)
    n_bad = int((~np.isfinite(wanted)).sum())
    assert n_bad > 0
    assert panel.norms_line.text().endswith(f"{n_bad} not finite")


def test_the_pointer_names_tensor_cell_and_norm(desk):
    panel = desk.open(FindingsPanel, (900, 500))
    read(desk, panel, "clean-llama.safetensors")
    panel.map.plot.scene().sigMouseMoved.emit(panel.map.scene_point(1.5, 2.5))
    value = float(panel.stack.matrix.values[1, 2])
    assert panel.norms_line.text() == f"{panel.stack.names[1]}, cell 2: norm {value:.6g}"


def test_another_file_takes_the_norms_away(desk):
    panel = desk.open(FindingsPanel, (900, 500))
    read(desk, panel, "clean-llama.safetensors")
    panel.show_report(report_of(FILES[0]))
    assert not panel.map.isVisible()
    assert panel.stack is None


def test_a_file_that_is_gone_is_said_in_place(desk, tmp_path):
    panel = desk.open(FindingsPanel, (900, 500))
    path = next(path for path in FILES if path.name == "clean-llama.safetensors")
    panel.show_report({**report_of(path), "file": str(tmp_path / "gone.safetensors")})
    with desk.qtbot.waitSignal(panel.reader.failed):
        panel.read_norms()
    assert "gone.safetensors" in panel.norms_line.text()


def test_not_finite_rows_have_a_colour_of_their_own(desk, qapp):
    panel = desk.open(FindingsPanel, (900, 500))
    read(desk, panel, "nan-rows-llama.safetensors")
    row, cell = (int(i[0]) for i in np.nonzero(~np.isfinite(panel.stack.matrix.values)))
    panel.map.grab()  # lays the picture out
    qapp.processEvents()
    plot = panel.map.plot
    point = plot.mapFromScene(panel.map.scene_point(row + 0.5, cell + 0.5))
    picture = panel.map.grab().toImage()
    assert picture.pixelColor(plot.mapTo(panel.map, point)) == theme.colour("hole")
