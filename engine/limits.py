"""How far one may go from here, and why not further.

Each limit is the range of legal arguments of one op, with the reason that the rules give just
outside of it. Only the history is asked; a model may refuse more (`not-derivable`,
`no-checkpoint`).
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.cells import n_cells_in
from engine.history import History
from engine.ops import Append
from engine.rules import judge
from engine.run import Run
from engine.terms import MAX_POSITION, Reason


@dataclass(frozen=True, slots=True)
class Limit:
    """Legal values `low` to `high`, both in; both None when no value is legal."""

    low: int | None
    high: int | None
    below: Reason
    """Why one less than `low` is refused (or any value, when none is legal)."""
    above: Reason
    """Why one more than `high` is refused."""
    low_why: int | None = None
    """What stands in the way below: a position, count or capacity."""
    high_why: int | None = None
    """What stands in the way above."""

    @property
    def possible(self) -> bool:
        return self.low is not None


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one sequence."""

    seq: int
    run: Run
    append_start: Limit
    """First position of an append of one."""
    append_count: Limit
    """Positions in one append at `append_start.low`."""
    evict: Limit
    """`count` of an evict_front."""
    rewind: Limit
    """`to` of a rewind."""
    shift: Limit
    """`delta` of a shift of all positions."""
    fork: Limit
    """`stop` of a fork into an empty sequence."""


def limits(history: History, seq: int) -> Limits:
    """What is legal for a sequence now."""
    run = history.of(seq).run
    return Limits(
        seq=seq,
        run=run,
        append_start=_append_start(history, seq, run),
        append_count=_append_count(history, seq, run),
        evict=_inside(run, 1, run.n, 0, run.n),
        rewind=_inside(run, run.start, run.stop, run.start, run.stop - 1),
        shift=_shift(run),
        fork=_inside(run, run.start + 1, run.stop, run.start, run.stop - 1),
    )


def _none(reason: Reason, why: int | None = None) -> Limit:
    return Limit(None, None, reason, reason, why, why)


def _inside(run: Run, low: int, high: int, low_why: int, high_why: int) -> Limit:
    if not run:
        return _none(Reason.OUT_OF_RANGE, 0)
    return Limit(low, high, Reason.OUT_OF_RANGE, Reason.OUT_OF_RANGE, low_why, high_why)


def _shift(run: Run) -> Limit:
    if not run:
        return _none(Reason.OUT_OF_RANGE, 0)
    low, high = -run.start, MAX_POSITION + 1 - run.stop
    return Limit(low, high, Reason.NEGATIVE, Reason.TOO_LARGE, 0, MAX_POSITION)


def _append_start(history: History, seq: int, run: Run) -> Limit:
    start = run.stop
    refusal = judge(history, Append(seq, range(start, start + 1)))
    if refusal is not None:
        return _none(refusal.reason, refusal.expected)
    if run:
        above = Reason.GAP if start < MAX_POSITION else Reason.TOO_LARGE
        return Limit(start, start, Reason.OVERLAP, above, start - 1, start)
    return Limit(0, MAX_POSITION, Reason.NEGATIVE, Reason.TOO_LARGE, 0, MAX_POSITION)


def _append_count(history: History, seq: int, run: Run) -> Limit:
    start = run.stop
    at_most = MAX_POSITION + 1 - start
    if at_most == 0:
        return _none(Reason.TOO_LARGE, MAX_POSITION)
    count, reason, why = at_most, Reason.TOO_LARGE, MAX_POSITION
    trial = _trial(history, run, at_most)
    while trial and (refusal := judge(history, Append(seq, range(start, start + trial)))):
        if refusal.nearest is None:
            return _none(refusal.reason, refusal.expected)
        count, reason, why = refusal.nearest - start + 1, refusal.reason, refusal.expected or 0
        trial = count
    return Limit(1, count, Reason.OUT_OF_RANGE, reason, 0, why)


def _trial(history: History, run: Run, at_most: int) -> int:
    """A count to judge that stands for any longer one; 0 when every count is legal."""
    window, limit = history.window, history.space.max_cells
    if window is None or window > history.capacity:
        return at_most
    if limit is None:
        return 0
    n_live = n_cells_in(history.live)
    if n_live == sum(held.n for held in history.holders()):
        # nothing is shared, so once the window is full every token frees what it needs
        return min(at_most, window - run.n + 1)
    return min(at_most, 2 * window + run.n)  # then no cell is left that was there before
