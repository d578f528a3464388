"""The journal by click and key: filter, time travel, compare, last good state."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt

from app.models.journal import Journal
from app.views.journal import JournalPanel
from tests.helpers import sessions

Key = Qt.Key


@pytest.fixture
def panel(desk):
    panel = desk.open(JournalPanel, (1000, 300))
    sessions.fill(desk.client, sessions.journal(60), sessions.sequence(0, 0, 200))
    panel.flush()
    return panel


def choose(desk, panel, row):
    view = panel.view
    index = view.table.index(row, 0)
    view.scrollTo(index)
    desk.qtbot.mouseClick(
        view.viewport(), Qt.MouseButton.LeftButton, pos=view.visualRect(index).center()
    )


def test_live_follows_the_newest_event(desk, panel):
    view = panel.view
    assert view.verticalScrollBar().value() == view.verticalScrollBar().maximum()
    desk.client.receive(0, sessions.record(61, 216, 220))
    desk.client.deliver_now()
    panel.flush()
    assert view.table.rowCount() == 61
    assert view.verticalScrollBar().value() == view.verticalScrollBar().maximum()


def test_a_click_travels_and_selects_everywhere(desk, panel):
    choose(desk, panel, 29)
    assert desk.client.shown.number == 30
    assert desk.hub.selection.event == 30
    assert desk.hub.selection.stage == "layer.3.qsa.select"


def test_arrow_keys_travel(desk, panel):
    choose(desk, panel, 10)
    desk.qtbot.keyClick(panel.view, Key.Key_Down)
    assert desk.client.shown.number == 12
    desk.qtbot.keyClick(panel.view, Key.Key_Up)
    desk.qtbot.keyClick(panel.view, Key.Key_Up)
    assert desk.client.shown.number == 10


def test_return_to_newest(desk, panel):
    choose(desk, panel, 10)
    panel.flush()
    desk.qtbot.mouseClick(panel.live, Qt.MouseButton.LeftButton)
    assert desk.client.shown is None
    assert desk.hub.selection.event is None
    panel.flush()
    assert not panel.live.isEnabled()


def test_new_events_do_not_move_a_view_of_the_past(desk, panel):
    choose(desk, panel, 10)
    at = panel.view.verticalScrollBar().value()
    desk.client.receive(0, sessions.record(61, 216, 220))
    desk.client.deliver_now()
    panel.flush()
    assert panel.view.verticalScrollBar().value() == at
    assert panel.view.currentIndex().row() == 10


def test_an_event_chosen_elsewhere_is_gone_to(desk, panel):
    desk.hub.change(object(), event=20)
    panel.flush()
    assert desk.client.shown.number == 20
    assert panel.view.currentIndex().row() == 19


def test_travel_started_elsewhere_marks_the_row(desk, panel):
    desk.client.show(desk.client.records[4])
    panel.flush()
    assert panel.view.currentIndex().row() == 4


def test_filter_by_typing(desk, panel):
    panel.edit.setFocus()
    desk.qtbot.keyClicks(panel.edit, "failed")
    desk.qtbot.waitUntil(lambda: panel.view.table.rowCount() == 6)
    assert panel.chip.text() == "6 of 60 events match"
    assert panel.clear.isVisible()
    desk.qtbot.mouseClick(panel.clear, Qt.MouseButton.LeftButton)
    assert panel.view.table.rowCount() == 60
    assert not panel.clear.isVisible()


def test_enter_in_the_filter_goes_to_the_rows(desk, panel):
    panel.edit.setFocus()
    desk.qtbot.keyClicks(panel.edit, "rejected")
    desk.qtbot.keyClick(panel.edit, Key.Key_Return)
    desk.qtbot.waitUntil(panel.view.hasFocus)
    assert panel.view.currentIndex().row() == panel.view.table.rowCount() - 1
    assert desk.client.shown.outcome == "rejected"


def test_a_filter_that_makes_no_sense_is_said_in_place(desk, panel):
    panel.edit.setText("colour:red")
    panel.apply_filter()
    assert panel.chip.text().startswith("expected one of op")
    assert panel.view.table.rowCount() == 60


def test_a_filter_that_hides_all(desk, panel):
    panel.edit.setText("op:restore")
    panel.apply_filter()
    assert panel.chip.text() == "0 of 60 events match"
    assert panel.clear.isVisible()


def test_ctrl_f_goes_to_the_filter(desk, panel):
    panel.view.setFocus()
    desk.qtbot.keyClick(panel.view, Key.Key_F, Qt.KeyboardModifier.ControlModifier)
    desk.qtbot.waitUntil(panel.edit.hasFocus)


def test_last_good_state(desk, panel):
    choose(desk, panel, 29)
    desk.qtbot.mouseClick(panel.good, Qt.MouseButton.LeftButton)
    assert desk.client.shown.number == 29
    panel.return_to_live()
    panel.go_last_good()
    assert desk.client.shown.number == 59


def test_problems_are_stepped_through(desk, panel):
    panel.next_problem(-1)
    assert desk.client.shown.number == 60
    panel.next_problem(-1)
    assert desk.client.shown.number == 50
    panel.next_problem(1)
    assert desk.client.shown.number == 60


def test_two_selected_rows_are_compared(desk, panel):
    choose(desk, panel, 10)
    index = panel.view.table.index(13, 0)
    desk.qtbot.mouseClick(
        panel.view.viewport(),
        Qt.MouseButton.LeftButton,
        Qt.KeyboardModifier.ControlModifier,
        panel.view.visualRect(index).center(),
    )
    with desk.qtbot.waitSignal(desk.hub.compare_wanted) as caught:
        desk.qtbot.mouseClick(panel.against, Qt.MouseButton.LeftButton)
    assert caught.args == [11, 14]


def test_one_row_is_compared_with_the_newest(desk, panel):
    choose(desk, panel, 10)
    with desk.qtbot.waitSignal(desk.hub.compare_wanted) as caught:
        panel.compare()
    assert caught.args == [11, 60]


def test_the_row_menu_filters_and_compares(desk, panel):
    menu = panel.view.menu_for(9)
    desk.qtbot.addWidget(menu)
    by_name = {action.text(): action for action in menu.actions()}
    with desk.qtbot.waitSignal(desk.hub.compare_wanted) as caught:
        by_name["Compare with the newest"].trigger()
    assert caught.args == [10, 60]
    by_name["Only failed"].trigger()
    assert panel.view.table.rowCount() == 6


def test_copy_as_json(desk, panel, qapp):
    choose(desk, panel, 0)
    both = Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier
    desk.qtbot.keyClick(panel.view, Key.Key_C, both)
    assert '"Event": "1"' in qapp.clipboard().text()


def test_focus_alone_chooses_nothing(desk, panel):
    panel.view.setFocus()
    desk.qtbot.waitUntil(panel.view.hasFocus)
    assert desk.client.shown is None
    assert desk.hub.selection.event is None


class Million:
    """Records made when they are looked at."""

    def __init__(self):
        self.looked = 0

    def __len__(self):
        return 1_000_000

    def __getitem__(self, row):
        self.looked += 1
        return sessions.record(row + 1, row, row + 1, stages=())


def test_a_million_events_are_shown_without_reading_them(desk):
    import numpy as np

    panel = desk.open(JournalPanel, (1000, 300))
    records = Million()
    rows = np.arange(1_000_000)
    panel.set_journal(
        Journal.of_columns(
            records,
            {"event": rows + 1, "start": rows, "stop": rows + 1},
            {"outcome": np.ones(1_000_000, np.int32)},
            {"outcome": ["", "ok"]},
        )
    )
    assert panel.view.table.rowCount() == 1_000_000
    panel.grab()
    panel.edit.setText("pos:812")
    panel.apply_filter()
    assert panel.view.table.rowCount() == 1
    assert panel.view.table.data(panel.view.table.index(0, 0)) == "813"
    assert records.looked < 3_000
