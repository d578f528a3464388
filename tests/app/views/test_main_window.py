"""The window as a person uses it: names, layout, states and files."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QDropEvent
from PySide6.QtWidgets import QApplication, QDockWidget, QToolBar, QWidget

from app import theme
from app.cli import screenshot
from app.settings import Settings
from app.views import PANELS
from app.views.main_window import MainWindow
from engine.events import Trouble
from engine.progress import Progress
from tests.app import values
from tests.app.views import by_hand
from tests.app.views.by_hand import SESSION


@pytest.fixture
def window(qtbot, settings: Settings) -> MainWindow:
    return by_hand.bare_window(qtbot, settings)


@pytest.fixture
def opened(window: MainWindow) -> MainWindow:
    """A window on a session that no engine stands behind."""
    return by_hand.with_events(window)


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
