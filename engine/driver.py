"""The driver: commands in, events out, one bounded piece of work a turn.

Owns what a person steers: queues of tokens, run and pause, chunk size, armed faults, checks and
the capture. Knows no Qt; the worker of the window and a test call `handle` and `turn` alike, in
the thread that made it.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Final

from engine import commands as c
from engine.capture_writer import CaptureWriter
from engine.checks import CHECKS
from engine.engine import Engine
from engine.errors import EngineError, InvariantBroken, Rejected
from engine.events import (
    Body,
    Emit,
    FaultsChanged,
    FeedChanged,
    LimitsKnown,
    SessionOpened,
    StagesChanged,
    Trial,
    Trouble,
)
from engine.faults import Fault
from engine.look import record_of, trial_sequences
from engine.opening import open_engine
from engine.ops import Append, Fail
from engine.progress import CancelToken, Progress
from engine.reach import limit_views
from engine.reading import arrays_of, read_array
from engine.run import Run
from engine.session_file import load_session, save_session
from engine.snapshot import CheckResult, Record
from engine.terms import FailKind

STAGES_EVERY_NS: Final = 50_000_000
"""While chunks run by themselves the stage list is told this often, and at each end."""


class Driver:
    """Steers one session at a time."""

    def __init__(self, emit: Emit, cancel: CancelToken) -> None:
        self._emit, self._cancel = emit, cancel
        self._ticket = 0
        self.engine: Engine | None = None
        self._queues: dict[int, deque[int]] = {}
        self._starts: dict[int, int] = {}
        self._chunk = 8
        self._running = False
        self._finishing = False
        self._to: int | None = None
        self._next_seq = 0
        self._check: Iterator[Progress] | None = None
        self._capture: CaptureWriter | None = None
        self._told_stages_ns = 0

    # the outside

    @property
    def has_work(self) -> bool:
        """True while `turn` has something to do."""
        return self._running or self._finishing or self._check is not None

    def handle(self, command: c.Command, ticket: int = 0) -> None:
        """Take one command. Trouble is an event, never an exception."""
        self._ticket = ticket
        name = type(command).__name__
        try:
            if self.engine is None and not isinstance(command, c.OpenModel):
                self._tell(Trouble(name, "no session is open: open a model first"))
                return
            # by name, so that a driver of another kind of model can put its own in place
            getattr(self, _HANDLERS[type(command)].__name__)(command)
        except InvariantBroken as error:
            self._stop()
            self._tell(Trouble(name, f"a bug was recorded and publishing stopped: {error}"))
            self._tell_snapshot()
        except (EngineError, OSError, ValueError) as error:
            self._tell(Trouble(name, str(error)))

    def turn(self) -> None:
        """Do one stage in inspect mode, one chunk in fast mode, or one step of a check."""
        try:
            if self._check is not None:
                self._check_step()
            elif self.engine is not None and self.engine.open is not None:
                self._advance()
            elif self._running:
                self._next_chunk()
            else:
                self._finishing = False
        except InvariantBroken as error:
            self._stop()
            self._tell(Trouble("Run", f"a bug was recorded and publishing stopped: {error}"))
            self._tell_snapshot()
        except (EngineError, OSError) as error:
            self._stop()
            self._tell(Trouble("Run", str(error)))

    def close(self) -> None:
        """Discard what is open and close the capture."""
        self._stop()
        if self.engine is not None and self.engine.open is not None:
            self.engine.discard()
        self._close_capture()

    # events

    def _tell(self, body: Body) -> None:
        self._emit(self._ticket, body)

    def _tell_snapshot(self) -> None:
        if self.engine is not None:
            self._tell(self.engine.snapshot())

    def _tell_feed(self) -> None:
        queued = tuple((seq, len(queue)) for seq, queue in sorted(self._queues.items()) if queue)
        self._tell(FeedChanged(queued, self._running, self._chunk))

    def _tell_faults(self) -> None:
        faults = self._engine.faults
        self._engine.faults[:] = [f for f in faults if not f.spent]
        left = tuple(
            (f.stage, str(f.kind), f.times - f.fired if f.times else 0, f.skip - f.passed)
            for f in self._engine.faults
        )
        self._tell(FaultsChanged(left))

    def _tell_stages(self, force: bool = True) -> None:
        txn = self._engine.open
        now = time.monotonic_ns()
        if txn is None or (not force and now - self._told_stages_ns < STAGES_EVERY_NS):
            return
        self._told_stages_ns = now
        self._tell(StagesChanged(txn.number, txn.views()))

    def _finish_record(self, record: Record) -> None:
        """Everything that follows an op: journal, capture, stages, snapshot, faults."""
        if self._capture is not None:
            self._capture.record(record)
        if record.stages:
            self._tell(StagesChanged(record.txn or 0, record.stages))
        self._tell(record)
        self._tell_snapshot()
        if any(f.fired or f.passed for f in self._engine.faults):
            self._tell_faults()
        if record.outcome != "ok" and self._running:
            self._running = False
            self._tell_feed()
        self._finishing = False

    @property
    def _engine(self) -> Engine:
        assert self.engine is not None
        return self.engine

    # sessions

    def _open(self, command: c.OpenModel) -> None:
        engine = open_engine(
            command.folder,
            backend=command.backend,
            self_check=command.folder is not None,
            group_size=None if command.folder else command.group_size,
            capacity=command.capacity,
            window=command.window,
            budget_bytes=command.budget_bytes,
            mode=command.mode,
            prove="failures",
        )
        self._adopt(engine)

    def _adopt(self, engine: Engine) -> None:
        self.close()
        self.engine = engine
        engine.cancel = self._cancel
        self._queues, self._starts, self._check = {}, {}, None
        bank = engine.pair.public_bank
        owners = tuple((name, owner.unit) for name, owner in bank.owners.items())
        backend = engine.model.backend.name if engine.model else "none"
        self._tell(SessionOpened(engine.name, backend, engine.stage_names, owners, arrays_of(bank)))
        self._tell_snapshot()
        self._tell_feed()
        self._tell_faults()

    def _save(self, command: c.SaveSession) -> None:
        save_session(self._engine, command.path)
        self._tell(CheckResult("save", True, f"saved to {command.path}"))

    def _load(self, command: c.LoadSession) -> None:
        record = load_session(self._engine, command.path)
        self._finish_record(record)

    # ops

    def _do(self, command: c.Do) -> None:
        self._finish_record(self._engine.apply(command.op))

    def _try(self, command: c.Try) -> None:
        engine, op = self._engine, command.op
        before = engine.digests(recompute=False)
        try:
            applied, _ = engine.judge(op.during if isinstance(op, Fail) else op)
        except Rejected as error:
            record = record_of(engine, op, error, None, before, before, 0)
        else:
            record = replace(
                record_of(engine, op, None, None, before, before, 0),
                sequences=trial_sequences(engine.pair.public_bank, applied),
            )
        self._tell(Trial(record))

    def _undo(self, command: c.Undo) -> None:
        result = self._engine.undo()
        if isinstance(result, str):
            self._tell(Trouble("Undo", result))
        else:
            self._finish_record(result)

    # tokens

    def _feed(self, command: c.Feed) -> None:
        queue = self._queues.setdefault(command.seq, deque())
        if command.start is not None and not queue:
            self._starts[command.seq] = command.start
        queue.extend(command.tokens)
        self._tell_feed()

    def _clear_feed(self, command: c.ClearFeed) -> None:
        self._queues.pop(command.seq, None)
        self._starts.pop(command.seq, None)
        self._tell_feed()

    def _set_chunk(self, command: c.SetChunk) -> None:
        if command.n_tokens < 1:
            raise ValueError(f"chunk: expected at least 1 token, given {command.n_tokens}")
        self._chunk = command.n_tokens
        self._tell_feed()

    def _set_mode(self, command: c.SetMode) -> None:
        if command.mode not in ("inspect", "fast"):
            raise ValueError(f"mode: expected inspect or fast, given {command.mode}")
        self._engine.mode = command.mode  # type: ignore[assignment]
        self._tell_snapshot()

    def _next_append(self, n: int) -> Append | None:
        """The next chunk of the queue whose turn it is; its tokens stay queued until it ends."""
        waiting = [seq for seq, queue in sorted(self._queues.items()) if queue]
        if not waiting:
            return None
        seq = next((s for s in waiting if s >= self._next_seq), waiting[0])
        run = self._run_of(seq)
        start = run.stop if run.n else self._starts.get(seq, 0)
        if self._to is not None:
            n = min(n, self._to - start)
            if n < 1:
                return None
        queue = self._queues[seq]
        tokens = tuple(queue[i] for i in range(min(n, len(queue))))
        return Append(seq, range(start, start + len(tokens)), tokens)

    def _run_of(self, seq: int) -> Run:
        return self._engine.pair.public_bank.history.value.of(seq).run

    def _begin_chunk(self, n: int) -> bool:
        """Open the next chunk's transaction; False when there is none or it was refused."""
        op = self._next_append(n)
        if op is None:
            return False
        refused = self._engine.begin(op)
        if refused is not None:
            self._finish_record(refused)
        return refused is None

    def _need_chunk(self, n: int) -> bool:
        """Make sure that a transaction is open, or say why there is none."""
        if self._engine.open is not None:
            return True
        if not any(self._queues.values()):
            raise ValueError("no tokens are queued: feed a sequence first")
        return self._begin_chunk(n)

    def _next_chunk(self) -> None:
        if not self._begin_chunk(self._chunk):
            if self._running:
                self._running, self._to = False, None
                self._tell_feed()
            return
        self._advance()

    def _advance(self) -> None:
        """One stage; in fast mode while running, the whole chunk."""
        engine = self._engine
        whole = engine.mode == "fast" and (self._running or self._finishing)
        while engine.open is not None:
            op = engine.open.op
            record = engine.step()
            if record is not None:
                self._took(op, record)
                self._finish_record(record)
                self._tell_feed()
                return
            if not whole:
                self._tell_stages(force=not self._running)
                return

    def _took(self, op: Any, record: Record) -> None:
        """Tokens of a published chunk leave their queue; the next sequence has its turn."""
        queue = self._queues.get(op.seq) if isinstance(op, Append) else None
        if record.outcome != "ok" or not queue:
            return
        for _ in range(min(record.n_tokens, len(queue))):
            queue.popleft()
        self._starts.pop(op.seq, None)
        self._next_seq = op.seq + 1

    def _run(self, command: c.Run) -> None:
        if self._engine.open is None and not any(self._queues.values()):
            raise ValueError("no tokens are queued: feed a sequence first")
        self._running, self._to = True, command.to_position
        self._tell_feed()

    def _pause(self, command: c.Pause) -> None:
        self._running, self._to = False, None
        self._finishing = self._engine.open is not None
        self._tell_feed()

    def _step_stage(self, command: c.StepStage) -> None:
        self._running = self._finishing = False
        if self._need_chunk(self._chunk):
            self._advance()
            self._tell_snapshot()

    def _step_chunk(self, command: c.StepChunk) -> None:
        self._running = False
        self._finishing = self._need_chunk(self._chunk)

    def _step_token(self, command: c.StepToken) -> None:
        self._running = False
        self._finishing = self._need_chunk(1)

    def _finish(self, command: c.Finish) -> None:
        if self._engine.open is None:
            raise ValueError("no transaction is open")
        self._finishing = True

    def _discard(self, command: c.Discard) -> None:
        if self._engine.open is None:
            raise ValueError("no transaction is open")
        self._stop()
        self._finish_record(self._engine.discard())
        self._tell_feed()

    def _stop(self) -> None:
        self._running = self._finishing = False
        self._check = None

    # faults, arrays, checks, limits, capture

    def _arm(self, command: c.ArmFault) -> None:
        names = [name for name, _ in self._engine.stage_names]
        if command.stage not in names:
            raise ValueError(f"stage: expected one of {', '.join(names)}, given {command.stage}")
        if command.times < 0 or command.skip < 0:
            raise ValueError("times and skip must be at least 0")
        fault = Fault(command.stage, FailKind(command.kind), command.times, command.skip)
        self._engine.faults.append(fault)
        self._tell_faults()

    def _disarm(self, command: c.ClearFaults) -> None:
        kept = [f for f in self._engine.faults if command.stage not in (None, f.stage)]
        self._engine.faults[:] = kept
        self._tell_faults()

    def _read(self, command: c.ReadArray) -> None:
        self._tell(read_array(self._engine, command))

    def _limits(self, command: c.Limits) -> None:
        rows = limit_views(self._engine.pair.public_bank, command.seq)
        self._tell(LimitsKnown(command.seq, rows))

    def _run_check(self, command: c.RunCheck) -> None:
        if command.name not in CHECKS:
            raise ValueError(f"check: expected one of {', '.join(CHECKS)}, given {command.name}")
        self._check = CHECKS[command.name](self._engine)
        self._cancel.clear()

    def _check_step(self) -> None:
        assert self._check is not None
        if self._cancel.is_set():
            self._check = None
            self._cancel.clear()
            self._tell(Trouble("RunCheck", "the check was cancelled"))
            return
        try:
            self._tell(next(self._check))
        except StopIteration as end:
            self._check = None
            self._tell(end.value)

    def _start_capture(self, command: c.StartCapture) -> None:
        self._close_capture()
        about = {"model": self._engine.name}
        self._capture = CaptureWriter(
            command.path, self._engine.snapshot(), about, with_text=command.with_text
        )
        self._tell(CheckResult("capture", True, f"recording to {command.path}"))

    def _stop_capture(self, command: c.StopCapture) -> None:
        if self._capture is None:
            raise ValueError("no capture is being recorded")
        path = self._capture.path
        self._close_capture()
        self._tell(CheckResult("capture", True, f"recorded to {path}"))

    def _close_capture(self) -> None:
        if self._capture is not None:
            capture, self._capture = self._capture, None
            capture.close()


_HANDLERS: Final[dict[type, Callable[[Driver, Any], None]]] = {
    c.OpenModel: Driver._open,
    c.Do: Driver._do,
    c.Try: Driver._try,
    c.Undo: Driver._undo,
    c.Feed: Driver._feed,
    c.ClearFeed: Driver._clear_feed,
    c.SetChunk: Driver._set_chunk,
    c.SetMode: Driver._set_mode,
    c.Run: Driver._run,
    c.Pause: Driver._pause,
    c.StepStage: Driver._step_stage,
    c.StepChunk: Driver._step_chunk,
    c.StepToken: Driver._step_token,
    c.Finish: Driver._finish,
    c.Discard: Driver._discard,
    c.ArmFault: Driver._arm,
    c.ClearFaults: Driver._disarm,
    c.ReadArray: Driver._read,
    c.RunCheck: Driver._run_check,
    c.SaveSession: Driver._save,
    c.LoadSession: Driver._load,
    c.StartCapture: Driver._start_capture,
    c.StopCapture: Driver._stop_capture,
    c.Limits: Driver._limits,
}
