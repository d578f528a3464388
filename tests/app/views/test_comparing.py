"""Spans, comparison and problems by hand."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDockWidget

from app.views.compare import ComparePanel
from app.views.inspector import InspectorPanel
from app.views.problems import ProblemsPanel
from app.views.spans import SpansPanel
from engine.events import Trouble
from tests.app.models.test_findings import TORN
from tests.helpers import sessions

LEFT = Qt.MouseButton.LeftButton


def test_a_span_selects_its_positions(desk):
    panel = desk.open(SpansPanel, (700, 200))
    sessions.fill(desk.client, sessions.journal(5), sessions.sequence(0, 0, 18))
    panel.flush()
    desk.click(panel.view, 1)
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
    desk.click(panel.view, 1)
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
    desk.click(panel.view, 0)
    desk.hub.change(panel, start=2, stop=3)
    desk.click(panel.view, 0)
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
    desk.click(panel.view, 1)
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
