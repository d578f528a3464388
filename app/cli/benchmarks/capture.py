"""What recording costs the engine, and how soon a long capture opens."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from engine.capture import Capture, CaptureWriter
from engine.snapshot import OwnerView, Record, SequenceView, Snapshot, StageView

N_RECORDS = 100_000
N_OWNERS = 12
N_STAGES = 40


def _start() -> Snapshot:
    owners = tuple(
        OwnerView(f"owner.{n}", "position", 64, f"{n:032x}", f"{n:032x}", "same", 0)
        for n in range(N_OWNERS)
    )
    return Snapshot(0, 0, 0, 0, 4, N_RECORDS, None, 0, (), (), owners)


def _records() -> Iterator[Record]:
    """One append of one token a record, with as many digests and stages as a small model has."""
    stages = tuple(StageView(f"stage.{n}", "graph", "done", 1000 + n) for n in range(N_STAGES))
    before = tuple((f"owner.{n}", f"{n:032x}") for n in range(N_OWNERS))
    base = Record(
        0, 0, "append", 0, "{}", "ok", "ok", "append on sequence 0", 1, 1000, 0, 0, stages=stages
    )
    for n in range(N_RECORDS):
        after = tuple((f"owner.{k}", f"{n * N_OWNERS + k:032x}") for k in range(N_OWNERS))
        view = SequenceView(0, 0, n + 1, 4, (n + 1) // 4, (n + 1) % 4, ((0, n + 1),), n + 1, 0, 0)
        yield replace(
            base,
            number=n,
            txn=n,
            flips=n + 1,
            op_json=f'{{"op":"append","seq":0,"positions":[{n}]}}',
            digests_before=before,
            digests_after=after,
            sequences=(view,),
            positions_written=(n, n + 1),
        )
        before = after


def record_and_open() -> Sequence[Mapping[str, object]]:
    """Write 100,000 records as fast as they are made, then open the file for time travel."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bench.bankflip"
        waits: list[int] = []
        with CaptureWriter(path, _start()) as writer:
            for record in _records():
                begun = time.perf_counter_ns()
                writer.record(record)
                waits.append(time.perf_counter_ns() - begun)
        begun = time.perf_counter_ns()
        with Capture(path) as capture:
            capture.counts()
            capture.lines(len(capture) - 100)
            capture.snapshot_at(len(capture) // 2)
            open_s = (time.perf_counter_ns() - begun) / 1e9
        size = path.stat().st_size
    wait_ms = sorted(waits)[len(waits) * 99 // 100] / 1e6
    return (
        {"name": "capture.wait_p99", "value": wait_ms, "unit": "ms", "goal": 5, "better": "lower"},
        {"name": "capture.open", "value": open_s, "unit": "s", "goal": 1, "better": "lower"},
        {
            "name": "capture.row_bytes",
            "value": size / N_RECORDS,
            "unit": "bytes",
            "goal": None,
            "better": "lower",
        },
    )


BENCHMARKS = (("capture", record_and_open),)
