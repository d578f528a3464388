"""A model with random weights: deterministic, of any size, and refused where sizes do not fit."""

from __future__ import annotations

import numpy as np
import pytest

from engine import run_check
from engine.engine import Engine, append
from engine.errors import Malformed
from engine.random_model import random_model
from tests.helpers.engines import good


def logits(seed: int) -> np.ndarray:
    model = random_model("cpu", seed, hidden_size=32, num_experts=4)
    engine = Engine(model, name="random", mode="fast")
    sink = np.zeros((9, model.config.vocab_size), np.float32)
    good(engine, append(0, 5, list(range(9))), sink=sink)
    assert run_check(engine, "same-as-fresh").ok
    return sink


def test_a_seed_makes_the_model() -> None:
    first = logits(4)
    assert np.isfinite(first).all()
    assert first.std() > 0
    assert np.array_equal(first, logits(4))
    assert not np.array_equal(first, logits(5))


def test_layers_have_weights_of_their_own() -> None:
    layers = random_model("cpu", 1).layers
    assert not np.array_equal(np.array(layers[0].moe.down), np.array(layers[1].moe.down))


def test_entries_that_do_not_fit_are_refused() -> None:
    with pytest.raises(Malformed, match=r"config\.json"):
        random_model("cpu", 0, num_attention_heads=3, num_key_value_heads=2)
