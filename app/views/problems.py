"""Messages: what went wrong, the first error on top, with expected, given and a jump."""

from __future__ import annotations

from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QDockWidget, QPushButton

from app.models.checks import NAMES
from app.models.problems import LOOKS, Problem, Problems, of_check, of_record, of_trouble
from app.views.panel import STEP, GlyphLabel, Panel, label, named, row_of, set_text
from app.views.tables import TableView
from engine.events import SessionOpened, Trouble
from engine.snapshot import CheckResult


class ProblemsPanel(Panel):
    """Every refusal, failure and broken invariant of the session."""

    title = "Problems"

    def build(self) -> None:
        self.problems = Problems()
        self.broken, self.n_read = "", 0
        self._title_timer = QTimer(self)
        self._title_timer.setSingleShot(True)
        self._title_timer.setInterval(250)
        self._title_timer.timeout.connect(self._tell_title)
        self.mark = GlyphLabel(self)
        self.first = label("", self.tr("First error"), wrap=True)
        self.go = named(
            QPushButton(self.tr("Go to first")),
            self.tr("Go to first"),
            self.tr("Go to where it is"),
        )
        self.clear = named(
            QPushButton(self.tr("Clear")), self.tr("Clear"), self.tr("Forget the messages so far")
        )
        self.view = TableView(self.tr("Problems"))
        self.box.setSpacing(4)
        self.box.addLayout(row_of(self.mark, self.first, self.go, self.clear))
        self.box.addWidget(self.view, 1)
        self.box.addStretch(0)
        self.go.clicked.connect(self.go_first)
        self.clear.clicked.connect(self.forget)
        self.view.chosen.connect(lambda row: self.jump(self.view.table.source.jump(row)))
        self.view.activated_row.connect(lambda row: self.jump(self.view.table.source.jump(row)))
        self.hub.problem.connect(self._told)

    def _told(self, kind: str, sentence: str) -> None:
        self.problems.add(Problem(kind if kind in LOOKS else "notice", sentence))
        self.refresh()

    def show_record(self, record) -> None:
        self.refresh()
        if not self._title_timer.isActive():
            self._title_timer.start()

    def _tell_title(self) -> None:
        """The number of problems in the dock's title, also while another tab is in front."""
        self._catch_up()
        dock = self.parentWidget()
        while dock is not None and not isinstance(dock, QDockWidget):
            dock = dock.parentWidget()
        if dock is not None:
            number = self.problems.count()
            dock.setWindowTitle(f"{self.title} ({number:,})" if number else self.title)
        if self.n_read < len(self.client.records):
            self._title_timer.start()

    def show_snapshot(self, snapshot) -> None:
        if snapshot.broken and snapshot.broken != self.broken:
            self.broken = snapshot.broken
            self.problems.add(Problem("bug", snapshot.broken))
            self.refresh()

    def show_event(self, body) -> None:
        match body:
            case SessionOpened():
                self._start_anew()
            case Trouble():
                self.problems.add(of_trouble(body.command, body.sentence))
            case CheckResult() if body.name in NAMES:
                self.problems.add_check(body)
            case CheckResult():
                self.problems.add(of_check(body))
            case _:
                return
        self.refresh()

    def _start_anew(self) -> None:
        self.problems.clear()
        self.broken, self.n_read = "", 0
        self._title_timer.start()

    def _catch_up(self) -> None:
        """Read the records that came since, at most some thousands in one go."""
        records = self.client.records
        refused = getattr(records, "refused", None)
        if refused is not None:  # a capture knows them without reading every row
            for record in refused() if not self.n_read else ():
                self.problems.add(of_record(record))
            self.n_read = len(records)
            return
        stop = min(len(records), self.n_read + STEP)
        for record in records[self.n_read : stop]:
            if record.outcome != "ok":
                self.problems.add(of_record(record))
        self.n_read = stop
        if stop < len(records):
            self.refresh()

    def rebuild(self) -> None:
        self._tell_title()
        first = self.problems.headline()
        self.view.setVisible(first is not None)
        self.go.setVisible(first is not None and first.jump is not None)
        self.clear.setVisible(first is not None)
        self.view.set_table(self.problems.table())
        if first is None:
            self.mark.show_glyph("tick" if all(self.problems.checks.values()) else "", "done")
            set_text(self.first, self.problems.empty_words(), "text2")
            return
        glyph, role = LOOKS[first.severity]
        self.mark.show_glyph(glyph, role)
        more = f" · {self.problems.n_more:,} more not kept" if self.problems.n_more else ""
        set_text(self.first, f"First: {first.sentence}{_sides(first)}{more}", "text")

    def go_first(self) -> None:
        """Go to where the first error is."""
        first = self.problems.headline()
        if first is not None:
            self.jump(first.jump)

    def forget(self) -> None:
        """Clear the list; checks that ran are remembered."""
        self.problems.items.clear()
        self.problems.n_more = 0
        self.refresh()
        self.flush()


def _sides(problem: Problem) -> str:
    """Expected and given where the sentence does not say them."""
    out = ""
    if problem.expected and "expected" not in problem.sentence:
        out += f", expected {problem.expected}"
    if problem.given and not any(w in problem.sentence for w in ("given", problem.given)):
        out += f", given {problem.given}"
    return out
