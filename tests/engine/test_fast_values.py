"""Fast mode sums few values at the end; a bad one anywhere is still named where it arose."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial

import mlx.core as mx
import numpy as np
import pytest

from engine.engine import Engine, append
from engine.graph import graph_stages
from engine.plan import PlanStage
from engine.snapshot import Record
from engine.stage import Stage, Step
from tests.helpers import golden
from tests.helpers.engines import good, prompt, public, session

KINDS = {"NaN": np.nan, "+Inf": np.inf, "-Inf": -np.inf}
SEED = int(os.environ.get("BANKFLIP_SEED", "20261130"))
BEFORE, CHUNK = 13, 9


@cache
def targets(name: str) -> tuple[tuple[str, str], ...]:
    """(stage, value): what a later stage reads or an owner keeps, and everything that is summed.

    What only its own stage used can't be spoiled from outside; it went into the streams.
    """
    stages = graph_stages(golden.model(name))
    found = []
    for number, stage in enumerate(stages):
        read = {value for later in stages[number + 1 :] for value in later.reads}
        found += [(stage.name, v) for v in stage.floats if v in read or v in stage.probed]
    return tuple(found)


def spoil(step: Step, name: str, value: float, random: np.random.Generator) -> None:
    """Put a value into a random place of a live row."""
    array = step.values[name]
    first = 0
    if array.shape[0] == step.n_rows:
        first = step.lead
    elif name.endswith("scores"):
        first = step.lead - step.queries.start
    rows = min(step.n_tokens, array.shape[0] - first)
    place = (
        first + int(random.integers(rows)),
        *(int(random.integers(n)) for n in array.shape[1:]),
    )
    host = np.array(array.astype(mx.float32))
    host[place] = value
    step.values[name] = mx.array(host).astype(array.dtype)


def attempt(
    engine: Engine, stage: str, change: Callable[[Step], None], chunk: int = CHUNK
) -> Record:
    """An append with values changed between a stage's work and its judgement."""

    def wrap(planned: PlanStage) -> PlanStage:
        if planned.name != stage:
            return planned
        make = planned.step
        assert make is not None

        def run() -> None:
            planned.run()
            change(make())

        return replace(planned, run=run)

    assert engine.begin(append(0, BEFORE, prompt(engine.name, BEFORE + chunk)[BEFORE:])) is None
    assert engine.open is not None
    engine.open.rewrap(wrap)
    return engine.finish()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", golden.MODELS)
def test_a_bad_value_is_named_with_its_stage(name: str, kind: str) -> None:
    engine = session(name, mode="fast")
    good(engine, append(0, 0, prompt(name, BEFORE)))
    before = public(engine)
    assert len(targets(name)) > 30
    for number, (stage, value) in enumerate(targets(name)):
        random = np.random.default_rng(SEED + number)
        record = attempt(
            engine, stage, partial(spoil, name=value, value=KINDS[kind], random=random)
        )
        assert (record.outcome, record.kind) == ("failed", "nonfinite"), (stage, value, SEED)
        assert record.stage == stage, (value, record.sentence, SEED + number)
        assert record.bad_value.startswith(f"{kind} in "), record.bad_value
        assert f" in {value}" in record.sentence, (stage, SEED + number)
        assert public(engine) == before
    good(engine, append(0, BEFORE, prompt(name, BEFORE + CHUNK)[BEFORE:]))
    engine.audit()


def spoil_entry(step: Step, name: str, entry: int) -> None:
    """Put NaN into one entry of the first axis."""
    host = np.array(step.values[name].astype(mx.float32))
    host[entry].flat[0] = np.nan
    step.values[name] = mx.array(host).astype(step.values[name].dtype)


@pytest.mark.parametrize("mode", ["fast", "inspect"])
@pytest.mark.parametrize("name", golden.MODELS)
def test_windows_and_states_are_looked_at_whole(name: str, mode: str) -> None:
    """Every entry of their first axis, for chunks of any size: none is taken for a token's row."""
    engine = session(name, mode=mode)
    good(engine, append(0, 0, prompt(name, BEFORE)))
    before = public(engine)
    tried = set()
    for stage in (s for s in graph_stages(golden.model(name)) if s.name.endswith((".gdn", ".ple"))):
        for value in stage.whole:
            owner = dict(stage.keeps)[value]
            entries = engine.layout[owner][0].shape[0]
            for entry in range(entries if owner not in tried else 0):
                # chunks with one tile of rows, with two, and with as many tokens as entries
                for chunk in (1, 4, entries):
                    spoil = partial(spoil_entry, name=value, entry=entry)
                    record = attempt(engine, stage.name, spoil, chunk)
                    assert record.bad_value == f"NaN in {owner} sequence 0", (value, entry, chunk)
                    assert (record.kind, record.stage) == ("nonfinite", stage.name)
            tried.add(owner)
    assert len(tried) == 3
    assert public(engine) == before


@pytest.mark.parametrize("name", golden.MODELS)
def test_what_an_owner_keeps_is_summed(name: str) -> None:
    """Rows and states outlive the chunk: whether a logit shows them is not asked."""
    stages: dict[str, Stage] = {s.name: s for s in graph_stages(golden.model(name))}
    kept = {
        "qsa.project": ("qsa.k", "qsa.v", "qsa.raw"),
        "qsa.pool": ("qsa.pooled",),
        "gdn": ("gdn.window", "gdn.state"),
        "ple": ("ple.window",),
        "head": ("logits",),
    }
    for stage in stages.values():
        layer, _, part = stage.name.partition(".")[2].partition(".")
        prefix = f"layer.{layer}." if part else ""
        for value in kept.get(part or stage.name, ()):
            assert prefix + value in stage.probed, stage.name
