"""Checks and findings by hand."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt

from app.views.checks import ChecksPanel
from app.views.findings import FindingsPanel
from engine.commands import RunCheck
from engine.snapshot import CheckResult
from tests.app.models.test_findings import TORN
from tests.helpers import sessions

LEFT = Qt.MouseButton.LeftButton


# checks -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["same-as-fresh", "audit", "boundary-sweep"])
def test_every_check_runs_on_the_real_engine(desk, name):
    desk.drive(capacity=24)
    desk.do(op="append", seq=0, positions=list(range(3, 20)))
    panel = desk.open(ChecksPanel, (800, 240))
    panel.flush()
    desk.qtbot.mouseClick(panel.buttons[name], LEFT)
    assert panel.line.text() == f"{name} is running; the status bar can cancel it."
    assert not panel.buttons[name].isEnabled()
    desk.settle()
    panel.flush()
    assert panel.line.text().startswith(f"{name} passed: ")
    assert RunCheck(name) in desk.sent


def test_a_failed_cell_of_the_grid_has_a_cross(desk):
    panel = desk.open(ChecksPanel, (800, 240))
    sessions.fill(desk.client, [], sessions.sequence(0, 0, 4))
    rows = (("4", "pass", "fail: gap"),)
    desk.client.receive(0, CheckResult("boundary-sweep", False, "one", rows, ("N", "1", "5")))
    desk.client.deliver_now()
    panel.flush()
    assert panel.line.text() == "boundary-sweep failed: one (1 passed, 1 failed)"
    assert panel.view.table.source.cell(0, 2).glyph == "cross"


# findings ---------------------------------------------------------------------------------------


def test_a_finding_leads_to_its_positions(desk):
    panel = desk.open(FindingsPanel, (900, 300))
    desk.client.foreign_opened.emit(TORN)
    panel.flush()
    assert panel.line.text() == (
        "torn.safetensors: torn: layers 0 and 1 end at 31, layers 2 and 3 at 15"
    )
    desk.click(panel.found, 1)
    assert (desk.hub.selection.start, desk.hub.selection.stop) == (12, 14)


def test_several_files_are_kept_and_chosen(desk):
    panel = desk.open(FindingsPanel, (900, 300))
    other = {**TORN, "file": "sound.bin", "verdict": "ok", "findings": [], "sequences": []}
    desk.client.foreign_opened.emit(TORN)
    desk.client.foreign_opened.emit(other)
    desk.client.foreign_opened.emit(TORN)
    assert panel.file.count() == 2
    panel.file.setCurrentIndex(1)
    panel.refresh()
    panel.flush()
    assert panel.line.text() == "sound.bin: Sound: mlx-lm, 0 sequences"
