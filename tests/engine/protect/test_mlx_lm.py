"""mlx-lm's own loops on top of a wrapped model: the same tokens, and whole after a failure."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mlx.core as mx
import mlx_lm
import numpy as np
import pytest
from mlx_lm.generate import BatchGenerator, generate_step, speculative_generate_step
from mlx_lm.models import cache as lm
from mlx_lm.utils import does_model_support_input_embeddings

from engine import protect
from engine.protect import faults, views
from tests.helpers.mlxlm_models import CONFIGS, VOCABULARY, model_folder, tiny_model

ALL = sorted(CONFIGS)
BATCHED = [name for name in ALL if name != "llama4"]
"""mlx-lm 0.32.2 has no batch form of the chunked cache."""


def prompt(n: int, seed: int = 0) -> Any:
    return mx.array(np.random.default_rng(seed).integers(1, VOCABULARY - 1, n).tolist())


@pytest.mark.parametrize("name", ALL)
def test_generate_step_gives_the_same_tokens(name: str) -> None:
    model = tiny_model(name)
    runs = []
    for call in (model, protect.TransactionalModel(model)):
        cache = protect.make_prompt_cache(call)
        steps = generate_step(
            prompt(40), call, max_tokens=20, prompt_cache=cache, prefill_step_size=7
        )
        found = [(int(token), views.array_bytes(logprobs)) for token, logprobs in steps]
        runs.append((found, views.fingerprints(cache)))
    assert runs[0] == runs[1]


@pytest.mark.parametrize(
    ("name", "options"),
    [("qwen2", {"max_kv_size": 16}), ("llama", {"kv_bits": 8, "kv_group_size": 32})],
)
def test_options_of_generate_step_work(name: str, options: dict[str, Any]) -> None:
    model = tiny_model(name)
    runs = []
    for call in (model, protect.TransactionalModel(model)):
        steps = generate_step(
            prompt(30), call, max_tokens=20, prefill_step_size=8, quantized_kv_start=9, **options
        )
        runs.append([(int(token), views.array_bytes(logprobs)) for token, logprobs in steps])
    assert runs[0] == runs[1]


def test_mlx_lm_sees_the_model_itself() -> None:
    plain = tiny_model("qwen2")
    call = protect.TransactionalModel(plain)
    assert not hasattr(call, "make_cache")
    rings = lm.make_prompt_cache(call, max_kv_size=16)
    assert [type(c).__name__ for c in rings] == ["RotatingKVCache"] * 4
    assert all(a is b for a, b in zip(call.layers, plain.layers, strict=True))
    for name in ALL:
        model = tiny_model(name)
        wrapped = protect.TransactionalModel(model)
        assert does_model_support_input_embeddings(wrapped) == does_model_support_input_embeddings(
            model
        )


@pytest.mark.parametrize("kind", ["exception", "evaluation", "interrupt"])
@pytest.mark.parametrize("name", ALL)
def test_generate_step_can_go_on_after_a_failure(name: str, kind: str) -> None:
    """A generator that fails in the middle leaves the cache after its last whole step."""
    model = tiny_model(name)
    call = protect.TransactionalModel(model)
    cache = protect.make_prompt_cache(call)
    list(generate_step(prompt(20), call, max_tokens=3, prompt_cache=cache))
    before = views.fingerprints(cache)
    errors = {"exception": protect.InjectedFault, "interrupt": KeyboardInterrupt}
    for layer in range(len(model.layers)):
        with faults.armed(model, layer, kind), pytest.raises(errors.get(kind, RuntimeError)):
            list(generate_step(prompt(9, 1), call, max_tokens=3, prompt_cache=cache))
        assert views.fingerprints(cache) == before
    clean = lm.make_prompt_cache(model)
    list(generate_step(prompt(20), model, max_tokens=3, prompt_cache=clean))
    runs = [
        [int(t) for t, _ in generate_step(prompt(9, 1), m, max_tokens=8, prompt_cache=c)]
        for m, c in ((model, clean), (call, cache))
    ]
    assert runs[0] == runs[1]


def batches(call: Any, n: int = 3) -> BatchGenerator:
    generator = BatchGenerator(call, max_tokens=9, prefill_step_size=8, stop_tokens=[])
    generator.insert([prompt(11 + 6 * i, i).tolist() for i in range(n)])
    return generator


def drain(generator: BatchGenerator) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    while responses := generator.next_generated():
        for response in responses:
            found.setdefault(response.uid, []).append(response.token)
    generator.close()
    return {uid - min(found): tokens for uid, tokens in found.items()}


@pytest.mark.parametrize("name", BATCHED)
def test_batch_generation_gives_the_same_tokens(name: str) -> None:
    model = tiny_model(name)
    assert drain(batches(protect.TransactionalModel(model))) == drain(batches(model))


@pytest.mark.parametrize("kind", ["exception", "evaluation", "interrupt", "nonfinite"])
@pytest.mark.parametrize("name", BATCHED)
def test_a_failed_batch_step_changes_no_cache(name: str, kind: str) -> None:
    model = tiny_model(name)
    call = protect.TransactionalModel(model, check_finite=True)
    cache = batch_cache(call)
    clean = batch_cache(model)
    step, after = mx.array([[3], [4], [5]]), mx.array([[6], [7], [8]])
    before = views.fingerprints(cache)
    assert before == views.fingerprints(clean)
    for layer in range(len(model.layers)):
        with faults.armed(model, layer, kind), pytest.raises(BaseException) as caught:
            call(step, cache=cache)
        assert not isinstance(caught.value, AttributeError | TypeError)
        assert views.fingerprints(cache) == before
    for tokens in (step, after):
        expected = model(tokens, cache=clean)
        assert views.array_bytes(call(tokens, cache=cache)) == views.array_bytes(expected)
    assert views.fingerprints(cache) == views.fingerprints(clean)


def batch_cache(call: Any) -> list[Any]:
    """Three prompts of different lengths as one batch, some of them longer than every window."""
    single = []
    for i in range(3):
        cache = protect.make_prompt_cache(call)
        mx.eval(call(prompt(9 + 6 * i, i)[None], cache=cache), [c.state for c in cache])
        single.append(cache)
    return [layer[0].merge(list(layer)) for layer in zip(*single, strict=True)]


def test_plain_batch_tears() -> None:
    """mlx-lm 0.32.2: after a failure the layers of a batch count different columns."""
    model = tiny_model("llama")
    cache = batch_cache(model)
    with faults.armed(model, 1, "exception"), pytest.raises(protect.InjectedFault):
        model(mx.array([[3], [4], [5]]), cache=cache)
    assert [c._idx for c in cache] == [22, 22, 21, 21]


def test_a_failed_prompt_of_a_batch_generator_can_be_taken_back_whole() -> None:
    """Several calls and the padding before them, as one transaction of the caller."""
    model = tiny_model("gemma3_text")
    call = protect.TransactionalModel(model)
    cache = batch_cache(call)
    before = views.fingerprints(cache)

    def prefill() -> None:
        with call.transaction(cache):
            for layer_cache in cache:
                layer_cache.prepare(lengths=[5, 3, 4], right_padding=[0, 2, 1])
            call(mx.array([[1, 2, 3]] * 3), cache=cache)
            with faults.armed(model, 2, "exception"):
                call(mx.array([[1, 2]] * 3), cache=cache)

    with pytest.raises(protect.InjectedFault):
        prefill()
    assert views.fingerprints(cache) == before


def speculate(model: Any, draft: Any, cache: list[Any], n: int = 12) -> Iterator[int]:
    steps = speculative_generate_step(
        prompt(20), model, draft, max_tokens=n, num_draft_tokens=3, prompt_cache=cache
    )
    return (int(token) for token, _, _ in steps)


def test_speculative_decoding_gives_the_same_tokens() -> None:
    model, draft = tiny_model("llama"), tiny_model("llama", seed=1)
    runs = []
    for wrap in (lambda m: m, protect.TransactionalModel):
        main, side = wrap(model), wrap(draft)
        cache = protect.make_prompt_cache(main) + protect.make_prompt_cache(side)
        runs.append((list(speculate(main, side, cache)), views.fingerprints(cache)))
    assert runs[0] == runs[1]


@pytest.mark.parametrize("kind", ["exception", "evaluation"])
@pytest.mark.parametrize("side", ["target", "draft"])
def test_a_failed_speculation_never_tears_a_model(side: str, kind: str) -> None:
    """Each model's layers agree after a failure in any layer of either model."""
    model, draft = tiny_model("llama"), tiny_model("llama", seed=1)
    main, helper = protect.TransactionalModel(model), protect.TransactionalModel(draft)
    failing = model if side == "target" else draft
    for layer in range(4):
        cache = protect.make_prompt_cache(main) + protect.make_prompt_cache(helper)
        steps = speculate(main, helper, cache)
        for _ in range(2):
            next(steps)
        with (
            faults.armed(failing, layer, kind),
            pytest.raises((protect.InjectedFault, RuntimeError)),
        ):
            list(steps)
        assert len({c.offset for c in cache[:4]}) == 1
        assert len({c.offset for c in cache[4:]}) == 1


def test_a_round_of_speculation_can_be_one_transaction() -> None:
    model, draft = tiny_model("llama"), tiny_model("llama", seed=1)
    main, helper = protect.TransactionalModel(model), protect.TransactionalModel(draft)
    target, side = protect.make_prompt_cache(main), protect.make_prompt_cache(helper)
    main(prompt(20)[None], cache=target)
    helper(prompt(20)[None], cache=side)
    before = views.fingerprints(target), views.fingerprints(side)

    def one_round() -> None:
        with main.transaction(target, side):
            helper(mx.array([[3]]), cache=side)
            helper(mx.array([[4]]), cache=side)
            lm.trim_prompt_cache(side, 4)
            helper(mx.array([[5, 6, 7]]), cache=side)
            with faults.armed(model, 3, "exception"):
                main(mx.array([[3, 4, 5]]), cache=target)

    with pytest.raises(protect.InjectedFault):
        one_round()
    assert (views.fingerprints(target), views.fingerprints(side)) == before


@pytest.mark.parametrize("side", ["target", "draft"])
def test_a_failed_speculation_taken_back_whole(side: str) -> None:
    """mlx-lm's loop trims in its `finally` what a broken round never added; this undoes it."""
    model, draft = tiny_model("llama"), tiny_model("llama", seed=1)
    main, helper = protect.TransactionalModel(model), protect.TransactionalModel(draft)
    cache = protect.make_prompt_cache(main) + protect.make_prompt_cache(helper)
    list(speculate(main, helper, cache))
    before = views.fingerprints(cache)

    def reply() -> None:
        with main.transaction(cache[:4], cache[4:]):
            steps = speculate(main, helper, cache)
            next(steps)
            with faults.armed(model if side == "target" else draft, 2, "exception"):
                list(steps)

    with pytest.raises(protect.InjectedFault):
        reply()
    assert views.fingerprints(cache) == before
    once = list(speculate(main, helper, cache))
    clean = lm.make_prompt_cache(model) + lm.make_prompt_cache(draft)
    list(speculate(model, draft, clean))
    assert once == list(speculate(model, draft, clean))


def test_plain_speculation_tears() -> None:
    """mlx-lm 0.32.2: a failure in the target leaves its layers at different positions."""
    model, draft = tiny_model("llama"), tiny_model("llama", seed=1)
    cache = lm.make_prompt_cache(model) + lm.make_prompt_cache(draft)
    steps = speculate(model, draft, cache)
    next(steps)
    with faults.armed(model, 1, "exception"), pytest.raises(protect.InjectedFault):
        list(steps)
    assert len({c.offset for c in cache[:4]}) == 2


@pytest.mark.parametrize("name", ALL)
def test_saved_and_loaded_caches_go_on(name: str, tmp_path: Path) -> None:
    model = tiny_model(name)
    call = protect.TransactionalModel(model)
    cache = protect.make_prompt_cache(call)
    call(prompt(20)[None], cache=cache)
    mlx_lm.models.cache.save_prompt_cache(str(tmp_path / "c.safetensors"), cache)
    loaded = mlx_lm.models.cache.load_prompt_cache(str(tmp_path / "c.safetensors"))
    step = mx.array([[7]])
    assert views.array_bytes(call(step, cache=loaded)) == views.array_bytes(call(step, cache=cache))


@pytest.mark.own_process
def test_a_lazy_cache_from_a_file_that_was_cut_is_refused_for_good(tmp_path: Path) -> None:
    """The pair below: the second call of plain mlx-lm gives numbers, of rubbish."""
    model = tiny_model("llama")
    loaded = cut_cache(model, tmp_path)
    call = protect.TransactionalModel(model)
    for _ in range(2):
        with pytest.raises(protect.StateLost):
            call(mx.array([[7]]), cache=loaded)
    assert [c.offset for c in loaded] == [20] * 4


@pytest.mark.own_process
def test_plain_mlx_lm_computes_with_a_cache_that_could_not_be_read(tmp_path: Path) -> None:
    model = tiny_model("llama")
    loaded = cut_cache(model, tmp_path)
    with pytest.raises(RuntimeError):
        mx.eval(model(mx.array([[7]]), cache=loaded))
    assert [c.offset for c in loaded] == [21] * 4


def cut_cache(model: Any, folder: Path) -> list[Any]:
    cache = lm.make_prompt_cache(model)
    mx.eval(model(prompt(20)[None], cache=cache))
    path = folder / "c.safetensors"
    lm.save_prompt_cache(str(path), cache)
    # mx.load reads the rows when they are first needed
    loaded = lm.load_prompt_cache(str(path))
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2)
    return loaded


@pytest.mark.own_process
def test_weights_from_a_file_that_was_cut_are_refused_before_any_step(tmp_path: Path) -> None:
    folder = model_folder(tmp_path / "model")
    model, _, _ = protect.folder.load(folder)
    weights = folder / "model.safetensors"
    with weights.open("r+b") as file:
        file.truncate(weights.stat().st_size // 2)
    with pytest.raises(protect.StateLost):
        protect.TransactionalModel(model)


def test_a_folder_with_a_cut_file_is_refused_before_mlx_lm_sees_it(tmp_path: Path) -> None:
    folder = model_folder(tmp_path / "model")
    weights = folder / "model.safetensors"
    os.truncate(weights, weights.stat().st_size - 10)
    with pytest.raises(protect.folder.BadFolder, match="can't open these weights"):
        protect.folder.load(folder)


def lazy_then_cut(folder: Path) -> list[tuple[str, Any]]:
    """The weights of layer 2 of a model folder, not yet read, from a file that lost its end."""
    weights = folder / "model.safetensors"
    loaded = mx.load(str(weights))
    chosen = [(name, array) for name, array in loaded.items() if ".layers.2." in name]
    with weights.open("r+b") as file:
        file.truncate(4000)
    return chosen


@pytest.mark.own_process
def test_plain_mlx_lm_counts_the_rows_of_a_cut_weight_file(tmp_path: Path) -> None:
    """The pair of the test above, mlx-lm 0.32.2."""
    model = tiny_model("llama")
    cache = lm.make_prompt_cache(model)
    mx.eval(model(prompt(20)[None], cache=cache), [c.state for c in cache])
    model.load_weights(lazy_then_cut(model_folder(tmp_path / "m")), strict=False)
    with pytest.raises(RuntimeError):
        mx.eval(model(mx.array([[7]]), cache=cache))
    assert [c.offset for c in cache] == [21] * 4


def test_generate_and_stream_generate_from_a_folder(tmp_path: Path) -> None:
    folder = model_folder(tmp_path / "model")
    model, tokenizer = mlx_lm.load(str(folder))
    call = protect.TransactionalModel(model)
    text = "w1 w2 w3 w4"
    assert mlx_lm.generate(call, tokenizer, text, max_tokens=6) == mlx_lm.generate(
        model, tokenizer, text, max_tokens=6
    )
    pieces = [r.text for r in mlx_lm.stream_generate(call, tokenizer, text, max_tokens=6)]
    assert "".join(pieces).split()[0].startswith("w")
