"""Executes a scenario on the history alone, without a model, and compares with what it expects.

A `fail` op is judged here, not executed: where what is in flight is legal, the fault fires after
its stage and the result is its kind; nothing of it is kept. `times` is how many tries of the op in
flight meet the fault; the op gives up after the last of them, so without a model the number
changes nothing, and the fault is disarmed afterwards, `"always"` included.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from engine.cases import OK, REJECTED, Final, Scenario
from engine.effects import Truncated
from engine.errors import Malformed, Rejected, StepFailed
from engine.history import History
from engine.ops import Copy, Fail, Fork, Op, Remove, Restore, Rewind, Transaction
from engine.rules import apply
from engine.run import Run
from engine.terms import TxnStage

Refusal = Rejected | StepFailed


@dataclass(frozen=True, slots=True)
class Replay:
    """What a scenario gave: one result, refusal (or None) and history an op, and the end."""

    scenario: Scenario
    results: tuple[str, ...]
    refusals: tuple[Refusal | None, ...]
    histories: tuple[History, ...]
    """The history after each op."""
    final: tuple[tuple[int, Final], ...]
    mismatches: tuple[str, ...]
    """One sentence for each difference from what the scenario expects."""

    @property
    def ok(self) -> bool:
        return not self.mismatches


def start(scenario: Scenario) -> History:
    """The empty history that the scenario works on."""
    return History.empty(scenario.group_size, scenario.capacity, scenario.window)


def replay(scenario: Scenario, graph_stages: Collection[str] = ()) -> Replay:
    """Execute every op.

    Args:
        graph_stages: names that a fail op may use besides the transaction's stages.
    Raises: Malformed when a fail op names a stage that its op lacks.
    """
    check_stages(scenario, graph_stages)
    history = start(scenario)
    refusals: list[Refusal | None] = []
    histories: list[History] = []
    for number, op in enumerate(scenario.ops):
        refusal: Refusal | None = None
        try:
            if isinstance(op, Fail):
                refusal = _fail(scenario, history, op, number)
            else:
                history = apply(history, op, number).history
        except Rejected as rejected:
            refusal = rejected
        refusals.append(refusal)
        histories.append(history)
    results = tuple(result_of(refusal) for refusal in refusals)
    final = final_of(history, scenario.sequences)
    mismatches = compare(scenario, results, final)
    return Replay(scenario, results, tuple(refusals), tuple(histories), final, mismatches)


def _fail(scenario: Scenario, history: History, op: Fail, number: int) -> StepFailed:
    effects = apply(history, op.during, number).effects
    goes_back = any(isinstance(effect, Truncated) for effect in effects)
    if op.stage == TxnStage.LOAD and isinstance(op.during, Remove) and not goes_back:
        _lacks(scenario, number, op)  # only the removal of a suffix reads the old state
    return StepFailed(
        op.stage, op.kind, op.during.name, op.seq, "injected", op_number=number, injected=True
    )


def result_of(refusal: Refusal | None) -> str:
    """The word of a case file for what an op gave."""
    if refusal is None:
        return OK
    word = refusal.reason if isinstance(refusal, Rejected) else refusal.kind
    return f"{REJECTED}{word}"


def final_entry(run: Run, group_size: int) -> Final:
    """A run as case files print it."""
    return Final(run.as_pair(), run.n_groups(group_size), run.n_tail(group_size))


def final_of(history: History, sequences: Collection[int]) -> tuple[tuple[int, Final], ...]:
    """The end of every named sequence, ascending."""
    size = history.group_size
    return tuple((seq, final_entry(history.of(seq).run, size)) for seq in sorted(sequences))


def compare(
    scenario: Scenario, results: tuple[str, ...], final: tuple[tuple[int, Final], ...]
) -> tuple[str, ...]:
    """One sentence for each difference from `expect`; a scenario without one differs in nothing."""
    found = [
        f"op {number} ({op.name}): expected {expected}, got {result}"
        for number, (op, expected, result) in enumerate(
            zip(scenario.ops, scenario.expect or (), results, strict=False)
        )
        if expected != result
    ]
    ends = dict(final)
    for seq, expected_end in scenario.final or ():
        if ends[seq] != expected_end:
            found.append(f"sequence {seq}: expected {_told(expected_end)}, got {_told(ends[seq])}")
    return tuple(found)


def _told(end: Final) -> str:
    run = "empty" if end.run is None else f"{end.run[0]} to {end.run[1]}"
    holes = f", holes {end.holes}" if end.holes else ""
    return f"{run} ({end.complete_groups} groups, tail {end.tail}{holes})"


def has_load(op: Op) -> bool:
    """True when the op reads a slot, another sequence or old state back (a suffix removal does)."""
    if isinstance(op, Transaction):
        return any(has_load(inner) for inner in op.ops)
    return isinstance(op, (Restore, Fork, Copy, Rewind, Remove))


def check_stages(scenario: Scenario, graph_stages: Collection[str] = ()) -> None:
    """Refuse fail ops at a stage that does not exist or that the op in flight lacks.

    Args:
        graph_stages: names of the model's graph stages, which any op in flight may name here.
    Raises: Malformed.
    """
    for number, op in enumerate(scenario.ops):
        if not isinstance(op, Fail) or op.stage in graph_stages:
            continue
        if op.stage not in TxnStage.__members__.values():
            stages = ", ".join((*TxnStage, *graph_stages))
            what = f"op {number} (fail): the stage is unknown"
            raise Malformed(scenario.path, what, f"one of {stages}", ascii(op.stage)[:80])
        if op.stage == TxnStage.LOAD and not has_load(op.during):
            _lacks(scenario, number, op)


def _lacks(scenario: Scenario, number: int, op: Fail) -> None:
    what = f"op {number} (fail): {op.during.name} has no stage {op.stage}"
    stages = ", ".join(stage for stage in TxnStage if stage != op.stage)
    raise Malformed(scenario.path, what, f"one of {stages}", op.stage)
