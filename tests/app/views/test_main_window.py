"""The window as a person uses it, on hand-made values and on files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QDropEvent, QGuiApplication, QKeySequence
from PySide6.QtWidgets import QApplication, QDockWidget, QToolBar, QWidget

from app import theme
from app.action_list import ACTIONS
from app.cli import screenshot
from app.settings import Settings
from app.views import PANELS
from app.views.main_window import MainWindow
from app.views.window_help import Page
from engine.events import FaultsChanged, FeedChanged, SessionOpened, Trouble
from engine.progress import Progress
from tests.app import values

SESSION = SessionOpened("tiny", "cpu", (("reserve", "transaction"),), (("tokens", "token"),), ())


@pytest.fixture
def window(qtbot, settings: Settings) -> MainWindow:
    window = MainWindow(settings)
    qtbot.addWidget(window)
    window.resize(1280, 800)
    window.show()
    window.build_panels()
    return window


@pytest.fixture
def opened(window: MainWindow) -> MainWindow:
    """A window on a session that no engine stands behind."""
    client = window.client
    client.receive(1, SESSION)
    for n in range(1, 6):
        outcome = {"outcome": "failed", "result": "rejected: nonfinite"} if n == 3 else {}
        client.receive(0, values.record(n, values.sequence(0, 0, 4 * n), **outcome))
    client.receive(0, values.snapshot(values.sequence(0, 0, 20)))
    client.deliver_now()
    window.update_actions()
    return window


def sent(window: MainWindow) -> list[object]:
    commands: list[object] = []
    window.client.sent.connect(lambda _ticket, command: commands.append(command))
    return commands


def press(qtbot, window: MainWindow, keys: str) -> None:
    combination = QKeySequence(keys)[0]
    target = QApplication.focusWidget() or window
    qtbot.keyClick(target, combination.key(), combination.keyboardModifiers())


# names ------------------------------------------------------------------------------------------


def test_every_widget_has_a_name_for_screen_readers(opened: MainWindow) -> None:
    nameless = [
        f"{type(w).__name__} {w.objectName()} in {type(w.parent()).__name__}"
        for w in opened.findChildren(QWidget)
        if not w.accessibleName()
        and not w.objectName().startswith("qt_")
        and type(w).__module__.startswith("app.")
    ]
    assert nameless == []


def test_every_control_that_takes_the_keyboard_has_a_name(opened: MainWindow) -> None:
    nameless = [
        f"{type(w).__name__} {w.objectName()} in {w.parent().objectName()}"
        for w in opened.findChildren(QWidget)
        if w.focusPolicy() & Qt.FocusPolicy.TabFocus
        and not w.accessibleName()
        and not (hasattr(w, "text") and w.text())
        and not w.objectName().startswith("qt_")
    ]
    assert nameless == []


def test_docks_and_bars_have_object_names(opened: MainWindow) -> None:
    names = [
        w.objectName() for w in opened.findChildren(QDockWidget) + opened.findChildren(QToolBar)
    ]
    assert all(names)
    assert len(set(names)) == len(names)
    assert len(opened.docks.docks) == len(PANELS)


# layout -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [(1280, 800), (1440, 900), (1920, 1080)])
def test_the_window_fits_its_size_with_no_control_cut_off(qtbot, opened, size) -> None:
    opened.resize(*size)
    qtbot.wait(50)
    assert (opened.width(), opened.height()) == size
    for bar in (opened.engine_bar, opened.time_bar):
        for child in bar.children():
            if isinstance(child, QWidget) and child.objectName().startswith("bar."):
                assert child.isVisible(), child.objectName()
                assert bar.rect().contains(child.geometry()), child.objectName()


def test_layout_is_remembered_and_reset_brings_all_docks_back(qtbot, settings: Settings) -> None:
    first = MainWindow(settings)
    qtbot.addWidget(first)
    first.show()
    first.build_panels()
    first.client.receive(1, SESSION)
    first.client.deliver_now()
    first.docks.docks["journal"].hide()
    first.docks.docks["cells"].setFloating(True)
    first.close()
    second = MainWindow(settings)
    qtbot.addWidget(second)
    second.show()
    second.build_panels()
    second.client.receive(1, SESSION)
    second.client.deliver_now()
    assert second.docks.docks["journal"].isHidden()
    assert second.docks.docks["cells"].isFloating()
    second.reset_layout()
    assert all(not dock.isFloating() for dock in second.docks.docks.values())
    assert all(not dock.isHidden() for dock in second.docks.docks.values())
    second.close()


def test_docks_are_hidden_on_the_start_page(window: MainWindow) -> None:
    assert all(dock.isHidden() for dock in window.docks.docks.values())
    assert window.stack.currentWidget() is window.start_page


def test_closing_the_session_shows_the_start_page_and_opening_brings_docks_back(opened) -> None:
    assert not opened.docks.docks["journal"].isHidden()
    opened.close_session()
    assert opened.docks.docks["journal"].isHidden()
    assert opened.client.records == []
    opened.client.receive(1, SESSION)
    opened.client.deliver_now()
    assert not opened.docks.docks["journal"].isHidden()


def test_colours_text_size_and_motion_are_remembered(
    opened: MainWindow, settings: Settings
) -> None:
    opened.set_scheme("dark")
    assert theme.current().name == "dark"
    opened.set_text_size(125)
    opened.set_reduced_motion(True)
    assert (settings.scheme, settings.text_size, settings.reduced_motion) == ("dark", 125, True)
    opened.set_text_size(100)


# commands ---------------------------------------------------------------------------------------


def test_actions_that_cannot_be_used_say_why(opened: MainWindow) -> None:
    reasons = {spec.id: opened.actions_.reason(spec.id) for spec in ACTIONS}
    assert "no token is queued" in reasons["run.run"]
    assert reasons["run.finish"] == "no transaction is open"
    assert reasons["go.live"] == "the newest state is shown"
    assert reasons["file.save"] == ""
    opened.client.receive(0, FeedChanged(((0, 9),), False, 5))
    opened.client.receive(0, FaultsChanged((("reserve", "oom", 1, 0),)))
    opened.client.deliver_now()
    opened.update_actions()
    assert opened.actions_["run.run"].isEnabled()
    assert opened.actions_["run.clear_faults"].isEnabled()


def test_engine_bar_sends_what_it_says(qtbot, opened: MainWindow, settings: Settings) -> None:
    commands = sent(opened)
    opened.client.receive(0, FeedChanged(((0, 9),), False, 5))
    opened.client.deliver_now()
    opened.update_actions()
    for id in ("run.stage", "run.chunk", "run.token", "run.run"):
        opened.actions_[id].trigger()
    opened.engine_bar.chunk.setValue(7)
    opened.engine_bar.feed.setText("5, 6")
    qtbot.keyClick(opened.engine_bar.feed, Qt.Key.Key_Return)
    names = [type(command).__name__ for command in commands]
    assert names == ["StepStage", "StepChunk", "StepToken", "Run", "SetChunk", "Feed"]
    assert commands[-1].tokens == (5, 6)
    assert settings.chunk == 7
    opened.engine_bar.feed.setText("five")
    qtbot.keyClick(opened.engine_bar.feed, Qt.Key.Key_Return)
    assert len(commands) == 6
    assert "expected x64" in opened.status.currentMessage()


def test_a_hole_is_asked_for_at_the_frontier(opened: MainWindow) -> None:
    commands = sent(opened)
    opened.append_hole()
    assert tuple(commands[-1].op.positions) == (20, 21, 23)
    assert len(commands[-1].op.tokens) == 3


def test_go_to_field_goes_to_positions_groups_and_events(qtbot, opened: MainWindow) -> None:
    def go(text: str) -> None:
        opened.focus_go_to()
        opened.time_bar.place.setText(text)
        qtbot.keyClick(opened.time_bar.place, Qt.Key.Key_Return)

    go("13")
    assert opened.hub.selection.start == 13
    go("g1")
    assert (opened.hub.selection.start, opened.hub.selection.stop) == (4, 8)
    go("event 2")
    assert opened.client.shown is opened.client.records[1]
    assert opened.history_banner.isVisible()
    go("999")
    assert "There is no position 999" in opened.status.currentMessage()
    go("here")
    assert "expected 812" in opened.status.currentMessage()
    go("cell 3")
    assert opened.hub.selection.cell == 3


def test_time_travel_by_keys(qtbot, opened: MainWindow) -> None:
    opened.run_panel.overview.setFocus()
    opened.step_event(-1)
    assert opened.client.shown.number == 4
    opened.go_to_first()
    assert opened.client.shown.number == 1
    assert opened.time_bar.event_words == "Event 1 / 5"
    assert opened.actions_.reason("go.back_event")
    opened.step_problem(1)
    assert opened.client.shown.number == 3
    opened.go_to_last_good()
    assert opened.client.shown.number == 2
    opened.return_to_live()
    assert opened.client.shown is None
    assert not opened.history_banner.isVisible()


def test_doing_something_leaves_the_past(opened: MainWindow) -> None:
    opened.go_to_first()
    opened.append_hole()
    assert opened.client.shown is None


def test_back_and_forward_walk_the_selections(opened: MainWindow) -> None:
    opened.run_panel.go_to(3)
    opened.run_panel.go_to(9)
    opened.go_back()
    assert opened.hub.selection.start == 3
    opened.go_forward()
    assert opened.hub.selection.start == 9
    opened.clear_selection()
    assert opened.hub.selection.is_empty


def test_copy_takes_what_the_focused_view_shows(opened: MainWindow) -> None:
    opened.run_panel.detail.setFocus()
    opened.run_panel.go_to(5)
    opened.copy_text()
    assert QGuiApplication.clipboard().text().splitlines()[-1] == "position 5: complete group"
    opened.copy_json()
    value = json.loads(QGuiApplication.clipboard().text())
    assert (value["run"], value["selected"], value["group"]) == ([0, 19], [5, 5], 1)


def test_select_the_whole_run(opened: MainWindow) -> None:
    opened.select_run()
    assert (opened.hub.selection.start, opened.hub.selection.stop) == (0, 20)
    assert "(20)" in opened.status.selected.text()


def test_palette_runs_commands_by_a_few_letters(qtbot, opened: MainWindow) -> None:
    opened.open_palette()
    palette = opened.palette_
    qtbot.keyClicks(palette.field, "select whole")
    assert palette.model.entries[0].id == "edit.all"
    qtbot.keyClick(palette.field, Qt.Key.Key_Return)
    assert not palette.isVisible()
    assert opened.hub.selection.stop == 20
    opened.open_palette()
    qtbot.keyClicks(palette.field, "g2")
    qtbot.keyClick(palette.field, Qt.Key.Key_Return)
    assert opened.hub.selection.group == 2
    opened.open_palette()
    qtbot.keyClicks(palette.field, "finish")
    assert palette.model.entries[0].reason == "no transaction is open"
    qtbot.keyClick(palette.field, Qt.Key.Key_Return)
    assert palette.isVisible(), "what can't run stays, with its reason"
    qtbot.keyClick(palette.field, Qt.Key.Key_Down)
    qtbot.keyClick(palette.field, Qt.Key.Key_Escape)
    assert not palette.isVisible()


def test_letters_act_in_drawings_and_not_in_fields(qtbot, opened: MainWindow) -> None:
    opened.activateWindow()
    detail = opened.run_panel.detail
    detail.setFocus()
    per = detail.axis.per_position
    qtbot.keyClicks(detail, "+")
    assert detail.axis.per_position > per
    qtbot.keyClicks(detail, "0")
    assert detail.axis.x0 == detail.axis.lo
    opened.engine_bar.feed.setFocus()
    opened.engine_bar.feed.clear()
    per = detail.axis.per_position
    qtbot.keyClicks(opened.engine_bar.feed, "x5")
    assert opened.engine_bar.feed.text() == "x5"
    assert detail.axis.per_position == per


def test_ctrl_arrows_move_by_groups_in_a_drawing_and_by_events_elsewhere(qtbot, opened) -> None:
    opened.activateWindow()
    opened.run_panel.detail.setFocus()
    opened.run_panel.go_to(8)
    press(qtbot, opened, "Ctrl+Right")
    assert opened.hub.selection.start == 12
    press(qtbot, opened, "Ctrl+Left")
    assert opened.hub.selection.start == 8
    assert opened.client.shown is None
    opened.run_panel.follow.setFocus()
    press(qtbot, opened, "Ctrl+Left")
    assert opened.client.shown is opened.client.records[-2]


def test_panes_are_visited_in_turn(qtbot, opened: MainWindow) -> None:
    opened.activateWindow()
    opened.run_panel.detail.setFocus()
    seen = []
    for _ in range(4):
        opened.next_pane(1)
        seen.append(opened.focusWidget())
    assert len(set(map(id, seen))) == 4
    for _ in range(4):
        opened.next_pane(-1)
    assert opened.run_panel.isAncestorOf(opened.focusWidget())


def test_pages_open_without_blocking(qtbot, opened: MainWindow) -> None:
    for show in (opened.show_shortcuts, opened.show_glossary, opened.show_about):
        show()
        pages = [page for page in opened.findChildren(Page) if page.isVisible()]
        assert len(pages) == 1
    pages[0].close()


# states -----------------------------------------------------------------------------------------


def test_trouble_is_shown_in_place_the_first_on_top(qtbot, opened: MainWindow) -> None:
    for sentence in ("one went wrong", "two went wrong", "one went wrong"):
        opened.client.receive(0, Trouble("Do", sentence))
    opened.client.deliver_now()
    assert opened.error_bar.isVisible()
    assert opened.error_bar.text.text().startswith("one went wrong")
    assert "1 more" in opened.error_bar.text.text()
    opened.error_bar.more.setChecked(True)
    assert "two went wrong" in opened.error_bar.details.toPlainText()
    assert QApplication.activeModalWidget() is None
    opened.error_bar.dismiss()
    assert not opened.error_bar.isVisible()


def test_work_shows_progress_only_after_a_moment(qtbot, opened: MainWindow) -> None:
    opened.client.receive(0, Progress(1, 10, "cases", "sweep"))
    opened.client.deliver_now()
    assert not opened.status.work.isVisible()
    qtbot.waitUntil(opened.status.work.isVisible, timeout=2000)
    assert opened.status.progress.maximum() == 10
    opened.client.cancel_token.clear()
    qtbot.mouseClick(opened.status.cancel, Qt.MouseButton.LeftButton)
    assert opened.client.cancel_token.is_set()
    opened.client.receive(0, Progress(10, 10, "cases", "sweep"))
    opened.client.deliver_now()
    assert not opened.status.work.isVisible()


def test_a_broken_invariant_is_said_at_once(opened: MainWindow) -> None:
    opened.client.receive(0, values.snapshot(values.sequence(0, 0, 4), broken="banks differ"))
    opened.client.deliver_now()
    assert "banks differ" in opened.error_bar.text.text()


def test_status_says_model_and_backend(opened: MainWindow) -> None:
    assert opened.status.source.text() == "tiny · MLX CPU · inspect"
    assert "No Metal here" in opened.status.source.toolTip()


# files ------------------------------------------------------------------------------------------


def drop(window: MainWindow, path: Path) -> None:
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(path))])
    event = QDropEvent(
        QPointF(50, 50),
        Qt.DropAction.CopyAction,
        data,
        Qt.MouseButton.LeftButton,
        Qt.KeyboardModifier.NoModifier,
    )
    window.dropEvent(event)


def test_a_bad_file_is_refused_in_place_and_nothing_is_opened(window, tmp_path: Path) -> None:
    empty = tmp_path / "empty.bin"
    empty.touch()
    drop(window, empty)
    assert window.error_bar.isVisible()
    assert "the file is empty" in window.error_bar.text.text()
    assert window.settings.recent == []
    assert window.stack.currentWidget() is window.start_page


def test_a_malformed_scenario_says_what_was_expected(window: MainWindow, tmp_path: Path) -> None:
    path = tmp_path / "bad.json"
    path.write_text('{"capacity": 0, "ops": []}')
    window.open_path(str(path))
    assert "capacity" in window.error_bar.text.text()
    assert not window.is_opening


def test_recent_files_are_listed_and_a_missing_one_is_grey(window, tmp_path: Path) -> None:
    there, gone = tmp_path / "there.json", tmp_path / "gone.json"
    there.write_text("{}")
    for path in (gone, there):
        window.settings.add_recent(str(path))
    window.fill_recent()
    actions = {a.text(): a.isEnabled() for a in window.recent_menu.actions()}
    assert actions["there.json"]
    assert not actions["gone.json"]
    button = window.start_page.findChild(QWidget, "start.gone.json")
    assert not button.isEnabled()
    assert "not there any more" in button.toolTip()
    window.clear_recent()
    assert not window.recent_menu.isEnabled()


def test_start_page_offers_the_tiny_model_and_every_scenario(qtbot, window: MainWindow) -> None:
    from app import resources

    asked: list[str] = []
    window.start_page.path_asked.disconnect(window.open_path)
    window.start_page.path_asked.connect(asked.append)
    for path in resources.scenarios():
        button = window.start_page.findChild(QWidget, f"start.{path.name}")
        button.click()
    assert asked == [str(path) for path in resources.scenarios()]
    assert window.start_page.demo.isEnabled()


def test_screenshot_sizes_are_checked() -> None:
    import argparse

    assert screenshot.size("1280x800") == (1280, 800)
    for bad in ("1280", "10x10", "99999x800", "axb"):
        with pytest.raises(argparse.ArgumentTypeError, match="expected"):
            screenshot.size(bad)


def test_hovering_tells_the_status_bar(qtbot, opened: MainWindow) -> None:
    detail = opened.run_panel.detail
    qtbot.mouseMove(detail, QPoint(1, 1))
    x = int(detail.axis.to_pixel(6.5))
    qtbot.mouseMove(detail, QPoint(x, 40))
    assert opened.status.pointer.text().startswith("position 6, complete group, group 1, cell 6")
