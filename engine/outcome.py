"""What became of an op, as a journal line: the same sentence and fields for every kind of session.

Knows no session, no bank and no array library.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from engine.effects import Appended
from engine.errors import Rejected, StepFailed
from engine.opjson import to_json
from engine.ops import Append, Fail, Op
from engine.ops import Transaction as Batch
from engine.snapshot import Record
from engine.terms import FailKind

LONG: Final = 64
"""A list of integers longer than this is told as first, last and count."""


def short_json(value: Any) -> Any:
    """An op as JSON with long integer lists shortened, for a journal line."""
    if isinstance(value, dict):
        return {key: short_json(part) for key, part in value.items()}
    if isinstance(value, list) and value and isinstance(value[0], int):
        n = len(value)
        return {"first": value[0], "last": value[-1], "count": n} if n > LONG else value
    return [short_json(part) for part in value] if isinstance(value, list) else value


def op_text(op: Op) -> str:
    """An op as JSON text, long lists shortened."""
    return json.dumps(short_json(to_json(op)), separators=(",", ":"))


def told(op: Op, appended: Sequence[Appended]) -> str:
    """A sentence for an op that was published."""
    if appended:
        n = sum(e.n for e in appended)
        first, last = appended[0].start, appended[-1].start + appended[-1].n - 1
        return f"{op.name} on sequence {op.seq}: {n:,} positions, {first:,} to {last:,}"
    return f"{op.name} on sequence {op.seq}"


def n_positions(op: Op) -> int:
    """Positions that an op asks to append."""
    if isinstance(op, Append):
        return len(op.positions)
    if isinstance(op, Batch):
        return sum(n_positions(inner) for inner in op.ops)
    return n_positions(op.during) if isinstance(op, Fail) else 0


def outcome(
    op: Op,
    error: Rejected | StepFailed | None,
    appended: Sequence[Appended],
    common: dict[str, Any],
) -> Record:
    """The record of an op.

    Args:
        error: why it was refused or failed, None when it was published.
        appended: its appends, in order. common: the fields that do not depend on the outcome.
    """
    common |= {"op": op.name, "seq": op.seq, "op_json": op_text(op)}
    if error is None:
        span = (appended[0].start, appended[-1].start + appended[-1].n) if appended else None
        return Record(
            result="ok",
            outcome="ok",
            sentence=told(op, appended),
            cells_written=tuple(extent for e in appended for extent in e.extents),
            positions_written=span,
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
    return Record(
        result=f"rejected: {error.kind}",
        outcome="cancelled" if error.kind is FailKind.CANCEL else "failed",
        sentence=str(error),
        stage=error.stage,
        kind=str(error.kind),
        reason=str(error.kind),
        bad_value=_bad_value(error),
        **common,
    )


def _bad_value(error: StepFailed) -> str:
    """Kind and place of the first bad value, empty where there is none."""
    bad = error.bad
    if bad is None:
        return ""
    where = f" position {bad.position}" if bad.position is not None else ""
    return f"{bad.kind} in {bad.owner or error.stage} sequence {bad.seq}{where}"
