"""Main-thread face of the engine: commands out with a ticket, events back in on this thread.

Owns the thread and what was heard of the session so far. Snapshots, stage lists and progress
may be merged (the last one always arrives); records are never dropped.
"""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject, Qt, QTimer, Signal, Slot

from app.worker import EngineThread
from engine.events import Body, FaultsChanged, FeedChanged, SessionOpened, StagesChanged, Trouble
from engine.progress import CancelToken, Progress
from engine.snapshot import Record, SequenceView, Snapshot

if TYPE_CHECKING:
    from app.models.sequences import Track
    from engine.commands import Command

DELIVERY_INTERVAL_MS = 33
"""Events are handed on at most this often, so that the painting keeps up with any engine."""

DELIVERY_BUDGET_NS = 4_000_000
"""Time one turn of the event loop may spend on handing events on."""

SWITCH_INTERVAL_S = 0.00001
"""How long the engine's thread may hold the interpreter while the window wants it."""

NEWEST = 200
"""Records of a recorded session that are searched for its stages."""

MERGED = (Snapshot, StagesChanged, FeedChanged, FaultsChanged, Progress)
"""Of these only the newest that waits is handed on."""


class Client(QObject):
    """What panels talk to; without `start` it is a plain relay, which tests use."""

    sent = Signal(int, object)
    """(ticket, command) for everything that was asked."""
    snapshot_changed = Signal(object)
    record_added = Signal(object)
    heard = Signal(object)
    """Every event body, snapshots and records included, in order."""
    answered = Signal(int, object)
    """(ticket, body): the same with the ticket of the command that caused it."""
    session_opened = Signal(object)
    stages_changed = Signal(object)
    feed_changed = Signal(object)
    faults_changed = Signal(object)
    trouble = Signal(object)
    shown_changed = Signal(object)
    """The `Record` chosen in time travel, None for the newest state."""

    scenario_opened = Signal(object)
    """A scenario was opened: its JSON object; the session for it is asked for already."""
    foreign_opened = Signal(object)
    """State of another engine was opened: the object of `check --json` for the file."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.offline = False
        """True while a capture or another engine's state is shown: nothing can be run."""
        self.chosen: dict[str, Any] = {}
        """What the user chose for new sessions, as arguments of `OpenModel`."""
        self.scenario: dict[str, Any] | None = None
        self.foreign: dict[str, Any] | None = None
        self.tracks: tuple[Track, ...] = ()
        """The runs of another engine's state."""
        self.snapshot: Snapshot | None = None
        self.first_snapshot: Snapshot | None = None
        """The state before the first record of the session."""
        self.records: Sequence[Record] = []
        """All of them; those of a capture are read when they are looked at."""
        self.session: SessionOpened | None = None
        self.stages: StagesChanged | None = None
        self.feed = FeedChanged((), False, 1)
        self.faults = FaultsChanged(())
        self.shown: Record | None = None
        self.cancel_token = CancelToken()
        self._ticket = 0
        self._pinged = 0
        self._thread: EngineThread | None = None
        self._waiting: deque[tuple[int, Body]] = deque()
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.timeout.connect(self._deliver)

    # asking -------------------------------------------------------------------------------

    def send(self, command: Command) -> int:
        """Ask the engine; returns the ticket that the answers carry."""
        self._ticket += 1
        self.sent.emit(self._ticket, command)
        if self._thread is not None:
            self._thread.ask(self._ticket, command)
        return self._ticket

    def start(self) -> None:
        """Start the engine's thread; commands sent before are not repeated."""
        self.offline = False
        if self._thread is None:
            self.cancel_token.clear()
            sys.setswitchinterval(SWITCH_INTERVAL_S)
            self._thread = EngineThread(self.cancel_token)
            self._thread.told.connect(self.receive, Qt.ConnectionType.QueuedConnection)
            self._thread.start()

    def stop(self) -> None:
        """Cancel what is in flight and end the thread; everything told so far is handed on."""
        if self._thread is not None:
            thread, self._thread = self._thread, None
            thread.stop()
            thread.told.disconnect(self.receive)
        self._timer.stop()

    def close(self) -> None:
        """End the session and forget what was heard of it."""
        self.stop()
        self._waiting.clear()
        self._forget_records()
        self.snapshot, self.session, self.stages = None, None, None
        self.scenario = self.foreign = None
        self.tracks = ()
        self.feed, self.faults, self.offline = FeedChanged((), False, 1), FaultsChanged(()), False
        self.show(None)

    def send_chunk(self, n_tokens: int) -> None:
        """Tokens a chunk from now on; without a session nobody is there to hear it."""
        if self.session is None:
            return
        from engine.commands import SetChunk

        self.send(SetChunk(n_tokens))

    def ping(self) -> None:
        """Ask for something that is answered at once: with `is_quiet` the end of what was asked."""
        from engine.commands import Limits

        if self.session is not None and not self.offline:
            self._pinged = self.send(Limits(0))

    @property
    def is_quiet(self) -> bool:
        """True when all that was asked before the last `ping` is done and was handed on."""
        return not self._waiting and not self._pinged and not self.feed.running

    @Slot()
    def cancel(self) -> None:
        """Ask the work in flight to stop; read between stages, so it needs no turn of a queue."""
        self.cancel_token.set()

    # what is not a session ----------------------------------------------------------------

    def adopt(self, snapshot: Snapshot, records: Sequence[Record], name: str) -> None:
        """Show a recorded session: its records can be travelled, nothing can be run.

        Records of a capture stay in the file until they are looked at.
        """
        owners = tuple((view.name, view.unit) for view in snapshot.owners)
        stages = next((r.stages for r in reversed(records[-NEWEST:]) if r.stages), ())
        names = tuple(dict.fromkeys((view.name, view.kind) for view in stages))
        self.offline, self.foreign, self.tracks = True, None, ()
        self._waiting.clear()
        self._hand_on(0, SessionOpened(name, snapshot.backend, names, owners, ()))
        # panels read `records` themselves: 100,000 signals would take seconds
        self.records = records
        for record in records[-1:]:
            self.record_added.emit(record)
            self.heard.emit(record)
            self.answered.emit(0, record)
        self._hand_on(0, snapshot)
        if stages:
            self._hand_on(0, StagesChanged(snapshot.txn, stages))

    def _forget_records(self) -> None:
        """An empty list in place of what was heard; a capture's file is closed."""
        close = getattr(self.records, "close", None)
        self.records = []
        if close is not None:
            close()

    def adopt_foreign(self, reports: list[dict[str, Any]], group_size: int = 4) -> None:
        """Show another engine's state: what `check --json` says of one or more files."""
        from app.models.foreign import tracks_of_files

        self.offline = True
        self.tracks = tracks_of_files(reports, group_size)
        self.show(None)
        for report in reports:
            self.foreign = report
            self.foreign_opened.emit(report)

    # time travel --------------------------------------------------------------------------

    def show(self, record: Record | None) -> None:
        """Look at the state after `record`, or at the newest one (None)."""
        if record is not self.shown:
            self.shown = record
            self.shown_changed.emit(record)

    @property
    def sequences(self) -> tuple[SequenceView, ...]:
        """The sequences to draw: those after the shown record, else the newest."""
        if self.shown is not None:
            return self.shown.sequences
        return self.snapshot.sequences if self.snapshot else ()

    # hearing ------------------------------------------------------------------------------

    @Slot(int, object)
    def receive(self, ticket: int, body: Body) -> None:
        """Take an event; it is handed on in one of the next turns of the event loop."""
        self._waiting.append((ticket, body))
        if not self._timer.isActive():
            self._timer.start(DELIVERY_INTERVAL_MS)

    def deliver_now(self) -> None:
        """Hand on everything that waits at once (pictures and tests)."""
        while self._waiting:
            self._deliver()

    @Slot()
    def _deliver(self) -> None:
        """Hand on what waits, merged, within the budget of one turn."""
        newest = {type(body): n for n, (_, body) in enumerate(self._waiting)}
        stop_at = time.perf_counter_ns() + DELIVERY_BUDGET_NS
        for n in range(len(self._waiting)):
            ticket, body = self._waiting.popleft()
            if isinstance(body, MERGED) and newest[type(body)] != n:
                continue
            self._hand_on(ticket, body)
            if time.perf_counter_ns() > stop_at:
                break
        if self._waiting:
            self._timer.start(0)

    def _hand_on(self, ticket: int, body: Body) -> None:
        match body:
            case Snapshot():
                self.first_snapshot = self.first_snapshot or body
                self.snapshot = body
                self.snapshot_changed.emit(body)
            case Record():
                assert isinstance(self.records, list)
                self.records.append(body)
                self.record_added.emit(body)
            case StagesChanged():
                self.stages = body
                self.stages_changed.emit(body)
            case FeedChanged():
                self.feed = body
                self.feed_changed.emit(body)
            case FaultsChanged():
                self.faults = body
                self.faults_changed.emit(body)
            case SessionOpened():
                self._forget_records()
                self.session, self.stages = body, None
                self.first_snapshot = None
                self.offline = self.offline and ticket == 0
                self.show(None)
                self.session_opened.emit(body)
            case Trouble():
                self.trouble.emit(body)
            case _:
                pass
        if ticket == self._pinged:
            self._pinged = 0
        self.heard.emit(body)
        self.answered.emit(ticket, body)
