"""Snapshots and records of a session on a model of mlx-lm."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from engine.effects import Appended, Applied
from engine.errors import Rejected, StepFailed
from engine.lm_views import owner_views, part_views
from engine.memory import default_budget
from engine.ops import Op
from engine.outcome import n_positions, outcome
from engine.snapshot import Digests, Record, SequenceView, SlotView, Snapshot, StageView

if TYPE_CHECKING:
    from engine.history import History
    from engine.lm_session import LmSession


def sequence_views(session: LmSession) -> tuple[SequenceView, ...]:
    """Every sequence with content. There are no groups: each position is one of its own."""
    return tuple(
        _sequence(session.history, seq, len(held.tokens), part_views(held))
        for seq, held in sorted(session.sequences.items())
        if held.tokens
    )


def trial_views(after: History) -> tuple[SequenceView, ...]:
    """The sequences as an op would leave them."""
    return tuple(
        _sequence(after, seq, held.run.n, ()) for seq, held in sorted(after.sequences.items())
    )


def _sequence(history: History, seq: int, n: int, parts: tuple[Any, ...]) -> SequenceView:
    return SequenceView(seq, 0, n, 1, n, 0, history.of(seq).extents, n, 0, 0, parts)


def slot_views(session: LmSession) -> tuple[SlotView, ...]:
    """Every saved state."""
    found = []
    for name, held in sorted(session.slots.items()):
        size = sum(int(layer["n_bytes"]) for layer in held.layers())
        found.append(SlotView(name, 0, len(held.tokens), len(held.tokens), size))
    return tuple(found)


def snapshot_of(session: LmSession) -> Snapshot:
    """The public state."""
    owners = owner_views(session.held, session.sealed)
    return Snapshot(
        session.n_records,
        session.number,
        session.flips,
        0,
        1,
        session.history.capacity,
        None,
        session.history.n_cells,
        sequence_views(session),
        slot_views(session),
        owners,
        session.backend,
        session.name,
        session.mode,
        "unproved",
        default_budget(session.backend),
        sum(view.n_bytes for view in owners),
        None,
        session.broken,
    )


def record_of(
    session: LmSession,
    op: Op,
    error: Rejected | StepFailed | None,
    before: Digests,
    duration_ns: int,
    *,
    txn: int | None = None,
    stages: tuple[StageView, ...] = (),
    applied: Applied | None = None,
) -> Record:
    """One journal line; the digests after it are the session's newest."""
    appended = [e for e in applied.effects if isinstance(e, Appended)] if applied else []
    common: dict[str, Any] = {
        "number": session.n_records,
        "txn": txn if not isinstance(error, Rejected) else None,
        "n_tokens": n_positions(op),
        "duration_ns": duration_ns,
        "public_bank": 0,
        "flips": session.flips,
        "stages": stages,
        "digests_before": before,
        "digests_after": session.sealed,
        "sequences": sequence_views(session),
        "wall_ns": time.time_ns(),
    }
    return outcome(op, error, appended, common)
