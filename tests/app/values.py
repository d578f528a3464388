"""Hand-made snapshots, records and tracks for tests of the window."""

from __future__ import annotations

import json
from typing import Any

from engine.snapshot import OpenView, OwnerView, Record, SequenceView, Snapshot


def sequence(
    seq: int = 0, start: int = 0, stop: int = 0, extents: Any = None, **more: int
) -> SequenceView:
    """A sequence of our engine: groups of four from its first live position."""
    n = stop - start
    cells = ((0, n),) if extents is None and n else extents or ()
    fields = {"consumed": n, "evicted": 0, "padding": 0, **more}
    return SequenceView(seq, start, stop, 4, n // 4, n % 4, cells, **fields)


def snapshot(*sequences: SequenceView, number: int = 1, **more: Any) -> Snapshot:
    """A snapshot of sequences."""
    n_cells = max((f + n for v in sequences for f, n in v.extents), default=0)
    fields = {
        "number": number,
        "txn": number,
        "flips": number,
        "public_bank": number % 2,
        "group_size": 4,
        "capacity": 4096,
        "window": None,
        "n_cells": n_cells,
        "sequences": sequences,
        "slots": (),
        "owners": (OwnerView("tokens", "token", 64, "ab" * 16, "", "stale", 1),),
        "backend": "cpu",
        "model": "tiny",
    }
    return Snapshot(**{**fields, **more})


def opened(seq: int, start: int, stop: int, first_cell: int) -> OpenView:
    """A chunk in flight."""
    return OpenView(9, "append", seq, stop - start, start, stop, ((first_cell, stop - start),), "x")


def record(
    number: int, *sequences: SequenceView, op: dict[str, Any] | None = None, **more: Any
) -> Record:
    """A line of the journal."""
    op = op or {"op": "append", "seq": 0}
    fields: dict[str, Any] = {
        "number": number,
        "txn": number,
        "op": op["op"],
        "seq": op.get("seq", 0),
        "op_json": json.dumps(op),
        "result": "ok",
        "outcome": "ok",
        "sentence": f"op {number}",
        "n_tokens": 0,
        "duration_ns": 1000,
        "public_bank": number % 2,
        "flips": number,
        "sequences": sequences,
    }
    return Record(**{**fields, **more})


def refused(
    number: int, positions: list[int], expected: int, given: int, *now: SequenceView
) -> Record:
    """A refused append that leaves a hole."""
    reason = "gap" if given == positions[0] else "not-consecutive"
    return record(
        number,
        *now,
        op={"op": "append", "seq": 0, "positions": positions},
        txn=None,
        result=f"rejected: {reason}",
        outcome="rejected",
        reason=reason,
        expected=expected,
        given=given,
        sentence=f"append on sequence 0: {reason}, expected {expected}, given {given}",
    )
