"""The dialog of preferences in the window: what it shows, what it changes, what comes back."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import QApplication, QComboBox, QWidget

from app import theme
from app.action_list import ACTIONS
from app.actions import keys_of
from app.models.preferences import Preferences, backend_choices
from app.settings import Settings
from app.views import preferences as view
from app.views.main_window import MainWindow
from app.views.preferences import PreferencesDialog
from engine.memory import default_budget
from tests.app.views.pseudo import cut_off, pseudo_locale  # noqa: F401  a fixture
from tests.helpers.sessions import opened

MACHINE = backend_choices(
    [("metal", False, "needs macOS"), ("cuda", False, "needs a GPU"), ("cpu", True, "MLX")]
)


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch, qapp):
    """A machine with a CPU only; looks are put back."""
    monkeypatch.setattr(view, "backends_here", lambda: MACHINE)
    yield
    theme.set_text_size(qapp, 100)


def make(qtbot, settings: Settings) -> MainWindow:
    window = MainWindow(settings)
    qtbot.addWidget(window)
    window.show()
    return window


@pytest.fixture
def window(qtbot, settings: Settings) -> MainWindow:
    return make(qtbot, settings)


@pytest.fixture
def dialog(window: MainWindow) -> PreferencesDialog:
    window.actions_["edit.preferences"].trigger()
    assert window.preferences_dialog is not None
    return window.preferences_dialog


def choose(box: QComboBox, data: object) -> None:
    box.setCurrentIndex(box.findData(data))


# opening ----------------------------------------------------------------------------------------


def test_ctrl_comma_opens_it_without_blocking_the_window(qtbot, window: MainWindow) -> None:
    window.activateWindow()
    target = QApplication.focusWidget() or window
    qtbot.keyClick(target, Qt.Key.Key_Comma, Qt.KeyboardModifier.ControlModifier)
    assert window.preferences_dialog is not None
    assert window.preferences_dialog.isVisible()
    assert QApplication.activeModalWidget() is None


def test_the_platforms_own_key_acts_beside_the_fallback(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = next(spec for spec in ACTIONS if spec.id == "edit.preferences")
    ours, platform = QKeySequence("Ctrl+,"), QKeySequence("Ctrl+Shift+,")
    for found, expected in (([], [ours]), ([ours], [ours]), ([platform], [ours, platform])):
        monkeypatch.setattr(QKeySequence, "keyBindings", lambda _key, found=found: found)
        assert keys_of(spec) == expected


def test_opened_again_it_is_the_same_dialog_with_what_holds_by_then(window, dialog) -> None:
    dialog.close_button.click()
    assert not dialog.isVisible()
    window.engine_bar.chunk.setValue(31)
    window.set_scheme("contrast")
    window.show_preferences()
    assert window.preferences_dialog is dialog
    assert (dialog.chunk.value(), dialog.scheme.currentData()) == (31, "contrast")


# fields -----------------------------------------------------------------------------------------


def test_the_look_changes_at_once_and_the_menus_agree(window, dialog, qapp) -> None:
    before = qapp.font().pointSizeF()
    choose(dialog.scheme, "dark")
    assert theme.current().name == "dark"
    choose(dialog.text_size, 150)
    assert qapp.font().pointSizeF() > before
    dialog.patterns.click()
    assert theme.patterns_always()
    theme.set_reduced_motion(False)
    dialog.reduced_motion.setChecked(True)
    checked = {id for id, action in window.actions_.actions.items() if action.isChecked()}
    assert {"view.dark", "view.text150", "view.patterns", "view.motion"} <= checked
    settings = window.settings
    assert (settings.scheme, settings.text_size, settings.patterns) == ("dark", 150, True)
    assert settings.reduced_motion


def test_chunk_and_backend_are_those_of_the_toolbar(window, dialog) -> None:
    sent: list[object] = []
    window.client.sent.connect(lambda _ticket, command: sent.append(command))
    dialog.chunk.setValue(11)  # without a session nobody is there to hear it
    assert (window.engine_bar.chunk.value(), window.settings.chunk) == (11, 11)
    assert sent == []
    window.client.session = opened()
    dialog.chunk.setValue(12)
    assert (window.engine_bar.chunk.value(), window.settings.chunk) == (12, 12)
    assert [command.n_tokens for command in sent] == [12]
    window.client.session = None
    choose(dialog.backend, "cpu")
    assert (window.engine_bar.backend.currentText(), window.settings.backend) == ("cpu", "cpu")


def test_new_sessions_begin_as_was_chosen(window, dialog, qtbot) -> None:
    command = window.open_model_command("x")
    assert (command.backend, command.mode, command.budget_bytes) == ("auto", "inspect", None)
    choose(dialog.backend, "cpu")
    choose(dialog.mode, "fast")
    qtbot.keyClicks(dialog.budget, "64 MiB")
    qtbot.keyClick(dialog.budget, Qt.Key.Key_Return)
    command = window.open_model_command("x")
    assert (command.backend, command.mode, command.budget_bytes) == ("cpu", "fast", 64 * 2**20)


def test_restart_begins_with_what_was_chosen_meanwhile(window, dialog, monkeypatch) -> None:
    window.last_open = window.open_model_command("x", capacity=77)
    started: list[object] = []
    monkeypatch.setattr(window, "start_session", started.append)
    choose(dialog.backend, "cpu")
    choose(dialog.mode, "fast")
    window.restart()
    again = started[0]
    assert (again.folder, again.capacity) == ("x", 77)
    assert (again.backend, again.mode) == ("cpu", "fast")


def test_a_backend_that_is_not_here_is_disabled_and_says_why(dialog) -> None:
    items = dialog.backend.model()
    states = {dialog.backend.itemData(n): items.item(n) for n in range(dialog.backend.count())}
    assert [name for name, item in states.items() if item.isEnabled()] == ["auto", "cpu"]
    assert states["metal"].text() == "Metal (needs macOS)"
    dialog.backend.setFocus()
    for _ in range(4):
        QApplication.sendEvent(dialog.backend, _key(Qt.Key.Key_Down))
    assert dialog.backend.currentData() == "cpu", "keys pass over what is disabled"


def _key(key: Qt.Key):
    from PySide6.QtGui import QKeyEvent

    return QKeyEvent(QKeyEvent.Type.KeyPress, key, Qt.KeyboardModifier.NoModifier)


def test_a_remembered_backend_that_is_not_here_is_said_and_kept(qtbot, settings) -> None:
    settings.backend = "metal"
    window = make(qtbot, settings)
    window.show_preferences()
    dialog = window.preferences_dialog
    assert dialog.problem.text() == (
        "Backend: Metal is not on this machine (needs macOS); choose another one."
    )
    choose(dialog.mode, "fast")
    assert settings.backend == "metal"
    assert dialog.problem.text()
    choose(dialog.backend, "auto")
    assert dialog.problem.text() == ""


# invalid input ----------------------------------------------------------------------------------


def test_a_bad_budget_is_said_in_one_sentence_and_changes_nothing(qtbot, window, dialog) -> None:
    qtbot.keyClicks(dialog.budget, "lots")
    qtbot.keyClick(dialog.budget, Qt.Key.Key_Return)
    assert dialog.isVisible(), "Enter in a field presses no button"
    assert dialog.problem.text() == (
        "Byte budget: expected a size such as 512 MiB or 8 GiB, or nothing, given 'lots'"
    )
    assert window.settings.budget_bytes is None
    dialog.close_button.click()
    assert dialog.isVisible(), "what was typed is not dropped without a word"
    dialog.budget.selectAll()
    qtbot.keyClicks(dialog.budget, "2")
    assert dialog.problem.text() == "", "not while it is being corrected"
    qtbot.keyClicks(dialog.budget, " MiB")
    dialog.close_button.click()
    assert not dialog.isVisible()
    assert window.settings.budget_bytes == 2**21


def test_escape_drops_what_was_typed(qtbot, window, dialog) -> None:
    qtbot.keyClicks(dialog.budget, "lots")
    qtbot.keyClick(dialog.budget, Qt.Key.Key_Escape)
    assert not dialog.isVisible()
    window.show_preferences()
    assert (dialog.budget.text(), dialog.problem.text()) == ("", "")


def test_more_than_the_memory_is_refused(qtbot, window, dialog) -> None:
    qtbot.keyClicks(dialog.budget, f"{2 * default_budget() // 2**20 + 1} MiB")
    qtbot.keyClick(dialog.budget, Qt.Key.Key_Return)
    assert "the memory of this machine" in dialog.problem.text()
    assert window.settings.budget_bytes is None


# remembering ------------------------------------------------------------------------------------

OTHER = Preferences("dark", True, True, 125, 17, "cpu", "fast", 512 * 2**20)


def test_all_of_it_comes_back_in_the_next_window(qtbot, window, tmp_path: Path) -> None:
    window.apply_preferences(OTHER)
    window.close()
    again = make(qtbot, Settings(path=tmp_path / "settings.ini"))
    again.show_preferences()
    dialog = again.preferences_dialog
    assert again.preferences() == OTHER
    assert (dialog.text_size.currentData(), dialog.chunk.value()) == (125, 17)
    assert (dialog.mode.currentData(), dialog.budget.text()) == ("fast", "512 MiB")
    assert dialog.patterns.isChecked()
    assert again.engine_bar.backend.currentText() == "cpu"
    assert again.open_model_command("x").mode == "fast"


def test_restore_defaults_undoes_every_choice(window, dialog) -> None:
    window.apply_preferences(OTHER)
    assert window.preferences() == OTHER
    dialog.defaults.click()
    assert window.preferences() == window.settings.preferences() == Preferences()
    assert (dialog.budget.text(), dialog.chunk.value()) == ("", 5)
    assert not dialog.patterns.isChecked()
    assert window.open_model_command("x").budget_bytes is None


def test_colours_from_the_command_line_are_shown_and_not_remembered(qtbot, qapp, settings) -> None:
    theme.apply(qapp, "dark")
    window = make(qtbot, settings)
    window.show_preferences()
    dialog = window.preferences_dialog
    assert dialog.scheme.currentData() == "dark"
    dialog.chunk.setValue(9)
    assert (settings.chunk, settings.scheme) == (9, "system")
    choose(dialog.scheme, "light")
    assert settings.scheme == "light"


def test_a_fresh_window_neither_reads_nor_writes_choices(qtbot, tmp_path: Path) -> None:
    path = tmp_path / "s.ini"
    usual = Settings(path=path)
    usual.chunk = 17
    usual.sync()
    before = path.read_bytes()
    window = make(qtbot, Settings(fresh=True, path=path))
    assert window.engine_bar.chunk.value() == 5
    window.apply_preferences(OTHER)
    assert window.preferences() == OTHER, "they hold until the window is closed"
    window.close()
    assert path.read_bytes() == before


# reading ----------------------------------------------------------------------------------------


def test_every_field_has_a_name_and_tab_goes_from_top_to_bottom(qtbot, dialog) -> None:
    fields = [
        w for w in dialog.findChildren(QWidget)
        if w.focusPolicy() & Qt.FocusPolicy.TabFocus and w.isVisible()
    ]  # fmt: skip
    assert [w.accessibleName() for w in fields if not w.accessibleName()] == []
    dialog.activateWindow()
    dialog.scheme.setFocus()
    order = [dialog.focusWidget()]
    while len(order) < 20:
        dialog.focusNextChild()
        if dialog.focusWidget() is order[0]:
            break
        order.append(dialog.focusWidget())
    wanted = [dialog.scheme, dialog.text_size, dialog.patterns, dialog.reduced_motion, dialog.chunk]
    wanted += [dialog.backend, dialog.mode, dialog.budget, dialog.defaults, dialog.close_button]
    assert order == wanted


@pytest.mark.parametrize("percent", [100, 150])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_long_words_are_not_cut_off(qtbot, qapp, settings, pseudo_locale, scheme, percent) -> None:  # noqa: F811
    theme.apply(qapp, scheme)
    theme.set_text_size(qapp, percent)
    window = make(qtbot, settings)
    window.show_preferences()
    dialog = window.preferences_dialog
    dialog._say(pseudo_locale("Byte budget: expected a size such as 512 MiB or 8 GiB"))
    qtbot.wait(20)
    assert cut_off(dialog) == []
