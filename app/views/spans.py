"""The table form of the run: spans of one kind with positions, groups, cells and owner."""

from __future__ import annotations

from app.models import text
from app.models.spans import SpanTable
from app.views.panel import Panel, label, set_text
from app.views.tables import TableView


class SpansPanel(Panel):
    """What the run map draws, in rows; copy and CSV from its menu."""

    title = "Spans"

    def build(self) -> None:
        self.line = label("", self.tr("How many spans"), second=True)
        self.view = TableView(self.tr("Spans"))
        self.box.setSpacing(4)
        self.box.addWidget(self.line)
        self.box.addWidget(self.view, 1)
        self.client.foreign_opened.connect(self.refresh_of)
        self.view.chosen.connect(lambda row: self.jump(self.view.table.source.jump(row)))

    def refresh_of(self, _report: object) -> None:
        """Another engine's file was opened."""
        self.refresh()

    def rebuild(self) -> None:
        state = self.state()
        tracks = self.client.tracks if state is None else ()
        table = SpanTable(state, tracks)
        self.view.set_table(table)
        if tracks:
            n_live = sum(track.n_live for track in tracks)
            words = (
                f"{text.plural(table.n_rows, 'span')}, {text.plural(n_live, 'live position')} "
                f"in {text.plural(len(tracks), 'run')} of another engine's file"
            )
        elif state is None:
            words = "No session is open."
        elif not table.n_rows:
            words = "This run holds no positions."
        else:
            n_live = sum(view.n_live for view in state.sequences)
            words = (
                f"{text.plural(table.n_rows, 'span')}, {text.plural(n_live, 'live position')} "
                f"in {text.plural(len(state.sequences), 'sequence')}"
            )
        set_text(self.line, words, "text2")
        self._show_chosen(table)

    def _show_chosen(self, table) -> None:
        selection = self.hub.selection
        row = None
        if selection.start is not None:
            row = table.row_at(selection.seq, selection.start)
        self.view.show_row(row)
