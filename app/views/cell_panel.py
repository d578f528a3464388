"""The dock of the physical cells: the map, its counts and its legend."""

from __future__ import annotations

from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QHBoxLayout, QLabel, QScrollBar, QVBoxLayout, QWidget

from app.client import Client
from app.models import cells as model
from app.models.cells import LEFTOVER
from app.models.selection import Selection
from app.views.cell_map import CellMap
from app.views.hub import SelectionHub
from engine.snapshot import SequenceView, Snapshot

REBUILD_MS = 100
"""The grid is built anew at most this often while chunks run."""


class CellPanel(QWidget):
    """Where each position lies physically."""

    def __init__(self, client: Client, hub: SelectionHub, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("panel.cells")
        self.setAccessibleName(self.tr("Physical cells"))
        self.client, self.hub = client, hub
        layout = QVBoxLayout(self)
        layout.setContentsMargins(8, 4, 8, 4)
        layout.setSpacing(4)
        self.words = QLabel()
        self.words.setAccessibleName(self.tr("Cells in numbers"))
        self.words.setForegroundRole(self.words.palette().ColorRole.PlaceholderText)
        layout.addWidget(self.words)
        row = QHBoxLayout()
        row.setSpacing(0)
        self.map = CellMap()
        self.bar = QScrollBar()
        self.bar.setAccessibleName(self.tr("Scroll the cells"))
        row.addWidget(self.map, 1)
        row.addWidget(self.bar)
        layout.addLayout(row, 1)
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.timeout.connect(self._rebuild)
        self.map.picked.connect(self._picked)
        self.map.pointed.connect(self._pointed)
        self.bar.valueChanged.connect(self._scrolled)
        client.shown_changed.connect(self._ask)
        client.session_opened.connect(self._ask)

    def show_snapshot(self, _snapshot: Snapshot) -> None:
        """Draw the newest state soon, unless a past one is shown."""
        if self.client.shown is None:
            self._ask()

    def _ask(self, *_args: object) -> None:
        if not self._timer.isActive():
            self._timer.start(REBUILD_MS if self.map.grid is not None else 0)

    def _rebuild(self) -> None:
        snapshot = self.client.snapshot
        if snapshot is None:
            self.map.set_grid(None)
            self.words.setText("")
            return
        shown = self.client.shown
        ghost = snapshot.open.extents if snapshot.open is not None and shown is None else ()
        seq = self.hub.selection.seq
        grid = model.grid_of(self.client.sequences, snapshot.n_cells, seq, ghost)
        self.map.set_grid(grid)
        live = int((grid.seqs >= 0).sum())
        shared = int((grid.sharing > 1).sum())
        parts = [f"{snapshot.n_cells:,} cells allocated", f"{live:,} live"]
        parts += [f"{shared:,} shared"] if shared else []
        left = grid.count(LEFTOVER)
        parts += [f"{left:,} free or left over (struck through)"] if left else []
        self.words.setText(" · ".join(parts))
        self._set_bar()
        self.show_selection(self.hub.selection, self)

    def _set_bar(self) -> None:
        most = max(0, self.map.n_rows - self.map.rows_in_view)
        self.bar.setRange(0, most)
        self.bar.setPageStep(self.map.rows_in_view)
        self.bar.setVisible(most > 0)

    def _scrolled(self, row: int) -> None:
        self.map.first_row = row
        self.map.update()

    def view_of(self, seq: int) -> SequenceView | None:
        """The sequence as it is shown now."""
        return next((view for view in self.client.sequences if view.seq == seq), None)

    def show_selection(self, selection: Selection, origin: object) -> None:
        """Outline the cells of what is selected anywhere."""
        view = self.view_of(selection.seq)
        ranges: list[tuple[int, int]] = []
        if view is not None and selection.start is not None and selection.stop is not None:
            ranges = model.cell_ranges(view, selection.start, selection.stop)
        self.map.set_selected(selection.cell, ranges, reveal=origin is not self)

    def _picked(self, cell: int) -> None:
        grid = self.map.grid
        if grid is None:
            return
        position, seq = int(grid.positions[cell]), int(grid.seqs[cell])
        if seq < 0:
            self.hub.change(self, cell=cell, start=None, stop=None, group=None)
            return
        view = self.view_of(seq)
        group = None
        if view is not None and (position - view.start) // view.group_size < view.n_groups:
            group = (position - view.start) // view.group_size
        self.hub.change(self, seq=seq, cell=cell, start=position, stop=position + 1, group=group)

    def _pointed(self, cell: int) -> None:
        self.hub.hovered.emit("" if cell < 0 else self.map.words(cell))

    def go_to_cell(self, cell: int) -> bool:
        """Select a cell; False where it was never used."""
        if self.map.grid is None or not 0 <= cell < self.map.grid.n_cells:
            return False
        self.map.select_cell(cell)
        return True

    def resizeEvent(self, event) -> None:
        super().resizeEvent(event)
        self._set_bar()
