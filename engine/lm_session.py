"""A session on a model of mlx-lm: the same records and snapshots as `engine.engine.Engine` gives.

Whether an op is legal is decided by the same rules. What they allow is done by `engine.protect`:
an append is one transaction over all caches, going back is exact or refused. A model of mlx-lm
counts positions from 0 and can't move them, so what needs that is refused here.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from engine import lm_views
from engine.derive import tokens_for
from engine.effects import (
    AnyEffect,
    Appended,
    Applied,
    Copied,
    Evicted,
    Forked,
    ResetSeq,
    Restored,
    Saved,
    Shifted,
    Truncated,
)
from engine.errors import InvariantBroken, Malformed, Rejected, StepFailed
from engine.faults import Fault
from engine.history import History
from engine.lm_look import record_of, sequence_views, snapshot_of
from engine.lm_watch import Passage, Watch, stages_of
from engine.ops import Append, Fail, Op
from engine.outcome import op_text
from engine.progress import CancelToken
from engine.protect import ProtectedSession
from engine.rules import apply as apply_rules
from engine.snapshot import Digests, Record, SequenceView, Snapshot
from engine.terms import FailKind, Reason

IMMOVABLE: Final = "a model of mlx-lm counts positions from 0 and can't move them"
WHY_NOT: Final = {
    Evicted: f"{IMMOVABLE}: its caches drop old positions by themselves, or never",
    Shifted: IMMOVABLE,
    Copied: f"{IMMOVABLE}: copy from the first position onto an empty sequence, or fork",
}
Kept = tuple[dict[int, ProtectedSession], dict[str, ProtectedSession], History]
"""Sequences, slots and history before an edit."""
_KINDS: Final = {
    "structural": FailKind.STRUCTURAL,
    "nonfinite": FailKind.NONFINITE,
    "command": FailKind.COMMAND,
    "cancel": FailKind.CANCEL,
}


@dataclass(frozen=True, slots=True)
class Waiting:
    """An append that was judged and waits for `step`."""

    op: Append
    applied: Applied


class LmSession:
    """One model, its sequences, and what happened. Everything belongs to the thread that made it.

    Args:
        tokenizer: None when only ids are used.
        backend: name of the device, for the snapshots.
        capacity: the most live positions of one sequence.
        mode: `inspect` evaluates and times every layer, `fast` a chunk at a time.
        proofs: put digests into every record; without them only `digests` computes any.
    Raises: ProtectError when the weights can't be read.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any | None = None,
        *,
        name: str = "",
        backend: str = "cpu",
        capacity: int = 1 << 20,
        mode: str = "inspect",
        proofs: bool = True,
    ) -> None:
        try:
            self.history = History.empty(1, capacity)
        except ValueError as error:
            raise Malformed(name or "session", str(error)) from error
        self._blank = ProtectedSession(model, tokenizer)
        self.tokenizer, self.name, self.backend, self.mode = tokenizer, name, backend, mode
        self.sequences: dict[int, ProtectedSession] = {0: self._blank.fork()}
        self.slots: dict[str, ProtectedSession] = {}
        self.stage_names = stages_of(self._blank.n_layers)
        self._writes = lm_views.written_by(self._blank)
        self._watch = Watch(self._blank.model.layers)
        self._proofs = proofs
        self.sealed: Digests = self._digests()
        self.cancel = CancelToken()
        self.faults: list[Fault] = []
        self.open: Waiting | None = None
        self.number = self.flips = self.n_records = 0
        self.broken = ""
        self.new_logits: list[npt.NDArray[np.float32]] = []
        """[n, V] of the tokens that the last append consumed, one array a chunk."""
        self._begun_ns = 0
        self._undo: Kept | None = None

    # what the outside sees

    @property
    def n_vocabulary(self) -> int | None:
        """Token ids of the model, None when its configuration does not say."""
        return self._blank.n_vocabulary

    @property
    def held(self) -> dict[lm_views.Key, ProtectedSession]:
        """Sequences, then slots."""
        return lm_views.held_in_order(self.sequences, self.slots)

    @property
    def blank(self) -> ProtectedSession:
        """A new sequence on the model."""
        return self._blank.fork()

    def digests(self, *, layers_only: bool = False) -> Digests:
        """Of every owner, recomputed from the bytes."""
        return lm_views.digests(self.held, layers_only=layers_only)

    def _digests(self) -> Digests:
        return self.digests() if self._proofs else ()

    def snapshot(self) -> Snapshot:
        """The public state."""
        return snapshot_of(self)

    def views(self) -> tuple[SequenceView, ...]:
        """Every sequence with content."""
        return sequence_views(self)

    # ops

    def apply(self, op: Op) -> Record:
        """Do one op completely, and say what became of it. Raises: InvariantBroken."""
        if isinstance(op, Fail):
            return self._apply_fail(op)
        if isinstance(op, Append):
            refused = self.begin(op)
            return refused if refused is not None else self.step()
        self._begin()
        try:
            applied = self.judge(op)
            self._edit(op, applied)
        except (Rejected, StepFailed) as error:
            return self._record(op, error)
        self.history = applied.history
        self.number += 1
        self.flips += 1
        return self._record(op, None, txn=self.number)

    def _apply_fail(self, op: Fail) -> Record:
        names = [name for name, _ in self.stage_names]
        if op.stage not in names:
            raise Malformed(self.name, "stage of a fault", ", ".join(names), op.stage)
        fault = Fault(op.stage, FailKind(op.kind), 0 if op.times == "always" else op.times)
        self.faults.append(fault)
        try:
            return replace(self.apply(op.during), op=op.name, op_json=op_text(op))
        finally:
            self.faults.remove(fault)

    def judge(self, op: Op) -> Applied:
        """What the op would do; nothing is done. Raises: Rejected."""
        applied = apply_rules(self.history, op, self.n_records)
        if isinstance(op, Append):
            self._judge_append(op, applied)
            return applied
        if len(applied.effects) > 1:
            raise self._refuse(op, "one op at a time on a model of mlx-lm")
        for effect in applied.effects:
            self._judge_edit(op, effect)
        return applied

    def _judge_append(self, op: Append, applied: Applied) -> None:
        effect = applied.effects[0]
        assert isinstance(effect, Appended)
        n = self._n_of(op.seq)
        if effect.start != n or len(applied.effects) > 1:
            raise self._refuse(op, IMMOVABLE, expected=n, given=effect.start)
        top = self.n_vocabulary
        for offset, token in enumerate(op.tokens or ()):
            if token < 0 or (top is not None and token >= top):
                limit = f"from 0 to {top - 1}" if top is not None else "at least 0"
                detail = f"token at position {effect.start + offset} must be {limit}"
                raise Rejected(
                    op.name,
                    op.seq,
                    Reason.TOKEN,
                    None if top is None else top - 1,
                    token,
                    op_number=self.n_records,
                    detail=detail,
                )

    def _judge_edit(self, op: Op, effect: AnyEffect) -> None:
        whole_copy = isinstance(effect, Copied) and effect.onto_empty and effect.from_first
        if type(effect) in WHY_NOT and not whole_copy:
            movable = isinstance(effect, Evicted | Shifted)
            raise self._refuse(op, WHY_NOT[type(effect)], nearest=0 if movable else None)

    def _refuse(self, op: Op, detail: str, **numbers: int | None) -> Rejected:
        return Rejected(
            op.name,
            op.seq,
            Reason.NOT_DERIVABLE,
            op_number=self.n_records,
            detail=detail,
            **numbers,
        )

    def _n_of(self, seq: int) -> int:
        return self.history.of(seq).run.n

    def _edit(self, op: Op, applied: Applied) -> None:
        """Do the one effect of an op that adds no tokens.

        Raises: Rejected or StepFailed, and nothing changed.
        """
        for effect in applied.effects:
            kept = {k: s for k, s in self.sequences.items() if k != effect.seq}
            if effect.seq in self.sequences:
                kept[effect.seq] = self.sequences[effect.seq].fork()
            undo = (kept, dict(self.slots), self.history)
            self._do_effect(op, effect)
            self._undo = undo
            if effect.seq and not self._of(effect.seq).tokens:
                self.sequences.pop(effect.seq, None)

    def _do_effect(self, op: Op, effect: AnyEffect) -> None:
        sequences, slots = self.sequences, self.slots
        if isinstance(effect, Truncated):
            self._checked(op, sequences[effect.seq].rewind(effect.n_left))
        elif isinstance(effect, ResetSeq):
            sequences[effect.seq] = self.blank
        elif isinstance(effect, Forked):
            sequences[effect.seq] = self._forked(op, effect.src, effect.n)
        elif isinstance(effect, Copied):
            n = effect.stop - effect.start
            sequences[effect.seq] = self._forked(op, effect.src, n)
        elif isinstance(effect, Saved):
            slots[effect.slot] = self._of(effect.seq).fork()
        elif isinstance(effect, Restored):
            sequences[effect.seq] = slots[effect.slot].fork()

    def _of(self, seq: int) -> ProtectedSession:
        return self.sequences.get(seq) or self.blank

    def _forked(self, op: Op, src: int, n: int) -> ProtectedSession:
        from engine.protect import Refused

        try:
            return self._of(src).fork(n)
        except Refused as refusal:
            raise self._no_checkpoint(op, refusal.nearest, refusal.given, refusal) from refusal

    def _checked(self, op: Op, row: dict[str, Any]) -> None:
        """Turn a refusal of `protect` into ours."""
        if row["outcome"] == "rejected":
            raise self._no_checkpoint(op, row["nearest"], row["given"], row["error"])
        if row["outcome"] != "ok":
            kind = _KINDS[str(row["kind"])]
            raise StepFailed("load", kind, op.name, op.seq, str(row["error"]))

    def _no_checkpoint(self, op: Op, nearest: Any, given: Any, why: Any) -> Rejected:
        return Rejected(
            op.name,
            op.seq,
            Reason.NO_CHECKPOINT,
            given=given,
            nearest=nearest,
            op_number=self.n_records,
            detail=str(why),
        )

    def undo(self) -> Record | str:
        """Take the last edit back, or the sentence that says why that can't be."""
        if self._undo is None:
            n = self._n_of(0)
            return f"no edit op to undo: rewind instead, at most to position 0 of {n}"
        self._begin()
        self.sequences, self.slots, self.history = self._undo
        self._undo = None
        self.number += 1
        self.flips += 1
        record = self._record(Append(0, (0,)), None, txn=self.number)
        told = "undo: the state before the last edit"
        return replace(record, op="undo", op_json='{"op": "undo"}', n_tokens=0, sentence=told)

    # tokens

    def begin(self, op: Op) -> Record | None:
        """Judge an append that `step` then does; a record when it is refused."""
        self._begin()
        try:
            if not isinstance(op, Append):
                raise Malformed(self.name, "only an append is begun", "append", op.name)
            applied = self.judge(op)
        except Rejected as error:
            return self._record(op, error)
        self.open = Waiting(op, applied)
        return None

    def step(self) -> Record:
        """Do the whole append that was begun: one call of the model, one transaction."""
        assert self.open is not None
        op, applied = self.open.op, self.open.applied
        self.open = None
        self.number += 1
        tokens = op.tokens
        if tokens is None:
            ids = tokens_for(op.positions, self.n_vocabulary or 1)
            tokens = tuple(int(i) for i in ids)
        session = self._of(op.seq)
        passage = Passage(
            self.stage_names,
            op.seq,
            self.faults,
            self.cancel,
            self.mode == "inspect",
            len(session.tokens),
            self._writes,
        )
        failure = self._consume(session, tokens, passage)
        self.cancel.clear()
        if failure is None:
            self.sequences[op.seq] = session
            self.history = applied.history
            self.flips += 1
            self._undo = None
        stages = passage.views(failure)
        return self._record(op, failure, txn=self.number, stages=stages, applied=applied)

    def _consume(
        self, session: ProtectedSession, tokens: tuple[int, ...], passage: Passage
    ) -> StepFailed | None:
        """One chunk; the failure that took it back, or None."""
        kept: list[npt.NDArray[np.float32]] = []

        def verified(rows: npt.NDArray[np.float32]) -> None:
            passage.done("verify")
            kept.append(rows)
            passage.done("publish")

        self.new_logits = []
        n_after = len(session.tokens) + len(tokens)
        try:
            passage.done("reserve")
            with self._watch.on(passage):
                row = session.feed(tokens, chunk=len(tokens), on_logits=verified)
        except KeyboardInterrupt:
            # one that comes after the commit came too late for this chunk
            kept_it = len(session.tokens) == n_after
            row = {"outcome": "ok" if kept_it else "cancelled", "kind": "cancel", "error": ""}
        except StepFailed as failure:
            return failure
        if row["outcome"] == "ok":
            self.new_logits = kept
            return None
        if passage.failure is not None:
            return passage.failure
        kind = _KINDS[str(row["kind"])]
        stage = passage.fired or passage.at
        detail = str(row["error"]) if row["outcome"] != "cancelled" else "cancelled"
        return StepFailed(stage, kind, "append", detail=detail)

    def discard(self) -> Record:
        """Throw the append away that was begun."""
        if self.open is None:
            raise Malformed(self.name, "no transaction is open")
        op, self.open = self.open.op, None
        return self._record(op, StepFailed("reserve", FailKind.CANCEL, op.name, op.seq))

    # what became of it

    def _begin(self) -> None:
        if self.broken:
            raise InvariantBroken(f"this session stopped publishing: {self.broken}")
        self._begun_ns = time.perf_counter_ns()

    def _record(self, op: Op, error: Rejected | StepFailed | None, **facts: Any) -> Record:
        before, after = self.sealed, self._digests()
        if error is not None and before != after:
            changed = [name for (name, a), (_, b) in zip(before, after, strict=True) if a != b]
            self.broken = f"a refused {op.name} changed {', '.join(changed)}"
            raise InvariantBroken(self.broken)
        self.sealed = after
        duration = time.perf_counter_ns() - self._begun_ns
        record = record_of(self, op, error, before, duration, **facts)
        self.n_records += 1
        return record
