"""Snapshots and records of a session on a model of mlx-lm."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

from engine.admission import default_budget
from engine.effects import Appended, Applied
from engine.errors import Rejected, StepFailed
from engine.lm_views import owner_views, part_views
from engine.look import n_positions, short_json, told
from engine.opjson import to_json
from engine.ops import Op
from engine.snapshot import Digests, Record, SequenceView, SlotView, Snapshot, StageView
from engine.terms import FailKind

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
        default_budget(),
        sum(view.n_bytes for view in owners),
        None,
        session.broken,
    )


def op_text(op: Op) -> str:
    """An op as JSON, long lists shortened."""
    return json.dumps(short_json(to_json(op)), separators=(",", ":"))


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
        "op": op.name,
        "seq": op.seq,
        "op_json": op_text(op),
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
    if error is None:
        return Record(
            result="ok",
            outcome="ok",
            sentence=told(op, appended),
            cells_written=tuple(extent for e in appended for extent in e.extents),
            positions_written=(appended[0].start, appended[0].start + appended[0].n)
            if appended
            else None,
            **common,
        )
    if isinstance(error, Rejected):
        return Record(
            result=f"rejected: {error.reason}",
            outcome="rejected",
            sentence=str(error),
            reason=str(error.reason),
            expected=error.expected,
            given=error.given,
            nearest=error.nearest,
            **common,
        )
    return _failed(error, common)


def _failed(error: StepFailed, common: dict[str, Any]) -> Record:
    bad, value = error.bad, ""
    if bad is not None:
        where = f" position {bad.position}" if bad.position is not None else ""
        value = f"{bad.kind} in {bad.owner or error.stage} sequence {bad.seq}{where}"
    return Record(
        result=f"rejected: {error.kind}",
        outcome="cancelled" if error.kind is FailKind.CANCEL else "failed",
        sentence=str(error),
        stage=error.stage,
        kind=str(error.kind),
        reason=str(error.kind),
        bad_value=value,
        **common,
    )
