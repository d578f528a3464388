"""Saved state of another engine: the verdict, findings with jumps, parts side by side."""

from __future__ import annotations

import json

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QComboBox, QSplitter

from app.models import findings
from app.models.table import Table
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
        self.split.addWidget(self.found)
        self.split.addWidget(self.parts)
        self.split.setStretchFactor(0, 1)
        self.split.setStretchFactor(1, 2)
        self.box.setSpacing(4)
        self.box.addLayout(row_of(self.mark, self.line, self.file))
        self.box.addWidget(self.split, 1)
        self.box.addStretch(0)
        self.file.activated.connect(lambda _: self.refresh())
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
            self.file.addItem(name)
        self.file.setCurrentIndex(self.file.findText(name))

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
        if report is None:
            self.mark.show_glyph("", "")
            words = "No file was checked: open or drop saved state of another engine."
            set_text(self.line, words, "text2")
            return
        sentence, sound = findings.verdict(report)
        self.mark.show_glyph("tick" if sound else "cross", "done" if sound else "failed")
        set_text(self.line, f"{report.get('file')}: {sentence}", "text")
        found = findings.finding_table(report)
        self.found.setVisible(found.n_rows > 0)
        self.found.set_table(found)
        parts = findings.part_table(report) if report.get("sequences") else Table(())
        self.parts.setVisible(parts.n_rows > 0)
        self.parts.set_table(parts)

    def copy_json(self) -> None:
        """Put the whole report on the clipboard."""
        copy_text(json.dumps(self.report(), indent=1, ensure_ascii=False))
