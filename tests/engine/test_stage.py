"""Steps and plans: where tokens stand in tiles, and plans that do not fit together."""

from __future__ import annotations

from dataclasses import replace

import mlx.core as mx
import numpy as np
import pytest

from engine.errors import InvariantBroken
from engine.graph import graph_stages
from engine.stage import Stage, Step, check_plan
from engine.weights import owner_shapes
from tests.helpers import golden
from tests.helpers.golden import ListState


def step(n_tokens: int, consumed: int) -> Step:
    """A chunk of some tokens after `consumed` others."""
    ids = np.arange(n_tokens, dtype=np.int64)
    model = golden.model("qwen4exp-tiny")
    return Step(model, ids, ids + consumed, consumed, 0, consumed, ListState())


@pytest.mark.parametrize(
    ("n_tokens", "consumed", "lead", "n_rows"),
    [(1, 0, 0, 4), (4, 0, 0, 4), (5, 0, 0, 8), (1, 3, 3, 4), (2, 7, 3, 8), (4, 10, 2, 8)],
)
def test_a_token_has_the_same_row_of_its_tile_for_any_cut(
    n_tokens: int, consumed: int, lead: int, n_rows: int
) -> None:
    s = step(n_tokens, consumed)
    assert (s.lead, s.n_rows) == (lead, n_rows)
    assert (s.queries.start, s.queries.stop) == (0, n_rows)
    rows = mx.arange(1, n_tokens + 1)[:, None]
    padded = s.pad(rows)
    assert padded.shape == (n_rows, 1)
    assert np.array_equal(np.array(s.live(padded)), np.array(rows))
    assert padded.sum().item() == rows.sum().item()


def test_a_step_needs_tokens_and_one_position_each() -> None:
    good = step(3, 0)
    for tokens, positions in (([], []), ([1, 2], [0])):
        with pytest.raises(InvariantBroken, match="one position a token"):
            Step(
                good.model,
                np.array(tokens, np.int64),
                np.array(positions, np.int64),
                0,
                0,
                0,
                ListState(),
            )


@pytest.mark.parametrize("name", golden.MODELS)
def test_the_graph_reads_only_what_was_written(name: str) -> None:
    model = golden.model(name)
    stages = graph_stages(model)
    owners = frozenset(s.owner for s in owner_shapes(model.config))
    check_plan(stages, owners)
    assert len({s.name for s in stages}) == len(stages)
    assert owners <= {name for s in stages for name in s.writes}
    with pytest.raises(InvariantBroken, match=r"stage layer.0.\w+ reads streams before"):
        check_plan(stages[1:], owners)


def test_a_plan_must_say_what_can_be_poisoned() -> None:
    def run(_step: Step) -> None:
        return

    first = Stage("a", run, ("tokens",), ("x",), ("x",), "x")
    check_plan((first,), frozenset())
    with pytest.raises(InvariantBroken, match="stage a names y"):
        check_plan((replace(first, poison="y"),), frozenset())
    with pytest.raises(InvariantBroken, match="stage a cannot be poisoned before"):
        check_plan((replace(first, poison_before=True),), frozenset())
