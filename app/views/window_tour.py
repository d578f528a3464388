"""The tour in the window: sees what the user does, and shows where to do it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt

from app.models import sequences, tour
from app.models.selection import Selection
from app.models.tour import Progress, Scene

if TYPE_CHECKING:
    from app.views.tour import TourDock


class TourCommands:
    """Mixed into the main window."""

    tour_dock: TourDock | None = None
    """Made when the tour first begins."""
    tour_progress = Progress()
    tour_runs = False

    def start_tour(self) -> None:
        """Begin with the first step, on the demo where nothing is open."""
        if self.tour_dock is None:
            self._make_tour()
        self.tour_progress, self.tour_runs = Progress(), True
        if self.client.session is None and self.client.foreign is None:
            self.play_demo()
        elif self.stack.currentWidget() is self.start_page:
            self.show_session("foreign" if self.client.session is None else "session")
        self.settle_tour()
        self.update_tour()
        self.tour_dock.panel.focus()

    def _make_tour(self) -> None:
        from app.views.tour import TourDock

        self.tour_dock = TourDock(self)
        self.addDockWidget(Qt.DockWidgetArea.LeftDockWidgetArea, self.tour_dock)
        self.tour_dock.left.connect(self.end_tour)
        self.tour_dock.panel.restarted.connect(self.start_tour)
        self.tour_dock.panel.asked.connect(self.show_tour_target)
        client = self.client
        client.sent.connect(lambda _ticket, command: self._see(tour.after_command, command))
        client.record_added.connect(lambda record: self._see(tour.after_record, record))
        client.shown_changed.connect(lambda record: self._see(tour.after_shown, record))
        self.hub.changed.connect(
            lambda selection, _: self._see(tour.after_selection, selection, self.run_panel.track)
        )
        self.report_child.ended.connect(self._see_report)

    def settle_tour(self) -> None:
        """Put the dock in its place after the layout of the others was restored."""
        if self.tour_dock is None:
            return
        # beside the run map and what is under it; the pipeline keeps its width
        self.setCorner(Qt.Corner.BottomLeftCorner, Qt.DockWidgetArea.LeftDockWidgetArea)
        if self.tour_runs and self.tour_dock.isHidden():
            self.addDockWidget(Qt.DockWidgetArea.LeftDockWidgetArea, self.tour_dock)
            width = self.tour_dock.wanted_width()
            self.resizeDocks([self.tour_dock], [width], Qt.Orientation.Horizontal)
        self.tour_dock.setVisible(self.tour_runs)

    def decline_tour(self) -> None:
        """Never offer it again; Help still has it."""
        self.settings.tour = self.settings.tour or "dismissed"
        self.start_page.offer_tour(False)

    def end_tour(self) -> None:
        """It was closed."""
        self.tour_runs = False
        self.decline_tour()

    # what happens -----------------------------------------------------------------------------

    def _see(self, after, *what: object) -> None:
        if not self.tour_runs:
            return
        progress = after(self.tour_progress, *what)
        if progress != self.tour_progress:
            self.tour_progress = progress
            if progress.is_finished:
                self.settings.tour = "finished"
                self.start_page.offer_tour(False)
            self.update_tour()

    def _see_report(self, status: int, _out: str, _err: str) -> None:
        if status in (0, 1) and (self.report_folder / "report.html").exists():
            self._see(tour.after_report)

    def update_tour(self) -> None:
        """Show the steps and what helps with the next one."""
        if self.tour_runs:
            self.tour_dock.panel.show_progress(self.tour_progress, self.tour_scene())

    def tour_scene(self) -> Scene:
        """What the window offers now."""
        client, track = self.client, self.run_panel.track
        is_open = self.stack.currentWidget() is self.run_panel
        return Scene(
            is_open=is_open,
            can_run=is_open and client.session is not None and not client.offline,
            has_group=track is not None and track.n_groups > 0,
            has_hole=track is not None and bool(sequences.holes(track)),
            n_events=len(client.records),
            n_queued=sum(n for _, n in client.feed.queued),
            is_armed=bool(client.faults.faults),
        )

    # where to do it ---------------------------------------------------------------------------

    def show_tour_target(self, target: str) -> None:
        """Move the view and the keyboard to where a step is done; the doing is the user's."""
        show = {
            "demo": self.play_demo,
            "group": self._show_first_group,
            "hole": self._show_first_hole,
            "try_hole": lambda: self._focus_button(self.engine_bar, "run.hole"),
            "event": lambda: self._focus_button(self.time_bar, "go.back_event"),
            "feed": self.focus_feed,
            "chunk": lambda: self._focus_button(self.engine_bar, "run.chunk"),
            "faults": lambda: self.go_to_panel("faults"),
            "report": self._show_report_entry,
        }
        show[target]()

    def _show_first_group(self) -> None:
        track = self.run_panel.track
        if track is not None and track.n_groups:
            start, stop = sequences.group_range(track, 0)
            self.run_panel.detail.show_range(start - 4, stop + 4)
        self.focus_go_to()
        self.time_bar.place.setText("g0")
        self.time_bar.place.selectAll()

    def _show_first_hole(self) -> None:
        track = self.run_panel.track
        found = sequences.holes(track) if track is not None else []
        if found:
            if track.seq != self.hub.selection.seq:
                self.hub.select(Selection(seq=track.seq))
            self.run_panel.detail.show_range(found[0][0] - 8, found[0][1] + 8)
        self.run_panel.detail.setFocus(Qt.FocusReason.ShortcutFocusReason)

    def _focus_button(self, bar, id: str) -> None:
        bar.widgetForAction(self.actions_[id]).setFocus(Qt.FocusReason.ShortcutFocusReason)

    def _show_report_entry(self) -> None:
        menu = self.menus["File"]
        self.menuBar().setActiveAction(menu.menuAction())
        menu.setActiveAction(self.actions_["file.report"])
