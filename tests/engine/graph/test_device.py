"""The decoder on a GPU: the goldens hold, and no cut of the tokens shows in any bit."""

from __future__ import annotations

import numpy as np
import pytest

from engine.graph.selfcheck import proven_backend
from engine.weights import load_model
from metal import loader
from tests.helpers import golden
from tests.helpers.golden import Runner

DEVICES = [
    pytest.param("metal", marks=pytest.mark.metal),
    pytest.param("cuda", marks=pytest.mark.cuda),
]


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest) -> str:
    """The GPU that this machine has."""
    name = str(request.param)
    if loader.accelerator() != name:
        pytest.skip(f"MLX sees no {name} device on this machine")
    return name


def test_the_self_check_is_exact(device: str) -> None:
    backend, rows, exact = proven_backend(device)
    assert exact, [row for row in rows if row.required and not row.exact]
    assert backend.name == device


@pytest.mark.parametrize("name", golden.MODELS)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_goldens_and_cuts(device: str, name: str, dtype: str) -> None:
    backend, _, _ = proven_backend(device)
    model = load_model(golden.MODELS[name], dtype, backend)
    data = golden.arrays(name, "full")
    whole = Runner(model)
    logits = whole.feed(data["tokens"])
    assert whole.status == 0
    if dtype == "float32":
        assert np.abs(logits - data["logits"]).max() <= 2e-5
    state = whole.state.arrays()
    for case in ("token", "chunks0", "chunks1", "chunks2"):
        other = Runner(model)
        parts = list(golden.cut(data["tokens"], golden.feeds(name, case)))
        assert other.feed_all(parts).tobytes() == logits.tobytes(), case
        assert other.status == 0
        again = other.state.arrays()
        assert [k for k in state if state[k].tobytes() != again[k].tobytes()] == [], case


def test_a_hole_is_found_by_the_kernel(device: str) -> None:
    import mlx.core as mx

    model = load_model(golden.MODELS["qwen4exp-tiny"], backend=proven_backend(device)[0])
    runner = Runner(model)
    runner.state.positions = mx.array([0, 1, 2, 3, 5, 6, 7, 8, 9], mx.int32)
    runner.feed([1] * 9)
    assert runner.status != 0
