"""Inspector, banks, limits, spans, compare, problems, checks, findings, tensor, logits by hand."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDockWidget

from app.views.banks import BanksPanel
from app.views.checks import ChecksPanel
from app.views.compare import ComparePanel
from app.views.findings import FindingsPanel
from app.views.inspector import InspectorPanel
from app.views.limits import LimitsPanel
from app.views.logits import LogitsPanel
from app.views.problems import ProblemsPanel
from app.views.spans import SpansPanel
from app.views.tensor import TensorPanel
from engine.commands import Feed, Limits, ReadArray, Run, RunCheck, SetChunk, StepStage
from engine.events import Trouble
from engine.snapshot import CheckResult
from tests.app.models.test_findings import TORN
from tests.helpers import sessions

LEFT = Qt.MouseButton.LeftButton


def click(desk, view, row, column=0):
    index = view.table.index(row, column)
    view.scrollTo(index)
    desk.qtbot.mouseClick(view.viewport(), LEFT, pos=view.visualRect(index).center())


@pytest.fixture
def tiny(desk):
    """The tiny model after 22 tokens in chunks of five."""
    desk.drive("qwen4exp-tiny")
    desk.client.send(SetChunk(5))
    desk.client.send(Feed(0, tuple(range(22))))
    desk.client.send(Run())
    desk.settle()
    return desk


# inspector --------------------------------------------------------------------------------------


def test_links_of_the_inspector_lead_to_events(desk):
    panel = desk.open(InspectorPanel, (380, 500))
    sessions.fill(desk.client, sessions.journal(31), sessions.sequence(0, 0, 112))
    assert "Select a position" in panel.hint.text() or "No session" in panel.hint.text()
    desk.hub.change(None, start=42, stop=43)
    panel.flush()
    tree = panel.tree
    why = tree.tree.index(1, 0)
    link = next(
        tree.tree.index(row, 1, why)
        for row in range(tree.tree.rowCount(why))
        if tree.tree.node(tree.tree.index(row, 0, why)).jump
    )
    desk.qtbot.mouseClick(tree.viewport(), LEFT, pos=tree.visualRect(link).center())
    assert desk.hub.selection.event == 12


def test_enter_follows_a_link(desk):
    panel = desk.open(InspectorPanel, (380, 500))
    sessions.fill(desk.client, sessions.journal(31), sessions.sequence(0, 0, 112))
    desk.hub.change(None, cell=42, start=None, stop=None)
    panel.flush()
    tree = panel.tree
    tree.setCurrentIndex(tree.tree.index(1, 0, tree.tree.index(0, 0)))
    tree.setFocus()
    desk.qtbot.keyClick(tree, Qt.Key.Key_Return)
    assert desk.hub.selection.start == 42


def test_the_inspector_copies_indented_text(desk, qapp):
    panel = desk.open(InspectorPanel, (380, 500))
    sessions.fill(desk.client, sessions.journal(31), sessions.sequence(0, 0, 112))
    desk.hub.change(None, start=42, stop=43)
    panel.flush()
    panel.tree.setFocus()
    desk.qtbot.keyClick(panel.tree, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    assert qapp.clipboard().text().startswith("Position\n  position: 42\n")


def test_the_token_of_a_position_is_known_from_the_journal(tiny):
    panel = tiny.open(InspectorPanel, (380, 500))
    tiny.hub.change(None, seq=0, start=17, stop=18)
    panel.flush()
    facts = {node.name: node.value.text for node in panel.tree.tree.nodes[0].children}
    assert facts["token"] == "17"
    assert facts["group"] == "g4, positions 16 – 19"


# banks ------------------------------------------------------------------------------------------


def test_an_owner_clicked_is_selected_everywhere(desk):
    panel = desk.open(BanksPanel, (400, 600))
    sessions.fill(desk.client, sessions.journal(5), sessions.sequence(0, 0, 20))
    panel.flush()
    click(desk, panel.owners, 2)
    assert desk.hub.selection.owner == "qsa.kv"


def test_an_owner_selected_elsewhere_is_marked_silently(desk):
    panel = desk.open(BanksPanel, (400, 600))
    sessions.fill(desk.client, sessions.journal(5), sessions.sequence(0, 0, 20))
    with desk.qtbot.assertNotEmitted(panel.owners.chosen):
        desk.hub.change(None, owner="gdn.conv")
        panel.flush()
    assert panel.owners.currentIndex().row() == 5


def test_the_private_bank_is_shown_in_flight_and_the_flip_is_visible(tiny):
    panel = tiny.open(BanksPanel, (400, 600))
    public = panel.public.card.title
    tiny.client.send(Feed(0, (1, 2, 3, 4, 5)))
    for _ in range(4):
        tiny.client.send(StepStage())
    tiny.settle()
    panel.flush()
    assert panel.private.card.detail.startswith("in flight: append of 22 – 26, next ")
    assert {panel.owners.table.source.cell(row, 3).text for row in range(13)} == {"in flight"}
    tiny.client.send(Run())
    tiny.settle()
    panel.flush()
    assert panel.public.card.title != public
    assert panel.usable.text() == "usable: 0 – 26 (all of the run)"


def test_every_part_of_the_real_model_agrees_after_evictions(tiny):
    panel = tiny.open(BanksPanel, (400, 600))
    tiny.do(op="evict_front", seq=0, count=6)
    panel.flush()
    source = panel.parts.table.source
    marks = {source.cell(row, 4).text for row in range(3, source.n_rows)}
    assert marks == {"agrees"}
    assert panel.usable.text() == "usable: 6 – 21 (all of the run)"


# limits -----------------------------------------------------------------------------------------


def test_limits_are_asked_once_a_state(desk):
    desk.drive(capacity=64)
    panel = desk.open(LimitsPanel, (400, 300))
    panel.refresh()
    panel.flush()
    assert desk.sent.count(Limits(0)) == 1
    desk.do(op="append", seq=0, positions=[5, 6, 7])
    panel.flush()
    desk.settle()
    panel.flush()
    assert desk.sent.count(Limits(0)) == 2
    source = panel.view.table.source
    rows = {source.cell(n, 0).text: source.cell(n, 1).text for n in range(source.n_rows)}
    assert rows["append at"] == "8"
    assert rows["evict_front"] == "1 – 3"


# spans, compare, problems -----------------------------------------------------------------------


def test_a_span_selects_its_positions(desk):
    panel = desk.open(SpansPanel, (700, 200))
    sessions.fill(desk.client, sessions.journal(5), sessions.sequence(0, 0, 18))
    panel.flush()
    click(desk, panel.view, 1)
    assert (desk.hub.selection.start, desk.hub.selection.stop) == (16, 18)
    desk.hub.change(None, start=3, stop=4)
    panel.flush()
    assert panel.view.currentIndex().row() == 0


def test_forgotten_spans_of_another_engine_lead_there_and_say_why(desk):
    panel, inspector = desk.open(SpansPanel, (700, 200)), desk.open(InspectorPanel, (380, 300))
    report = {"file": "x.seq", "sequences": [{"id": 5, "run": [0, 29], "holes": [[11, 14]]}]}
    desk.client.adopt_foreign([report])
    panel.flush()
    assert panel.line.text() == "6 spans, 26 live positions in 1 run of another engine's file"
    click(desk, panel.view, 1)
    assert (desk.hub.selection.seq, desk.hub.selection.start) == (5, 8)
    desk.hub.change(None, start=9, stop=10)
    inspector.flush()
    tree = inspector.tree.tree
    position = tree.index(0, 0)
    names = [tree.index(row, 1, position).data() for row in range(tree.rowCount(position))]
    assert names[2:] == ["forgotten", "g2, positions 8 – 11, broken"]
    desk.client.close()
    panel.refresh()
    panel.flush()
    assert panel.line.text() == "No session is open."


def test_a_row_clicked_again_leads_there_again(desk):
    panel = desk.open(SpansPanel, (700, 200))
    sessions.fill(desk.client, sessions.journal(5), sessions.sequence(0, 0, 18))
    panel.flush()
    click(desk, panel.view, 0)
    desk.hub.change(panel, start=2, stop=3)
    click(desk, panel.view, 0)
    assert (desk.hub.selection.start, desk.hub.selection.stop) == (0, 16)


def test_the_newest_two_events_are_compared_until_others_are_chosen(desk):
    panel = desk.open(ComparePanel, (900, 240))
    sessions.fill(desk.client, sessions.journal(8), sessions.sequence(0, 0, 32))
    panel.flush()
    assert (panel.old.value(), panel.new.value()) == (7, 8)
    desk.client.receive(0, sessions.record(9, 32, 36))
    desk.client.deliver_now()
    panel.flush()
    assert (panel.old.value(), panel.new.value()) == (8, 9)
    desk.hub.compare_wanted.emit(5, 2)
    panel.flush()
    assert (panel.old.value(), panel.new.value()) == (2, 5)
    desk.client.receive(0, sessions.record(10, 36, 40))
    desk.client.deliver_now()
    panel.flush()
    assert (panel.old.value(), panel.new.value()) == (2, 5)
    desk.qtbot.mouseClick(panel.first, LEFT)
    assert desk.hub.selection.start == 8


def test_compare_buttons(desk):
    panel = desk.open(ComparePanel, (900, 240))
    sessions.fill(desk.client, sessions.journal(31), sessions.sequence(0, 0, 112))
    panel.flush()
    panel.new.setValue(30)
    desk.qtbot.mouseClick(panel.good, LEFT)
    assert panel.old.value() == 29
    desk.qtbot.mouseClick(panel.newest, LEFT)
    assert panel.new.value() == 31
    desk.qtbot.mouseClick(panel.swap, LEFT)
    assert (panel.old.value(), panel.new.value()) == (31, 29)
    panel.new.setValue(31)
    panel.flush()
    assert panel.line.text() == "Choose two different events."
    panel.new.setValue(900)
    panel.flush()
    assert panel.line.text() == "Expected events from 1 to 31."


def test_two_checked_files_are_compared(desk):
    panel = desk.open(ComparePanel, (900, 240))
    desk.client.foreign_opened.emit(TORN)
    panel.flush()
    assert panel.old.isVisible()
    desk.client.foreign_opened.emit({**TORN, "file": "other.bin", "verdict": "ok"})
    panel.flush()
    assert not panel.old.isVisible()
    assert panel.line.text().startswith("torn.safetensors and other.bin: 1 of ")
    assert panel.line.text().endswith("first verdict")
    desk.hub.compare_wanted.emit(1, 2)
    panel.flush()
    assert panel.old.isVisible()


def test_the_number_of_problems_is_in_the_title_of_the_dock(desk):
    panel = desk.open(ProblemsPanel, (900, 240))
    dock = QDockWidget("Problems")
    desk.qtbot.addWidget(dock)
    dock.setWidget(panel)
    sessions.fill(desk.client, sessions.journal(31), sessions.sequence(0, 0, 112))
    desk.qtbot.waitUntil(lambda: dock.windowTitle() == "Problems (3)")
    sessions.fill(desk.client, [sessions.record(1, 0, 4)], sessions.sequence(0, 0, 4))
    desk.qtbot.waitUntil(lambda: dock.windowTitle() == "Problems")


def test_the_first_error_is_on_top_and_leads_there(desk):
    panel = desk.open(ProblemsPanel, (900, 240))
    sessions.fill(desk.client, sessions.journal(31), sessions.sequence(0, 0, 112))
    panel.flush()
    assert panel.first.text().startswith("First: append on sequence 0: nonfinite at stage")
    assert panel.view.table.rowCount() == 3
    desk.qtbot.mouseClick(panel.go, LEFT)
    assert desk.hub.selection.event == 10
    assert desk.hub.selection.stage == "layer.3.qsa.select"
    click(desk, panel.view, 1)
    assert desk.hub.selection.event == 15
    desk.qtbot.mouseClick(panel.clear, LEFT)
    assert panel.first.text().startswith("No problems.")


def test_troubles_and_words_of_other_panels_are_kept(desk):
    panel = desk.open(ProblemsPanel, (900, 240))
    desk.client.receive(0, Trouble("Undo", "nothing to undo"))
    desk.client.deliver_now()
    desk.hub.problem.emit("refused", "no such position")
    panel.flush()
    assert panel.view.table.rowCount() == 2
    assert panel.first.text() == "First: Undo: nothing to undo"


def test_a_broken_invariant_is_above_all(desk):
    panel = desk.open(ProblemsPanel, (900, 240))
    sessions.fill(
        desk.client, sessions.journal(31), sessions.sequence(0, 0, 112), broken="banks disagree"
    )
    panel.flush()
    assert panel.first.text() == "First: banks disagree"


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
    click(desk, panel.found, 1)
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


# tensors and logits -----------------------------------------------------------------------------


def test_the_heat_map_shows_rows_of_the_public_bank(tiny):
    panel = tiny.open(TensorPanel, (420, 420))
    tiny.settle()
    panel.flush()
    assert any(isinstance(command, ReadArray) for command in tiny.sent)
    assert panel.shown_matrix.values.shape[0] == 22
    assert panel.shown_matrix.first == 0
    assert panel.facts.text().endswith("all finite")
    owners = {panel.array.itemData(n)[0] for n in range(panel.array.count())}
    assert {"qsa.kv", "gdn.recurrent", "logits"} <= owners


def test_every_array_of_the_model_can_be_shown_in_every_view(tiny):
    panel = tiny.open(TensorPanel, (420, 420))
    for number in range(panel.array.count()):
        for view in range(panel.bank.count()):
            panel.array.setCurrentIndex(number)
            panel.bank.setCurrentIndex(view)
            panel.ask()
            tiny.settle()
            panel.flush()
            assert panel.shown_matrix is not None, panel.array.currentText()


def test_the_difference_of_a_chunk_in_flight_is_seen(tiny):
    panel = tiny.open(TensorPanel, (420, 420))
    names = [panel.array.itemData(n)[0] for n in range(panel.array.count())]
    panel.array.setCurrentIndex(names.index("gdn.recurrent"))
    panel.bank.setCurrentIndex(2)
    tiny.client.send(Feed(0, (9, 8, 7)))
    for _ in range(12):
        tiny.client.send(StepStage())
    panel.ask()
    tiny.settle()
    panel.flush()
    assert panel.shown_matrix.high > panel.shown_matrix.low
    assert panel.limits.low == -panel.limits.high


def test_a_fixed_range_is_kept(tiny):
    panel = tiny.open(TensorPanel, (420, 420))
    tiny.settle()
    panel.flush()
    panel.fixed.setChecked(True)
    panel.low.setValue(-0.25)
    panel.high.setValue(0.25)
    panel.refresh()
    panel.flush()
    assert (panel.limits.low, panel.limits.high) == (-0.25, 0.25)
    panel.fixed.setChecked(False)
    assert panel.limits.high > 0.25


def test_pointer_and_click_on_the_heat_map(tiny):
    panel = tiny.open(TensorPanel, (420, 420))
    tiny.settle()
    panel.flush()
    point = panel.map.scene_point(7.5, 3.5)
    panel.map.plot.scene().sigMouseMoved.emit(point)
    value = panel.shown_matrix.values[7, 3]
    assert panel.under.text() == f"position 7, column 3: {float(value):.6g}"

    class Click:
        def scenePos(self):
            return point

    panel.map.plot.scene().sigMouseClicked.emit(Click())
    assert (tiny.hub.selection.start, tiny.hub.selection.stop) == (7, 8)
    panel.flush()
    assert panel.map.marker.isVisible()


def test_numbers_of_the_heat_map_are_copied(tiny, qapp):
    panel = tiny.open(TensorPanel, (420, 420))
    tiny.settle()
    panel.flush()
    panel.copy()
    rows = qapp.clipboard().text().splitlines()
    read = np.array([[float(x) for x in row.split("\t")] for row in rows], np.float32)
    assert np.array_equal(read, panel.shown_matrix.values)


def test_the_past_has_no_tensors_and_says_so(tiny):
    tensor, logits = tiny.open(TensorPanel), tiny.open(LogitsPanel)
    tiny.client.show(tiny.client.records[0])
    for panel, line in ((tensor, tensor.empty), (logits, logits.line)):
        panel.flush()
        assert "past are not kept" in line.text()


def test_logits_follow_the_newest_chunk(tiny):
    panel = tiny.open(LogitsPanel, (380, 400))
    tiny.settle()
    panel.flush()
    first = [panel.view.table.source.cell(row, 1).text for row in range(5)]
    assert panel.line.text().startswith("sequence 0 after position 21: 256 ids")
    tiny.client.send(Feed(0, (5, 6, 7)))
    tiny.client.send(Run())
    tiny.settle()
    panel.flush()
    tiny.settle()
    panel.flush()
    assert panel.line.text().startswith("sequence 0 after position 24")
    assert [panel.view.table.source.cell(row, 1).text for row in range(5)] != first
    panel.count.setValue(3)
    panel.flush()
    assert panel.view.table.rowCount() == 3
