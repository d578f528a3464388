"""The window: bars, centre, docks and connections. What commands do is in the mixed-in modules."""

from __future__ import annotations

import json

from PySide6.QtCore import QChildEvent, QEvent, Qt, QTimer, Signal
from PySide6.QtGui import QCloseEvent, QGuiApplication, QShowEvent
from PySide6.QtWidgets import QMainWindow, QTabBar

from app.actions import Actions
from app.client import Client
from app.log import Logging
from app.models.selection import Selection
from app.readers import CaptureReader, ChildCommand, ForeignReader
from app.settings import Settings
from app.views import PANELS
from app.views.command_palette import CommandPalette
from app.views.docks import Docks, connect_panel, make_panel
from app.views.drawing import Drawing
from app.views.hub import SelectionHub
from app.views.panel import name_all
from app.views.window_build import Building
from app.views.window_files import FileCommands
from app.views.window_go import GoCommands
from app.views.window_help import ViewCommands
from app.views.window_marks import MarkCommands
from app.views.window_preferences import PreferenceCommands
from app.views.window_run import RunCommands
from app.views.window_states import EnabledStates
from app.views.window_tour import TourCommands
from engine.events import FaultsChanged, FeedChanged, Trouble
from engine.progress import Progress
from engine.snapshot import Record, Snapshot

FOREIGN_PANELS = ("findings", "spans", "problems", "marks")
FIRST_PAINT_MS = 50
"""The panels are imported after the first picture of the window, not before."""


class MainWindow(
    FileCommands,
    RunCommands,
    GoCommands,
    MarkCommands,
    ViewCommands,
    PreferenceCommands,
    TourCommands,
    EnabledStates,
    Building,
    QMainWindow,
):
    """One session at a time; the start page where there is none."""

    panels_built = Signal()

    def __init__(
        self,
        settings: Settings | None = None,
        logging: Logging | None = None,
        client: Client | None = None,
    ) -> None:
        super().__init__()
        self.setObjectName("window")
        self.setAccessibleName("Bankflip")
        self.setWindowTitle("Bankflip")
        self.setWindowIcon(_window_icon())
        self.settings = settings or Settings(fresh=True)
        self.logging = logging
        self.client = client or Client(self)
        self.hub = SelectionHub(self)
        self.docks_of = ""
        """What the docks are laid out for: `start`, `session` or `foreign`."""
        self.capture_reader = CaptureReader(self)
        self.foreign_reader = ForeignReader(self)
        self.report_child = ChildCommand(self)
        self.setDockNestingEnabled(True)
        right = Qt.DockWidgetArea.RightDockWidgetArea
        self.setCorner(Qt.Corner.TopRightCorner, right)
        self.setCorner(Qt.Corner.BottomRightCorner, right)
        self.setAcceptDrops(True)
        self.actions_ = Actions(self)
        self._build_centre()
        self._build_bars()
        self._build_menus()
        self.palette_ = CommandPalette(self.palette_entries, self.run_entry, self)
        self.docks = Docks(self)
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.timeout.connect(self.update_actions)
        self._connect()
        self.start_marks()
        self.apply_settings()
        self.resize(1440, 900)
        self.fill_recent()
        self.start_page.offer_tour(not self.settings.tour)
        self.show_start()

    def _connect(self) -> None:
        client, hub = self.client, self.hub
        client.snapshot_changed.connect(self._snapshot_changed)
        client.record_added.connect(self._record_added)
        client.session_opened.connect(self.session_opened)
        client.feed_changed.connect(self._feed_changed)
        client.faults_changed.connect(self._faults_changed)
        client.shown_changed.connect(self._shown_changed)
        client.trouble.connect(self._trouble)
        client.heard.connect(self._heard)
        hub.changed.connect(self._selection_changed)
        hub.hovered.connect(self.status.show_pointer)
        self.engine_bar.fed.connect(self.feed)
        self.engine_bar.chunk_changed.connect(self.set_chunk)
        self.engine_bar.backend_chosen.connect(self.choose_backend)
        self.engine_bar.refused.connect(self._say)
        self.time_bar.asked.connect(self.go_to)
        self.time_bar.refused.connect(self._say)
        self.status.cancelled.connect(self.cancel)
        self.history_banner.returned.connect(self.return_to_live)
        self.error_bar.copied.connect(self.copy)
        self.watcher.fileChanged.connect(self.file_changed)
        self.file_bar.reload_asked.connect(self.reload_file)
        self.start_page.demo_asked.connect(self.open_tiny)
        self.start_page.open_asked.connect(self.open_file_dialog)
        self.start_page.path_asked.connect(self.open_path)
        self.start_page.clear_asked.connect(self.clear_recent)
        self.start_page.tour_asked.connect(self.start_tour)
        self.start_page.tour_declined.connect(self.decline_tour)
        self.capture_reader.finished.connect(self.capture_read)
        self.capture_reader.failed.connect(self.reader_failed)
        self.capture_reader.progressed.connect(self._read_progress)
        self.foreign_reader.finished.connect(self.foreign_read)
        self.foreign_reader.failed.connect(self.reader_failed)
        self.report_child.ended.connect(self.report_made)
        if self.logging is not None:
            self.logging.tell(self.error_bar.add)

    def build_panels(self) -> None:
        """Import and place every panel; once, in the first idle moment or when needed."""
        if self.docks.docks:
            return
        for spec in PANELS:
            panel = make_panel(spec, self.client, self.hub)
            self.docks.add(spec, panel)
            connect_panel(panel, self.client, self.hub)
            for drawing in panel.findChildren(Drawing):
                drawing.addActions(self.actions_.drawing_actions())
        self.connect_marks_panel()
        self.docks.place()
        for dock in self.docks.docks.values():
            self.panel_menu.addAction(dock.toggleViewAction())
        self._default_state = self.saveState()
        layout = self.settings.layout()
        if layout is not None and not (
            self.restoreGeometry(layout[0]) and self.restoreState(layout[1])
        ):
            self.docks.place()
        self._docks_state = self.saveState()
        if self.stack.currentWidget() is self.start_page:
            self.docks.show_only_if(False)
        name_all(self)
        self.panels_built.emit()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        QTimer.singleShot(FIRST_PAINT_MS, self, self.build_panels)

    # start page and session ------------------------------------------------------------------

    def show_start(self) -> None:
        """The start page; docks and engine bar are hidden."""
        self._keep_docks()
        self.docks_of = "start"
        self.stack.setCurrentWidget(self.start_page)
        self.docks.show_only_if(False)
        for bar in (self.engine_bar, self.time_bar):
            bar.hide()
        self.start_page.demo.setFocus()
        self.update_actions()

    def show_session(self, docks_of: str = "session") -> None:
        """The run map with its docks; `foreign` shows only those that other engines' state has."""
        self.build_panels()
        if docks_of != self.docks_of:
            self._keep_docks()
            self.docks_of = docks_of
            self.stack.setCurrentWidget(self.run_panel)
            if not self.restoreState(self._docks_state):
                self.docks.place()
            self.settle_tour()
            if docks_of == "foreign":
                self.docks.show_only_if(False, set(self.docks.docks) - set(FOREIGN_PANELS))
            self.time_bar.show()
            self.run_panel.detail.setFocus()
        self.engine_bar.setVisible(not self.client.offline)
        self.update_actions()

    def _keep_docks(self) -> None:
        """Remember the layout of the user's own session."""
        if self.docks.docks and self.docks_of == "session":
            self._docks_state = self.saveState()

    def close_session(self) -> None:
        """End the session and show the start page."""
        self.readers_cancel()
        self.mark_store.close()
        self.client.close()
        self.hub.select(Selection())
        self.run_panel.forget()
        self.history_banner.hide()
        self.watch(None)
        self.show_start()

    def reset_layout(self) -> None:
        """Every dock back in its place, floating ones too."""
        self.settings.forget_layout()
        if self.docks.docks:
            self.docks.place()
            self._docks_state = self.saveState()
            if self.stack.currentWidget() is self.start_page:
                self.docks.show_only_if(False)

    # what the engine says --------------------------------------------------------------------

    def _snapshot_changed(self, snapshot: Snapshot) -> None:
        self.status.show_snapshot(snapshot, self.tr("Capture") if self.client.offline else "")
        if snapshot.broken:
            self.error_bar.add(self.tr("Nothing is published any more: ") + snapshot.broken)
        self._soon()

    def _record_added(self, _record: Record) -> None:
        self._soon()

    def _feed_changed(self, feed: FeedChanged) -> None:
        self.status.show_feed(feed)
        self._soon()

    def _faults_changed(self, _faults: FaultsChanged) -> None:
        self._soon()

    def _trouble(self, trouble: Trouble) -> None:
        self.end_opening()
        self.pending_scenario, self.feed_on_open = None, False
        if trouble.command == "StartCapture":
            self.actions_["file.record"].setChecked(False)
        self.error_bar.add(trouble.sentence, f"{trouble.command}: {trouble.sentence}")

    def _heard(self, body: object) -> None:
        if isinstance(body, Progress):
            self.status.show_progress(body)

    def _read_progress(self, done: int, total: int) -> None:
        self.status.show_progress(Progress(done, total, "events", self.tr("Reading the capture")))

    def _shown_changed(self, record: Record | None) -> None:
        newest = self.client.records[-1].number if self.client.records else 0
        self.history_banner.show_record(record, newest)
        self.update_actions()

    def _selection_changed(self, selection: Selection, _origin: object) -> None:
        self.status.show_selection(selection)
        self._soon()

    def _say(self, words: str) -> None:
        self.status.showMessage(words, 8000)

    # selection and copy ----------------------------------------------------------------------

    def clear_selection(self) -> None:
        """Select nothing."""
        self.hub.clear()

    def select_run(self) -> None:
        """Every live position of the chosen sequence."""
        view = self.run_panel.view_of(self.seq)
        if view is not None and view.n_live:
            self.hub.change(None, start=view.start, stop=view.stop, group=None, cell=None)

    def copy(self, text: str) -> None:
        """Put a text on the clipboard."""
        QGuiApplication.clipboard().setText(text)

    def copy_text(self) -> None:
        """What the focused drawing, table or text shows as selected."""
        focus = self.focusWidget()
        if focus is not None and not isinstance(focus, Drawing):
            for name in ("as_text", "copy"):
                method = getattr(focus, name, None)
                if method is not None:
                    text = method()
                    if isinstance(text, str):
                        self.copy(text)
                    return
        self.copy(self.focused_drawing().as_text())

    def copy_json(self) -> None:
        """The selection and the sequence it is in."""
        selection = self.hub.selection
        value: dict[str, object] = {"sequence": selection.seq}
        view = self.run_panel.view_of(selection.seq)
        if view is not None:
            value["run"] = [view.start, view.stop - 1] if view.n_live else None
            value |= {"complete_groups": view.n_groups, "tail": view.n_tail}
        if selection.start is not None and selection.stop is not None:
            value["selected"] = [selection.start, selection.stop - 1]
        for name in ("cell", "group", "owner", "event", "stage"):
            if getattr(selection, name) is not None:
                value[name] = getattr(selection, name)
        self.copy(json.dumps(value))

    # window ----------------------------------------------------------------------------------

    def childEvent(self, event: QChildEvent) -> None:
        """Qt makes the tab bars of docks by itself and gives them no name."""
        super().childEvent(event)
        child = event.child()
        if event.type() == QEvent.Type.ChildPolished and isinstance(child, QTabBar):
            child.setAccessibleName(self.tr("Tabs of panels"))

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange:
            self.actions_.paint_icons()

    def closeEvent(self, event: QCloseEvent) -> None:
        if self.docks.docks:
            self._keep_docks()
            self.settings.keep_layout(self.saveGeometry(), self._docks_state)
        self.settings.sync()
        self.readers_cancel()
        self.mark_store.flush()
        self.client.stop()
        super().closeEvent(event)


def _window_icon():
    from PySide6.QtGui import QIcon

    from app import resources

    return QIcon(str(resources.icon_path("bankflip")))
