"""Edit ops on the real engine: try, do, refuse with a way out, undo; fields from the selection."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt

from app.views.edits import EditPanel
from engine.commands import Discard, Do, Feed, Finish, StepStage, Try
from engine.ops import Rewind


@pytest.fixture
def panel(desk):
    desk.drive(capacity=64)
    desk.do(op="append", seq=0, positions=list(range(4, 24)))
    panel = desk.open(EditPanel, (420, 520))
    panel.flush()
    return panel


def form(panel, op, **values):
    panel.kind.setCurrentIndex(panel.kind.findData(op))
    for name, value in values.items():
        panel.fields[name].clear()
        panel.fields[name].setText(str(value))
        panel.touched.add(name)


def settle(desk, panel):
    desk.settle()
    panel.flush()


def test_try_shows_the_effect_and_does_nothing(desk, panel):
    before = desk.client.snapshot
    form(panel, "evict_front", count=6)
    desk.qtbot.mouseClick(panel.attempt, Qt.MouseButton.LeftButton)
    settle(desk, panel)
    assert panel.result.text().startswith("Would be done")
    source = panel.effect.table.source
    texts = [[cell.text for cell in row.cells] for row in source.rows]
    assert ["sequence 0: run", "4 – 23", "10 – 23", "changes"] in texts
    assert desk.client.snapshot is before
    assert len(desk.client.records) == 1


def test_do_does_it(desk, panel):
    form(panel, "evict_front", count=6)
    desk.qtbot.mouseClick(panel.do, Qt.MouseButton.LeftButton)
    settle(desk, panel)
    assert desk.client.snapshot.sequences[0].start == 10
    assert panel.result.text().startswith("Done: ")


def test_enter_tries_and_control_enter_does(desk, panel):
    form(panel, "rewind", to=20)
    edit = panel.fields["to"]
    desk.qtbot.keyClick(edit, Qt.Key.Key_Return)
    assert desk.sent[-1] == Try(Rewind(0, 20))
    desk.qtbot.keyClick(panel, Qt.Key.Key_Return, Qt.KeyboardModifier.ControlModifier)
    assert desk.sent[-1] == Do(Rewind(0, 20))
    settle(desk, panel)
    assert desk.client.snapshot.sequences[0].stop == 20


def test_a_refusal_has_a_button_to_the_nearest_legal_target(desk, panel):
    form(panel, "rewind", to=90)
    panel.try_op()
    settle(desk, panel)
    assert panel.result.text().startswith("Would be refused: rewind on sequence 0: out-of-range")
    assert panel.nearest.isVisible()
    assert panel.nearest.text() == "Use next position 24"
    desk.qtbot.mouseClick(panel.nearest, Qt.MouseButton.LeftButton)
    settle(desk, panel)
    assert panel.fields["to"].text() == "24"
    assert panel.result.text().startswith("Would be done")
    assert not panel.nearest.isVisible()


def test_appending_a_hole_is_refused_with_expected_and_given(desk, panel):
    form(panel, "append", positions="24, 25, 27")
    panel.do_op()
    settle(desk, panel)
    assert desk.client.records[-1].reason == "not-consecutive"
    assert "expected 26, given 27" in panel.result.text()
    assert {row.cells[3].text for row in panel.effect.table.source.rows} == {"unchanged"}


def test_a_refused_append_is_moved_to_the_frontier(desk, panel):
    form(panel, "append", positions="50-52")
    panel.do_op()
    settle(desk, panel)
    panel.use_nearest()
    settle(desk, panel)
    assert panel.fields["positions"].text() == "24-26"
    panel.do_op()
    settle(desk, panel)
    assert desk.client.snapshot.sequences[0].stop == 27


def test_undo_restores_the_state_before(desk, panel):
    before = desk.client.snapshot.owners
    form(panel, "rewind", to=8)
    panel.do_op()
    settle(desk, panel)
    desk.qtbot.mouseClick(panel.undo, Qt.MouseButton.LeftButton)
    settle(desk, panel)
    assert panel.result.text().startswith("Undone")
    assert desk.client.snapshot.sequences[0].stop == 24
    digests = [view.public_digest for view in desk.client.snapshot.owners]
    assert digests == [view.public_digest for view in before]


def test_undo_without_an_op_says_why_not(desk):
    desk.drive()
    panel = desk.open(EditPanel, (420, 520))
    panel.undo_op()
    settle(desk, panel)
    assert "undo" in panel.result.text().lower()
    assert panel.result.text() != ""


def test_a_field_that_is_no_number_is_said_in_place(desk, panel):
    form(panel, "rewind", to="x")
    panel.try_op()
    assert panel.result.text() == "Next position: expected a whole number, given 'x'"
    assert not any(isinstance(command, Try) for command in desk.sent)


def test_the_selected_range_fills_the_fields(desk, panel):
    form(panel, "remove")
    desk.hub.change(None, start=4, stop=9)
    assert panel.values() == {"seq": "0", "start": "4", "stop": "9"}


def test_a_field_that_the_user_typed_in_is_left_alone(desk, panel):
    form(panel, "rewind")
    edit = panel.fields["to"]
    edit.setFocus()
    edit.clear()
    desk.qtbot.keyClicks(edit, "17")
    desk.hub.change(None, start=5, stop=6)
    assert edit.text() == "17"
    desk.qtbot.mouseClick(panel.from_selection, Qt.MouseButton.LeftButton)
    panel.kind.setFocus()
    panel.fill()
    assert edit.text() == "5"


@pytest.mark.parametrize("op", ["fork", "copy", "save", "restore", "reset", "shift", "remove"])
def test_every_form_reaches_the_engine(desk, panel, op):
    form(panel, "save")
    panel.do_op()
    form(panel, op)
    panel.do_op()
    settle(desk, panel)
    assert desk.client.records[-1].op == op


def test_an_open_transaction_offers_finish_and_discard(desk, panel):
    assert not panel.finish.isVisible()
    desk.client.send(Feed(0, (1, 2, 3)))
    desk.client.send(StepStage())
    settle(desk, panel)
    assert panel.finish.isVisible()
    form(panel, "reset")
    panel.do_op()
    settle(desk, panel)
    assert "busy" in panel.result.text()
    desk.qtbot.mouseClick(panel.discard, Qt.MouseButton.LeftButton)
    settle(desk, panel)
    assert Discard() in desk.sent
    assert not panel.discard.isVisible()
    desk.client.send(StepStage())
    settle(desk, panel)
    desk.qtbot.mouseClick(panel.finish, Qt.MouseButton.LeftButton)
    settle(desk, panel)
    assert Finish() in desk.sent
    assert desk.client.snapshot.sequences[0].stop == 27


def test_the_past_can_not_be_edited(desk, panel):
    desk.client.show(desk.client.records[0])
    panel.flush()
    assert not panel.do.isEnabled()
    assert panel.result.text() == "The past can't be edited: return to the newest state."
    desk.client.show(None)
    panel.flush()
    assert panel.do.isEnabled()
    assert panel.result.text() == ""


def test_an_undo_is_said_in_words_and_in_the_journal(desk, panel):
    form(panel, "evict_front", count=4)
    panel.do_op()
    settle(desk, panel)
    panel.undo_op()
    settle(desk, panel)
    assert panel.result.text() == ("Undone: the state before the last transaction is public again")
    assert desk.client.records[-1].op == "undo"
