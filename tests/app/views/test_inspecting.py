"""Inspector, banks and limits by hand."""

from __future__ import annotations

from PySide6.QtCore import Qt

from app.views.banks import BanksPanel
from app.views.inspector import InspectorPanel
from app.views.limits import LimitsPanel
from engine.commands import Feed, Limits, Run, StepStage
from tests.helpers import sessions

LEFT = Qt.MouseButton.LeftButton


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
    desk.click(panel.owners, 2)
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
