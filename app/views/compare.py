"""Two events side by side: which owners differ, and the first position that does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from PySide6.QtWidgets import QComboBox, QPushButton, QSpinBox

from app.models.compare import COLUMNS, compare
from app.models.compare_files import compare_files
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
        self.reports: dict[str, dict[str, Any]] = {}
        self.files = QComboBox(), QComboBox()
        for box, name in zip(
            self.files, (self.tr("First file"), self.tr("Second file")), strict=True
        ):
            named(box, name, self.tr("A file that was checked"))
            box.activated.connect(lambda _: self.refresh())
            box.hide()
        self.mode = named(
            QComboBox(), self.tr("What to compare"), self.tr("Two events, or two checked files")
        )
        self.mode.addItem(self.tr("Events"), "events")
        self.mode.addItem(self.tr("Files"), "files")
        self.mark = GlyphLabel(self)
        self.line = label("", self.tr("Result"), wrap=True)
        self.view = TableView(self.tr("Differences"))
        self.box.setSpacing(4)
        self.against = label(self.tr("against"))
        one, two = self.files
        sides = (self.mode, self.old, one, self.against, self.new, two)
        buttons = (self.newest, self.good, self.swap)
        self.box.addLayout(row_of(*sides, *buttons, None))
        self.box.addLayout(row_of(self.mark, self.line, self.first))
        self.mode.activated.connect(lambda _: self.refresh())
        self.client.foreign_opened.connect(self.add_file)
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

    def add_file(self, report: dict[str, Any]) -> None:
        """Keep a checked file; the newest two are compared when two are open."""
        name = str(report.get("file"))
        if name not in self.reports:
            for box in self.files:
                box.addItem(Path(name).name, name)
        self.reports[name] = report
        if len(self.reports) > 1:
            self.files[0].setCurrentIndex(len(self.reports) - 2)
            self.files[1].setCurrentIndex(len(self.reports) - 1)
            self.mode.setCurrentIndex(self.mode.findData("files"))
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
        self.mode.setCurrentIndex(self.mode.findData("events"))
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

    def _compare_files(self) -> None:
        chosen = [self.reports.get(box.currentData()) for box in self.files]
        one, two = chosen
        self.first.setEnabled(False)
        self.view.setVisible(one is not None and two is not None and one is not two)
        if one is None or two is None or one is two:
            self.mark.show_glyph("", "")
            set_text(self.line, "Two files are needed: open or drop two of them.", "text2")
            self.view.set_table(Table(COLUMNS))
            return
        sentence, same, table = compare_files(one, two)
        self.mark.show_glyph("tick" if same else "warning", "done" if same else "warning")
        set_text(self.line, sentence, "text")
        self.view.set_table(table)

    def rebuild(self) -> None:
        files = self.mode.currentData() == "files"
        for box in self.files:
            box.setVisible(files)
        for widget in (self.old, self.new, self.newest, self.good, self.swap, self.first):
            widget.setVisible(not files)
        if files:
            self._compare_files()
            return
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
