"""Bookmarks and notes in the window: keys, undo beside edit ops, going there, keeping them."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import QApplication

from app.action_list import ACTIONS
from app.models import marks as model
from app.models.marks import CellAt, EventAt, Span
from app.models.marks_file import SUFFIX, MarkFile
from app.models.selection import Selection
from app.settings import Settings
from app.views.main_window import MainWindow
from app.views.note_page import NotePage
from engine.commands import Do, LoadSession, SaveSession, Undo
from engine.events import SessionOpened, Trouble
from engine.opjson import from_json
from engine.snapshot import CheckResult
from tests.app import values

SESSION = SessionOpened("tiny", "cpu", (("reserve", "transaction"),), (("tokens", "token"),), ())
VIEW = values.sequence(0, 0, 20)


@pytest.fixture
def window(qtbot, settings: Settings) -> MainWindow:
    return make_window(qtbot, settings)


def make_window(qtbot, settings: Settings) -> MainWindow:
    """A window on a session that no engine stands behind."""
    window = MainWindow(settings)
    qtbot.addWidget(window)
    window.resize(1280, 800)
    window.show()
    window.build_panels()
    begin(window)
    return window


def begin(window: MainWindow) -> None:
    client = window.client
    client.receive(1, SESSION)
    for n in range(1, 6):
        client.receive(0, values.record(n, values.sequence(0, 0, 4 * n)))
    client.receive(0, values.snapshot(VIEW))
    client.deliver_now()
    window.update_actions()


def press(qtbot, window: MainWindow, keys: str) -> None:
    combination = QKeySequence(keys)[0]
    window.update_actions()
    target = QApplication.focusWidget() or window
    qtbot.keyClick(target, combination.key(), combination.keyboardModifiers())
    window.update_actions()


def places(window: MainWindow) -> list[object]:
    return [mark.place for mark in model.ordered(window.hub.marks.marks.values())]


def test_ctrl_b_toggles_a_bookmark_on_what_was_selected_last(qtbot, window) -> None:
    window.run_panel.go_to(7)
    press(qtbot, window, "Ctrl+B")
    window.docks.panels["cells"].go_to_cell(9)
    press(qtbot, window, "Ctrl+B")
    window.step_event(-1)
    press(qtbot, window, "Ctrl+B")
    check = model.check_of(window.client.records[3])
    assert places(window) == [Span(0, 7, 8), CellAt(9), EventAt(4, check)]
    press(qtbot, window, "Ctrl+B")
    assert places(window) == [Span(0, 7, 8), CellAt(9)]


def test_a_group_is_marked_by_its_positions(qtbot, window) -> None:
    window.run_panel.go_to_group(2)
    press(qtbot, window, "Ctrl+B")
    assert places(window) == [Span(0, 8, 12)]


def test_without_a_selection_the_commands_say_what_is_missing(qtbot, window) -> None:
    window.hub.clear()
    window.update_actions()
    for id in ("edit.bookmark", "edit.note"):
        assert "select a position" in window.actions_.reason(id)
    window.toggle_bookmark()
    window.edit_note()
    assert places(window) == []
    assert window.findChildren(NotePage) == []


def test_the_palette_lists_every_command_with_its_key_and_reason(window) -> None:
    entries = {entry.id: entry for entry in window.palette_entries("")}
    wanted = {"edit.bookmark": "Ctrl+B", "edit.note": "Ctrl+Shift+B", "edit.redo": "Ctrl+Shift+Z"}
    wanted |= {f"go.bookmark{n}": f"Ctrl+{n}" for n in range(1, 10)}
    assert {id: entries[id].keys for id in wanted} == wanted
    assert entries["go.bookmark3"].reason == "there is no bookmark 3"
    assert len([spec for spec in ACTIONS if spec.menu == "Go/Bookmarks"]) == 9


def test_ctrl_digit_goes_to_the_bookmark_with_that_number(qtbot, window) -> None:
    for position in (15, 3):
        window.run_panel.go_to(position)
        press(qtbot, window, "Ctrl+B")
    press(qtbot, window, "Ctrl+1")
    assert (window.hub.selection.start, window.hub.selection.stop) == (15, 16)
    press(qtbot, window, "Ctrl+2")
    assert window.hub.selection.start == 3


def test_going_to_an_event_shows_the_state_after_it(qtbot, window) -> None:
    window.show_index(1)
    press(qtbot, window, "Ctrl+B")
    window.return_to_live()
    press(qtbot, window, "Ctrl+1")
    assert window.client.shown is window.client.records[1]


def test_a_name_stands_in_the_menu_and_the_palette(window) -> None:
    window._note_written(Span(0, 3, 4), "this & that", "")
    window.hub.select(Selection(start=3, stop=4))
    window.toggle_bookmark()
    assert window.actions_["go.bookmark1"].text() == "Bookmark 1: this && that"
    names = [entry.text for entry in window.palette_entries("") if entry.id == "go.bookmark1"]
    assert names == ["Bookmark 1: this & that"]


def test_a_place_that_is_gone_is_told_not_gone_to(qtbot, window) -> None:
    book = window.hub.marks
    gone = (
        Span(0, 500, 504),
        Span(3, 0, 4),
        CellAt(4000),
        EventAt(2, "0" * 16),
        EventAt(99, "0" * 16),
    )
    for place in gone:
        book.do(model.toggled(book.marks, place))
    before = window.hub.selection
    for number, words in enumerate(
        ("not in the run", "no sequence 3", "never used", "another event", "no such event"), 1
    ):
        press(qtbot, window, f"Ctrl+{number}")
        assert words in window.status.currentMessage()
        assert window.hub.selection == before


def test_notes_are_written_in_a_window_of_their_own(qtbot, window) -> None:
    window.run_panel.go_to(7)
    press(qtbot, window, "Ctrl+Shift+B")
    (page,) = window.findChildren(NotePage)
    page.activateWindow()
    qtbot.waitUntil(page.isActiveWindow)
    page.note.setPlainText("look")
    qtbot.keyClick(page.note, Qt.Key.Key_Return, Qt.KeyboardModifier.ControlModifier)
    assert window.hub.marks.marks[Span(0, 7, 8)].note == "look"
    assert window.hub.marks.marks[Span(0, 7, 8)].number == 0


# undo ---------------------------------------------------------------------------------------------


def do(window: MainWindow, number: int, outcome: str = "ok") -> None:
    ticket = window.client.send(Do(from_json({"op": "reset", "seq": 0})))
    window.client.receive(ticket, values.record(number, VIEW, outcome=outcome))
    window.client.deliver_now()


def test_undo_takes_back_what_was_changed_last_and_names_it(qtbot, window) -> None:
    sent: list[object] = []
    window.client.sent.connect(lambda _ticket, command: sent.append(command))
    undo, redo = window.actions_["edit.undo"], window.actions_["edit.redo"]
    assert undo.text() == "Undo the last edit op"
    window.run_panel.go_to(7)
    press(qtbot, window, "Ctrl+B")
    assert undo.text() == "Undo bookmark position 7 of sequence 0"
    do(window, 6)
    assert undo.text() == "Undo the last edit op"
    press(qtbot, window, "Ctrl+Z")
    assert isinstance(sent[-1], Undo)
    assert places(window) == [Span(0, 7, 8)]
    window.client.receive(0, values.record(7, VIEW, op={"op": "undo"}))
    window.client.deliver_now()
    assert undo.text() == "Undo bookmark position 7 of sequence 0"
    press(qtbot, window, "Ctrl+Z")
    assert places(window) == []
    assert redo.text() == "Redo bookmark position 7 of sequence 0"
    press(qtbot, window, "Ctrl+Shift+Z")
    assert places(window) == [Span(0, 7, 8)]


def test_a_refused_op_and_a_chunk_do_not_come_before_a_bookmark(qtbot, window) -> None:
    window.run_panel.go_to(7)
    press(qtbot, window, "Ctrl+B")
    do(window, 6, outcome="rejected")
    window.client.receive(0, values.record(7, VIEW))
    window.client.deliver_now()
    press(qtbot, window, "Ctrl+Z")
    assert places(window) == []


def test_redo_says_why_it_can_not_be_used(window) -> None:
    assert not window.actions_["edit.redo"].isEnabled()
    assert "undone" in window.actions_.reason("edit.redo")


# drawings -----------------------------------------------------------------------------------------


def test_the_run_and_the_journal_show_what_is_marked(qtbot, window) -> None:
    window.hub.select(Selection(start=8, stop=12))
    window.toggle_bookmark()
    window._note_written(Span(0, 8, 12), "spike", "look")
    window.show_index(2)
    window.toggle_bookmark()
    window.return_to_live()
    assert "bookmark 1 spike: look" in window.run_panel.words_at(9)
    assert "bookmark" not in window.run_panel.words_at(12)
    journal = window.docks.panels["journal"]
    journal.flush()
    cells = [journal.rows.cell(2, column) for column in (0, 8)]
    assert [cell.glyph for cell in cells] == ["bookmark", "bookmark"]
    assert cells[1].text == "2 · op 3"
    assert journal.rows.cell(1, 0).glyph == ""
    press(qtbot, window, "Ctrl+Z")
    journal.flush()
    assert journal.rows.cell(2, 0).glyph == ""


def test_the_marks_of_another_sequence_are_not_drawn(window) -> None:
    book = window.hub.marks
    book.do(model.toggled(book.marks, Span(1, 8, 12)))
    assert window.run_panel.detail._marks == ()


# keeping ------------------------------------------------------------------------------------------


def test_bookmarks_come_back_with_the_same_session(qtbot, window, settings, tmp_path) -> None:
    window.run_panel.go_to(7)
    window.toggle_bookmark()
    window.close()
    assert len(list((tmp_path / "bookmarks").iterdir())) == 1
    second = make_window(qtbot, settings)
    assert places(second) == [Span(0, 7, 8)]
    assert not second.notice_bar.isVisible()
    assert not second.actions_["edit.undo"].text().startswith("Undo bookmark")
    second.close()


def test_closing_the_session_keeps_its_bookmarks(window, tmp_path) -> None:
    window.run_panel.go_to(7)
    window.toggle_bookmark()
    window.close_session()
    assert places(window) == []
    begin(window)
    assert places(window) == [Span(0, 7, 8)]


def test_a_saved_session_is_followed_by_its_bookmarks(window, tmp_path: Path) -> None:
    path = tmp_path / "s.safetensors"
    window.run_panel.go_to(7)
    window.toggle_bookmark()
    ticket = window.client.send(SaveSession(str(path)))
    window.client.receive(ticket, CheckResult("save", True, "saved"))
    window.client.deliver_now()
    beside = path.with_name(path.name + SUFFIX)
    assert MarkFile(beside).read().marks.keys() == {Span(0, 7, 8)}
    window.close_session()
    begin(window)
    beside.unlink()
    MarkFile(beside).write({CellAt(3): model.Mark(CellAt(3), 1)}, closed=True)
    ticket = window.client.send(LoadSession(str(path)))
    window.client.receive(ticket, values.record(6, VIEW, op={"op": "load"}))
    window.client.deliver_now()
    assert places(window) == [CellAt(3)]


def test_a_session_that_could_not_be_saved_gets_no_bookmarks(window, tmp_path: Path) -> None:
    window.run_panel.go_to(7)
    window.toggle_bookmark()
    ticket = window.client.send(SaveSession(str(tmp_path / "s.safetensors")))
    window.client.receive(ticket, Trouble("SaveSession", "no room"))
    window.client.deliver_now()
    assert list(tmp_path.glob(f"*{SUFFIX}")) == []


def test_a_damaged_file_is_told_in_the_bar_and_kept(qtbot, window, settings, tmp_path) -> None:
    window.run_panel.go_to(7)
    window.toggle_bookmark()
    window.close()
    (path,) = (tmp_path / "bookmarks").iterdir()
    path.write_bytes(b"\x00")
    second = make_window(qtbot, settings)
    assert places(second) == []
    assert second.error_bar.isVisible()
    assert "expected bookmarks as JSON" in second.error_bar.text.text()
    second.close()
    assert path.read_bytes() == b"\x00"


def test_fresh_writes_nothing(qtbot, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    window = make_window(qtbot, Settings(fresh=True))
    window.run_panel.go_to(7)
    window.toggle_bookmark()
    window.mark_store.autosave()
    window.close()
    assert list(tmp_path.iterdir()) == []


def test_a_report_is_given_the_bookmarks(window, tmp_path: Path) -> None:
    assert window.marks_for_report(tmp_path) == []
    window.run_panel.go_to(7)
    window.toggle_bookmark()
    flag, path = window.marks_for_report(tmp_path)
    assert flag == "--bookmarks"
    assert MarkFile(Path(path)).read().marks == window.hub.marks.marks
