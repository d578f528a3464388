"""The engine: sequences behind two banks, one op a transaction, one record an op.

`apply` never raises for an illegal request or a failed stage: both come back as a record, and
both leave every public byte as it was. It raises `InvariantBroken` for a bug of ours, after which
nothing is published any more, and lets KeyboardInterrupt through once the image is discarded.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Literal

import mlx.core as mx
import numpy as np
import numpy.typing as npt

from engine import look
from engine.bank import Bank, BankPair
from engine.derive import Planner, Work
from engine.effects import Applied
from engine.errors import InvariantBroken, Malformed, Rejected, StepFailed
from engine.faults import Fault, wrap_with
from engine.history import History
from engine.memory import default_budget
from engine.ops import Append, Fail, Op
from engine.ops import Transaction as Batch
from engine.outcome import n_positions, op_text
from engine.owners import OWNERS
from engine.owners.layout import Layout, PartLayout
from engine.progress import CancelToken
from engine.rules import apply as apply_rules
from engine.rules import compact
from engine.snapshot import Digests, Record, Snapshot
from engine.terms import GROUP_SIZE, FailKind, Reason
from engine.transaction import Session, Transaction

if TYPE_CHECKING:
    from engine.graph.model import Model

CHECKPOINT_BYTES: Final = 256 << 20
Mode = Literal["inspect", "fast"]
MODES: Final = ("inspect", "fast")
Prove = Literal["always", "failures"]


def model_layout(model: Model | None) -> Layout:
    """Arrays of every owner for a model; none without one."""
    if model is None:
        return {}
    from engine.graph.owner_shapes import owner_shapes

    dtypes = {"float32": mx.float32, "int32": mx.int32, "int64": mx.int64, "model": model.dtype}
    found: dict[str, tuple[PartLayout, ...]] = {
        "history": (PartLayout(-1, "ordinal", (), mx.int32),)
    }
    for shape in owner_shapes(model.config):
        part = PartLayout(shape.layer, shape.part, shape.shape, dtypes[shape.dtype])
        found[shape.owner] = (*found.get(shape.owner, ()), part)
    return found


class Engine:
    """A session. Everything in it belongs to the thread that made it."""

    def __init__(
        self,
        model: Model | None = None,
        *,
        name: str = "",
        group_size: int | None = None,
        capacity: int = 1 << 20,
        window: int | None = None,
        budget_bytes: int | None = None,
        checkpoint_bytes: int = CHECKPOINT_BYTES,
        mode: Mode = "inspect",
        prove: Prove = "always",
        audit_each: bool = False,
        max_cells: int | None = None,
    ) -> None:
        """An empty session.

        Args:
            model: the decoder, or None for a history without contents.
            group_size: without a model; with one it must be the model's, or None.
            capacity: the most live positions of one sequence.
            budget_bytes: the most bytes of both banks, checkpoints and a chunk together.
            checkpoint_bytes: the most bytes of one sequence's checkpoints.
            prove: recompute digests from the bytes for every record, or only for refusals.
            audit_each: compare both banks from their bytes after each catch-up.
        Raises: Malformed when the sizes do not fit the model or each other.
        """
        if mode not in MODES:
            raise Malformed(name or "session", "mode", " or ".join(MODES), str(mode))
        default = GROUP_SIZE if group_size is None else group_size
        size = model.config.group_size if model else default
        if group_size not in (None, size):
            raise Malformed(name or "session", "group size", str(size), str(group_size))
        whole = isinstance(budget_bytes, int) and not isinstance(budget_bytes, bool)
        if budget_bytes is not None and not (whole and budget_bytes >= 0):
            raise Malformed(
                name or "session", "budget", "whole bytes, 0 or more", str(budget_bytes)
            )
        try:
            history = History.empty(size, capacity, window, max_cells)
        except ValueError as error:
            raise Malformed(name or "session", str(error)) from error
        layout = model_layout(model)
        banks = tuple(Bank.empty(history, layout, model is not None) for _ in range(2))
        stages: tuple[Any, ...] = ()
        kept = 1
        if model is not None:
            from engine.graph import graph_stages

            stages = graph_stages(model)
            fixed = [o for s in OWNERS for o in layout.get(s.name, ()) if s.unit == "sequence"]
            kept = max(1, checkpoint_bytes // max(1, sum(p.n_bytes for p in fixed)))
        self.layout, self.model, self.name = layout, model, name
        self.mode: Mode = mode
        self.prove: Prove = prove
        if budget_bytes is None:
            budget_bytes = default_budget(model.backend.name if model else "cpu")
        self.pair = BankPair((banks[0], banks[1]))
        self.session = Session(self.pair, model, stages, budget_bytes, kept, audit_each)
        self.cancel = CancelToken()
        self.faults: list[Fault] = []
        self.open: Transaction | None = None
        self.number = 0
        """Number of the last transaction that was begun."""
        self.flips = 0
        self.n_records = 0
        self.broken = ""
        self.exact = "not checked"
        self._begun_ns = 0
        self._before: Digests = ()

    # one op

    def apply(self, op: Op, *, op_number: int = 0, sink: npt.NDArray[Any] | None = None) -> Record:
        """Execute one op completely, and say what became of it.

        Args:
            op_number: number of the op in its scenario, for refusals.
            sink: [n, V] float32, gets the logits of every appended token after the flip; it is
                untouched by a refusal.
        Raises: InvariantBroken; KeyboardInterrupt, and the op is published whole or not at all;
            Malformed for a `Fail` at a stage that the op in flight does not have; ValueError for
            a sink that cannot take the logits.
        """
        if sink is not None:
            self._check_sink(sink, n_positions(op))
        before = self.open
        try:
            if isinstance(op, Fail):
                return self._apply_fail(op, op_number)
            refused = self.begin(op, op_number=op_number, keep_logits=sink is not None)
            record = self.finish() if refused is None else refused
        except BaseException:
            if self.open is not before:  # interrupted between two stages
                self._let_go()
            raise
        if record.outcome == "ok" and sink is not None:
            self._fill(sink)
        return record

    def _check_sink(self, sink: npt.NDArray[Any], n: int) -> None:
        """After the flip nothing may fail: a buffer that cannot take the logits is refused now."""
        width = self.model.config.vocab_size if self.model is not None else 0
        fits = sink.ndim == 2 and sink.shape[0] >= n and sink.shape[1] == width
        if not fits or sink.dtype != np.float32 or not sink.flags.writeable:
            raise ValueError(
                f"sink: expected a writable float32 buffer of at least {n} x {width}, "
                f"given {sink.dtype} {' x '.join(map(str, sink.shape))}"
            )

    def _fill(self, sink: npt.NDArray[Any]) -> None:
        at = 0
        for rows in self._logits:
            sink[at : at + len(rows)] = rows
            at += len(rows)

    def _apply_fail(self, op: Fail, op_number: int) -> Record:
        """Try the op in flight with the fault armed; disarm it afterwards, fired or not."""
        times = 0 if op.times == "always" else op.times
        fault = Fault(op.stage, FailKind(op.kind), times)
        self.faults.append(fault)
        try:
            refused = self.begin(op.during, op_number=op_number)
            if refused is not None:
                return replace(refused, op=op.name, op_json=op_text(op))
            assert self.open is not None
            if all(r.stage.name != op.stage for r in self.open.records):
                names = dict.fromkeys(r.stage.name for r in self.open.records)
                self.discard()
                what = f"op {op_number} (fail): {op.during.name} has no such stage"
                raise Malformed(self.name or "scenario", what, ", ".join(names), op.stage)
            while True:
                record = self.step()
                if record is not None:
                    return replace(record, op=op.name, op_json=op_text(op))
        finally:
            self.faults.remove(fault)

    # step by step

    def begin(self, op: Op, *, op_number: int = 0, keep_logits: bool = False) -> Record | None:
        """Open a transaction; a record when the op is refused before its first stage."""
        self._usable()
        self._begun_ns = time.perf_counter_ns()
        self._logits: list[npt.NDArray[Any]] = []
        recompute = self.prove == "always"
        self._before = self.pair.public_bank.digests(recompute=recompute)
        try:
            self.require_idle(op.name)
            if isinstance(op, Fail):
                raise Malformed(self.name or "session", "a fail op is not a step of its own")
            applied, work = self.judge(op, op_number)
        except Rejected as error:
            return self._record(op, error, None)
        self._begin(op, applied, work, keep_logits)
        return None

    def _begin(self, op: Op, applied: Applied, work: list[Work], keep_logits: bool) -> None:
        self.number += 1
        self.open = Transaction(
            self.session,
            self.number,
            op,
            applied,
            work,
            self.mode == "fast",
            self.cancel,
            keep_logits=keep_logits,
        )
        wrap = wrap_with(self.faults, self.open)
        if wrap is not None:
            self.open.rewrap(wrap)

    def judge(self, op: Op, op_number: int = 0) -> tuple[Applied, list[Work]]:
        """Whether an op is legal here, and its work; nothing is done. Raises: Rejected."""
        public = self.pair.public_bank
        applied = apply_rules(public.history.value, op, op_number)
        if self.model is None:
            return applied, []
        planner = Planner(public, op, op_number, self.session.checkpoints_kept)
        return applied, planner.plan(applied, self.model.config.vocab_size)

    def step(self) -> Record | None:
        """Execute one stage of the open transaction; a record when it has ended.

        Raises: InvariantBroken, KeyboardInterrupt (the transaction is discarded).
        """
        txn = self.open
        if txn is None:
            raise Malformed(self.name or "session", "no transaction is open")
        try:
            txn.step()
        except (Rejected, StepFailed) as error:
            return self._end(txn, error)
        except InvariantBroken as error:
            self.broken = str(error)
            self._end(txn, StepFailed(txn.next_stage, FailKind.STRUCTURAL, detail=str(error)))
            raise
        except BaseException:
            self._let_go()
            raise
        if not txn.ended:
            return None
        self.flips += 1
        self._logits = [np.array(rows) for rows in txn.logits]
        return self._end(txn, None)

    def _let_go(self) -> None:
        """Nobody will go on with the open transaction."""
        if self.open is not None:
            self.open.discard()
        self.open = None
        self.cancel.clear()

    def _end(self, txn: Transaction, error: Rejected | StepFailed | None) -> Record:
        self.open = None
        self.cancel.clear()
        return self._record(txn.op, error, txn)

    def finish(self) -> Record:
        """Execute the rest of the open transaction."""
        while True:
            record = self.step()
            if record is not None:
                return record

    def discard(self) -> Record:
        """Throw the open transaction away, as a cancel would."""
        txn = self.open
        if txn is None:
            raise Malformed(self.name or "session", "no transaction is open")
        stage = txn.next_stage
        txn.discard()
        for record in txn.records[txn.at :]:
            record.state = "not reached"
        failure = StepFailed(stage, FailKind.CANCEL, txn.op.name, txn.op.seq, "discarded")
        return self._end(txn, failure)

    def undo(self) -> Record | str:
        """Publish the state before the last transaction again: the other bank still holds it.

        Returns a record, or the sentence that says why it is not there any more.
        """
        self._usable()
        pair = self.pair
        other = pair.private_bank
        if self.open is not None:
            return "a transaction is open: finish or discard it first"
        if other.spoiled or other.touched.dirty or other.touched.cells or other.txn < 0:
            return "the other bank was used by an attempt since: the earlier state is gone"
        if other.txn == pair.public_bank.txn:
            return "nothing to undo: both banks hold the same state"
        self._begun_ns = time.perf_counter_ns()
        self._before = pair.public_bank.digests(recompute=True)
        undone = pair.public_bank
        self.number += 1
        # noted first: an interrupt after the flip must not leave a bank that seems to lack nothing
        undone.touched.merge(undone.changes)
        undone.txn = -1
        pair.flip()
        self.flips += 1
        record = self._record(Append(0, (0,)), None, None)
        return replace(
            record,
            txn=self.number,
            op="undo",
            op_json='{"op": "undo"}',
            sentence="undo: the state before the last transaction is public again",
            n_tokens=0,
        )

    def require_idle(self, what: str) -> None:
        """Raises: Rejected as busy while a transaction is open."""
        self._usable()
        if self.open is not None:
            detail = f"transaction {self.open.number} is open: finish or discard it"
            raise Rejected(what, self.open.op.seq, Reason.BUSY, detail=detail)

    def publish_loaded(self) -> None:
        """Flip to a private bank that was filled from a file, checked and sealed."""
        self.number += 1
        self.pair.private_bank.txn = self.number
        self.pair.flip()
        self.flips += 1
        # the other bank holds another session: everything of it is stale
        self.pair.private_bank.spoiled = True

    def compact(self) -> Record:
        """Move live cells to the front; no sequence changes. Refused while one is open."""
        self._usable()
        op = Batch(())
        named: dict[str, Any] = {"op": "compact", "op_json": '{"op": "compact"}'}
        self._begun_ns = time.perf_counter_ns()
        self._before = self.pair.public_bank.digests(recompute=self.prove == "always")
        try:
            self.require_idle("compact")
        except Rejected as error:
            return replace(self._record(op, error, None), **named)
        self._logits = []
        applied = compact(self.pair.public_bank.history.value)
        work: list[Work] = look.quiet_work(applied) if self.model is not None else []
        try:
            self._begin(op, applied, work, False)
            return replace(self.finish(), **named)
        except BaseException:
            if self.open is not None:  # interrupted between two stages
                self._let_go()
            raise

    def _usable(self) -> None:
        if self.broken:
            raise InvariantBroken(f"this session stopped publishing: {self.broken}")

    # what became of it

    def _record(
        self, op: Op, error: Rejected | StepFailed | None, txn: Transaction | None
    ) -> Record:
        public = self.pair.public_bank
        if error is None and txn is None:
            after = public.digests(recompute=True)
        else:
            after = public.digests(recompute=self.prove == "always" or error is not None)
        if error is not None and after != self._before:
            self.broken = (
                f"a refused {op.name} changed {look.first_difference(self._before, after)}"
            )
            raise InvariantBroken(self.broken)
        record = look.record_of(
            self, op, error, txn, self._before, after, time.perf_counter_ns() - self._begun_ns
        )
        self.n_records += 1
        return record

    def digests(self, *, recompute: bool = True, by_layer: bool = False) -> Digests:
        """Digests of the public bank, recomputed from the bytes unless told otherwise."""
        return self.pair.public_bank.digests(recompute=recompute, by_layer=by_layer)

    def snapshot(self) -> Snapshot:
        """The public state and what is known of the private bank."""
        return look.snapshot_of(self)

    def audit(self) -> None:
        """Recompute every digest and compare it with the sealed one.

        Raises: InvariantBroken naming the first owner that differs.
        """
        sealed, found = self.digests(recompute=False), self.digests()
        for (name, left), (_, right) in zip(sealed, found, strict=True):
            if left != right:
                raise InvariantBroken(f"sealed digest of {name}", left, right)
        self.pair.public_bank.check()

    @property
    def stage_names(self) -> tuple[tuple[str, str], ...]:
        """(name, kind) of every stage that an append has, `write` before its graph stages."""
        from engine.terms import TxnStage

        names: list[tuple[str, str]] = []
        for stage in TxnStage:
            names.append((str(stage), "transaction"))
            if stage is TxnStage.WRITE:
                names += [(graph.name, "graph") for graph in self.session.stages]
        return tuple(names)

    def logits(self, seq: int) -> npt.NDArray[np.float32] | None:
        """[V] logits of the last token of a sequence, None where there are none."""
        from engine.owners.fixed import FixedOwner

        owner = self.pair.public_bank.owners.get("logits")
        return owner.host(seq, -1) if isinstance(owner, FixedOwner) else None


def append(seq: int, start: int, tokens: Sequence[int], chunk: int | None = None) -> Append:
    """An append of tokens at consecutive positions from `start`."""
    return Append(seq, range(start, start + len(tokens)), tokens, chunk)
