"""One-click checks: same as fresh, audit of all digests, boundary sweep as a grid."""

from __future__ import annotations

from PySide6.QtWidgets import QPushButton

from app.models.checks import CHECKS, NAMES, counts, result_table
from app.models.table import Table
from app.views.panel import GlyphLabel, Panel, label, named, row_of, set_text
from app.views.tables import TableView
from engine.commands import RunCheck
from engine.events import SessionOpened, Trouble
from engine.snapshot import CheckResult


class ChecksPanel(Panel):
    """A button a check; the last result of each is kept."""

    title = "Checks"

    def build(self) -> None:
        self.results: dict[str, CheckResult] = {}
        self.current = ""
        self.waiting = ""
        self.buttons = {}
        for name, words, tip in CHECKS:
            button = named(QPushButton(words), words, tip)
            button.clicked.connect(lambda _=False, name=name: self.run(name))
            self.buttons[name] = button
        self.mark = GlyphLabel(self)
        self.line = label("", self.tr("Result"), wrap=True)
        self.view = TableView(self.tr("Result of the check"))
        self.box.setSpacing(4)
        self.box.addLayout(row_of(*self.buttons.values(), None))
        self.box.addLayout(row_of(self.mark, self.line))
        self.box.addWidget(self.view, 1)
        self.box.addStretch(0)

    def run(self, name: str) -> None:
        """Ask the engine for a check; its result comes as an event."""
        self.current = self.waiting = name
        self.send(RunCheck(name))
        self.refresh()
        self.flush()

    def show_event(self, body) -> None:
        match body:
            case CheckResult() if body.name in NAMES:
                self.results[body.name] = body
                self.current = body.name
                self.waiting = ""
            case Trouble() if self.waiting:
                self.waiting = ""
            case SessionOpened():
                self.results.clear()
                self.current = self.waiting = ""
            case _:
                return
        self.refresh()

    def show_selection(self, selection, origin) -> None:
        """Nothing here depends on the selection."""

    def rebuild(self) -> None:
        for button in self.buttons.values():
            button.setEnabled(self.client.snapshot is not None and not self.waiting)
        result = self.results.get(self.current)
        self.view.setVisible(result is not None and bool(result.rows))
        if self.waiting:
            self.mark.show_glyph("triangle", "running")
            set_text(self.line, f"{self.waiting} is running; the status bar can cancel it.", "text")
            return
        if result is None:
            self.mark.show_glyph("", "")
            words = "No check ran yet." if self.client.snapshot else "No session is open."
            set_text(self.line, words, "text2")
            self.view.set_table(Table(()))
            return
        self.mark.show_glyph("tick" if result.ok else "cross", "done" if result.ok else "failed")
        passed, failed = counts(result)
        grid = f" ({passed:,} passed, {failed:,} failed)" if passed or failed else ""
        word = "passed" if result.ok else "failed"
        set_text(self.line, f"{result.name} {word}: {result.sentence}{grid}", "text")
        self.view.set_table(result_table(result))
