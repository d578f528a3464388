"""The tracks of a session: what to draw for a snapshot or for a record of the past. No Qt."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from app.models.sequences import Ranges, Refusal, Track, track_of
from engine.snapshot import Record, SequenceView, Snapshot

HOLE_REASONS = ("gap", "not-consecutive")
"""Reasons of a refused append that would have left a hole."""


def refusal_of(record: Record) -> Refusal | None:
    """The attempt of a refused append that would have left a hole; None for all else."""
    if record.op != "append" or record.reason not in HOLE_REASONS:
        return None
    positions = _positions(record)
    if isinstance(positions, range):
        asked: Ranges = ((positions.start, positions.stop),)
    else:
        asked = ranges_of(positions)
    if not asked and record.given is not None:
        asked = ((record.given, record.given + 1),)
    return Refusal(asked, record.sentence) if asked else None


def ranges_of(positions: list[int]) -> Ranges:
    """Ascending positions as half-open ranges; what does not ascend is left out."""
    found: list[tuple[int, int]] = []
    for position in positions:
        if found and position == found[-1][1]:
            found[-1] = (found[-1][0], position + 1)
        elif not found or position > found[-1][1]:
            found.append((position, position + 1))
    return tuple(found)


def _positions(record: Record) -> list[int] | range:
    """The positions of the op; a long list is kept by its ends only, and means a range."""
    try:
        positions = json.loads(record.op_json).get("positions") or []
        if isinstance(positions, dict):
            whole = range(int(positions["first"]), int(positions["last"]) + 1)
            return whole if len(whole) == positions["count"] else []
        return [int(p) for p in positions]
    except (ValueError, AttributeError, TypeError, KeyError):
        return []


@dataclass(slots=True)
class Tracks:
    """Follows snapshots and records; says which tracks to draw."""

    refusals: dict[int, Refusal] = field(default_factory=dict)

    def add(self, record: Record) -> None:
        """Keep a refused hole in sight until the sequence changes."""
        refusal = refusal_of(record)
        if refusal is not None:
            self.refusals[record.seq] = refusal
        elif record.outcome == "ok":
            self.refusals.pop(record.seq, None)

    def of_snapshot(self, snapshot: Snapshot) -> tuple[Track, ...]:
        """Tracks of the newest state, the private ghost and refused holes included."""
        return tuple(
            track_of(
                view, snapshot.open, fitting(self.refusals.get(view.seq), view.start, view.stop)
            )
            for view in with_opened(snapshot)
        )

    @staticmethod
    def of_record(record: Record) -> tuple[Track, ...]:
        """Tracks of the state after a record of the past."""
        refusal = refusal_of(record)
        return tuple(
            track_of(view, None, refusal if view.seq == record.seq else None)
            for view in record.sequences
        )


def with_opened(snapshot: Snapshot) -> tuple[SequenceView, ...]:
    """The sequences, and an empty one for a chunk in flight on a sequence that has none yet."""
    known = {view.seq for view in snapshot.sequences}
    opened = snapshot.open
    if opened is None or opened.seq in known:
        return snapshot.sequences
    view = SequenceView(
        opened.seq, opened.start, opened.start, snapshot.group_size, 0, 0, (), 0, 0, 0
    )
    return (*snapshot.sequences, view)


def fitting(refusal: Refusal | None, start: int, stop: int) -> Refusal | None:
    """The refusal while it still lies behind the frontier of the run [start, stop)."""
    if refusal is None:
        return None
    return refusal if refusal.start >= stop or stop == start else None
