"""Saved state of another engine: the verdict, findings with jumps, parts side by side."""

from __future__ import annotations

import json
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QComboBox, QPushButton, QSplitter

from app.models import findings, norms, text
from app.models.table import Jump, Table
from app.models.tensor import automatic
from app.norms_reader import NormsReader
from app.views.heat_map import HeatMap
from app.views.panel import GlyphLabel, Panel, label, named, row_of, set_text
from app.views.tables import TableView, copy_text


class FindingsPanel(Panel):
    """Shows reports of `check`, one object a file."""

    title = "Findings"

    def build(self) -> None:
        self.reports: list[findings.Report] = []
        self.file = named(QComboBox(), self.tr("File"), self.tr("Which checked file"))
        self.file.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
        self.mark = GlyphLabel(self)
        self.line = label("", self.tr("Verdict"), wrap=True)
        self.found = TableView(self.tr("Findings"))
        self.parts = TableView(self.tr("Parts side by side"))
        self.split = QSplitter(Qt.Orientation.Vertical)
        named(self.split, self.tr("Findings over parts"))
        self.split.setChildrenCollapsible(False)
        self.ask_norms = named(
            QPushButton(self.tr("Row norms")),
            self.tr("Row norms"),
            self.tr("Read the rows and draw their norms: zero and not finite rows stand out"),
        )
        self.norms_line = label("", self.tr("Row norms"), second=True)
        self.map = HeatMap(self.tr("Row norms"))
        self.stack: norms.Stack | None = None
        self.reader = NormsReader(self)
        self.split.addWidget(self.found)
        self.split.addWidget(self.parts)
        self.split.setStretchFactor(0, 1)
        self.split.addWidget(self.map)
        self.split.setStretchFactor(1, 2)
        self.split.setStretchFactor(2, 2)
        self.box.setSpacing(4)
        self.box.addLayout(row_of(self.mark, self.line, self.file, self.ask_norms))
        self.box.addWidget(self.norms_line)
        self.box.addWidget(self.split, 1)
        self.box.addStretch(0)
        self.file.activated.connect(lambda _: self._other_file())
        self.ask_norms.clicked.connect(self.read_norms)
        self.reader.read.connect(self._norms_read)
        self.reader.failed.connect(self._norms_failed)
        self.map.hovered.connect(self._hover)
        self.map.picked.connect(lambda row, cell: self.jump(Jump(cell=cell)))
        for view in (self.found, self.parts):
            view.chosen.connect(lambda row, view=view: self.jump(view.table.source.jump(row)))
        self.client.foreign_opened.connect(self.show_report)
        if self.client.foreign is not None:
            self.add_report(self.client.foreign)

    def show_report(self, report: findings.Report) -> None:
        """Show the report of one file, as `check --json` prints it; kept beside the others."""
        self.add_report(report)
        self.refresh()
        self.flush()

    def add_report(self, report: findings.Report) -> None:
        """Keep a report; a newer one of the same file takes its place."""
        names = [str(item.get("file")) for item in self.reports]
        name = str(report.get("file"))
        if name in names:
            self.reports[names.index(name)] = report
        else:
            self.reports.append(report)
            self.file.addItem(Path(name).name, name)
            self.file.setItemData(self.file.count() - 1, name, Qt.ItemDataRole.ToolTipRole)
        self.file.setCurrentIndex(self.file.findData(name))
        self._other_file()

    # row norms --------------------------------------------------------------------------------

    def _other_file(self) -> None:
        """Norms of the file before are of no use."""
        self.reader.cancel()
        self.stack = None
        set_text(self.norms_line, "", "text2")
        self.refresh()

    def read_norms(self) -> None:
        """Read the rows of the chosen sequence (the first when none is) beside the window."""
        report = self.report()
        if report is None:
            return
        ids = [sequence.get("id") for sequence in report.get("sequences") or ()]
        seq = self.hub.selection.seq
        index = ids.index(seq) if seq in ids else 0
        set_text(self.norms_line, "Reading the rows.", "text2")
        self.norms_line.setVisible(True)
        parts = norms.parts_with_rows(report, index)
        self.reader.start(str(report.get("file")), parts, index)

    def _norms_read(self, found) -> None:
        self.stack = norms.stacked(found)
        set_text(self.norms_line, norms.summary(self.stack), "text2")
        high = self.split.height()
        self.split.setSizes([high // 5, high // 3, high - high // 5 - high // 3])
        self.refresh()
        self.flush()

    def _norms_failed(self, sentence: str) -> None:
        set_text(self.norms_line, sentence, "warning")

    def _hover(self, row: int, cell: int) -> None:
        if self.stack is None:
            return
        values = self.stack.matrix.values
        n_rows, n_cells = values.shape
        if 0 <= row < n_rows and 0 <= cell < n_cells:
            value = text.real(float(values[row, cell]))
            set_text(self.norms_line, f"{self.stack.names[row]}, cell {cell:,}: norm {value}")

    def _show_norms(self) -> None:
        stack = self.stack
        shown = stack is not None and stack.matrix.values.size > 0
        self.map.setVisible(shown)
        self.norms_line.setVisible(bool(self.norms_line.text()))
        if stack is not None and shown:
            limits = automatic(stack.matrix, "public")
            axes = ("", self.tr("physical cell"))
            self.map.show_matrix(stack.matrix, limits, "public", axes, stack.names)

    # content ----------------------------------------------------------------------------------

    def report(self) -> findings.Report | None:
        """The report shown now."""
        at = self.file.currentIndex()
        return self.reports[at] if 0 <= at < len(self.reports) else None

    def show_snapshot(self, snapshot) -> None:
        """A report does not depend on the session."""

    def show_selection(self, selection, origin) -> None:
        """Nor on the selection."""

    def rebuild(self) -> None:
        report = self.report()
        self.split.setVisible(report is not None)
        self.file.setVisible(len(self.reports) > 1)
        self.ask_norms.setVisible(report is not None and bool(report.get("sequences")))
        self._show_norms()
        if report is None:
            self.mark.show_glyph("", "")
            words = "No file was checked: open or drop saved state of another engine."
            set_text(self.line, words, "text2")
            return
        sentence, sound = findings.verdict(report)
        self.mark.show_glyph("tick" if sound else "cross", "done" if sound else "failed")
        path = str(report.get("file"))
        set_text(self.line, f"{Path(path).name}: {sentence}", "text")
        self.line.setToolTip(path)
        found = findings.finding_table(report)
        self.found.setVisible(found.n_rows > 0)
        self.found.set_table(found)
        parts = findings.part_table(report) if report.get("sequences") else Table(())
        self.parts.setVisible(parts.n_rows > 0)
        self.parts.set_table(parts)

    def copy_json(self) -> None:
        """Put the whole report on the clipboard."""
        copy_text(json.dumps(self.report(), indent=1, ensure_ascii=False))
