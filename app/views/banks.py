"""Banks and owners: the public bank over the private one, every owner, every part of a run."""

from __future__ import annotations

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPen
from PySide6.QtWidgets import QSizePolicy, QSplitter, QVBoxLayout, QWidget

from app import glyphs, theme
from app.models import banks, text
from app.models.table import Table
from app.views.panel import Panel, heading, label, set_text
from app.views.tables import TableView

LINE = 18
PAD = 8


class BankCardView(QWidget):
    """One bank: solid border and disc when public, dashed border and ring when private."""

    def __init__(self, parent=None) -> None:
        super().__init__(parent)
        self.card = None
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def show_card(self, card) -> None:
        """Show another state of the bank."""
        if card == self.card:
            return
        self.card = card
        digests = ", ".join(f"{name} {text.digest(value)}" for name, value in card.digests)
        self.setAccessibleName(card.title)
        self.setAccessibleDescription(f"{card.detail}. {digests}")
        lines = [card.detail, *(f"{name}  {value or 'unsealed'}" for name, value in card.digests)]
        self.setToolTip("\n".join(lines))
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(240, 2 * self.fontMetrics().height() + 2 * PAD)

    minimumSizeHint = sizeHint

    def paintEvent(self, event) -> None:
        if self.card is None:
            return
        painter = QPainter(self)
        colour = theme.colour(self.card.role)
        dashed = self.card.role == "private"
        self._frame(painter, colour, dashed)
        metrics = self.fontMetrics()
        high = metrics.height()
        width = self.width() - 3 * PAD - high
        glyph = "ring" if dashed else "disc"
        glyphs.paint(painter, QRectF(PAD + 4, PAD + 1, high - 3, high - 3), glyph, colour)
        left = PAD + 6 + high
        elide = Qt.TextElideMode.ElideRight
        painter.setFont(theme.heading())
        painter.setPen(theme.colour("text"))
        painter.drawText(
            QRectF(left, PAD - 1, width, high),
            Qt.AlignmentFlag.AlignVCenter,
            painter.fontMetrics().elidedText(self.card.title, elide, width),
        )
        painter.setFont(self.font())
        painter.setPen(theme.colour("text2"))
        painter.drawText(
            QRectF(left, PAD - 1 + high, width, high),
            Qt.AlignmentFlag.AlignVCenter,
            metrics.elidedText(self.card.detail, elide, width),
        )

    def _frame(self, painter, colour, dashed: bool) -> None:
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        style = Qt.PenStyle.DashLine if dashed else Qt.PenStyle.SolidLine
        painter.setPen(QPen(colour, 2, style))
        painter.setBrush(theme.colour("base"))
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(1, 1, -1, -1), 6, 6)
        painter.fillRect(QRectF(1, 7, 4, self.height() - 14), colour)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)


class BanksPanel(Panel):
    """Both banks, the owners, and the parts of the selected sequence side by side."""

    title = "Banks and owners"

    def build(self) -> None:
        self.public, self.private = BankCardView(self), BankCardView(self)
        self.owners = TableView(self.tr("Owners"))
        self.parts = TableView(self.tr("Parts of the sequence"))
        self.parts_title = heading(self.tr("Parts of the sequence"))
        self.usable = label("", self.tr("Usable"), second=True, wrap=True)
        self.total = label("", self.tr("Bytes and saved slots"), second=True, wrap=True)
        self.empty = label(self.tr("No session is open."), second=True)
        split = QSplitter(Qt.Orientation.Vertical)
        split.setAccessibleName(self.tr("Owners over parts"))
        split.setChildrenCollapsible(False)
        split.addWidget(self.owners)
        below = QWidget()
        below.setAccessibleName(self.tr("Parts of the sequence"))
        box = QVBoxLayout(below)
        box.setContentsMargins(0, 4, 0, 0)
        box.setSpacing(4)
        box.addWidget(self.parts_title)
        box.addWidget(self.usable)
        box.addWidget(self.parts)
        split.addWidget(below)
        split.setStretchFactor(0, 3)
        split.setStretchFactor(1, 2)
        self.split = split
        for widget in (self.empty, self.public, self.private, self.total):
            self.box.addWidget(widget)
        self.box.addWidget(split, 1)
        self.box.addStretch(0)
        for view in (self.owners, self.parts):
            view.chosen.connect(lambda row, view=view: self.jump(view.table.source.jump(row)))

    def rebuild(self) -> None:
        state = self.state()
        for widget in (self.public, self.private, self.total, self.split):
            widget.setVisible(state is not None)
        self.empty.setVisible(state is None)
        if state is None:
            return
        public, private = banks.bank_cards(state)
        self.public.show_card(public)
        self.private.show_card(private)
        set_text(self.total, banks.summary(state), "text2")
        self.owners.set_table(banks.owner_table(state))
        self._show_owner(state)
        self._show_parts(state)

    def _show_owner(self, state) -> None:
        names = [name for name, _ in state.digests]
        owner = self.hub.selection.owner
        self.owners.show_row(names.index(owner) if owner in names else None)

    def _show_parts(self, state) -> None:
        seq = self.hub.selection.seq
        view = state.sequence(seq)
        set_text(self.parts_title, f"Sequence {seq}")
        if view is None:
            set_text(self.usable, "This sequence is empty.", "text2")
            self.parts.set_table(Table(banks.PART_COLUMNS))
            return
        units = self._units()
        reach = banks.usable(view, units)
        words = "nothing" if reach.run is None else text.span(*reach.run)
        mark = "" if reach.sound else "drift, "
        set_text(self.usable, f"usable: {words} ({mark}{reach.sentence})", "text2")
        self.parts.set_table(banks.part_table(view, units))

    def _units(self) -> dict[str, str]:
        snapshot = self.client.snapshot
        return {view.name: view.unit for view in snapshot.owners} if snapshot else {}
