"""Executes scenarios on the engine and compares with what they expect; no Qt.

Owns nothing of the engine: it asks for ops and keeps the records. The command line, reports and
tests play scenarios through here.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from engine.cases import Final, Scenario
from engine.checks import run_check
from engine.engine import Engine
from engine.errors import Malformed
from engine.opening import builtin_models, open_engine
from engine.opjson import to_json
from engine.ops import Append, Fail, Op, Transaction
from engine.replay import check_stages, compare, final_entry
from engine.run import Run
from engine.snapshot import Record, Snapshot

OnRecord = Callable[[Record], None]


@dataclass(frozen=True, slots=True)
class Played:
    """What a scenario gave on the engine."""

    scenario: Scenario
    start: Snapshot
    end: Snapshot
    records: tuple[Record, ...]
    final: tuple[tuple[int, Final], ...]
    mismatches: tuple[str, ...]
    """Sentences: where it differs from what it expects, and what the check after an op found."""
    engine: Engine
    """The session as it stands after the last op."""
    stopped: bool
    """True when it was told to stop before its last op."""

    @property
    def ok(self) -> bool:
        return not self.mismatches

    @property
    def with_model(self) -> bool:
        """False for a scenario that keeps a history only."""
        return self.engine.model is not None

    @property
    def results(self) -> tuple[str, ...]:
        return tuple(record.result for record in self.records)

    @property
    def transactions(self) -> int:
        """Ops that reached `reserve`."""
        return sum(record.txn is not None for record in self.records)

    @property
    def flips(self) -> int:
        return self.end.flips - self.start.flips


def model_of(scenario: Scenario, model: str | None = None) -> str | None:
    """The model's name or folder; a folder is looked for beside the scenario first."""
    name = model or scenario.model
    if name is None or model is not None or name in builtin_models():
        return name
    beside = Path(scenario.path).parent / name
    return str(beside) if beside.is_dir() else name


def engine_for(
    scenario: Scenario,
    *,
    backend: str = "auto",
    model: str | None = None,
    self_check: bool = False,
    **settings: Any,
) -> Engine:
    """An empty session with the sizes and the model that the scenario names.

    Raises: Malformed, Unreadable.
    """
    return open_engine(
        model_of(scenario, model),
        backend=backend,
        self_check=self_check,
        group_size=scenario.group_size,
        capacity=scenario.capacity,
        window=scenario.window,
        **settings,
    )


def in_chunks(op: Op, chunk: int | None) -> Op:
    """The op with the scenario's chunk in every append that names none."""
    if chunk is None:
        return op
    if isinstance(op, Append):
        return op if op.chunk else Append(op.seq, op.positions, op.tokens, chunk)
    if isinstance(op, Transaction):
        inner: Any = tuple(in_chunks(part, chunk) for part in op.ops)
        return replace(op, ops=inner)
    if isinstance(op, Fail):
        during: Any = in_chunks(op.during, chunk)
        return replace(op, during=during)
    return op


def full_json(op: Op) -> str:
    """The op as JSON with every position and token, so that a capture can be played again."""
    return json.dumps(to_json(op), separators=(",", ":"))


def play(
    scenario: Scenario,
    engine: Engine,
    *,
    verify: bool = False,
    stop_after: int | None = None,
    on_record: OnRecord = lambda record: None,
) -> Played:
    """Execute the ops on an empty session.

    Args:
        verify: compare with a fresh session after each op.
        stop_after: execute only this many ops.
        on_record: told each record as soon as it is there.
    Raises: Malformed before anything is executed, when a fail op names a stage that is not there;
        InvariantBroken for a bug of ours.
    """
    check_stages(scenario, graph_stages(engine))
    ops = scenario.ops if stop_after is None else scenario.ops[:stop_after]
    start = engine.snapshot()
    records: list[Record] = []
    found: list[str] = []
    for number, op in enumerate(ops):
        try:
            record = engine.apply(in_chunks(op, scenario.chunk), op_number=number)
        except Malformed as error:
            error.path = scenario.path  # the engine knows no files, only its model's name
            raise
        record = replace(record, number=number, op_json=full_json(op))
        records.append(record)
        on_record(record)
        if verify:
            check = run_check(engine, "same-as-fresh")
            if not check.ok:
                found.append(f"after op {number} ({op.name}): {check.sentence}")
    end = engine.snapshot()
    final = final_of(end, scenario.sequences)
    judged = scenario
    if len(ops) < len(scenario.ops):
        expect = None if scenario.expect is None else scenario.expect[: len(ops)]
        judged = replace(scenario, ops=ops, expect=expect, final=None)
    results = tuple(record.result for record in records)
    mismatches = (*compare(judged, results, final), *found)
    return Played(
        scenario,
        start,
        end,
        tuple(records),
        final,
        mismatches,
        engine,
        stopped=judged is not scenario,
    )


def graph_stages(engine: Engine) -> tuple[str, ...]:
    """Names of the model's stages; none without a model."""
    return tuple(name for name, kind in engine.stage_names if kind == "graph")


def final_of(snapshot: Snapshot, sequences: tuple[int, ...]) -> tuple[tuple[int, Final], ...]:
    """How every named sequence ends."""
    views = {view.seq: view for view in snapshot.sequences}
    runs = {
        seq: Run(views[seq].start, views[seq].stop) if seq in views else Run(0, 0)
        for seq in sequences
    }
    return tuple((seq, final_entry(run, snapshot.group_size)) for seq, run in runs.items())


def to_result(played: Played) -> dict[str, Any]:
    """One object of `run --json`."""
    return {
        "case": played.scenario.case,
        "ok": played.ok,
        "results": list(played.results),
        "ops": [op_result(record) for record in played.records],
        "final": {str(seq): end.to_json() for seq, end in played.final},
        "transactions": played.transactions,
        "flips": played.flips,
    }


def op_result(record: Record) -> dict[str, Any]:
    """One op of `run --json`."""
    return {
        "result": record.result,
        "op": record.op,
        "seq": record.seq,
        "stage": record.stage or None,
        "kind": record.kind or None,
        "expected": record.expected,
        "given": record.given,
        "nearest": record.nearest,
        "digests_before": dict(record.digests_before),
        "digests_after": dict(record.digests_after),
    }
