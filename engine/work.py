"""Doing the work of a transaction on the private bank: effects, pieces, fences and their checks.

`Worker` owns what exists only while a transaction is in flight. It never touches the public bank.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, cast

import mlx.core as mx
import numpy as np

from engine.bank import Bank, Checkpoint
from engine.cells import cut
from engine.derive import CHECKPOINT_TOKENS, Arrive, Forget, GoBack, Piece, Quiet, Work
from engine.effects import (
    AnyEffect,
    Appended,
    Copied,
    Evicted,
    Forked,
    Moved,
    ResetSeq,
    Restored,
    Saved,
    Shifted,
    Truncated,
)
from engine.errors import InvariantBroken, StepFailed
from engine.history import History
from engine.judging import (
    Flag,
    check_finite_owners,
    is_finite,
    judge_values,
    probe_of,
    sentence_of,
)
from engine.owner import Key, Look
from engine.owners.groups import GroupOwner
from engine.plan import PlanStage
from engine.private import PrivateState
from engine.regroup import group_status, pooled_groups
from engine.stage import GroupCheck, Stage, Step
from engine.terms import FailKind

if TYPE_CHECKING:
    from engine.transaction import Transaction


@dataclass(slots=True)
class Worker:
    """The work in flight."""

    txn: Transaction
    flags: list[Flag] = field(default_factory=list)
    status: list[tuple[str, GroupCheck]] = field(default_factory=list)
    """(stage, verdict of the device) of those that were not read yet."""
    extras: list[tuple[str, mx.array]] = field(default_factory=list)
    """(stage, array) that the next evaluation must be able to make."""
    anchors: set[Key] = field(default_factory=set)
    """Keys whose groups must be made anew before anything reads them."""
    fresh: list[Checkpoint] = field(default_factory=list)
    """Checkpoints taken since the last fence; their arrays belong to its evaluation."""
    step: Step | None = None
    state: PrivateState | None = None
    done: int = 0
    """Items of the work list that are done."""
    bank: Bank = field(init=False)
    """The private bank."""

    def __post_init__(self) -> None:
        self.bank = self.txn.session.pair.private_bank

    @property
    def device(self) -> str:
        """Where kernels run: the model's backend, `cpu` for the references."""
        model = self.txn.session.model
        return model.backend.name if model is not None else "cpu"

    def let_go(self) -> None:
        """Drop every array of the chunk."""
        self.flags, self.status, self.extras, self.fresh = [], [], [], []
        self.step = self.state = None
        self.txn.logits.clear()

    # plan

    def graph_plan(self) -> list[PlanStage]:
        """Graph stages of all pieces, in order; other work is done on entering a piece."""
        plan: list[PlanStage] = []
        stages = self.txn.session.stages
        n_piece = 0
        for number, work in enumerate(self.txn.work):
            if not isinstance(work, Piece):
                continue
            for stage in stages:
                plan.append(
                    PlanStage(
                        stage.name,
                        "graph",
                        partial(self._run, stage),
                        partial(self._settle, stage, work),
                        seq=work.key,
                        piece=n_piece,
                        graph=stage,
                        step=self._the_step,
                    )
                )
            first = len(plan) - len(stages)
            plan[first] = replace(plan[first], enter=partial(self._enter, number, work))
            plan[-1] = replace(plan[-1], leave=partial(self._leave, work))
            n_piece += 1
        return plan

    def _the_step(self) -> Step:
        assert self.step is not None
        return self.step

    # pieces

    def _enter(self, number: int, piece: Piece) -> None:
        """Do the work that stands before a piece, then make its context."""
        self.catch_up_to(number)
        model = self.txn.session.model
        assert model is not None
        bank, key, n = self.bank, piece.key, len(piece.tokens)
        if piece.replay:
            lineage = bank.tokens.of(key)
            positions = lineage.positions(piece.at, piece.at + n)
            before = lineage.live_before(piece.at)
            new: tuple[tuple[int, int], ...] = ()
        else:
            effect = self.txn.applied.effects[piece.effect]
            assert isinstance(effect, Appended)
            start = effect.start + piece.offset
            if piece.offset == 0:
                self._begin_append(effect, piece)
            lineage = bank.tokens.of(key)
            before = lineage.n_live
            bank.tokens.write(key, lineage.appended(start, piece.tokens))
            positions = np.arange(start, start + n, dtype=np.int64)
            new = cut(effect.extents, piece.offset, piece.offset + n)
            bank.changes.cells.extend(new)
        held = bank.history.value.of(key)
        lineage = bank.tokens.of(key)
        look = Look(
            key,
            before + n,
            piece.at + n,
            lineage.log.hash,
            held.extents,
            bank.history.value.group_size,
        )
        first = int(positions[0]) - before
        self.state = PrivateState(bank, look, new, n, first, piece.replay)
        self.step = Step(model, piece.tokens, positions, before, first, piece.at, self.state)

    def _begin_append(self, effect: Appended, piece: Piece) -> None:
        bank = self.bank
        if not bank.history.value.of(piece.key).n:
            bank.history.set_origin(piece.key, effect.start)
        bank.history.set_value(self._after(piece.effect))
        bank.changes.touch(piece.key, piece.at)

    def _after(self, effect: int) -> History:
        state = self.txn.applied.states[effect]
        if state is None:
            raise InvariantBroken("history in the middle of a transaction", "one run", "pieces")
        return state

    def _run(self, stage: Stage) -> None:
        stage.run(self._the_step())

    def _settle(self, stage: Stage, piece: Piece) -> None:
        """Note what must be finite and zero; in inspect mode evaluate and judge at once."""
        step = self._the_step()
        probed = stage.probed if self.txn.fast else stage.floats
        probes = tuple([probe_of(step.values[name]) for name in probed])
        values = tuple([(name, step.values[name]) for name in stage.floats])
        self.flags.append(Flag(stage, probes, values, step, piece.key))
        self.status += [(stage.name, check) for check in step.status]
        step.status = []
        if not self.txn.fast:
            self.fence(stage.name)

    def _leave(self, piece: Piece) -> None:
        """Complete a piece: counts, checkpoint, logits, and the fence."""
        step, state = self._the_step(), self.state
        assert state is not None
        state.check_complete()
        bank, n = self.bank, len(piece.tokens)
        if self.txn.keep_logits and not piece.replay:
            self.txn.logits.append(step.values["logits"])
        if not piece.replay:
            bank.mark(piece.key)
        if (piece.at + n) % CHECKPOINT_TOKENS == 0:
            self._checkpoint(piece.key, piece.at + n)
        txn = self.txn
        wanted = piece.fence or (txn.fast and txn.at_once is None)
        # in fast mode the evaluation before the seal serves the last piece, too
        if wanted and not (txn.fast and self.done == len(txn.work)):
            self.fence("write")
        self.step = self.state = None

    def fence(self, stage: str, *more: mx.array) -> None:
        """One evaluation of everything in flight, then judge it.

        Raises: StepFailed of kind command (the evaluation), status or nonfinite.
        """
        kept = [v for c in self.fresh for _, values in c.values for v in values.values()]
        wanted = [probe for flag in self.flags for probe in flag.probes] + kept
        wanted += [check.word for _, check in self.status]
        wanted += self.txn.logits + [array for _, array in self.extras]
        if not self.txn.fast and self.step is not None:
            wanted += list(self.step.values.values())
        try:
            self.bank.evaluate(*wanted, *more)
        except (RuntimeError, ValueError) as error:
            planted = bool(self.extras)
            named = self.extras[0][0] if planted else stage
            self.let_go()
            detail = f"injected, the library says: {error}" if planted else str(error)
            raise StepFailed(named, FailKind.COMMAND, detail=detail, injected=planted) from error
        self.extras, self.fresh = [], []
        self.judge()

    def last_fence(self) -> None:
        """The evaluation before the seal: rows to hash, and words and probes not read yet.

        It always takes place: whatever was written, nothing unevaluated may become public.
        """
        self.fence("write" if self.flags else "publish", *self.bank.prepare())

    def judge(self) -> None:
        """Read every status word and probe. Raises: StepFailed of kind status or nonfinite."""
        checks, self.status = self.status, []
        flags, self.flags = self.flags, []
        if not checks and not flags:
            return
        mx.eval([check.word for _, check in checks], [flag.probes for flag in flags])
        for name, check in checks:
            word = cast(int, check.word.item())
            if word:
                detail = sentence_of(word, check)
                raise StepFailed(name, FailKind.STATUS, detail=detail, status_word=word)
        if not all(is_finite(probe) for flag in flags for probe in flag.probes):
            for flag in flags:
                judge_values(flag)

    # other work

    def catch_up_to(self, number: int) -> None:
        """Do every item of the work list before `number` that is not a piece."""
        while self.done < number:
            work = self.txn.work[self.done]
            self.done += 1
            self._do(work)
        if number < len(self.txn.work):
            self.done = number + 1
            piece = self.txn.work[number]
            if isinstance(piece, Piece) and piece.key in self.anchors:
                self.regroup()

    def finish_write(self) -> None:
        """What no piece waited for; without a model the history simply becomes the new one."""
        if self.txn.session.model is None:
            self._write_history()
            return
        self.catch_up_to(len(self.txn.work))
        self.bank.history.set_value(self.txn.applied.history)

    def _do(self, work: Work) -> None:
        if isinstance(work, GoBack):
            self._go_back(work)
        elif isinstance(work, Arrive):
            self._arrive(work)
        elif isinstance(work, Forget):
            self.bank.history.set_value(self._after(work.effect))
            self.bank.drop(work.key)
            self.anchors.discard(work.key)
        elif isinstance(work, Quiet):
            effect = self.txn.applied.effects[work.effect]
            self.bank.history.set_value(self._after(work.effect))
            self.apply_effect(effect)

    def apply_effect(self, effect: AnyEffect) -> None:
        """Everything but tokens: what an effect does to the owners of its sequence."""
        bank, key = self.bank, effect.seq
        if isinstance(effect, Evicted):
            self._event(key, "evict", effect.n)
            bank.changes.regrouped.add(key)
            if effect.n % bank.history.value.group_size:
                self.anchors.add(key)
        elif isinstance(effect, Shifted):
            self._event(key, "shift", effect.delta)
            origin = bank.history.origins.get(key, 0)
            bank.history.set_origin(key, origin + effect.delta if effect.whole else origin)
        elif isinstance(effect, (Forked, Copied)):
            self._copy(effect.src, key)
        elif isinstance(effect, ResetSeq):
            bank.drop(key)
        elif isinstance(effect, Saved):
            self._copy(key, effect.slot)
        elif isinstance(effect, Restored):
            self._copy(effect.slot, key)
        elif isinstance(effect, Moved):
            self._move(effect)

    def _event(self, key: Key, kind: str, value: int) -> None:
        bank = self.bank
        if bank.with_model:
            lineage = bank.tokens.of(key)
            bank.changes.touch(key, lineage.consumed)
            bank.tokens.write(key, lineage.with_event(kind, value))  # type: ignore[arg-type]

    def _copy(self, src: Key, dst: Key) -> None:
        self.bank.copy(src, dst)
        (self.anchors.add if src in self.anchors else self.anchors.discard)(dst)
        if src in self.bank.changes.regrouped:
            self.bank.changes.regrouped.add(dst)

    def _move(self, effect: Moved) -> None:
        """Compaction: gather all rows, then scatter them."""
        # noted first: each fence keeps what was moved so far, and a later place may still fail
        self.bank.changes.cells.extend((new, n) for _, new, n in effect.moves)
        for owner in self.bank.positional():
            for p in owner.places:
                # a slice would be a view, and the write would copy the whole table
                cells = [mx.arange(old, old + n, dtype=mx.int32) for old, _, n in effect.moves]
                rows = [mx.take(owner.tables[p.place], of, axis=0) for of in cells]
                self.fence("write", *rows)
                for (_, new, n), part in zip(effect.moves, rows, strict=True):
                    owner.write(p.place, ((new, n),), part)

    def _write_history(self) -> None:
        """Without a model: the runs and their origins; the value is whole at the end only."""
        bank = self.bank
        was_empty = {k for k in self._keys() if not bank.history.value.of(k).n}
        for effect in self.txn.applied.effects:
            if isinstance(effect, Appended):
                if effect.seq in was_empty:
                    bank.history.set_origin(effect.seq, effect.start)
            else:
                self.apply_effect(effect)
            empty = effect.is_whole and not isinstance(effect, Moved) and not effect.after.n
            (was_empty.add if empty else was_empty.discard)(effect.seq)
            bank.changes.touch(effect.seq, 0)
        bank.history.set_value(self.txn.applied.history)

    def _keys(self) -> set[int]:
        return {effect.seq for effect in self.txn.applied.effects}

    # going back in time

    def checkpoint_for(self, work: GoBack) -> Checkpoint | None:
        """The checkpoint that planning chose, None for the start of the sequence."""
        if work.origin == 0:
            return None
        for mark in self.bank.checkpoints.get(work.key, ()):
            if mark.count == work.origin:
                return mark
        return None

    def _go_back(self, work: GoBack) -> None:
        bank = self.bank
        mark = self.checkpoint_for(work)
        if mark is None and work.origin:
            raise InvariantBroken("checkpoint", f"one at {work.origin} tokens", "none")
        values = dict(mark.values) if mark else {}
        bank.changes.touch(work.key, work.count)
        for owner in bank.fixed():
            owner.replace(work.key, values.get(owner.name, {}))
        kept = tuple(c for c in bank.checkpoints.get(work.key, ()) if c.count <= work.count)
        bank.checkpoints[work.key] = kept

    def _arrive(self, work: Arrive) -> None:
        """The replay reached its target: clip the lineage and every mark."""
        bank = self.bank
        effect = self.txn.applied.effects[work.effect]
        bank.history.set_value(self._after(work.effect))
        if work.count == 0:
            bank.drop(work.key)
        else:
            bank.tokens.write(work.key, bank.tokens.of(work.key).clipped(work.count))
            bank.mark(work.key)
            bank.changes.touch(work.key, work.count)
        if isinstance(effect, Truncated) and not effect.n_left:
            bank.history.set_origin(work.key, None)

    def _checkpoint(self, key: Key, count: int) -> None:
        bank = self.bank
        values = tuple((o.name, dict(o.values.get(key, {}))) for o in bank.fixed())
        n_bytes = sum(v.nbytes for _, layers in values for v in layers.values())
        hashed = bank.tokens.of(key).clipped(count).log.hash
        mark = Checkpoint(count, hashed, values, n_bytes)
        others = [c for c in bank.checkpoints.get(key, ()) if c.count != count]
        ring = sorted((*others, mark), key=lambda c: c.count)
        bank.checkpoints[key] = tuple(ring[-self.txn.session.checkpoints_kept :])
        self.fresh.append(mark)

    # groups

    def regroup(self) -> None:
        """Make the groups of every key anew whose anchor moved."""
        model, anchors = self.txn.session.model, self.anchors
        self.anchors = set()
        if model is None:
            return
        bank = self.bank
        groups = cast(GroupOwner, bank.owners["qsa.groups"])
        for key in sorted(anchors, key=str):
            look = bank.look(key)
            bank.changes.regrouped.add(key)
            bank.changes.touch(key, look.consumed)
            bank.changes.cells.extend(look.extents)
            for p in groups.places:
                for first, pooled in pooled_groups(model, bank, look, p.layer):
                    groups.put(p.place, look, first, pooled)

    def check_groups(self, skip: Collection[Key] = ()) -> None:
        """The device looks at the groups of every changed key. Adds a status word a key.

        Args:
            skip: keys whose groups the graph's partition stage has looked at.
        """
        bank = self.bank
        if not bank.with_model:
            return
        looks = bank.looks()
        for key, dirty in bank.changes.dirty.items():
            if key in looks and looks[key].n_live and key not in skip:
                first = 0 if key in bank.changes.regrouped else max(0, dirty - looks[key].evicted)
                self.status.append(("compress", group_status(bank, looks[key], first, self.device)))

    def check_group_rows(self, owner: GroupOwner) -> None:
        """The table reaches every last member. Raises: InvariantBroken."""
        for look in self.bank.looks().values():
            top = max((cell + count for cell, count in look.extents), default=0)
            if owner.places and top > owner.n_alloc:
                raise InvariantBroken(
                    f"table of {owner.name}", f"at least {top} cells", f"{owner.n_alloc}"
                )

    def check_finite_owners(self, stage: str = "verify", skip: Collection[Key] = ()) -> None:
        """Values that lifecycle work made without a graph stage are finite, too."""
        check_finite_owners(self.bank, stage, skip)
