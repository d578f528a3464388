"""Snapshots and records: frozen values made from a session for the outside."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from engine.bank import Bank
from engine.cells import n_cells_in
from engine.derive import Quiet, Work
from engine.effects import Appended, Applied
from engine.errors import Rejected, StepFailed
from engine.ops import Op
from engine.outcome import n_positions, outcome
from engine.owner import Look
from engine.owners import OWNERS
from engine.owners.positional import PositionalOwner
from engine.snapshot import (
    Digests,
    OpenView,
    OwnerView,
    PartView,
    Record,
    SequenceView,
    SlotView,
    Snapshot,
)

if TYPE_CHECKING:
    from engine.engine import Engine
    from engine.transaction import Transaction


def quiet_work(applied: Applied) -> list[Work]:
    """Work for effects that run no tokens."""
    return [Quiet(number) for number in range(len(applied.effects))]


def first_difference(before: Digests, after: Digests) -> str:
    """Name of the first owner whose digest differs."""
    return next((a for (a, x), (_, y) in zip(before, after, strict=False) if x != y), "nothing")


def sequence_views(bank: Bank, seqs: set[int] | None = None) -> tuple[SequenceView, ...]:
    """Every sequence with content, by number; of `seqs` the empty ones, too."""
    looks = bank.sequence_looks()
    keys = sorted({k for k in looks if isinstance(k, int)} | (seqs or set()))
    return tuple(sequence_view(bank, key) for key in keys)


def sequence_view(bank: Bank, key: int) -> SequenceView:
    """One sequence."""
    look, history = bank.look(key), bank.history.value
    run = history.of(key).run
    origin = bank.history.origins.get(key, run.start)
    evicted = look.evicted if bank.with_model else max(0, run.start - origin)
    return SequenceView(
        key,
        run.start,
        run.stop,
        history.group_size,
        look.n_groups,
        look.n_live - look.n_groups * history.group_size,
        look.extents,
        look.consumed if bank.with_model else look.n_live + evicted,
        evicted if look.n_live or look.consumed else 0,
        max(0, run.start - evicted) if look.n_live else 0,
        part_views(bank, look, run.start),
    )


def trial_sequences(bank: Bank, applied: Applied) -> tuple[SequenceView, ...]:
    """Every sequence as an op would leave it; nothing was done."""
    after = applied.history
    keys = sorted(set(after.sequences) | set(bank.history.value.sequences))
    found = []
    for key in keys:
        held, size = after.of(key), after.group_size
        n = held.run.n
        found.append(
            SequenceView(
                key, held.run.start, held.run.stop, size, n // size, n % size, held.extents, 0, 0, 0
            )
        )
    return tuple(found)


def part_views(bank: Bank, look: Look, start: int) -> tuple[PartView, ...]:
    """How far every owner reaches for one key."""
    found: list[PartView] = []
    counted = 0 if bank.with_model else look.n_live
    for owner in bank.owners.values():
        mark = owner.marks.get(look.key)
        reach = owner.reach(look, start, mark.consumed if mark else counted)
        found += [PartView(owner.name, layer, *reach) for layer in owner.part_layers()]
    return tuple(found)


def owner_views(engine: Engine, by_layer: bool = True) -> tuple[OwnerView, ...]:
    """Every owner in both banks, from sealed digests."""
    pair = engine.pair
    public, private = pair.public_bank, pair.private_bank
    sealed = dict(public.digests())
    layers: dict[str, list[tuple[int, str]]] = {}
    if by_layer:
        for name, value in public.digests(by_layer=True):
            base, _, layer = name.partition(".layer.")
            if layer:
                layers.setdefault(base, []).append((int(layer), value))
    open_txn = engine.open is not None
    stale = private.txn != public.txn or private.spoiled or bool(private.touched.dirty)
    state = "in flight" if open_txn else "stale" if stale else "same"
    if open_txn and engine.open is not None and engine.open.next_stage == "":
        state = "sealed"
    n_stale = n_cells_in(tuple(public.changes.cells)) if stale else 0
    units = {spec.name: spec.unit for spec in OWNERS}
    return tuple(
        OwnerView(
            name,
            units[name],
            owner.n_bytes(),
            sealed[name],
            sealed[name] if state == "same" else "",
            state,
            n_stale if isinstance(owner, PositionalOwner) else 0,
            tuple(layers.get(name, ())),
        )
        for name, owner in public.owners.items()
    )


def slot_views(bank: Bank) -> tuple[SlotView, ...]:
    """Every slot."""
    found = []
    for name, held in sorted(bank.history.value.slots.items()):
        look = bank.look(name)
        row_bytes = sum(p.n_bytes for o in bank.positional() for p in o.places)
        fixed = sum(v.nbytes for o in bank.fixed() for v in o.values.get(name, {}).values())
        size = row_bytes * look.n_live + fixed
        found.append(SlotView(name, held.run.start, held.run.stop, look.consumed, size))
    return tuple(found)


def open_view(engine: Engine) -> OpenView | None:
    """The transaction in flight."""
    txn = engine.open
    if txn is None:
        return None
    appended = [e for e in txn.applied.effects if isinstance(e, Appended)]
    extents = tuple(extent for e in appended for extent in e.extents)
    start = appended[0].start if appended else 0
    stop = appended[-1].start + appended[-1].n if appended else 0
    n = sum(e.n for e in appended)
    return OpenView(txn.number, txn.op.name, txn.op.seq, n, start, stop, extents, txn.next_stage)


def snapshot_of(engine: Engine) -> Snapshot:
    """The public state, and what is known of the private bank."""
    bank, history = engine.pair.public_bank, engine.pair.public_bank.history.value
    used = sum(o.n_bytes() for b in engine.pair.banks for o in b.owners.values())
    used += sum(c.n_bytes for marks in bank.checkpoints.values() for c in marks)
    return Snapshot(
        engine.n_records,
        bank.txn,
        engine.flips,
        engine.pair.public,
        history.group_size,
        history.capacity,
        history.window,
        history.n_cells,
        sequence_views(bank),
        slot_views(bank),
        owner_views(engine),
        engine.model.backend.name if engine.model else "none",
        engine.name,
        engine.mode,
        engine.exact,
        engine.session.budget_bytes,
        used,
        open_view(engine),
        engine.broken,
    )


def record_of(
    engine: Engine,
    op: Op,
    error: Rejected | StepFailed | None,
    txn: Transaction | None,
    before: Digests,
    after: Digests,
    duration_ns: int,
) -> Record:
    """One journal line."""
    appended = [e for e in txn.applied.effects if isinstance(e, Appended)] if txn else []
    common: dict[str, Any] = {
        "number": engine.n_records,
        "txn": txn.number if txn else None,
        "n_tokens": sum(e.n for e in appended) if txn else n_positions(op),
        "duration_ns": duration_ns,
        "public_bank": engine.pair.public,
        "flips": engine.flips,
        "stages": txn.views() if txn else (),
        "digests_before": before,
        "digests_after": after,
        "sequences": sequence_views(engine.pair.public_bank),
        "wall_ns": time.time_ns(),
    }
    return outcome(op, error, appended, common)
