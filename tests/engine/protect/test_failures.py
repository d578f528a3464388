"""Every failure after every layer: caches as they were, the next step as if it had not been."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import mlx.core as mx
import numpy as np
import pytest
from mlx_lm.models.cache import make_prompt_cache

from engine import protect
from engine.protect import faults, views
from tests.helpers.mlxlm_models import CONFIGS, VOCABULARY, tiny_model

ERRORS: dict[str, type[BaseException]] = {
    "exception": protect.InjectedFault,
    "evaluation": RuntimeError,
    "nonfinite": protect.NotFinite,
    "interrupt": KeyboardInterrupt,
}
STEPS = {"prefill": 7, "decode": 1}


def tokens(n: int, seed: int) -> Any:
    return mx.array([np.random.default_rng(seed).integers(1, VOCABULARY, n).tolist()])


def bits(logits: Any) -> bytes:
    return views.array_bytes(logits)


def started(call: Callable[..., Any], model: Any) -> list[Any]:
    """Caches after a prompt that wraps every ring and trims every chunk, and two single steps."""
    cache = make_prompt_cache(model)
    for part in (tokens(21, 1), tokens(1, 2), tokens(1, 3)):
        mx.eval(call(part, cache=cache), [c.state for c in cache])
    return cache


@pytest.mark.parametrize("kind", faults.KINDS)
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("name", CONFIGS)
def test_a_failed_step_changes_no_cache(name: str, step: str, kind: str) -> None:
    model = tiny_model(name)
    call = protect.TransactionalModel(model, check_finite=True)
    chunk, after = tokens(STEPS[step], 4), tokens(1, 5)

    clean = started(model, model)
    expected = [bits(model(chunk, cache=clean)), bits(model(after, cache=clean))]

    cache = started(call, model)
    before = views.fingerprints(cache)
    for layer in itertools.count():
        if layer == len(model.layers):
            break
        with faults.armed(model, layer, kind) as fault, pytest.raises(ERRORS[kind]):
            call(chunk, cache=cache)
        assert fault.fired == 1
        assert views.fingerprints(cache) == before
    assert [bits(call(chunk, cache=cache)), bits(call(after, cache=cache))] == expected
    assert views.fingerprints(cache) == views.fingerprints(clean)


@pytest.mark.parametrize("kind", faults.KINDS)
def test_a_persistent_fault_fails_each_time_and_costs_nothing(kind: str) -> None:
    model = tiny_model("gemma3_text")
    call = protect.TransactionalModel(model, check_finite=True)
    cache = started(call, model)
    before = views.fingerprints(cache)
    with faults.armed(model, 1, kind, persistent=True) as fault:
        for _ in range(3):
            with pytest.raises(ERRORS[kind]):
                call(tokens(1, 4), cache=cache)
            assert views.fingerprints(cache) == before
    assert fault.fired == 3


@pytest.mark.parametrize("step", STEPS)
def test_plain_mlx_lm_tears(step: str) -> None:
    """The pair of the test above: mlx-lm 0.32.2 without the wrapper."""
    model = tiny_model("llama")
    clean = started(model, model)
    chunk, after = tokens(STEPS[step], 4), tokens(1, 5)
    torn = started(model, model)
    mx.eval(model(chunk, cache=clean), [c.state for c in clean])
    expected = bits(model(after, cache=clean))
    with faults.armed(model, 1, "exception"), pytest.raises(protect.InjectedFault):
        model(chunk, cache=torn)
    n = STEPS[step]
    assert [c.offset for c in torn] == [23 + n, 23 + n, 23, 23]
    mx.eval(model(chunk, cache=torn))
    logits = model(after, cache=torn)
    assert mx.all(mx.isfinite(logits)).item()
    assert bits(logits) != expected


def test_plain_mlx_lm_keeps_the_offsets_of_a_failed_evaluation() -> None:
    """mlx-lm 0.32.2: the evaluation fails, every offset counts the rows that never came."""
    model = tiny_model("llama")
    cache = started(model, model)
    with faults.armed(model, 1, "evaluation"):
        logits = model(tokens(1, 4), cache=cache)
    with pytest.raises(RuntimeError):
        mx.eval(logits)
    assert [c.offset for c in cache] == [24, 24, 24, 24]


def test_plain_mlx_lm_keeps_rows_that_are_not_finite() -> None:
    model = tiny_model("llama")
    cache = started(model, model)
    with faults.armed(model, 1, "nonfinite"):
        mx.eval(model(tokens(1, 4), cache=cache), [c.state for c in cache])
    later = model(tokens(1, 5), cache=cache)
    assert not mx.any(mx.isfinite(later)).item()


def test_without_the_check_a_nan_is_published() -> None:
    model = tiny_model("llama")
    call = protect.TransactionalModel(model)
    cache = started(call, model)
    with faults.armed(model, 1, "nonfinite"):
        logits = call(tokens(1, 4), cache=cache)
    assert mx.any(mx.isnan(logits)).item()
    assert [c.offset for c in cache] == [24] * 4
