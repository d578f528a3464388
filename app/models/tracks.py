"""The tracks of a session: what to draw for a snapshot or for a record of the past. No Qt."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from app.models.sequences import Refusal, Track, track_of
from engine.snapshot import Record, SequenceView, Snapshot

EMPTY_FORM = ("gap", "not-consecutive")
"""Reasons of a refused append that leave a hole to be seen."""


def refusal_of(record: Record) -> Refusal | None:
    """The hole that a refused append would have left; None where it would leave none."""
    if record.op != "append" or record.reason not in EMPTY_FORM:
        return None
    if record.expected is None or record.given is None or record.given <= record.expected:
        return None
    return Refusal(record.expected, (record.given, _last_asked(record) + 1), record.sentence)


def _last_asked(record: Record) -> int:
    """Last position of the refused append, at least the first wrong one."""
    assert record.given is not None
    try:
        positions = json.loads(record.op_json).get("positions") or []
    except (ValueError, AttributeError):
        positions = []
    return max([record.given, *(int(p) for p in positions)])


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
    """The refusal while it still describes the frontier of the run [start, stop)."""
    if refusal is None:
        return None
    return refusal if stop == refusal.expected or stop == start else None
