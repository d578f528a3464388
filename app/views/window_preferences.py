"""What the user chooses for good: colours, text, chunk, and what new sessions begin with."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from PySide6.QtWidgets import QApplication

from app import theme
from app.models.preferences import Preferences, differences
from app.views.drawing import Drawing

if TYPE_CHECKING:
    from app.views.preferences import PreferencesDialog


class PreferenceCommands:
    """Mixed into the main window."""

    preferences_dialog: PreferencesDialog | None = None

    def apply_settings(self) -> None:
        """Make the window as it was left; the look itself is applied before there is a window."""
        settings = self.settings
        self.actions_.paint_icons()
        self.actions_[f"view.{theme.scheme()}"].setChecked(True)
        self.actions_[f"view.text{theme.nearest_size(settings.text_size)}"].setChecked(True)
        self.actions_["view.motion"].setChecked(settings.reduced_motion)
        self.actions_["view.patterns"].setChecked(settings.patterns)
        theme.set_reduced_motion(settings.reduced_motion)
        theme.set_patterns(settings.patterns)
        self.engine_bar.chunk.setValue(settings.chunk)
        self.engine_bar.backend.setCurrentText(settings.backend)
        self._tell_client()

    def _tell_client(self) -> None:
        settings = self.settings
        self.client.chosen = {
            "backend": settings.backend,
            "mode": settings.mode,
            "budget_bytes": settings.budget_bytes,
        }

    # one choice -------------------------------------------------------------------------------

    def set_scheme(self, scheme: str) -> None:
        """Change the colours and remember them."""
        theme.apply(_application(), scheme)
        self.settings.scheme = scheme
        self.actions_[f"view.{scheme}"].setChecked(True)
        self.actions_.paint_icons()

    def set_text_size(self, percent: int) -> None:
        """Scale all text and remember it."""
        theme.set_text_size(_application(), percent)
        self.settings.text_size = percent
        self.actions_[f"view.text{theme.nearest_size(percent)}"].setChecked(True)

    def set_reduced_motion(self, on: bool) -> None:
        """No flash at the flip."""
        theme.set_reduced_motion(on)
        self.settings.reduced_motion = on
        self.actions_["view.motion"].setChecked(on)

    def set_patterns(self, on: bool) -> None:
        """Patterns also on every second group, and where there is little room."""
        theme.set_patterns(on)
        self.settings.patterns = on
        self.actions_["view.patterns"].setChecked(on)
        self.run_panel.legend.paint_icons()
        for drawing in self.findChildren(Drawing):
            drawing.update()

    def set_chunk(self, n_tokens: int) -> None:
        """Tokens a chunk from now on."""
        self.settings.chunk = n_tokens
        self.client.send_chunk(n_tokens)

    def choose_backend(self, backend: str) -> None:
        """The backend of the next session; a session in use is restarted on it."""
        self.settings.backend = backend
        self.engine_bar.backend.setCurrentText(backend)
        self._tell_client()
        if self.client.session is not None and not self.client.offline:
            words = self.tr("Restart the session (Ctrl+R) to run on {0}").format(backend)
            self.status.showMessage(words, 8000)

    def choose_mode(self, mode: str) -> None:
        """The mode that new sessions begin in."""
        self.settings.mode = mode
        self._tell_client()

    def choose_budget(self, n_bytes: int | None) -> None:
        """The most bytes that new sessions may take."""
        self.settings.budget_bytes = n_bytes
        self._tell_client()

    # all of them ------------------------------------------------------------------------------

    def preferences(self) -> Preferences:
        """What holds now; the colours may come from the command line."""
        return replace(self.settings.preferences(), scheme=theme.scheme())

    def apply_preferences(self, wanted: Preferences) -> None:
        """Do what differs from now; all else stays as it is, remembered or not."""
        setters: dict[str, Any] = {
            "scheme": self.set_scheme,
            "patterns": self.set_patterns,
            "reduced_motion": self.set_reduced_motion,
            "text_size": self.set_text_size,
            "chunk": self.engine_bar.chunk.setValue,
            "backend": self.choose_backend,
            "mode": self.choose_mode,
            "budget_bytes": self.choose_budget,
        }
        for name, value in differences(self.preferences(), wanted).items():
            setters[name](value)

    def show_preferences(self) -> None:
        """The dialog; it does not block the window, so that changes can be seen in it."""
        if self.preferences_dialog is None:
            from app.views.preferences import PreferencesDialog

            self.preferences_dialog = PreferencesDialog(self.preferences, self)
            self.preferences_dialog.changed.connect(self.apply_preferences)
        self.preferences_dialog.open_now()


def _application() -> QApplication:
    app = QApplication.instance()
    assert isinstance(app, QApplication)
    return app
