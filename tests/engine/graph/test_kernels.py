"""The whole decoder on the kernels: the shipped texts against the goldens, for any cut."""

from __future__ import annotations

import numpy as np
import pytest

import metal
from engine.graph.backend import FixedOrderBackend
from engine.graph.model import Model
from engine.graph.selfcheck import is_exact, self_check
from engine.weights import load_model
from tests.engine.graph.test_exactness import outcome, same_bytes
from tests.helpers import golden
from tests.helpers.golden import Runner
from tests.metal.conftest import need_device, need_host

SEED = 20261


@pytest.fixture(
    scope="module",
    params=[
        "host",
        pytest.param("metal", marks=pytest.mark.metal),
        pytest.param("cuda", marks=pytest.mark.cuda),
    ],
)
def backend(request: pytest.FixtureRequest) -> FixedOrderBackend:
    """Every product, score and attention by a kernel of that target."""
    if request.param == "host":
        need_host()
    else:
        need_device(request.param)
    return FixedOrderBackend(request.param, tile_rows=1, query_rows=1)


def model(name: str, backend: FixedOrderBackend, dtype: str | None = None) -> Model:
    return load_model(golden.MODELS[name], dtype, backend)


@pytest.mark.parametrize("name", golden.MODELS)
@pytest.mark.parametrize("case", ["full", "token", "chunks0", "chunks1", "chunks2"])
def test_kernels_give_the_golden_logits(name: str, case: str, backend: FixedOrderBackend) -> None:
    tokens, expected = golden.arrays(name, "full")["tokens"], golden.arrays(name, case)["logits"]
    runner = Runner(model(name, backend))
    found = runner.feed_all(golden.cut(tokens, golden.feeds(name, case)))
    assert np.abs(found - expected).max() <= 2e-5
    assert np.array_equal(found.argmax(-1), expected.argmax(-1))
    assert runner.status == 0


@pytest.mark.parametrize("name", golden.MODELS)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_no_cut_shows_in_any_bit(name: str, dtype: str, backend: FixedOrderBackend) -> None:
    rng = np.random.default_rng(SEED)
    tokens, loaded = golden.arrays(name, "full")["tokens"], model(name, backend, dtype)
    whole = outcome(Runner(loaded), [list(tokens)])
    for number in range(3):
        sizes = golden.random_sizes(rng, len(tokens)) if number else [1] * len(tokens)
        parts = list(golden.cut(tokens, sizes))
        assert same_bytes(whole, outcome(Runner(loaded), parts)) == [], (SEED, number, sizes)


def test_the_self_check_proves_the_kernels(backend: FixedOrderBackend) -> None:
    rows = self_check(backend)
    assert is_exact(rows), [row for row in rows if row.required and not row.exact]


def test_the_target_is_the_one_that_was_asked_for(backend: FixedOrderBackend) -> None:
    assert backend.kernels == backend.name
    assert backend.name in metal.available()
