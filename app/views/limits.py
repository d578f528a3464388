"""How far can I rewind, shift or evict from here, and why not further."""

from __future__ import annotations

from app.models.limits import limit_table
from app.models.table import Table
from app.views.panel import Panel, label, set_text
from app.views.tables import TableView
from engine.commands import Limits
from engine.events import LimitsKnown


class LimitsPanel(Panel):
    """The legal range of each op on the selected sequence."""

    title = "Limits"

    def build(self) -> None:
        self.known: LimitsKnown | None = None
        self.asked: tuple[int, int] | None = None
        self.line = label("", self.tr("Which sequence"), second=True, wrap=True)
        self.view = TableView(self.tr("Limits"))
        self.box.setSpacing(4)
        self.box.addWidget(self.line)
        self.box.addWidget(self.view, 1)
        self.view.chosen.connect(lambda row: self.jump(self.view.table.source.jump(row)))

    def show_event(self, body) -> None:
        if isinstance(body, LimitsKnown):
            self.known = body
            self.refresh()

    def rebuild(self) -> None:
        state, seq = self.state(), self.hub.selection.seq
        if state is None:
            set_text(self.line, "No session is open.", "text2")
            self.view.set_table(Table(self.view.table.source.columns))
            return
        if not state.live:
            set_text(
                self.line, "Limits are of the newest state; return to it to see them.", "text2"
            )
            return
        question = (seq, self.client.snapshot.number)
        if question != self.asked:
            self.asked = question
            self.send(Limits(seq))
        known = self.known if self.known is not None and self.known.seq == seq else None
        words = f"sequence {seq}: " + (
            "how far each op may go from here" if known else "asking the engine"
        )
        set_text(self.line, words, "text2")
        self.view.set_table(limit_table(seq, known.limits if known else ()))
