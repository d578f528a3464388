"""Start of the window: arguments, application, look, crash trace, event loop."""

from __future__ import annotations

import os
import signal
import sys
from dataclasses import dataclass, field

from app.cli.display import display_problem

NO_DISPLAY = (
    "`bankflip demo` does the work without one, and "
    "`bankflip screenshot` makes pictures of the window"
)


@dataclass(frozen=True, slots=True)
class Start:
    """What the command line asks of the window."""

    files: tuple[str, ...] = ()
    fresh: bool = False
    log_level: str = "INFO"
    theme: str = ""
    demo: bool = False
    """Play the shipped demo at once."""
    quit_after_s: float = field(default=0.0)
    """End by itself, for smoke tests; 0 means never."""


def run_window(start: Start) -> int:
    """Open the window and run it until it is closed; returns the exit status."""
    problem = display_problem()
    if problem and not os.environ.get("QT_QPA_PLATFORM"):
        print(f"bankflip: {problem}: {NO_DISPLAY}", file=sys.stderr)
        return 2
    from PySide6.QtCore import QTimer
    from PySide6.QtWidgets import QApplication

    from app import theme
    from app.log import Logging
    from app.settings import APPLICATION, ORGANISATION, Settings, state_folder
    from app.views.application import Application
    from app.views.main_window import MainWindow

    application = QApplication.instance() or Application(["bankflip"])
    assert isinstance(application, QApplication)
    application.setOrganizationName(ORGANISATION)
    application.setApplicationName(APPLICATION)
    application.setApplicationDisplayName("Bankflip")
    application.setDesktopFileName("bankflip")
    settings = Settings(start.fresh)
    logging = Logging(state_folder(), start.log_level)
    crash = logging.install()
    theme.set_text_size(application, settings.text_size)
    theme.apply(application, start.theme or settings.scheme)
    window = MainWindow(settings, logging)
    # the usual size is more than a small screen has
    window.resize(window.size().boundedTo(window.screen().availableSize()))
    _follow_system(application, window)
    if isinstance(application, Application):
        application.file_opened.connect(window.open_path)
    window.show()
    if crash:
        window.error_bar.add("The last run ended with a crash; Details has its trace.", crash)
    if start.files:
        QTimer.singleShot(0, window, lambda: window.open_paths(list(start.files)))
    elif start.demo:
        QTimer.singleShot(0, window, window.play_demo)
    if start.quit_after_s:
        QTimer.singleShot(int(start.quit_after_s * 1000), window, window.close)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        return application.exec()
    finally:
        window.client.stop()
        logging.close()


def _follow_system(application: object, window: object) -> None:
    """Follow the desktop's colours where the user left them to it."""
    from PySide6.QtGui import QGuiApplication

    from app import theme
    from app.views.main_window import MainWindow

    assert isinstance(window, MainWindow)

    def changed() -> None:
        if theme.scheme() == "system":
            window.set_scheme("system")

    QGuiApplication.styleHints().colorSchemeChanged.connect(changed)
