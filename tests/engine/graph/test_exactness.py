"""Any way of cutting the tokens into chunks publishes the same bytes."""

from __future__ import annotations

import mlx.core as mx
import numpy as np
import pytest

from engine.graph.backend import DeviceBackend
from engine.graph.index import pooled_keys
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


@pytest.mark.parametrize("name", golden.MODELS)
@pytest.mark.parametrize("first", [1, 1000, 2**31 - 1 - 61])
def test_logits_depend_on_relative_positions_only(name: str, first: int) -> None:
    data = golden.arrays(name, "full")
    runner = Runner(golden.stored_model(name), first)
    found = runner.feed(data["tokens"])
    assert np.abs(found - data["logits"]).max() <= 2e-5
    assert runner.status == 0


def evict_front(runner: Runner, count: int) -> None:
    """Drops the first live positions and forms the groups anew from the new first one."""
    state, r = runner.state, runner.model.config.group_size
    for key, rows in state.positional.items():
        state.positional[key] = [mx.concatenate(rows)[count:]]
    runner.n_live -= count
    runner.first_position += count
    state.pooled.clear()
    for (owner, layer, _), rows in state.positional.items():
        complete = runner.n_live // r * r
        if owner == "qsa.index" and complete:
            raw = rows[0][:complete].reshape(-1, r, rows[0].shape[-1])
            state.pooled[layer] = [pooled_keys(runner.model, layer, raw)]


@pytest.mark.parametrize("name", golden.MODELS)
@pytest.mark.parametrize("count", [1, 4, 6, 29])
def test_cuts_after_an_eviction_are_bitwise_equal(name: str, count: int) -> None:
    tokens = list(golden.arrays(name, "full")["tokens"])
    trunk = Runner(golden.model(name))
    trunk.feed(tokens[:30])
    results = []
    for sizes in ([len(tokens) - 30], [1] * (len(tokens) - 30), [5, 1, 2, len(tokens) - 38]):
        runner = trunk.fork()
        evict_front(runner, count)
        results.append(outcome(runner, list(golden.cut(tokens[30:], sizes))))
        assert results[-1]["all logits"].shape[0] == len(tokens) - 30
    assert same_bytes(results[0], results[1]) == []
    assert same_bytes(results[0], results[2]) == []
