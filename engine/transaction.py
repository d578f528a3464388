"""One transaction: begin, run its stages on the private bank, flip once, or discard.

Nothing public is written before the flip, and the flip is one integer. A failure throws the
private image away: unevaluated arrays are dropped, evaluated rows are noted as stale, and after a
failed evaluation the whole private bank is made anew at the next `reserve`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final

import mlx.core as mx

from engine.admission import admit
from engine.bank import Bank, BankPair
from engine.demand import demand
from engine.derive import GoBack, Piece, Work
from engine.effects import Applied
from engine.errors import EngineError, StepFailed
from engine.owner import Key
from engine.owners.groups import GroupOwner
from engine.plan import PlanStage, Wrap, build_plan
from engine.progress import CancelToken
from engine.replay import has_load
from engine.snapshot import StageView
from engine.terms import FailKind, TxnStage
from engine.work import Worker

if TYPE_CHECKING:
    from engine.graph.model import Model
    from engine.ops import Op
    from engine.stage import Stage


AT_ONCE_BYTES: Final = 4 << 20
"""Tables up to this size may be copied for every piece."""


@dataclass(frozen=True, slots=True)
class Session:
    """What stays the same from one transaction to the next."""

    pair: BankPair
    model: Model | None
    stages: tuple[Stage, ...]
    budget_bytes: int
    checkpoints_kept: int
    audit_each: bool = False
    """Compare both banks from their bytes after every catch-up."""


@dataclass(slots=True)
class StageRecord:
    """What became of one stage."""

    stage: PlanStage
    state: str = "pending"
    time_ns: int = 0
    fail_kind: str = ""
    detail: str = ""

    def view(self) -> StageView:
        """The frozen form for the outside."""
        graph = self.stage.graph
        return StageView(
            self.stage.name,
            self.stage.kind,
            self.state,
            self.time_ns,
            self.stage.piece,
            self.stage.seq,
            self.fail_kind,
            self.detail,
            graph.reads if graph else (),
            graph.writes if graph else (),
        )


@dataclass
class Transaction:
    """The transaction in flight; `Engine` opens at most one."""

    session: Session
    number: int
    op: Op
    applied: Applied
    work: list[Work]
    fast: bool
    cancel: CancelToken
    keep_logits: bool = False
    logits: list[mx.array] = field(default_factory=list)
    records: list[StageRecord] = field(default_factory=list)
    at: int = 0
    ended: bool = False
    worker: Worker = field(init=False)

    def __post_init__(self) -> None:
        self.worker = Worker(self)
        self.records = [StageRecord(stage) for stage in build_plan(self._stages())]

    def rewrap(self, wrap: Wrap) -> None:
        """Build the plan differently, before its first stage runs: every stage through `wrap`."""
        stages = build_plan((record.stage for record in self.records), wrap)
        self.records = [StageRecord(stage) for stage in stages]

    # the plan

    def _stages(self) -> list[PlanStage]:
        def txn(stage: TxnStage, run: Callable[[], None]) -> PlanStage:
            return PlanStage(stage, "transaction", run, self._settle, seq=self.op.seq)

        plan = [txn(TxnStage.RESERVE, self._reserve)]
        if has_load(self.op):
            plan.append(txn(TxnStage.LOAD, self._load))
        plan += self.worker.graph_plan()
        return [
            *plan,
            txn(TxnStage.WRITE, self.worker.finish_write),
            txn(TxnStage.COMPRESS, self._compress),
            txn(TxnStage.INDEX, self._index),
            txn(TxnStage.VERIFY, self._verify),
            # nothing stays unread: whatever the seal itself reported is judged before the flip
            replace(txn(TxnStage.PUBLISH, self._seal), settle=self.worker.judge),
        ]

    def _settle(self) -> None:
        """In inspect mode what the stage made is judged at once, in fast mode with the seal."""
        if not self.fast:
            self.worker.judge()

    @property
    def private(self) -> Bank:
        """The working image."""
        return self.session.pair.private_bank

    def _reserve(self) -> None:
        """Admit the bytes, make room, and let the private bank catch up."""
        pair, private = self.session.pair, self.session.pair.private_bank
        admit(demand(self), self.session_bytes(), self.session.budget_bytes)
        private.catch_up(pair.public_bank)
        for owner in private.positional():
            owner.ensure(self.applied.history.n_cells)
        if not self.fast or self.session.audit_each or private.spoiled:
            private.evaluate()
        if self.session.audit_each:
            pair.compare()
        private.check()

    def session_bytes(self) -> int:
        """Bytes that both banks and the checkpoints use now."""
        banks = self.session.pair.banks
        stored = sum(o.n_bytes() for bank in banks for o in bank.owners.values())
        public = self.session.pair.public_bank
        return stored + sum(c.n_bytes for marks in public.checkpoints.values() for c in marks)

    @cached_property
    def at_once(self) -> int | None:
        """Bytes of the tables where all pieces of a chunk are one evaluation, else None.

        So it is in fast mode with small tables. A piece that writes while an earlier one still has
        to read makes the library copy the table; large ones are therefore evaluated piece by piece.
        """
        cells = [o.n_alloc for bank in self.session.pair.banks for o in bank.positional()]
        n_bytes = max(self.applied.history.n_cells, *cells) * self.private.cell_bytes()
        return n_bytes if self.fast and n_bytes <= AT_ONCE_BYTES else None

    def _load(self) -> None:
        """What is read from slots, other sequences and checkpoints is there and is whole."""
        for work in self.work:
            if isinstance(work, GoBack):
                self.worker.checkpoint_for(work)

    def _compress(self) -> None:
        """Regroup where the anchor moved, and let the device check the groups."""
        self.worker.regroup()
        regrouped = self.private.changes.regrouped
        self.worker.check_groups(skip=self._ran() - regrouped)

    def _index(self) -> None:
        """Every group row that the history implies stands in its table."""
        for owner in self.private.positional():
            if isinstance(owner, GroupOwner):
                self.worker.check_group_rows(owner)

    def _verify(self) -> None:
        """Counts, id hashes, history and finite owner rows of the private image.

        What the graph's stages made in this transaction was judged stage by stage.
        """
        self.private.check()
        self.worker.check_finite_owners(skip=self._ran())

    def _ran(self) -> set[Key]:
        """In fast mode: keys that the graph's stages have judged in this transaction."""
        if not self.fast:
            return set()
        return {work.key for work in self.work if isinstance(work, Piece)}

    def _seal(self) -> None:
        """The last evaluation, its judgement, and the hashes; then only the flip is left."""
        self.worker.last_fence()
        self.private.seal()
        self.private.txn = self.number

    # running

    @property
    def next_stage(self) -> str:
        """Name of the stage that `step` will execute, empty after the last."""
        return self.records[self.at].stage.name if self.at < len(self.records) else ""

    def step(self) -> StageRecord:
        """Execute one stage; after the last one the transaction is published.

        Raises: StepFailed (the image is discarded), InvariantBroken, KeyboardInterrupt.
        """
        record = self.records[self.at]
        record.state = "running"
        start = time.perf_counter_ns()
        try:
            if self.cancel.is_set():
                raise StepFailed(record.stage.name, FailKind.CANCEL, detail="asked to stop")
            record.stage.execute()
            if self.cancel.is_set():
                raise StepFailed(record.stage.name, FailKind.CANCEL, detail="asked to stop")
        except BaseException as error:
            record.time_ns = time.perf_counter_ns() - start
            raise self._failed(record, error) from error
        record.time_ns = time.perf_counter_ns() - start
        record.state = "done"
        self.at += 1
        if self.at == len(self.records):
            self.session.pair.flip()
            self.ended = True
        return record

    def _failed(self, record: StageRecord, error: BaseException) -> BaseException:
        """Discard, and say which stage failed in which way."""
        self.discard()
        failed = as_step_failure(record.stage.name, error)
        record.state = "failed"
        if isinstance(failed, StepFailed):
            if failed.kind is FailKind.STATUS:
                # the device's tables are not what the host thinks: nothing of them is used again
                self.private.spoiled = True
            if any(r.stage.name == failed.stage and r.state == "done" for r in self.records):
                record.state = "not reached"  # it only found out what an earlier stage did
            failed.op = failed.op or self.op.name
            failed.seq = failed.seq or record.stage.seq
            if record.state == "failed":
                record.fail_kind, record.detail = failed.kind, failed.detail
            for other in self.records:
                if other.stage.name == failed.stage and other.state == "done":
                    other.state, other.fail_kind = "failed", failed.kind
                    other.detail = failed.detail
        else:
            record.detail = str(error) or type(error).__name__
        for other in self.records[self.at + 1 :]:
            other.state = "not reached"
        return failed

    def discard(self) -> None:
        """Throw the private image away; nothing was published."""
        if not self.ended:
            self.ended = True
            self.worker.let_go()
            self.private.roll_back()

    def views(self) -> tuple[StageView, ...]:
        """Every stage with its state."""
        return tuple(record.view() for record in self.records)


def as_step_failure(stage: str, error: BaseException) -> BaseException:
    """A Python exception inside a stage as a failure of that stage.

    Errors of the engine and what ends a program (KeyboardInterrupt, SystemExit) stay themselves.
    """
    if isinstance(error, EngineError) or not isinstance(error, Exception):
        return error
    kind = FailKind.OOM if isinstance(error, MemoryError) else FailKind.STRUCTURAL
    return StepFailed(stage, kind, detail=f"{type(error).__name__}: {error}")
