"""Groups that a query sees: counted from the first live position, ties to the lower number."""

from __future__ import annotations

import mlx.core as mx
import numpy as np
import pytest

from engine.graph.attention import visible
from engine.graph.numeric import largest
from tests.helpers import golden
from tests.helpers.golden import Runner

SEED = 41


def chosen_by_definition(values: np.ndarray, k: int, legal: np.ndarray) -> list[list[int]]:
    """Sorted by value downwards, then column upwards; legal ones first."""
    out = []
    for row, ok in zip(values, legal, strict=True):
        order = sorted(range(len(row)), key=lambda j: (not ok[j], -row[j] if ok[j] else 0, j))
        out.append(sorted(order[:k]))
    return out


@pytest.mark.parametrize(("n", "k"), [(1, 1), (5, 5), (7, 3), (64, 4), (130, 17)])
def test_ties_go_to_the_lower_column(n: int, k: int) -> None:
    rng = np.random.default_rng(SEED)
    # few distinct values, zeros of both signs, so that most cuts lie in a tie
    values = rng.choice([0.0, -0.0, 0.5, 0.5000001, 3.0], (50, n)).astype(np.float32)
    legal = rng.random((50, n)) < 0.8
    found = np.array(largest(mx.array(values), k, mx.array(legal)))
    assert found.tolist() == chosen_by_definition(values, k, legal), SEED
    every = np.ones_like(legal)
    assert np.array(largest(mx.array(values), k)).tolist() == chosen_by_definition(values, k, every)


@pytest.mark.parametrize("name", golden.MODELS)
@pytest.mark.parametrize("first", [0, 3, 9])
def test_groups_and_tail_cover_what_a_query_may_see(name: str, first: int) -> None:
    model = golden.model(name)
    r, topk = model.config.group_size, model.config.topk_groups
    runner = Runner(model, first)
    runner.feed([1, 2, 3])
    step = runner.step(range(4, 44))
    for stage in runner.stages:
        stage.run(step)
    layer = model.config.layers.index("qsa")
    groups = step.values[f"layer.{layer}.qsa.groups"]
    index, seen = (np.array(step.live(x)) for x in visible(step, groups))
    scores = np.array(step.live(step.values[f"layer.{layer}.qsa.scores"]))
    for t in range(step.n_tokens):
        live = 3 + t
        complete = (live + 1) // r
        legal = np.arange(scores.shape[1])[None] < complete
        best = chosen_by_definition(scores[t : t + 1], min(topk, complete), legal)[0]
        expected = [r * g + j for g in best for j in range(r)]
        expected += range(r * complete, live + 1)
        assert index[t][seen[t]].tolist() == expected
        assert set(index[t][~seen[t]]) <= {live}
