"""The transaction journal: filter, time travel by choosing a row, compare two, last good state."""

from __future__ import annotations

from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import QLineEdit, QToolButton

from app.models import filters, text
from app.models.journal import Journal, JournalTable
from app.models.marks import Mark, events_of
from app.views.panel import Panel, label, named, row_of, set_text
from app.views.tables import TableView
from engine.events import SessionOpened

FILTER_HELP = (
    "Words and ranges that must all match: failed, op:append, stage:layer.3, kind:oom, seq:0, "
    "pos:812, event:1200-1300, tokens:>4, time:>2ms; -word turns one round"
)


class JournalPanel(Panel):
    """All events of the session; the chosen one is the state that every panel shows."""

    title = "Journal"

    def build(self) -> None:
        self.known = Journal()
        self.foreign: Journal | None = None
        self.query = filters.Query(())
        self.rows = JournalTable(self.known)
        self.follow = True
        self._marks: dict[tuple[int, str], Mark] = {}
        self.edit = QLineEdit()
        self.edit.setPlaceholderText(self.tr("Filter: failed, op:append, pos:812 ..."))
        self.edit.setClearButtonEnabled(True)
        named(self.edit, self.tr("Filter the journal"), FILTER_HELP)
        self.chip = label("", self.tr("Events that match"), second=True)
        self.clear = _button(self.tr("Clear filter"), self.tr("Show all events again"))
        self.good = _button(
            self.tr("Last good state"), self.tr("Go to the newest event before that published")
        )
        self.against = _button(
            self.tr("Compare"), self.tr("Compare the two selected events, or this with the newest")
        )
        self.live = _button(self.tr("Return to newest"), self.tr("Leave time travel"))
        self.empty = label(self.tr("No event yet: run a chunk or do an op."), second=True)
        self.view = TableView(self.tr("Journal"))
        self.view.extra_actions = self._row_actions
        self.box.setSpacing(4)
        self.box.addLayout(
            row_of(self.edit, self.chip, self.clear, None, self.good, self.against, self.live)
        )
        self.box.addWidget(self.empty)
        self.box.addWidget(self.view, 1)
        self.edit.setMinimumWidth(240)
        self._typing = QTimer(self)
        self._typing.setSingleShot(True)
        self._typing.setInterval(120)
        self._typing.timeout.connect(self.apply_filter)
        self.edit.textChanged.connect(lambda _: self._typing.start())
        self.edit.returnPressed.connect(self._enter)
        self.clear.clicked.connect(self.clear_filter)
        self.good.clicked.connect(self.go_last_good)
        self.against.clicked.connect(self.compare)
        self.live.clicked.connect(self.return_to_live)
        self.view.chosen.connect(self._chosen)
        self.view.activated_row.connect(self._activated)
        self.hub.marks.changed.connect(lambda: self.refresh(prompt=True))
        find = QShortcut(QKeySequence.StandardKey.Find, self)
        find.setContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
        find.activated.connect(self.edit.setFocus)

    # content ----------------------------------------------------------------------------------

    def show_record(self, record) -> None:
        self.refresh()

    def show_event(self, body) -> None:
        if isinstance(body, SessionOpened):
            self.refresh()

    def set_journal(self, journal: Journal) -> None:
        """Show a journal read from elsewhere, such as a capture file."""
        self.known = self.foreign = journal
        self.follow = True
        self.refresh()
        self.flush()

    def rebuild(self) -> None:
        if self.foreign is None or self.client.records:
            self.known, self.foreign = self.journal(), None
        marks = events_of(self.hub.marks.marks)
        self.rows = JournalTable(self.known, self.query, marks)
        self.view.set_table(self.rows)
        if marks != self._marks:
            # rows of a journal never change by themselves, so the view asks for none again
            self._marks = marks
            self.view.viewport().update()
        self._say()
        self._show_chosen()

    def _say(self) -> None:
        table, total = self.rows, len(self.known)
        self.empty.setVisible(total == 0)
        self.view.setVisible(total > 0)
        filtered = bool(self.query.terms)
        self.clear.setVisible(filtered)
        if self.query.problem:
            set_text(self.chip, self.query.problem, "warning")
        elif filtered:
            set_text(self.chip, f"{text.count(table.n_rows)} of {text.count(total)} events match")
        else:
            set_text(self.chip, text.plural(total, "event"), "text2")
        self.live.setEnabled(self.client.shown is not None)
        self.good.setEnabled(total > 0)
        self.against.setEnabled(total > 1)

    def _show_chosen(self) -> None:
        """The row of the shown event; live: the last one, followed while nobody scrolled away."""
        shown, table = self.client.shown, self.rows
        if shown is None:
            self.view.show_row(None)
            if self.follow and table.n_rows:
                self.view.scrollToBottom()
            return
        row = self.known.row_of(shown.number)
        at = None if row is None else table.shown_at(row)
        if len(self.view.selectionModel().selectedRows()) < 2:
            self.view.show_row(at)

    def show_selection(self, selection, origin) -> None:
        """An event chosen elsewhere is gone to here."""
        if origin is self or selection.event is None:
            return
        row = self.known.row_of(selection.event)
        current = self.client.shown
        if row is not None and (current is None or current.number != selection.event):
            self._travel(self.known.records[row])

    # time travel ------------------------------------------------------------------------------

    def _chosen(self, row: int) -> None:
        self.follow = False
        self._travel(self.rows.record(row))
        self.jump(self.rows.jump(row))

    def _activated(self, row: int) -> None:
        self._chosen(row)

    def _travel(self, record) -> None:
        self.client.show(record)

    def return_to_live(self) -> None:
        """Show the newest state again."""
        self.follow = True
        self.view.clearSelection()
        self.client.show(None)
        self.hub.change(self, event=None)
        self.refresh()

    def go_last_good(self) -> None:
        """Show the newest state before the shown event that was published."""
        shown = self.client.shown
        before = None if shown is None else self.known.row_of(shown.number)
        row = self.known.last_good(before)
        if row is not None:
            self._go(row)

    def next_problem(self, step: int) -> None:
        """Show the next (1) or previous (-1) event that did not publish."""
        shown = self.client.shown
        start = len(self.known) if shown is None else self.known.row_of(shown.number) or 0
        row = self.known.next_problem(start, step)
        if row is not None:
            self._go(row)

    def _go(self, row: int) -> None:
        record = self.known.records[row]
        self.follow = False
        self._travel(record)
        self.hub.change(self, event=record.number, seq=record.seq)
        self.refresh()

    def compare(self) -> None:
        """Ask the Compare panel for the two selected events."""
        rows = self.view.rows() if self.view.selectionModel().hasSelection() else []
        table = self.rows
        events = [table.record(row).number for row in rows[:1] + rows[-1:]]
        shown = self.client.shown
        if len(set(events)) < 2:
            first = shown.number if shown else self.known.records[-1].number
            events = [events[0] if events else first, self.known.records[-1].number]
            if events[0] == events[1] and len(self.known) > 1:
                events[0] = self.known.records[-2].number
        self.hub.compare_wanted.emit(events[0], events[1])

    # filter -----------------------------------------------------------------------------------

    def apply_filter(self) -> None:
        """Read the filter line and show what it lets through."""
        self._typing.stop()
        self.query = filters.parse(self.edit.text())
        self.refresh()
        self.flush()

    def clear_filter(self) -> None:
        """Show all events again."""
        self.edit.clear()
        self.apply_filter()

    def _enter(self) -> None:
        self.apply_filter()
        n_rows = self.rows.n_rows
        if n_rows:
            self.view.setFocus()
            if not self.view.selectionModel().hasSelection():
                self.view.choose_row(n_rows - 1)

    def _row_actions(self, menu, row: int) -> None:
        record = self.rows.record(row)
        menu.addAction(self.tr("Show the state after this event"), lambda: self._chosen(row))
        menu.addAction(
            self.tr("Compare with the newest"),
            lambda: self.hub.compare_wanted.emit(record.number, self.known.records[-1].number),
        )
        menu.addAction(self.tr("Last good state before"), self.go_last_good)
        for words, term in (
            (f"Only {record.op}", f"op:{record.op}"),
            (f"Only {record.outcome}", f"outcome:{record.outcome}"),
        ):
            menu.addAction(words, lambda term=term: self._only(term))

    def _only(self, term: str) -> None:
        self.edit.setText(term)
        self.apply_filter()


def _button(words: str, tip: str) -> QToolButton:
    button = QToolButton()
    button.setText(words)
    button.setMinimumHeight(24)
    named(button, words, tip)
    return button
