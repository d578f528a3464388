"""Going back: the same state as a run that never went further, or a refusal that names a target."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import pytest
from mlx_lm.models import cache as lm

from engine import protect
from engine.protect import faults, views
from tests.helpers.mlxlm_models import CONFIGS, VOCABULARY, tiny_model

ALL = sorted(CONFIGS)
ROWS_ONLY = ("llama", "qwen2", "deepseek_v32")
"""Models whose caches can be cut anywhere."""
TOKENS = np.random.default_rng(7).integers(1, VOCABULARY, 60).tolist()
CALLS = [9, 14, 1, 1, 1, 16, 1, 1]


def feed(call: Any, cache: list[Any], upto: int, start: int = 0) -> None:
    """Calls of the sizes in CALLS, the last one cut at `upto`."""
    at = start
    edges = np.cumsum(CALLS).tolist()
    for edge in [e for e in edges if e > start]:
        end = min(edge, upto)
        if end <= at:
            return
        logits = call(mx.array([TOKENS[at:end]]), cache=cache)
        mx.eval(logits, [c.state for c in cache])
        at = end


def fresh(model: Any, upto: int) -> list[Any]:
    cache = lm.make_prompt_cache(model)
    feed(model, cache, upto)
    return cache


@pytest.mark.parametrize("every", [0, 8])
@pytest.mark.parametrize("name", ALL)
def test_rewind_is_the_same_as_a_run_that_stopped_there(name: str, every: int) -> None:
    model = tiny_model(name)
    for target in (43, 42, 30, 26, 23, 12, 9, 3, 0):
        call = protect.TransactionalModel(model, checkpoint_every=every)
        cache = protect.make_prompt_cache(call)
        feed(call, cache, 44)
        objects = list(cache)
        call.rewind(cache, target)
        assert call.position(cache) == target
        assert all(a is b for a, b in zip(cache, objects, strict=True))
        clean = fresh(model, target)
        if target:
            assert views.digests(cache) == views.digests(clean)
        step = mx.array([[5]])
        assert views.array_bytes(call(step, cache=cache)) == views.array_bytes(
            model(step, cache=clean)
        )


def test_checkpoints_shorten_a_replay() -> None:
    model = tiny_model("qwen3_next")
    replayed = {}
    for every in (0, 8):
        call = protect.TransactionalModel(model, checkpoint_every=every)
        cache = protect.make_prompt_cache(call)
        feed(call, cache, 44)
        replayed[every] = call.rewind(cache, 43)
    assert replayed == {0: 43, 8: 1}


def test_layers_of_rows_are_cut_without_a_replay() -> None:
    model = tiny_model("llama")
    call = protect.TransactionalModel(model)
    cache = protect.make_prompt_cache(call)
    feed(call, cache, 44)
    assert call.rewind(cache, 5) == 0
    assert call.trim(cache, 2) == 2
    assert [c.offset for c in cache] == [3] * 4


@pytest.mark.parametrize("name", ["qwen3_next", "gemma3_text"])
def test_without_a_checkpoint_the_nearest_target_is_named(name: str, tmp_path: Path) -> None:
    """A cache from a file: no token before its end is known."""
    model = tiny_model(name)
    path = str(tmp_path / "c.safetensors")
    lm.save_prompt_cache(path, fresh(model, 26))
    call = protect.TransactionalModel(model, checkpoint_every=8)
    cache = lm.load_prompt_cache(path)
    feed(call, cache, 44, start=26)
    before = views.fingerprints(cache)
    with pytest.raises(protect.Refused) as refused:
        call.rewind(cache, 20)
    assert (refused.value.reason, refused.value.nearest) == ("no checkpoint", 26)
    assert call.legal_targets(cache) == {"first": 26, "last": 44}
    assert views.fingerprints(cache) == before
    call.rewind(cache, 26)
    assert views.digests(cache) == views.digests(fresh(model, 26))


@pytest.mark.parametrize("name", ["llama", "qwen3_next"])
def test_targets_outside_are_refused(name: str) -> None:
    call = protect.TransactionalModel(tiny_model(name))
    cache = protect.make_prompt_cache(call)
    feed(call, cache, 23)
    before = views.fingerprints(cache)
    for act, nearest in (
        (lambda: call.rewind(cache, 24), 23),
        (lambda: call.rewind(cache, -1), 0),
        (lambda: call.trim(cache, 24), 23),
        (lambda: call.trim(cache, -1), 0),
        (lambda: call.fork(cache, 30), 23),
    ):
        with pytest.raises(protect.Refused) as refused:
            act()
        assert refused.value.nearest == nearest
    assert views.fingerprints(cache) == before


def test_a_batch_of_unknown_tokens_is_refused_not_ignored() -> None:
    model = tiny_model("qwen3_next")
    call = protect.TransactionalModel(model)
    single = [fresh(model, 9), fresh(model, 14)]
    cache = [layer[0].merge(list(layer)) for layer in zip(*single, strict=True)]
    call(mx.array([[1], [2]]), cache=cache)
    before = views.fingerprints(cache)
    with pytest.raises(protect.Refused):
        call.trim(cache, 1)
    assert views.fingerprints(cache) == before
    # plain mlx-lm 0.32.2 answers 0 here and goes on
    assert lm.trim_prompt_cache(cache, 1) == 0


@pytest.mark.parametrize("kind", ["exception", "evaluation", "interrupt"])
@pytest.mark.parametrize("name", ALL)
def test_a_rewind_that_fails_in_its_replay_changes_nothing(name: str, kind: str) -> None:
    model = tiny_model(name)
    call = protect.TransactionalModel(model, checkpoint_every=8)
    cache = protect.make_prompt_cache(call)
    feed(call, cache, 44)
    before = views.fingerprints(cache)
    failures, last = 0, len(model.layers) - 1
    for layer in range(len(model.layers)):
        with faults.armed(model, layer, kind) as fault:
            try:
                call.rewind(cache, 43)
            except (protect.InjectedFault, RuntimeError, KeyboardInterrupt):
                failures += 1
                assert views.fingerprints(cache) == before
                assert call.position(cache) == 44
            else:
                assert not fault.fired or (kind, layer) == ("evaluation", last)
                break
    # nobody reads the output of the last layer in a replay, so it is not evaluated
    points = last if kind == "evaluation" else last + 1
    assert failures == (0 if name in ROWS_ONLY else points)
    call.rewind(cache, 43)
    assert views.digests(cache) == views.digests(fresh(model, 43))


@pytest.mark.parametrize("at", [None, 42, 30, 9])
@pytest.mark.parametrize("name", ALL)
def test_a_fork_and_its_origin_go_on_by_themselves(name: str, at: int | None) -> None:
    model = tiny_model(name)
    call = protect.TransactionalModel(model, checkpoint_every=8)
    cache = protect.make_prompt_cache(call)
    feed(call, cache, 44)
    before = views.fingerprints(cache)
    twin = call.fork(cache, at)
    assert views.fingerprints(cache) == before
    assert views.digests(twin) == views.digests(fresh(model, at or 44))
    step, other = mx.array([[5]]), mx.array([[6, 7]])
    for tokens, mine, upto in ((other, twin, at or 44), (step, cache, 44), (step, twin, None)):
        if upto is None:
            call(tokens, cache=mine)
            continue
        clean = fresh(model, upto)
        assert views.array_bytes(call(tokens, cache=mine)) == views.array_bytes(
            model(tokens, cache=clean)
        )
        assert views.digests(mine) == views.digests(clean)


@pytest.mark.parametrize("kind", faults.KINDS)
def test_a_failed_first_step_after_a_fork_hurts_neither(kind: str) -> None:
    model = tiny_model("gemma3_text")
    call = protect.TransactionalModel(model, check_finite=True)
    cache = protect.make_prompt_cache(call)
    feed(call, cache, 44)
    twin = call.fork(cache)
    before = views.fingerprints(cache)
    for mine in (twin, cache):
        with faults.armed(model, 2, kind), pytest.raises(BaseException):  # noqa: B017
            call(mx.array([[5]]), cache=mine)
        assert views.fingerprints(twin) == views.fingerprints(cache) == before


def test_a_trim_by_mlx_lm_itself_is_noticed() -> None:
    model = tiny_model("llama")
    call = protect.TransactionalModel(model)
    cache = protect.make_prompt_cache(call)
    feed(call, cache, 44)
    lm.trim_prompt_cache(cache, 10)
    assert call.position(cache) == 34
    call(mx.array([[5]]), cache=cache)
    assert call.position(cache) == 35


def test_checkpoints_keep_to_their_budget() -> None:
    model = tiny_model("qwen3_next")
    sizes = {}
    for budget in (1 << 28, 20_000):
        call = protect.TransactionalModel(model, checkpoint_every=4, checkpoint_bytes=budget)
        cache = protect.make_prompt_cache(call)
        for token in TOKENS:
            call(mx.array([[token]]), cache=cache)
        lineage = protect.lineage.lineage_of(cache)
        sizes[budget] = sum(kept.n_bytes for kept in lineage.kept.values())
    assert sizes[20_000] <= 20_000 < sizes[1 << 28]
