"""The whole decoder on the kernels: the shipped texts against the goldens, for any cut."""

from __future__ import annotations

import numpy as np
import pytest

import metal
from engine.graph import backend as backends
from engine.graph.backend import (
    DeviceBackend,
    FixedOrderBackend,
    KernelBackend,
    backend_for,
    fixed_order,
)
from engine.graph.model import Model
from engine.graph.selfcheck import is_exact, self_check
from engine.weights import load_model
from tests.engine.graph.test_exactness import outcome, same_bytes
from tests.helpers import golden
from tests.helpers.golden import Runner
from tests.metal.conftest import need_device, need_host

SEED = 20261


TARGETS = [
    "host",
    pytest.param("metal", marks=pytest.mark.metal),
    pytest.param("cuda", marks=pytest.mark.cuda),
]


@pytest.fixture(scope="module", params=TARGETS)
def target(request: pytest.FixtureRequest) -> str:
    """A target that executes the kernel texts."""
    if request.param == "host":
        need_host()
    else:
        need_device(request.param)
    return str(request.param)


@pytest.fixture(scope="module")
def backend(target: str) -> KernelBackend:
    """Every product, score and attention by a kernel of that target."""
    return FixedOrderBackend(target, tile_rows=1, query_rows=1)


@pytest.fixture(scope="module")
def tiled(target: str) -> KernelBackend:
    """Scores, attention and recurrence by kernel, products in tiles of the library."""
    return KernelBackend(target, tile_rows=16, query_rows=8)


def model(name: str, backend: KernelBackend, dtype: str | None = None) -> Model:
    return load_model(golden.MODELS[name], dtype, backend)


@pytest.mark.parametrize("name", golden.MODELS)
@pytest.mark.parametrize("case", ["full", "token", "chunks0", "chunks1", "chunks2"])
def test_kernels_give_the_golden_logits(name: str, case: str, backend: KernelBackend) -> None:
    tokens, expected = golden.arrays(name, "full")["tokens"], golden.arrays(name, case)["logits"]
    runner = Runner(model(name, backend))
    found = runner.feed_all(golden.cut(tokens, golden.feeds(name, case)))
    assert np.abs(found - expected).max() <= 2e-5
    assert np.array_equal(found.argmax(-1), expected.argmax(-1))
    assert runner.status == 0


@pytest.mark.parametrize("name", golden.MODELS)
def test_kernels_beside_tiles_give_the_goldens_for_any_cut(name: str, tiled: KernelBackend) -> None:
    tokens, expected = golden.arrays(name, "full")["tokens"], golden.arrays(name, "full")["logits"]
    loaded = model(name, tiled)
    whole = outcome(Runner(loaded), [list(tokens)])
    assert np.abs(whole["all logits"] - expected).max() <= 2e-5
    parts = list(golden.cut(tokens, golden.feeds(name, "chunks1")))
    assert same_bytes(whole, outcome(Runner(loaded), parts)) == []


@pytest.mark.parametrize("name", golden.MODELS)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_no_cut_shows_in_any_bit(name: str, dtype: str, backend: KernelBackend) -> None:
    rng = np.random.default_rng(SEED)
    tokens, loaded = golden.arrays(name, "full")["tokens"], model(name, backend, dtype)
    whole = outcome(Runner(loaded), [list(tokens)])
    for number in range(2):
        sizes = golden.random_sizes(rng, len(tokens)) if number else [1] * len(tokens)
        parts = list(golden.cut(tokens, sizes))
        assert same_bytes(whole, outcome(Runner(loaded), parts)) == [], (SEED, number, sizes)


def test_the_self_check_proves_the_kernels(backend: KernelBackend) -> None:
    rows = self_check(backend)
    assert is_exact(rows), [row for row in rows if row.required and not row.exact]


def test_the_target_is_the_one_that_was_asked_for(backend: KernelBackend) -> None:
    assert backend.kernels == backend.name
    assert backend.name in metal.available()


@pytest.mark.parametrize("fine", [True, False])
@pytest.mark.parametrize("name", ["metal", "cuda"])
def test_a_gpu_takes_its_kernels_only_where_they_work(
    name: str, fine: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backends, "works", lambda kernel, target: fine and target == name)
    made = backend_for(name)
    assert type(made) is (KernelBackend if fine else DeviceBackend)
    assert made.kernels == (name if fine else "cpu")
    assert type(fixed_order(made)) is (FixedOrderBackend if fine else DeviceBackend)
