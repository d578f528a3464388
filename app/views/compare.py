"""Two events side by side: which owners differ, and the first position that does."""

from __future__ import annotations

from PySide6.QtWidgets import QPushButton, QSpinBox

from app.models.compare import COLUMNS, compare
from app.models.journal import Journal
from app.models.table import Jump, Table
from app.views.panel import GlyphLabel, Panel, label, named, row_of, set_text
from app.views.tables import TableView


class ComparePanel(Panel):
    """Choose two events by number, or two rows in the journal and Compare."""

    title = "Compare"

    def build(self) -> None:
        self.known = Journal()
        self.chosen = False
        self.result = None
        self.old, self.new = QSpinBox(), QSpinBox()
        for spin, name in ((self.old, self.tr("First event")), (self.new, self.tr("Second event"))):
            spin.setRange(0, 2**31 - 1)
            spin.setGroupSeparatorShown(True)
            spin.setMinimumWidth(96)
            named(spin, name, self.tr("Number of the event"))
        self.newest = _button(self.tr("Newest"), self.tr("Compare with the newest event"))
        self.good = _button(
            self.tr("Last good"), self.tr("Compare with the newest event before that published")
        )
        self.swap = _button(self.tr("Swap"), self.tr("Change the two sides"))
        self.first = _button(
            self.tr("Go to first difference"), self.tr("Select the first position that differs")
        )
        self.mark = GlyphLabel(self)
        self.line = label("", self.tr("Result"), wrap=True)
        self.view = TableView(self.tr("Differences"))
        self.box.setSpacing(4)
        words = label(self.tr("Event")), label(self.tr("against"))
        self.box.addLayout(
            row_of(
                words[0],
                self.old,
                words[1],
                self.new,
                self.newest,
                self.good,
                self.swap,
                None,
                self.first,
            )
        )
        self.box.addLayout(row_of(self.mark, self.line))
        self.box.addWidget(self.view, 1)
        self.box.addStretch(0)
        for spin in (self.old, self.new):
            spin.valueChanged.connect(self._by_hand)
        self.newest.clicked.connect(self.use_newest)
        self.good.clicked.connect(self.use_last_good)
        self.swap.clicked.connect(self.swap_sides)
        self.first.clicked.connect(self.go_first)
        self.hub.compare_wanted.connect(self.compare)
        self.view.chosen.connect(lambda row: self.jump(self.view.table.source.jump(row)))

    def _by_hand(self, value: int) -> None:
        """From now on the chosen events stay; before, the newest two are compared."""
        self.chosen = True
        self.refresh()

    def show_record(self, record) -> None:
        self.refresh()

    def show_selection(self, selection, origin) -> None:
        """Nothing here depends on the selection."""

    def compare(self, old: int, new: int) -> None:
        """Compare two events by number, and come to the front."""
        low, high = sorted((old, new))
        self.old.setValue(low)
        self.new.setValue(high)
        self.chosen = True
        self.refresh()
        self.bring_up()

    def use_newest(self) -> None:
        """Take the newest event as the second one."""
        if len(self.known):
            self.new.setValue(self.known.records[-1].number)

    def use_last_good(self) -> None:
        """Take the newest event before the second one that published as the first one."""
        row = self.known.row_of(self.new.value())
        good = None if row is None else self.known.last_good(row)
        if good is not None:
            self.old.setValue(self.known.records[good].number)

    def swap_sides(self) -> None:
        """Change the two sides."""
        old, new = self.old.value(), self.new.value()
        self.old.setValue(new)
        self.new.setValue(old)

    def go_first(self) -> None:
        """Select the first position that differs."""
        if self.result is None or self.result.same:
            return
        position = self.result.first_position
        where = None if position is None else (position, position + 1)
        self.jump(Jump(self.result.first_seq, where, owner=self.result.first_owner or None))

    def rebuild(self) -> None:
        journal = self.journal()
        if journal is not self.known:
            self.known, self.chosen = journal, False
        if not self.chosen and len(self.known) > 1:
            for spin, record in zip((self.old, self.new), self.known.records[-2:], strict=True):
                spin.blockSignals(True)
                spin.setValue(record.number)
                spin.blockSignals(False)
        self.result = self._compare()
        self.view.setVisible(self.result is not None)
        self.first.setEnabled(self.result is not None and not self.result.same)
        if self.result is None:
            self.mark.show_glyph("", "")
            set_text(self.line, self._missing(), "text2")
            self.view.set_table(Table(COLUMNS))
            return
        same = self.result.same
        self.mark.show_glyph("tick" if same else "warning", "done" if same else "warning")
        set_text(self.line, self.result.sentence, "text")
        self.view.set_table(self.result.table)

    def _compare(self):
        found = [self.known.row_of(spin.value()) for spin in (self.old, self.new)]
        rows = [row for row in found if row is not None]
        if len(set(rows)) < 2:
            return None
        old, new = (self.known.records[row] for row in rows)
        low, high = sorted(rows)
        return compare(old, new, [self.known.records[row] for row in range(low + 1, high + 1)])

    def _missing(self) -> str:
        if len(self.known) < 2:
            return "Two events are needed: run a chunk or do an op."
        first, last = self.known.records[0].number, self.known.records[-1].number
        if self.old.value() == self.new.value():
            return "Choose two different events."
        return f"Expected events from {first:,} to {last:,}."


def _button(words: str, tip: str) -> QPushButton:
    return named(QPushButton(words), words, tip)
