"""What the Go menu does: places in the run, events of the past, problems, panes."""

from __future__ import annotations

import bisect

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QWidget

from app.models.goto import Target
from app.models.selection import Selection
from app.views.drawing import Drawing


class GoCommands:
    """Mixed into the main window."""

    # places ----------------------------------------------------------------------------------

    def focus_go_to(self) -> None:
        """Put the keyboard into the field; the palette takes places, too, where it is hidden."""
        if not self.time_bar.place.isVisible():
            self.open_palette()
            return
        self.time_bar.place.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self.time_bar.place.selectAll()

    def go_to(self, target: Target) -> bool:
        """Go to a place; says why where there is none."""
        if target.kind == "position":
            ok = self.run_panel.go_to(target.number)
        elif target.kind == "group":
            ok = self.run_panel.go_to_group(target.number)
        elif target.kind == "cell":
            cells = self.docks.panels.get("cells")
            ok = cells is not None and cells.go_to_cell(target.number)
        elif target.kind == "sequence":
            ok = any(view.seq == target.number for view in self.client.sequences)
            if ok:
                self.hub.select(Selection(seq=target.number))
        else:
            at = self.index_of(target.number)
            ok = at is not None
            if at is not None:
                self.show_index(at)
        if not ok:
            words = self.tr("There is no {0} {1} here").format(target.kind, f"{target.number:,}")
            self.status.showMessage(words, 6000)
        return ok

    def go_to_hole(self, step: int) -> None:
        """The next or previous hole."""
        if not self.run_panel.go_to_hole(step):
            self.status.showMessage(self.tr("This run has no hole"), 6000)

    def go_back(self) -> None:
        """The selection before."""
        self.hub.go_back()
        self.update_actions()

    def go_forward(self) -> None:
        """The selection after."""
        self.hub.go_forward()
        self.update_actions()

    # time ------------------------------------------------------------------------------------

    def index_of(self, number: int) -> int | None:
        """Place of a record by its number."""
        records = self.client.records
        at = bisect.bisect_left(records, number, key=lambda record: record.number)
        return at if at < len(records) and records[at].number == number else None

    @property
    def shown_index(self) -> int:
        """Place of the record shown; the newest where the present is."""
        shown = self.client.shown
        at = None if shown is None else self.index_of(shown.number)
        return len(self.client.records) - 1 if at is None else at

    def show_index(self, at: int) -> None:
        """Show the state after a record; after the newest one it is the present."""
        records = self.client.records
        at = max(0, min(at, len(records) - 1))
        if not records:
            return
        newest = at == len(records) - 1
        self.client.show(None if newest else records[at])
        # the newest is no event of the past: selecting it would stop the following
        self.hub.change(self, event=None if newest else records[at].number)

    def step_event(self, step: int) -> None:
        """The event before or after."""
        self.show_index(self.shown_index + step)

    def go_to_first(self) -> None:
        """The first event."""
        self.show_index(0)

    def return_to_live(self) -> None:
        """The present."""
        self.client.show(None)

    def go_to_last_good(self) -> None:
        """The last event that went through, at or before the one shown."""
        self._show_nearest(range(self.shown_index, -1, -1), ("ok",), "good")

    def step_problem(self, step: int) -> None:
        """The next or previous event that was refused or failed."""
        end = len(self.client.records) if step > 0 else -1
        places = range(self.shown_index + step, end, step)
        self._show_nearest(places, ("rejected", "failed"), "problem")

    def _show_nearest(self, places, outcomes: tuple[str, ...], what: str) -> None:
        records = self.client.records
        # a capture knows every outcome without reading the row
        outcome = getattr(records, "outcome", None) or (lambda at: records[at].outcome)
        for at in places:
            if outcome(at) in outcomes:
                self.show_index(at)
                return
        self.status.showMessage(
            self.tr("There is no {0} event in that direction").format(what), 6000
        )

    # panes -----------------------------------------------------------------------------------

    def raise_panel(self, id: str) -> None:
        """Bring a panel to the front without moving the keyboard."""
        dock = self.docks.docks.get(id)
        if dock is not None and self.isVisible():
            dock.show()
            dock.raise_()

    def go_to_panel(self, id: str) -> None:
        """Bring a panel to the front and give it the keyboard."""
        if self.docks.raise_panel(id) is None:
            self.status.showMessage(self.tr("This window has no such panel"), 6000)

    def next_pane(self, step: int) -> None:
        """Put the keyboard into the next pane, round the end."""
        panes = [self.centralWidget()]
        panes += [
            dock.widget()
            for dock in self.docks.docks.values()
            if dock.isVisible() and not dock.visibleRegion().isEmpty()
        ]
        if self.tour_runs:
            panes.append(self.tour_dock.widget())
        panes.append(self.time_bar)
        focus = self.focusWidget()
        at = next((n for n, pane in enumerate(panes) if _within(focus, pane)), 0)
        for n in range(1, len(panes) + 1):
            if _focus_in(panes[(at + step * n) % len(panes)]):
                return

    def focused_drawing(self) -> Drawing:
        """The drawing with the keyboard, the run's detail where none has it."""
        focus = self.focusWidget()
        return focus if isinstance(focus, Drawing) else self.run_panel.detail


def _within(widget: QWidget | None, pane: QWidget) -> bool:
    return widget is not None and (widget is pane or pane.isAncestorOf(widget))


def _focus_in(pane: QWidget) -> bool:
    """Focus the first widget of a pane that takes the keyboard."""
    for child in [pane, *pane.findChildren(QWidget)]:
        if (
            child.focusPolicy() & Qt.FocusPolicy.TabFocus
            and child.isVisible()
            and child.isEnabled()
        ):
            child.setFocus(Qt.FocusReason.TabFocusReason)
            return True
    return False
