"""The dock of bookmarks: list, names in place, keys, notes, what is not there any more."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QLineEdit

from app.models import marks as model
from app.models.marks import CellAt, EventAt, Span
from app.models.sequences import track_of
from app.models.tracks import Tracks
from app.views.marks import MarksPanel
from app.views.note_page import NotePage
from tests.app import values

VIEW = values.sequence(0, 4, 14, evicted=4, consumed=14)


@pytest.fixture
def panel(desk):
    """Five marks: a live group, evicted positions, a cell, an event, a note alone."""
    panel = desk.open(MarksPanel)
    panel.tracks = lambda: [track_of(VIEW)]
    record = values.record(3, VIEW)
    desk.client.receive(0, record)
    desk.client.receive(0, values.snapshot(VIEW))
    desk.client.deliver_now()
    book = desk.hub.marks
    places = Span(0, 4, 8), Span(0, 0, 4), CellAt(7), EventAt(3, model.check_of(record))
    for place in places:
        book.do(model.toggled(book.marks, place))
    book.do(model.noted(book.marks, Span(0, 9, 10), "", "look here"))
    panel.flush()
    return panel


def column(panel: MarksPanel, number: int) -> list[str]:
    source = panel.view.table.source
    return [source.cell(row, number).text for row in range(source.n_rows)]


def test_an_empty_panel_says_how_to_begin(desk) -> None:
    panel = desk.open(MarksPanel)
    panel.flush()
    assert panel.empty.isVisible()
    assert "Ctrl+B" in panel.words()
    assert not any(b.isEnabled() for b in (panel.go, panel.rename, panel.note, panel.delete))


def test_the_list_is_sorted_and_says_what_is_not_there(panel: MarksPanel) -> None:
    assert column(panel, 0) == ["2", "1", "", "3", "4"]
    assert column(panel, 3)[:2] == ["evicted", "live, group 0"]
    assert panel.words() == "4 bookmarks, 1 note"


def test_a_state_that_changes_changes_the_rows(panel: MarksPanel, desk) -> None:
    panel.tracks = lambda: Tracks.of_record(values.record(4, values.sequence(0, 8, 14, evicted=8)))
    desk.client.receive(0, values.record(4))
    desk.client.deliver_now()
    panel.flush()
    assert column(panel, 3)[:2] == ["evicted", "evicted"]


def test_enter_and_click_go_there_the_arrow_keys_do_not(panel: MarksPanel, qtbot) -> None:
    went: list[object] = []
    panel.went.connect(lambda mark: went.append(mark.place))
    panel.view.setFocus()
    panel.view.choose_row(0)
    qtbot.keyClick(panel.view, Qt.Key.Key_Down)
    assert went == []
    qtbot.keyClick(panel.view, Qt.Key.Key_Return)
    assert went == [Span(0, 4, 8)]
    where = panel.view.visualRect(panel.view.table.index(3, 2)).center()
    qtbot.mouseClick(panel.view.viewport(), Qt.MouseButton.LeftButton, pos=where)
    assert went[1:] == [CellAt(7)]


def test_delete_removes_the_selected_rows_in_one_step(panel: MarksPanel, desk, qtbot) -> None:
    before = desk.hub.marks.marks
    panel.view.choose_row(0)
    qtbot.keyClick(panel.view, Qt.Key.Key_Down, Qt.KeyboardModifier.ShiftModifier)
    qtbot.keyClick(panel.view, Qt.Key.Key_Delete)
    panel.flush()
    assert column(panel, 2)[0] == "position 9 of sequence 0"
    assert len(desk.hub.marks.marks) == 3
    desk.hub.marks.stack.undo()
    assert desk.hub.marks.marks == before


def name_of(desk) -> str:
    return desk.hub.marks.marks[Span(0, 4, 8)].name


def typed(panel: MarksPanel, qtbot, text: str) -> QLineEdit:
    panel.view.setFocus()
    qtbot.keyClick(panel.view, Qt.Key.Key_F2)
    editor = panel.view.findChild(QLineEdit)
    assert editor is not None
    editor.selectAll()
    qtbot.keyClicks(editor, text)
    return editor


def test_f2_changes_the_name_in_place(panel: MarksPanel, desk, qtbot) -> None:
    panel.view.choose_row(1)
    qtbot.keyClick(typed(panel, qtbot, "the prompt"), Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: name_of(desk) == "the prompt")
    assert desk.hub.marks.stack.undoText() == "rename positions 4 – 7 of sequence 0"
    qtbot.waitUntil(lambda: column(panel, 1)[1] == "the prompt")


def test_an_editor_survives_what_the_engine_does_meanwhile(panel: MarksPanel, desk, qtbot) -> None:
    panel.view.choose_row(1)
    editor = typed(panel, qtbot, "half a na")
    desk.client.receive(0, values.record(4))
    desk.client.deliver_now()
    panel.flush()
    assert panel.view.is_editing
    qtbot.keyClicks(editor, "me")
    qtbot.keyClick(editor, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: name_of(desk) == "half a name")


def test_escape_leaves_the_name(panel: MarksPanel, desk, qtbot) -> None:
    before = desk.hub.marks.marks
    panel.view.choose_row(1)
    qtbot.keyClick(typed(panel, qtbot, "other"), Qt.Key.Key_Escape)
    assert desk.hub.marks.marks == before


def test_a_name_that_is_too_long_is_refused_in_a_sentence(panel: MarksPanel, desk, qtbot) -> None:
    refused: list[str] = []
    panel.refused.connect(refused.append)
    panel.view.choose_row(1)
    qtbot.keyClick(typed(panel, qtbot, "x" * 81), Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: refused == ["name: expected at most 80 characters, given 81"])
    assert name_of(desk) == ""


def test_other_columns_cannot_be_edited(panel: MarksPanel) -> None:
    flags = [panel.view.table.flags(panel.view.table.index(0, n)) for n in range(5)]
    editable = [bool(flag & Qt.ItemFlag.ItemIsEditable) for flag in flags]
    assert editable == [False, True, False, False, False]


def test_the_model_behaves_as_qt_expects(panel: MarksPanel, qtmodeltester) -> None:
    qtmodeltester.check(panel.view.table)


def test_buttons_fit_with_texts_that_are_longer(panel: MarksPanel, qapp, scheme) -> None:
    buttons = (panel.go, panel.rename, panel.note, panel.delete)
    for button in buttons:
        button.setText(button.text() + "m" * round(0.4 * len(button.text())))
    panel.resize(600, 300)
    QApplication.processEvents()
    for button in buttons:
        assert button.width() >= button.sizeHint().width()
        assert panel.rect().contains(button.geometry())
        assert button.height() >= 24


def test_the_note_of_a_row_is_asked_for(panel: MarksPanel) -> None:
    asked: list[object] = []
    panel.note_asked.connect(lambda mark: asked.append(mark.note))
    panel.view.choose_row(2)
    panel.note.click()
    assert asked == ["look here"]


# the window of a note -----------------------------------------------------------------------------


@pytest.fixture
def page(qtbot):
    page = NotePage(model.Mark(CellAt(7), 1, "name", "note"))
    page.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose, False)
    qtbot.addWidget(page)
    page.written_ = []
    page.written.connect(lambda *given: page.written_.append(given))
    page.show()
    return page


def test_ctrl_enter_keeps_name_and_note(page, qtbot) -> None:
    assert page.windowTitle() == "Note on cell 7"
    page.note.setPlainText("two\nlines")
    page.name.setText("other")
    qtbot.keyClick(page.note, Qt.Key.Key_Return, Qt.KeyboardModifier.ControlModifier)
    assert page.written_ == [(CellAt(7), "other", "two\nlines")]
    assert not page.isVisible()


def test_escape_changes_nothing(page, qtbot) -> None:
    page.note.setPlainText("x")
    qtbot.keyClick(page.note, Qt.Key.Key_Escape)
    assert page.written_ == []
    assert not page.isVisible()


def test_a_note_that_is_too_long_says_so_and_stays(page, qtbot) -> None:
    page.note.setPlainText("x" * 2001)
    assert "2,001 of 2,000 characters: shorten" in page.length.text()
    assert not page.save.isEnabled()
    page.accept()
    assert page.isVisible()
    assert page.written_ == []
    page.note.setPlainText("x" * 2000)
    assert page.save.isEnabled()


def test_tab_leaves_the_note(page, qtbot) -> None:
    page.note.setFocus()
    qtbot.keyClick(page.note, Qt.Key.Key_Tab)
    assert page.note.toPlainText() == "note"
    assert not page.note.hasFocus()
