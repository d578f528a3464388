"""Any way of cutting the tokens into chunks publishes the same bytes."""

from __future__ import annotations

import numpy as np
import pytest

from engine.graph.backend import DeviceBackend
from engine.weights import load_model
from tests.helpers import golden
from tests.helpers.golden import Runner

SEED = 20260


def outcome(runner: Runner, chunks: list[list[int]]) -> dict[str, np.ndarray]:
    """Logits of every row and every owner."""
    logits = runner.feed_all(chunks)
    assert runner.status == 0
    return {"all logits": logits, **runner.state.arrays()}


def same_bytes(a: dict[str, np.ndarray], b: dict[str, np.ndarray]) -> list[str]:
    """Names that differ in any bit."""
    assert a.keys() == b.keys()
    return [k for k in a if a[k].shape != b[k].shape or a[k].tobytes() != b[k].tobytes()]


@pytest.mark.parametrize("name", golden.MODELS)
@pytest.mark.parametrize("case", ["token", "chunks0", "chunks1", "chunks2"])
def test_given_cuts_are_bitwise_equal(name: str, case: str) -> None:
    tokens, model = golden.arrays(name, "full")["tokens"], golden.model(name)
    whole = outcome(Runner(model), [list(tokens)])
    parts = list(golden.cut(tokens, golden.feeds(name, case)))
    assert same_bytes(whole, outcome(Runner(model), parts)) == []


@pytest.mark.parametrize("name", golden.MODELS)
def test_random_cuts_are_bitwise_equal(name: str, long_profile: bool) -> None:
    rng = np.random.default_rng(SEED)
    model = golden.model(name)
    tokens = rng.integers(0, model.config.vocab_size, 67)
    whole = outcome(Runner(model), [list(tokens)])
    for number in range(200 if long_profile else 50):
        sizes = golden.random_sizes(rng, len(tokens))
        parts = list(golden.cut(tokens, sizes))
        assert same_bytes(whole, outcome(Runner(model), parts)) == [], (SEED, number, sizes)


@pytest.mark.parametrize("name", golden.MODELS)
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_precision_cuts_are_bitwise_equal(name: str, dtype: str) -> None:
    rng = np.random.default_rng(SEED)
    model = golden.model(name, dtype)
    tokens = golden.arrays(name, "full")["tokens"]
    whole = outcome(Runner(model), [list(tokens)])
    for number in range(4):
        sizes = golden.random_sizes(rng, len(tokens)) if number else [1] * len(tokens)
        parts = list(golden.cut(tokens, sizes))
        assert same_bytes(whole, outcome(Runner(model), parts)) == [], (SEED, number, sizes)


@pytest.mark.parametrize("first", [3, 2**31 - 1 - 61])
def test_cuts_far_from_position_zero(first: int) -> None:
    name = "qwen4exp-tiny"
    model, tokens = golden.model(name), golden.arrays(name, "full")["tokens"]
    whole = outcome(Runner(model, first), [list(tokens)])
    parts = list(golden.cut(tokens, golden.feeds(name, "chunks1")))
    assert same_bytes(whole, outcome(Runner(model, first), parts)) == []


@pytest.mark.parametrize("name", golden.MODELS)
def test_tiles_and_calls_of_a_gpu_backend_are_exact_and_right(name: str) -> None:
    tokens = golden.arrays(name, "full")["tokens"]
    model = load_model(golden.MODELS[name], backend=DeviceBackend("gpu", 16, 4))
    whole = outcome(Runner(model), [list(tokens)])
    assert np.abs(whole["all logits"] - golden.arrays(name, "full")["logits"]).max() <= 2e-5
    for case in ("token", "chunks1"):
        parts = list(golden.cut(tokens, golden.feeds(name, case)))
        assert same_bytes(whole, outcome(Runner(model), parts)) == [], case
