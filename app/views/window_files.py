"""What the File menu does: open by content, save, record, report, recent files, drag and drop."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QUrl
from PySide6.QtGui import QDesktopServices, QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import QFileDialog

from app import resources, theme
from app.models.opening import FileKind, kind_of
from engine.errors import EngineError
from engine.events import SessionOpened

if TYPE_CHECKING:
    from engine.commands import OpenModel


class FileCommands:
    """Mixed into the main window."""

    last_open: Any = None
    """The command that opened the session, for Restart."""
    pending_scenario: Any = None
    """The scenario to hand to the panels once its session stands."""
    source_path: Path | None = None
    """The file that is shown; None for a session that has no file."""
    report_folder = Path()
    feed_on_open = False
    play_on_open = False
    is_opening = False

    def begin_opening(self, what: str) -> None:
        """Something is being opened."""
        self.is_opening = True
        self.status.begin_work(what)

    def end_opening(self) -> None:
        """It is open, or will not be."""
        self.is_opening = False
        self.status.end_work()

    # opening ---------------------------------------------------------------------------------

    def open_file_dialog(self) -> None:
        """Ask for files and open them."""
        paths, _ = QFileDialog.getOpenFileNames(
            self, self.tr("Open"), self.last_folder(), self.tr("All files (*)")
        )
        if paths:
            self.open_paths(paths)

    def open_folder_dialog(self) -> None:
        """Ask for a model folder and open it."""
        path = QFileDialog.getExistingDirectory(
            self, self.tr("Open model folder"), self.last_folder()
        )
        if path:
            self.open_paths([path])

    def last_folder(self) -> str:
        """Where the last file was."""
        recent = self.settings.recent
        return str(Path(recent[0]).parent) if recent else str(Path.home())

    def open_tiny(self) -> None:
        """Start a session with the built-in model and something to run."""
        self.pending_scenario, self.source_path = None, None
        self.feed_on_open = True
        self.start_session(self.open_model_command(resources.TINY_MODEL))

    def play_demo(self) -> None:
        """The shipped script: chunks that succeed, one made to fail, a hole refused."""
        self.open_path(str(resources.SCENARIOS / "demo.json"))
        self.play_on_open = True

    def open_model_command(self, folder: str | None, **fields: object) -> OpenModel:
        """The command with the backend, mode and budget chosen for new sessions."""
        from engine.commands import OpenModel

        return OpenModel(folder=folder, **self.client.chosen, **fields)  # type: ignore[arg-type]

    def start_session(self, command: OpenModel) -> None:
        """Ask the engine for a session; the docks appear when it stands."""
        self.last_open = command
        self.readers_cancel()
        self.client.start()
        self.begin_opening(self.tr("Opening {0}").format(command.folder or "a session"))
        self.client.send(command)

    def open_paths(self, paths: list[str]) -> None:
        """Open files of any known kind; several of other engines are laid side by side."""
        foreign_paths: list[str] = []
        for name in paths:
            path = Path(name)
            verdict = kind_of(path)
            if verdict.kind is None:
                self.error_bar.add(verdict.reason)
                continue
            self.settings.add_recent(name)
            if verdict.kind is FileKind.FOREIGN:
                foreign_paths.append(str(path.resolve()))
            else:
                self._open_own(path, verdict.kind)
        if foreign_paths:
            self.readers_cancel()
            self.begin_opening(self.tr("Reading {0}").format(Path(foreign_paths[0]).name))
            self.source_path = Path(foreign_paths[0])
            self.foreign_reader.start(foreign_paths)
        self.fill_recent()

    def open_path(self, path: str) -> None:
        """Open one file."""
        self.open_paths([path])

    def _open_own(self, path: Path, kind: FileKind) -> None:
        if kind is FileKind.MODEL:
            self.source_path = None
            self.feed_on_open, self.pending_scenario = True, None
            self.start_session(self.open_model_command(str(path)))
        elif kind is FileKind.SCENARIO:
            self._open_scenario(path)
        elif kind is FileKind.CAPTURE:
            self.readers_cancel()
            self.source_path = path.resolve()
            self.begin_opening(self.tr("Reading {0}").format(path.name))
            self.capture_reader.start(str(path))
        else:
            self._load_session(path)

    def _open_scenario(self, path: Path) -> None:
        from engine import cases

        try:
            scenario = cases.load(path)
        except (EngineError, OSError) as error:
            self.error_bar.add(str(error))
            return
        self.feed_on_open, self.source_path = False, None
        self.pending_scenario = json.loads(cases.dump(scenario))
        self.start_session(
            self.open_model_command(
                scenario.model,
                group_size=scenario.group_size,
                capacity=scenario.capacity,
                window=scenario.window,
            )
        )

    def _load_session(self, path: Path) -> None:
        from engine.commands import LoadSession

        self.feed_on_open, self.pending_scenario, self.source_path = False, None, None
        if self.client.session is None or self.client.offline:
            self.start_session(self.open_model_command(resources.TINY_MODEL))
        self.client.send(LoadSession(str(path)))

    def watch(self, path: Path | None) -> None:
        """Say when the file shown is changed by someone else."""
        self.file_bar.hide()
        if self.watcher.files():
            self.watcher.removePaths(self.watcher.files())
        if path is not None:
            self.watcher.addPath(str(path))

    def file_changed(self, path: str) -> None:
        """The file was changed, replaced or removed."""
        there = Path(path).exists()
        words = self.tr("changed on disk") if there else self.tr("is not there any more")
        self.file_bar.say(f"{Path(path).name} {words}")

    def reload_file(self) -> None:
        """Open it again."""
        if self.source_path is not None:
            self.open_path(str(self.source_path))

    # what comes back -------------------------------------------------------------------------

    def session_opened(self, opened: SessionOpened) -> None:
        """A session stands: show it, and what was waiting for it."""
        if self.client.offline:
            return  # a recording is shown by the one who read it
        self.watch(None)
        self.marks_of_session(self.pending_scenario)
        self.actions_["file.record"].setChecked(False)  # a new session is not recorded yet
        self.end_opening()
        self.show_session()
        self.client.send_chunk(self.settings.chunk)
        if self.pending_scenario is not None:
            self.client.scenario, self.pending_scenario = self.pending_scenario, None
            self.client.scenario_opened.emit(self.client.scenario)
            self.raise_panel("scenario")
            if self.play_on_open:
                self.docks.panels["scenario"].play_all()
        elif self.feed_on_open:
            self.feed_made_up()
        self.play_on_open = False
        self.feed_on_open = False
        self.update_actions()

    def capture_read(self, capture, records) -> None:
        """Show a capture: its records can be travelled, nothing can be run."""
        self.end_opening()
        try:
            snapshot = capture.snapshot_at(len(capture) - 1) if len(capture) else capture.start
            self.client.adopt(snapshot, records, str(capture.path))
        except (EngineError, OSError) as error:
            self.client.close()
            self.error_bar.add(str(error))
            return
        self.marks_of_files([Path(capture.path)])
        self.show_session()
        self.update_actions()

    def foreign_read(self, reports: list) -> None:
        """Show what other engines saved: runs, holes and findings."""
        self.end_opening()
        self.client.adopt_foreign(reports)
        self.marks_of_files([Path(str(report.get("file", ""))) for report in reports])
        self.watch(self.source_path)
        self.show_session("foreign")
        self.run_panel.show_foreign(self.client.tracks)
        first = reports[0]
        words = [str(first.get("format", "")), Path(str(first.get("file", ""))).name]
        self.status.show_snapshot(None, " · ".join([*words, str(first.get("verdict", ""))]))
        self.raise_panel("findings")
        self.update_actions()

    def reader_failed(self, sentence: str) -> None:
        """A file could not be read; what was open stays."""
        self.end_opening()
        self.error_bar.add(sentence)

    def readers_cancel(self) -> None:
        """Give up reading files."""
        self.capture_reader.cancel()
        self.foreign_reader.cancel()
        self.report_child.cancel()
        self.end_opening()

    # keeping ---------------------------------------------------------------------------------

    def save_session(self) -> None:
        """Ask where, then write the public state."""
        from engine.commands import SaveSession

        path, _ = QFileDialog.getSaveFileName(
            self, self.tr("Save session"), self.last_folder(), "*.safetensors"
        )
        if path:
            self.client.send(SaveSession(path))
            self.settings.add_recent(path)

    def toggle_capture(self, on: bool) -> None:
        """Begin or end recording."""
        from engine.commands import StartCapture, StopCapture

        if not on:
            self.client.send(StopCapture())
            return
        path, _ = QFileDialog.getSaveFileName(
            self, self.tr("Record a capture"), self.last_folder(), "*.bankflip"
        )
        self.actions_["file.record"].setChecked(bool(path))
        if path:
            self.client.send(StartCapture(path))
            self.settings.add_recent(path)

    def make_report(self) -> None:
        """Ask where, then have a child process make the report of what is open."""
        folder = QFileDialog.getExistingDirectory(
            self, self.tr("Folder for the report"), self.last_folder()
        )
        if folder:
            self.report_to(Path(folder))

    def report_to(self, folder: Path) -> None:
        """Make a report in a folder; a live session is written to a capture beside it first."""
        from engine.capture_writer import CaptureWriter

        client = self.client
        source = self.source_path
        if source is None and client.first_snapshot is not None:
            source = folder / "session.bankflip"
            try:
                with CaptureWriter(source, client.first_snapshot) as capture:
                    for record in client.records:
                        capture.record(record)
            except (EngineError, OSError) as error:
                self.error_bar.add(str(error))
                return
        if source is None:
            self.error_bar.add(self.tr("There is nothing to report on yet"))
            return
        self.report_folder = folder
        self.status.begin_work(self.tr("Making the report"))
        theme_name = "dark" if theme.current().dark else "light"
        arguments = ["report", str(source), "--out", str(folder), "--theme", theme_name]
        self.report_child.start([*arguments, *self.marks_for_report(folder)])

    def report_made(self, status: int, _out: str, err: str) -> None:
        """Say where the report is, or why there is none."""
        self.status.end_work()
        page = self.report_folder / "report.html"
        if status in (0, 1) and page.exists():
            self.status.showMessage(self.tr("Report written: {0}").format(page), 15000)
        else:
            self.error_bar.add(err.splitlines()[-1] if err else self.tr("No report was made"), err)

    def save_image(self) -> None:
        """Ask where, then write a picture of the window."""
        path, _ = QFileDialog.getSaveFileName(
            self, self.tr("Save view as image"), self.last_folder(), "*.png"
        )
        if path and not self.grab().save(path):
            self.error_bar.add(self.tr("{0}: the picture could not be written").format(path))

    def fill_recent(self) -> None:
        """Recent files in the menu and on the start page."""
        paths = self.settings.recent
        self.start_page.set_recent(paths)
        self.recent_menu.clear()
        for name in paths:
            action = self.recent_menu.addAction(Path(name).name)
            action.setStatusTip(name)
            action.setToolTip(name)
            action.setEnabled(Path(name).exists())
            action.triggered.connect(lambda _on=False, name=name: self.open_path(name))
        if paths:
            self.recent_menu.addSeparator()
            self.recent_menu.addAction(self.tr("Clear the list")).triggered.connect(
                self.clear_recent
            )
        self.recent_menu.setEnabled(bool(paths))

    def clear_recent(self) -> None:
        """Forget the recent files."""
        self.settings.clear_recent()
        self.fill_recent()

    # drag and drop ---------------------------------------------------------------------------

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        paths = [url.toLocalFile() for url in event.mimeData().urls() if url.isLocalFile()]
        if not paths:
            return
        verdicts = [kind_of(Path(path)) for path in paths[:8]]
        bad = next((verdict.reason for verdict in verdicts if verdict.kind is None), "")
        words = bad or self.tr("Drop to open as {0}").format(
            ", ".join(sorted({str(verdict.kind) for verdict in verdicts}))
        )
        self.status.show_pointer(words)
        if not bad:
            event.acceptProposedAction()

    def dragLeaveEvent(self, event) -> None:
        self.status.show_pointer("")

    def dropEvent(self, event: QDropEvent) -> None:
        paths = [url.toLocalFile() for url in event.mimeData().urls() if url.isLocalFile()]
        event.acceptProposedAction()
        self.open_paths(paths)

    def open_folder(self, path: Path) -> None:
        """Show a folder in the desktop's file manager."""
        QDesktopServices.openUrl(QUrl.fromLocalFile(str(path)))
