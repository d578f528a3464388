"""What the transaction relies on in every stage: names, finite checks, poison, status words."""

from __future__ import annotations

import mlx.core as mx
import numpy as np
import pytest

from engine.errors import StepFailed
from engine.graph import graph_stages
from engine.stage import Step
from metal.status import StatusBit
from tests.helpers import golden
from tests.helpers.golden import Runner

pytestmark = pytest.mark.parametrize("name", golden.MODELS)


def finite(step: Step, names: tuple[str, ...]) -> list[str]:
    """Those of the values that hold something that is not a number or infinite."""
    return [n for n in names if not bool(mx.all(mx.isfinite(step.values[n])))]


def poisoned(step: Step, name: str, place: int) -> mx.array:
    """The value with one NaN, at or after the chunk's first row (rows before it are padding)."""
    value = step.values[name]
    flat = np.array(value.astype(mx.float32)).reshape(-1)
    lead = step.lead if value.shape[0] == step.n_rows else 0
    flat[(lead * (flat.size // value.shape[0]) + place) % flat.size] = np.nan
    return mx.array(flat.reshape(value.shape)).astype(value.dtype)


def test_names_are_the_documented_ones(name: str) -> None:
    model = golden.model(name)
    names = [s.name for s in graph_stages(model)]
    expected = ["embed"]
    for n, kind in enumerate(model.config.layers):
        parts = ["ple"] if n in model.config.ple_layers else []
        parts.append("mix_in")
        qsa = ("project", "partition", "pool", "select", "attend")
        parts += ["gdn"] if kind == "gdn" else [f"qsa.{part}" for part in qsa]
        parts += ["mix_mlp", "moe.route", "moe.experts"]
        expected += [f"layer.{n}.{part}" for part in parts]
    assert names == [*expected, "head"]


def test_every_float_output_is_finite_and_named(name: str) -> None:
    runner = Runner(golden.model(name))
    runner.feed([1, 2, 3, 4, 5])
    step = runner.step([6, 7, 8])
    before: set[str] = set()
    for stage in runner.stages:
        stage.run(step)
        made = set(step.values) - before
        before |= made
        assert made <= set(stage.writes), stage.name
        floats = {n for n in made if mx.issubdtype(step.values[n].dtype, mx.floating)}
        assert floats <= set(stage.floats), stage.name
        assert finite(step, stage.floats) == [], stage.name
        assert stage.floats, stage.name


@pytest.mark.parametrize("consumed", [0, 5, 8])
def test_a_poisoned_value_is_found_at_its_stage_and_not_before(name: str, consumed: int) -> None:
    model = golden.model(name)
    tokens = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5]
    trunk = Runner(model)
    if consumed:
        trunk.feed(tokens[:consumed])
    for number, target in enumerate(trunk.stages):
        runner = trunk.fork()
        step = runner.step(tokens[consumed:])
        wrong: list[str] = []
        for stage in runner.stages:
            if stage is target and stage.poison_before:
                step.values[stage.poison] = poisoned(step, stage.poison, 7 * number)
            stage.run(step)
            if stage is target and not stage.poison_before:
                step.values[stage.poison] = poisoned(step, stage.poison, 7 * number)
            if finite(step, stage.floats):
                wrong.append(stage.name)
                break
        assert wrong == [target.name]


def test_a_stage_that_chooses_does_not_hide_a_poisoned_score(name: str) -> None:
    """Integers chosen by NaN scores stay legal indexes, and the scores show the NaN."""
    runner = Runner(golden.model(name))
    step = runner.step(range(1, 30))
    for stage in runner.stages:
        if stage.poison_before:
            value = step.values[stage.poison]
            step.values[stage.poison] = mx.full(value.shape, mx.nan, value.dtype)
            stage.run(step)
            scores = step.values[stage.floats[0]]
            assert bool(mx.all(mx.isnan(step.live(scores)[0, :1])))
            chosen = next(n for n in stage.writes if n.endswith(("groups", "experts")))
            index = np.array(step.values[chosen])
            assert index.min() >= 0
            assert index.max() < scores.shape[1]
            step.values[stage.poison] = value
        stage.run(step)


def test_ids_outside_of_the_vocabulary_are_a_structural_failure(name: str) -> None:
    size = golden.model(name).config.vocab_size
    for wrong in (-1, size, 2**62):
        runner = Runner(golden.model(name))
        with pytest.raises(StepFailed, match=f"expected token ids from 0 to {size - 1}, given"):
            runner.feed([0, wrong])


HOLES: list[tuple[str, list[int], int, StatusBit]] = [
    ("hole in the tail", [0, 1, 2, 3, 4, 6], 0, StatusBit.HOLE),
    ("hole at a group's border", [0, 1, 2, 3, 5, 6, 7, 8, 9], 0, StatusBit.HOLE),
    ("position twice", [0, 1, 2, 3, 4, 4], 0, StatusBit.TWICE),
    ("backwards", [5, 4, 3, 2, 1, 0], 0, StatusBit.HOLE),
    ("all one later", [1, 2, 3, 4, 5, 6], 0, StatusBit.ANCHOR),
    ("all one earlier", [8, 9, 10, 11, 12], 9, StatusBit.ANCHOR),
]


@pytest.mark.parametrize(("what", "cells", "first", "bit"), HOLES)
@pytest.mark.parametrize("parts", [1, 2])
def test_the_device_refuses_positions_that_are_no_run(
    name: str, what: str, cells: list[int], first: int, bit: StatusBit, parts: int
) -> None:
    runner = Runner(golden.model(name), first)
    runner.state.positions = mx.array(cells, mx.int32)
    half = len(cells) // 2
    for chunk in [cells] if parts == 1 else [cells[:half], cells[half:]]:
        runner.feed([1] * len(chunk))
    assert runner.status & bit, what


@pytest.mark.parametrize("first", [0, 1, 5, 2**31 - 1 - 11])
def test_sound_positions_give_status_zero(name: str, first: int) -> None:
    runner = Runner(golden.model(name), first)
    runner.state.positions = mx.array(np.arange(first, first + 12).astype(np.int32))
    for size in (1, 2, 1, 5, 3):
        runner.feed([1] * size)
    assert runner.status == 0
