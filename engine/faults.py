"""Faults that a person or a test arms: a plan is wrapped by them, and never knows of them.

Where the real thing can be had cheaply it is used: a NaN in a real intermediate, a status word of
the kernel that really found a hole, a refusal of the real admission, an evaluation that the
array library really cannot finish.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING, Final

import mlx.core as mx
import numpy as np

import metal
from engine.admission import admit
from engine.errors import StepFailed
from engine.owners.fixed import FixedOwner
from engine.plan import PlanStage, Wrap
from engine.stage import GroupCheck
from engine.terms import FailKind

if TYPE_CHECKING:
    from engine.transaction import Transaction

IMPOSSIBLE_BYTES: Final = 1 << 60


@dataclass(slots=True)
class Fault:
    """Makes a stage fail after it ran: `times` times (0: always), after `skip` passes."""

    stage: str
    kind: FailKind
    times: int = 1
    skip: int = 0
    fired: int = 0
    passed: int = 0
    nth: int | None = None
    """Where set, the stage with this number in the plan, whatever its name."""

    @property
    def spent(self) -> bool:
        """True when it will not fire again."""
        return bool(self.times) and self.fired >= self.times

    def due(self) -> bool:
        """Count a pass of the stage; True when the fault fires now."""
        if self.spent:
            return False
        if self.passed < self.skip:
            self.passed += 1
            return False
        self.fired += 1
        return True


def wrap_with(faults: Iterable[Fault], txn: Transaction) -> Wrap | None:
    """Wraps stages that have a fault armed; None when nothing is armed."""
    armed = [fault for fault in faults if not fault.spent]
    if not armed:
        return None

    numbers = count()

    def wrap(stage: PlanStage) -> PlanStage:
        number = next(numbers)
        for fault in armed:
            if fault.nth == number or (fault.nth is None and fault.stage == stage.name):
                stage = _wrapped(stage, fault, txn)
        return stage

    return wrap


def _wrapped(stage: PlanStage, fault: Fault, txn: Transaction) -> PlanStage:
    kind = fault.kind
    before = stage.graph is not None and stage.graph.poison_before

    def run() -> None:
        fires = fault.due()
        if fires and kind is FailKind.NONFINITE and before:
            _poison(stage)
        stage.run()
        if not fires:
            stage.settle()
            return
        if kind is FailKind.NONFINITE and not before:
            _poison(stage) if stage.graph else _poison_owner(stage, txn)
        elif kind is FailKind.STATUS:
            txn.worker.status.append((stage.name, _hole_word(txn.worker.device)))
        elif kind is FailKind.COMMAND:
            _cut_command(stage, txn)
        stage.settle()
        _raise_after(stage, kind, txn)

    return replace(stage, run=run, settle=_settled)


def _settled() -> None:
    """The wrapped `run` has settled already."""


def _raise_after(stage: PlanStage, kind: FailKind, txn: Transaction) -> None:
    """Kinds that fail once the stage's own work is done and judged."""
    if kind is FailKind.STRUCTURAL:
        raise StepFailed(stage.name, kind, detail="injected", injected=True)
    if kind is FailKind.OOM:
        _ask_too_much(stage, txn)
    if kind is FailKind.CANCEL:
        txn.cancel.set()
    if kind is FailKind.COMMAND and (stage.graph is None or not txn.fast):
        txn.worker.fence(stage.name)
    if kind is FailKind.NONFINITE and stage.graph is None:
        txn.worker.check_finite_owners(stage.name)


def _ask_too_much(stage: PlanStage, txn: Transaction) -> None:
    """A real refusal of an impossible number of bytes, which says that it was asked for."""
    try:
        admit(IMPOSSIBLE_BYTES, txn.session_bytes(), txn.session.budget_bytes, stage.name)
    except StepFailed as error:
        error.detail, error.injected = f"injected, {error.detail}", True
        raise


def _poison(stage: PlanStage) -> None:
    """One NaN in the first live row of the stage's output: the streams, where it adds to them,
    else (and before an integer choice) the value that the stage names."""
    assert stage.graph is not None
    assert stage.step is not None
    step, name = stage.step(), stage.graph.poison
    if "streams" in stage.graph.floats and not stage.graph.poison_before:
        name = "streams"
    value = step.values[name]
    row = step.lead if value.shape[0] == step.n_rows else 0
    mask = np.zeros(value.shape, np.float32)
    mask[(row, *(0,) * (value.ndim - 1))] = np.nan
    step.values[name] = value + mx.array(mask).astype(value.dtype)


def _poison_owner(stage: PlanStage, txn: Transaction) -> None:
    """One NaN in a value of the private image: the last-token logits of a sequence."""
    private = txn.private
    owner = private.owners.get("logits")
    keys = [k for k in (*private.changes.dirty, *private.sequence_looks()) if isinstance(k, int)]
    if isinstance(owner, FixedOwner):
        for key in keys:
            value = owner.get(key, -1)
            if value is not None:
                owner.write(key, -1, value + float("nan"))
                private.changes.touch(key, private.look(key).consumed)
                return
    raise StepFailed(
        stage.name, FailKind.NONFINITE, detail="injected: no float to spoil yet", injected=True
    )


def _hole_word(device: str) -> GroupCheck:
    """The verdict on positions 0, 1, 3, 4 in one group, found by the kernel itself."""
    word, part = metal.run(
        "group_status",
        mx.array(np.array([0, 1, 3, 4], np.int32)),
        mx.array(np.array([0], np.int32)),
        mx.array(np.array([0], np.int32)),
        backend=device,
        tail_start=4,
        frontier=4,
        group_size=4,
    )
    return GroupCheck(word, lambda: int(part.item()), 0, 5, 4)


def _cut_command(stage: PlanStage, txn: Transaction) -> None:
    """The next evaluation must make an array that it cannot make."""
    txn.worker.extras.append((stage.name, unfinished()))


def unfinished() -> mx.array:
    """A lazy array whose evaluation raises: the library has this product for float32 only.

    It raises before its work is queued. A file that was cut raises inside the queue, and then
    (MLX 0.32.4, CPU) a task may stay counted as running; `engine.tensor_file` says what follows.
    """
    half = mx.ones((32, 32), mx.float16)
    whole = mx.ones((1, 1), mx.bool_)
    return mx.block_masked_mm(half, half, 32, whole, stream=mx.cpu)
