"""The most likely next tokens of the selected sequence, as a table with bars."""

from __future__ import annotations

from PySide6.QtCore import QRect
from PySide6.QtWidgets import QPushButton, QSpinBox, QStyledItemDelegate

from app import theme
from app.models.logits import COLUMNS, summary, token_table, top_tokens
from app.models.table import Table
from app.views.panel import Panel, label, named, row_of, set_text
from app.views.tables import TableView
from engine.commands import ReadArray
from engine.events import SessionOpened
from engine.snapshot import ArraySlice

BAR_COLUMN = 4


class LogitsPanel(Panel):
    """Reads the public logits of the last token whenever a chunk was published."""

    title = "Logits"

    def build(self) -> None:
        self.array: ArraySlice | None = None
        self.asked: tuple[object, ...] | None = None
        self.line = label("", self.tr("Which logits"), second=True, wrap=True)
        self.count = QSpinBox()
        self.count.setRange(1, 1000)
        self.count.setValue(20)
        named(self.count, self.tr("How many tokens"), self.tr("How many of the likeliest to show"))
        self.again = named(
            QPushButton(self.tr("Read")), self.tr("Read"), self.tr("Read the logits again")
        )
        self.view = TableView(self.tr("Likeliest tokens"))
        self.bars = BarDelegate(self.view)
        self.view.setItemDelegateForColumn(BAR_COLUMN, self.bars)
        self.box.setSpacing(4)
        self.box.addLayout(row_of(label(self.tr("top")), self.count, self.again, None))
        self.box.addWidget(self.line)
        self.box.addWidget(self.view, 1)
        self.count.valueChanged.connect(lambda _: self.refresh())
        self.again.clicked.connect(self.ask)

    def source(self):
        """The array that holds logits: (owner, layer, part), or None."""
        session = self.client.session
        arrays = session.arrays if session is not None else ()
        return next((item for item in arrays if item[0] == "logits"), None)

    def ask(self) -> None:
        """Read the logits of the selected sequence."""
        chosen = self.source()
        if chosen is not None:
            owner, layer, part = chosen
            self.send(ReadArray(owner, layer, part, self.hub.selection.seq))

    def show_event(self, body) -> None:
        public = isinstance(body, ArraySlice) and body.bank == "public"
        if public and body.owner == "logits":
            self.array = body
            self.refresh()
        elif isinstance(body, SessionOpened):
            self.array = self.asked = None
            self.refresh()

    def rebuild(self) -> None:
        state, seq = self.state(), self.hub.selection.seq
        run = state.sequence(seq) if state else None
        problem = self._missing(state, run)
        if problem or state is None:
            set_text(self.line, problem, "text2")
            self.view.set_table(Table(COLUMNS))
            return
        question = (seq, dict(state.digests).get("logits"))
        if question != self.asked:
            self.asked = question
            self.ask()
        if self.array is None or self.array.seq != seq or not self.array.values.size:
            set_text(self.line, "Waiting for the engine.", "text2")
            self.view.set_table(Table(COLUMNS))
            return
        top = top_tokens(self.array.values, self.count.value())
        self.bars.shares = top.probabilities
        set_text(self.line, summary(top, seq, run.stop - 1 if run else None), "text2")
        self.view.set_table(token_table(top))

    def _missing(self, state, run) -> str:
        if state is None:
            return "No session is open."
        if self.source() is None:
            return "This session has no logits: open a model to see them."
        if not state.live:
            return "Logits of the past are not kept; return to the newest state."
        if run is None or run.n_live == 0:
            return "This sequence is empty: run a chunk first."
        return ""


class BarDelegate(QStyledItemDelegate):
    """A bar whose length is the probability against the likeliest token's."""

    shares: tuple[float, ...] = ()

    def paint(self, painter, option, index) -> None:
        super().paint(painter, option, index)
        if index.row() >= len(self.shares) or not self.shares[0]:
            return
        room = option.rect.adjusted(4, 5, -4, -5)
        length = max(1, round(room.width() * self.shares[index.row()] / self.shares[0]))
        painter.fillRect(
            QRect(room.left(), room.top(), length, room.height()), theme.colour("group_b")
        )
