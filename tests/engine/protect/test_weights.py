"""Weights that can't be read: refused before a step, and for good, however the step is made."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import pytest

from engine import protect
from engine.protect import views
from tests.helpers.mlxlm_models import VOCABULARY, model_folder, tiny_model

LAYER = ".layers.2."


def prompt(n: int) -> Any:
    return mx.array(np.random.default_rng(0).integers(1, VOCABULARY - 1, n).tolist())[None]


def lazy_then_cut(folder: Path) -> list[tuple[str, Any]]:
    """The weights of layer 2 of a model folder, not yet read, from a file that lost its end."""
    weights = folder / "model.safetensors"
    loaded = mx.load(str(weights))
    chosen = [(name, array) for name, array in loaded.items() if LAYER in name]
    os.truncate(weights, 4000)
    return chosen


def replaced(model: Any, lazy: list[tuple[str, Any]]) -> None:
    """As `load_weights` does it: other arrays."""
    model.load_weights(lazy, strict=False)


def in_place(model: Any, lazy: list[tuple[str, Any]]) -> None:
    """The same Python objects with new contents."""
    of_name = dict(lazy)
    for name, module in model.named_modules():
        for key, value in module.items():
            if isinstance(value, mx.array) and f"{name}.{key}" in of_name:
                value[:] = of_name[f"{name}.{key}"]


def step(call: Any, cache: Any) -> Any:
    return call(mx.array([[7]]), cache=cache)


def in_a_transaction(call: Any, cache: Any) -> Any:
    with call.transaction(cache):
        return call(mx.array([[7]]), cache=cache)


WAYS: dict[str, Callable[[Any, Any], Any]] = {
    "a step": step,
    "a transaction": in_a_transaction,
    "a long prompt": lambda call, cache: call(prompt(40), cache=cache),
    "no cache": lambda call, cache: call(mx.array([[7]])),
    "accept_weights": lambda call, cache: call.accept_weights(),
    "another wrapper": lambda call, cache: protect.TransactionalModel(call._model),
}


@pytest.mark.own_process
@pytest.mark.parametrize("change", [replaced, in_place])
@pytest.mark.parametrize("way", WAYS)
def test_weights_that_can_not_be_read_are_refused_for_good(
    way: str, change: Callable[[Any, Any], None], tmp_path: Path
) -> None:
    model = tiny_model("llama")
    call = protect.TransactionalModel(model)
    cache, clean = protect.make_prompt_cache(call), protect.make_prompt_cache(call)
    for mine in (cache, clean):
        call(prompt(20), cache=mine)
    before = views.fingerprints(cache)
    change(model, lazy_then_cut(model_folder(tmp_path / "m")))
    with pytest.raises(protect.StateLost, match=r"can't be read \(\S*layers\.2\."):
        WAYS[way](call, cache)
    for again in (way, *WAYS):
        # the weights count as read now, although their content is anything
        with pytest.raises(protect.StateLost, match=r"load them again \(\S*layers\.2\."):
            WAYS[again](call, cache)
    assert views.fingerprints(cache) == before
    model.load_weights(str(model_folder(tmp_path / "again") / "model.safetensors"))
    expected = tiny_model("llama")(mx.array([[7]]), cache=clean)
    assert views.array_bytes(step(call, cache)) == views.array_bytes(expected)


@pytest.mark.own_process
def test_a_file_that_became_whole_again_does_not_heal_what_was_lost(tmp_path: Path) -> None:
    folder = model_folder(tmp_path / "m")
    weights = folder / "model.safetensors"
    content = weights.read_bytes()
    model = tiny_model("llama")
    replaced(model, lazy_then_cut(folder))
    with pytest.raises(protect.StateLost, match="can't be read"):
        protect.TransactionalModel(model)
    weights.write_bytes(content)
    with pytest.raises(protect.StateLost, match="load them again"):
        protect.TransactionalModel(model)
    model.load_weights(str(weights))
    protect.TransactionalModel(model)


@pytest.mark.own_process
def test_late_errors_of_another_stream_reach_no_other_op(tmp_path: Path) -> None:
    """Generation works on a stream of its own; the weights were opened on the usual one."""
    call = protect.TransactionalModel(tiny_model("llama"))
    cache = protect.make_prompt_cache(call)
    for n in range(4):
        # a folder each: the failed arrays stay what they are
        call._model.load_weights(lazy_then_cut(model_folder(tmp_path / str(n))), strict=False)
        with mx.stream(mx.new_stream(mx.cpu)), pytest.raises(protect.StateLost):
            step(call, cache)
        assert (mx.ones(4) + 2).tolist() == [3.0] * 4


def test_what_a_layer_gets_later_is_found(tmp_path: Path) -> None:
    """Modules, lists and arrays that come after the wrapping, and what goes away again."""
    model = tiny_model("llama")
    call = protect.TransactionalModel(model)
    layer = model.layers[1]
    for name, held in (
        ("_hidden", unfinished()),
        ("_list", [mx.ones(2), unfinished()]),
        ("_deep", {"a": [(unfinished(),)]}),
        ("_norm", type(model.model.norm)(4)),
    ):
        layer[name] = held
        if name == "_norm":
            held.weight = unfinished()
        with pytest.raises(protect.StateLost, match=name):
            call(mx.array([[7]]))
        del layer[name]
        call.accept_weights()
    layer["_list"] = [mx.ones(2)]
    call.accept_weights()
    layer["_list"].append(unfinished())
    with pytest.raises(protect.StateLost, match="_list"):
        call(mx.array([[7]]))


def unfinished() -> Any:
    """A lazy array whose evaluation raises."""
    half = mx.zeros((64, 64), dtype=mx.float16)
    return mx.block_masked_mm(half, half, 64, mx.ones((1, 1), dtype=mx.bool_), stream=mx.cpu)


def test_arrays_of_a_model_that_are_no_weights_are_evaluated_too() -> None:
    model = tiny_model("llama")
    model.layers[1]._hidden = unfinished()
    with pytest.raises(protect.StateLost):
        protect.TransactionalModel(model)


def test_an_interrupt_while_late_errors_are_waited_for_forgets_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    model = tiny_model("llama")
    call = protect.TransactionalModel(model)
    cache = protect.make_prompt_cache(call)
    call(prompt(5), cache=cache)
    model.layers[1]._hidden = unfinished()
    cache[0].keys = unfinished()
    for module, answer in (("weights", "load them again"), ("transaction", "load it again")):
        with monkeypatch.context() as patch:
            patch.setattr(f"engine.protect.{module}.drain", interrupt)
            with pytest.raises(KeyboardInterrupt):
                step(call, cache)
        with pytest.raises(protect.StateLost, match=answer):
            step(call, cache)
        model.layers[1]._hidden = None
