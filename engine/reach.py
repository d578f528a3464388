"""How far each op may go from here, with what a model adds to the limits of the history."""

from __future__ import annotations

from engine.bank import Bank
from engine.limits import Limit, limits
from engine.snapshot import LimitView
from engine.terms import Reason


def limit_views(bank: Bank, seq: int) -> tuple[LimitView, ...]:
    """The limits of one sequence as rows: op, nearest and farthest legal argument, and why."""
    known = limits(bank.history.value, seq)
    rows = [
        _row("append at", known.append_start, known.append_start.high),
        _row("append count", known.append_count, known.append_count.high),
        _row("evict_front", known.evict, known.evict.high),
        _back(bank, seq, "rewind", known.rewind),
        _shift("shift down", known.shift, -1, known.shift.low),
        _shift("shift up", known.shift, 1, known.shift.high),
        _back(bank, seq, "fork", known.fork),
    ]
    return tuple(rows)


def _row(op: str, limit: Limit, farthest: int | None) -> LimitView:
    if not limit.possible:
        return LimitView(op, None, None, f"{limit.below}{_why(limit.low_why)}")
    at_low = farthest == limit.low
    nearest = limit.high if at_low else limit.low
    reason, why = (limit.below, limit.low_why) if at_low else (limit.above, limit.high_why)
    return LimitView(op, nearest, farthest, f"{reason}{_why(why)}")


def _shift(op: str, limit: Limit, nearest: int, farthest: int | None) -> LimitView:
    """One direction of a shift; a shift by 0 is no way to go."""
    if farthest is None or farthest * nearest <= 0:
        farthest = nearest_or_none = None
    else:
        nearest_or_none = nearest
    reason, why = (limit.below, limit.low_why) if nearest < 0 else (limit.above, limit.high_why)
    return LimitView(op, nearest_or_none, farthest, f"{reason}{_why(why)}")


def _why(value: int | None) -> str:
    return "" if value is None else f": {value:,}"


def _back(bank: Bank, seq: int, op: str, limit: Limit) -> LimitView:
    """Rewind and fork: with a model evicted or moved positions end what can be replayed."""
    row = _row(op, limit, limit.low)
    if not bank.with_model or not limit.possible or limit.low is None:
        return row
    lineage = bank.tokens.of(seq)
    if lineage.evicted == 0:
        return row
    moved, counts = lineage.last_move(), {c.count for c in bank.checkpoints.get(seq, ())}
    first = bank.history.value.of(seq).run.start
    least = lineage.evicted + limit.low - first
    legal = {c for c in counts if least <= c} | {lineage.consumed}
    farthest = first + min(legal) - lineage.evicted
    if farthest <= limit.low:
        return row
    told = f"{Reason.NO_CHECKPOINT}: evicted or moved after token {moved:,}"
    return LimitView(op, limit.high, farthest, told)
