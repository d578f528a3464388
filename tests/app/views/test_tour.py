"""The tour's dock in the window: offered, begun, ticked, closed, begun again."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication

from app import theme
from app.settings import Settings
from app.views.main_window import MainWindow
from engine.commands import ArmFault
from engine.events import FaultsChanged, FeedChanged, SessionOpened
from tests.app import values
from tests.app.views.pseudo import cut_off, pseudo_locale  # noqa: F401  a fixture

SESSION = SessionOpened("tiny", "cpu", (("verify", "transaction"),), (("tokens", "token"),), ())


@pytest.fixture
def window(qtbot, settings: Settings, monkeypatch) -> MainWindow:
    """The start page of a first run; the demo is asked for, not played."""
    window = MainWindow(settings)
    qtbot.addWidget(window)
    asked: list[str] = []
    monkeypatch.setattr(window, "play_demo", lambda: asked.append("demo"))
    window.asked = asked
    window.resize(1280, 800)
    window.show()
    window.build_panels()
    return window


@pytest.fixture
def opened(window: MainWindow) -> MainWindow:
    """A session with groups and five events that no engine stands behind; the tour runs."""
    window.client.receive(1, SESSION)
    for n in range(1, 6):
        window.client.receive(0, values.record(n, values.sequence(0, 0, 4 * n)))
    window.client.receive(0, values.snapshot(values.sequence(0, 0, 18)))
    window.client.deliver_now()
    window.update_actions()
    window.actions_["help.tour"].trigger()
    return window


def rows(window: MainWindow) -> dict[str, str]:
    """State of every step as it is read out."""
    assert window.tour_dock is not None
    return {row.step.id: row.state for row in window.tour_dock.panel.rows}


def done(window: MainWindow) -> set[str]:
    return {name for name, state in rows(window).items() if state == "done"}


def button(window: MainWindow):
    """The button of the next step."""
    assert window.tour_dock is not None
    return next(r.button for r in window.tour_dock.panel.rows if r.more.isVisible())


# offering ---------------------------------------------------------------------------------------


def test_the_start_page_of_a_first_run_offers_it_and_opens_the_demo(qtbot, window) -> None:
    page = window.start_page
    assert page.tour_offer.isVisible()
    assert page.focusWidget() is page.demo, "the demo keeps the keyboard"
    qtbot.mouseClick(page.tour, Qt.MouseButton.LeftButton)
    assert window.tour_dock.isVisible()
    assert window.asked == ["demo"]
    assert not window.tour_dock.isFloating()
    assert QApplication.activeModalWidget() is None


def test_no_thanks_is_remembered(qtbot, window, tmp_path: Path) -> None:
    qtbot.mouseClick(window.start_page.no_tour, Qt.MouseButton.LeftButton)
    assert not window.start_page.tour_offer.isVisible()
    assert window.tour_dock is None
    window.close()
    again = MainWindow(Settings(path=tmp_path / "settings.ini"))
    qtbot.addWidget(again)
    again.show()
    assert not again.start_page.tour_offer.isVisible()
    assert again.actions_["help.tour"].isEnabled()


def test_closing_it_early_is_remembered_as_dismissed(window, settings) -> None:
    window.start_tour()
    window.tour_dock.close()
    assert settings.tour == "dismissed"
    assert not window.tour_runs
    assert not window.start_page.tour_offer.isVisible()


def test_closing_the_window_is_not_closing_the_tour(window, settings) -> None:
    window.start_tour()
    window.close()
    assert settings.tour == ""


# ticking ----------------------------------------------------------------------------------------


def test_each_step_ticks_by_what_happens(opened: MainWindow, tmp_path: Path) -> None:
    assert rows(opened)["group"] == "next"
    assert done(opened) == set()
    opened.run_panel.go_to(5)
    assert done(opened) == {"group"}
    refused = values.refused(6, [18, 19, 21], 20, 21, values.sequence(0, 0, 18))
    opened.client.receive(0, refused)
    opened.client.deliver_now()
    assert done(opened) == {"group"}, "a hole that nobody looked for"
    opened.run_panel.detail.setFocus()
    opened.go_to_hole(1)
    assert done(opened) == {"group", "hole"}
    opened.actions_["go.back_event"].trigger()
    assert done(opened) == {"group", "hole", "event"}
    opened.return_to_live()
    failed = {"outcome": "failed", "stage": "verify"}
    opened.client.receive(0, values.record(7, values.sequence(0, 0, 18), **failed))
    opened.client.deliver_now()
    assert "failure" not in done(opened), "nobody asked for that failure"
    opened.client.send(ArmFault("verify", "oom"))
    opened.client.receive(0, values.record(8, values.sequence(0, 0, 18), **failed))
    opened.client.deliver_now()
    assert rows(opened)["report"] == "next"
    opened.report_folder = tmp_path
    opened.report_child.ended.emit(2, "", "no")
    assert rows(opened)["report"] == "next", "a report that could not be made"
    (tmp_path / "report.html").write_text("x")
    opened.report_child.ended.emit(0, "", "")
    assert opened.tour_progress.is_finished
    assert opened.settings.tour == "finished"
    assert opened.tour_dock.panel.count.text() == "All steps are done"


def test_its_own_buttons_tick_nothing(opened: MainWindow) -> None:
    for target in ("group", "hole", "try_hole", "event", "feed", "chunk", "faults"):
        opened.show_tour_target(target)
    opened.show_tour_target("report")
    opened.menus["File"].close()
    assert done(opened) == set()


def test_a_finished_tour_stays_finished_when_it_is_begun_again_and_closed(opened) -> None:
    opened.settings.tour = "finished"
    opened.run_panel.go_to(5)
    assert done(opened) == {"group"}
    opened.tour_dock.panel.restart.click()
    assert done(opened) == set()
    opened.tour_dock.panel.close_button.click()
    assert opened.tour_dock.isHidden()
    assert opened.settings.tour == "finished"
    opened.run_panel.go_to(9)
    opened.actions_["help.tour"].trigger()
    assert opened.tour_dock.isVisible()
    assert done(opened) == set(), "what was done while it was closed does not count"


def test_hints_follow_what_the_session_lacks(qtbot, opened: MainWindow) -> None:
    opened.run_panel.go_to(5)
    row = opened.tour_dock.panel.rows[1]
    assert "Ctrl+H" in row.hint.text()
    for event in (FaultsChanged((("verify", "oom", 1, 0),)), FeedChanged(((0, 9),), False, 5)):
        opened.client.receive(0, event)
    opened.client.deliver_now()
    opened.go_to_hole(1)
    refused = values.refused(6, [18, 19, 21], 20, 21, values.sequence(0, 0, 18))
    opened.client.receive(0, refused)
    opened.client.deliver_now()
    qtbot.waitUntil(lambda: row.hint.isHidden())
    opened.go_to_hole(1)
    opened.step_event(-1)
    assert opened.tour_dock.panel.rows[3].hint.text() == "A failure is armed. Step a chunk (F9)."


# showing where ----------------------------------------------------------------------------------


def test_show_me_puts_the_keyboard_where_the_step_is_done(qtbot, opened: MainWindow) -> None:

    def show_me() -> None:
        button(opened).setFocus()
        qtbot.keyClick(button(opened), Qt.Key.Key_Space)

    opened.activateWindow()
    assert opened.focusWidget() is button(opened)
    show_me()
    place = opened.time_bar.place
    assert (opened.focusWidget(), place.text()) == (place, "g0")
    qtbot.keyClick(place, Qt.Key.Key_Return)
    assert done(opened) == {"group"}
    show_me()
    assert opened.focusWidget().objectName() == "bar.run.hole"
    refused = values.refused(6, [18, 19, 21], 20, 21, values.sequence(0, 0, 18))
    opened.client.receive(0, refused)
    opened.client.deliver_now()
    qtbot.waitUntil(lambda: opened.tour_dock.panel.rows[1].help.target == "hole")
    show_me()
    detail = opened.run_panel.detail
    assert opened.focusWidget() is detail
    assert detail.axis.x0 <= 20 < detail.axis.x1
    qtbot.keyClick(detail, Qt.Key.Key_H)
    assert done(opened) == {"group", "hole"}
    show_me()
    assert opened.focusWidget().objectName() == "bar.go.back_event"
    qtbot.keyClick(opened.focusWidget(), Qt.Key.Key_Space)
    assert done(opened) == {"group", "hole", "event"}
    show_me()
    assert opened.docks.panels["faults"].isAncestorOf(opened.focusWidget())


def test_the_report_is_shown_in_its_menu(opened: MainWindow) -> None:
    opened.show_tour_target("report")
    menu = opened.menus["File"]
    assert menu.isVisible()
    assert menu.activeAction() is opened.actions_["file.report"]
    menu.close()


def test_f6_reaches_the_tour(opened: MainWindow) -> None:
    opened.activateWindow()
    opened.run_panel.detail.setFocus()
    opened.next_pane(-1)
    opened.next_pane(-1)
    assert opened.tour_dock.isAncestorOf(opened.focusWidget())


# place ------------------------------------------------------------------------------------------


def test_it_stays_left_through_closing_opening_and_reset(qtbot, opened: MainWindow) -> None:
    def at_left() -> bool:
        area = opened.dockWidgetArea(opened.tour_dock)
        return opened.tour_dock.isVisible() and area is Qt.DockWidgetArea.LeftDockWidgetArea

    assert at_left()
    opened.close_session()
    assert at_left()
    assert opened.tour_dock.panel.rows[0].help.target == "demo"
    button(opened).click()
    assert opened.asked == ["demo"]
    opened.client.receive(1, SESSION)
    opened.client.deliver_now()
    assert at_left()
    opened.reset_layout()
    assert at_left()
    opened.tour_dock.close()
    opened.close_session()
    opened.client.receive(1, SESSION)
    opened.client.deliver_now()
    assert opened.tour_dock.isHidden(), "a layout that had it does not bring it back"


def test_a_layout_kept_with_the_tour_fits_a_window_without_it(qtbot, opened, tmp_path) -> None:
    opened.docks.docks["journal"].hide()
    opened.close()
    again = MainWindow(Settings(path=tmp_path / "settings.ini"))
    qtbot.addWidget(again)
    again.show()
    again.build_panels()
    again.client.receive(1, SESSION)
    again.client.deliver_now()
    assert again.tour_dock is None
    assert again.docks.docks["journal"].isHidden()
    assert not again.docks.docks["banks"].isHidden()
    again.start_tour()
    assert again.tour_dock.isVisible()
    again.close()


@pytest.mark.parametrize("percent", [100, 150])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_long_words_are_not_cut_off(
    qtbot,
    qapp,
    window,
    pseudo_locale,  # noqa: F811
    scheme,
    percent,
) -> None:
    theme.apply(qapp, scheme)
    window.set_text_size(percent)
    window.start_tour()
    qtbot.wait(30)
    assert cut_off(window.tour_dock.panel) == []
    assert window.tour_dock.panel.width() <= window.tour_dock.area.viewport().width()
    assert "word" in window.tour_dock.panel.rows[0].sentence.text()
    window.set_text_size(100)
