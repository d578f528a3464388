"""What it costs to make mlx-lm's forward pass a transaction.

Plain and protected run in turn in one process on equal caches; medians count. The model is small
and random, so the part of a step that is not attention is small, too: on a real model the
protection is a smaller share. Rows of a layer are as wide as those of Llama 3.2 1B (8 heads of 64).
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator
from statistics import median
from typing import Any

N_CACHED = 32_768
N_TOKENS = 6
ROUNDS = 9
N_LAYERS, N_KV_HEADS, HEAD_SIZE = 4, 8, 64


def _model() -> Any:
    import mlx.core as mx
    from mlx_lm.models import llama

    mx.random.seed(0)
    model = llama.Model(
        llama.ModelArgs(
            model_type="llama",
            hidden_size=256,
            num_hidden_layers=N_LAYERS,
            intermediate_size=512,
            num_attention_heads=8,
            num_key_value_heads=N_KV_HEADS,
            head_dim=HEAD_SIZE,
            rms_norm_eps=1e-5,
            vocab_size=512,
        )
    )
    mx.eval(model.parameters())
    return model


def _filled(n_tokens: int) -> list[Any]:
    """One cache a layer with n random rows and room for more."""
    import mlx.core as mx
    from mlx_lm.models.cache import KVCache

    caches = []
    for _ in range(N_LAYERS):
        cache = KVCache()
        shape = (1, N_KV_HEADS, n_tokens + 256, HEAD_SIZE)
        cache.keys, cache.values = mx.random.normal(shape), mx.random.normal(shape)
        cache.offset = n_tokens
        mx.eval(cache.keys, cache.values)
        caches.append(cache)
    return caches


def _decode_seconds(call: Any, caches: list[Any], n_tokens: int) -> float:
    """Median seconds a token in mlx-lm's own loop; the caches keep their length.

    The first tokens do not count: `generate_step` empties the allocator's cache there (and then
    every 256 tokens), so they pay for fresh memory.
    """
    import mlx.core as mx
    from mlx_lm.generate import generate_step

    before = caches[0].offset
    taken = []
    began = time.perf_counter()
    steps = generate_step(mx.array([3]), call, max_tokens=n_tokens + 2, prompt_cache=caches)
    for number, _ in enumerate(steps):
        now = time.perf_counter()
        if number >= 2:
            taken.append(now - began)
        began = now
    for cache in caches:
        cache.trim(cache.offset - before)
    return median(taken)


def _ratio(name: str, n_cached: int, n_tokens: int, rounds: int, goal: float | None) -> Any:
    from engine.protect import TransactionalModel

    model = _model()
    protected = TransactionalModel(model)
    pairs = [(protected, _filled(n_cached)), (model, _filled(n_cached))]
    times: list[list[float]] = [[], []]
    for number in range(rounds + 1):
        for index in (0, 1) if number % 2 else (1, 0):
            call, caches = pairs[index]
            times[index].append(_decode_seconds(call, caches, n_tokens))
    ours, peer = (median(taken[1:]) for taken in times)
    # the two of a round run right after each other, so a busy machine slows both
    ratios = [one / other for one, other in zip(times[0][1:], times[1][1:], strict=True)]
    return {
        "name": name,
        "value": median(ratios),
        "unit": "ratio",
        "goal": goal,
        "better": "lower",
        "ours": ours,
        "peer": peer,
        "peer_name": f"plain mlx-lm, {n_cached} tokens cached, seconds a token",
    }


def bench_decode() -> Any:
    """A decode step on a long cache, protected against plain, in `generate_step`."""
    return _ratio("protect.decode_ratio", N_CACHED, N_TOKENS, ROUNDS, 1.05)


def bench_decode_short() -> Any:
    """The same on a short cache of a tiny model, where the protection shows most; no goal."""
    return _ratio("protect.short_decode_ratio", 64, 32, 9, None)


def bench_deepcopy() -> Any:
    """What protection adds to appending one row to every layer, against a deep copy before it.

    `copy.deepcopy` of an array is lazy: it adds a second handle, and the append then copies the
    buffer. Both parts count, as both are paid in every step.
    """
    import mlx.core as mx

    from engine.protect import Transaction

    caches = _filled(N_CACHED)
    row = mx.random.normal((1, N_KV_HEADS, 1, HEAD_SIZE))
    mx.eval(row)

    def append() -> None:
        for cache in caches:
            cache.update_and_fetch(row, row)
        mx.eval([cache.state for cache in caches])

    def copied() -> None:
        kept = copy.deepcopy(caches)
        append()
        del kept

    def protected() -> None:
        with Transaction(caches, 1) as transaction, transaction.guarded():
            for cache in caches:
                cache.update_and_fetch(row, row)
            transaction.fence()

    plain, deep, ours = _medians((append, copied, protected), caches)
    added, peer = max(ours - plain, 1e-6), deep - plain
    return {
        "name": "protect.deepcopy_factor",
        "value": peer / added,
        "unit": "ratio",
        "goal": 100.0,
        "better": "higher",
        "ours": added,
        "peer": peer,
        "peer_name": f"copy.deepcopy of a cache of {N_CACHED} tokens, seconds a step",
    }


def _medians(steps: tuple[Callable[[], None], ...], caches: list[Any]) -> Iterator[float]:
    times: list[list[float]] = [[] for _ in steps]
    for _ in range(40):
        for step, taken in zip(steps, times, strict=True):
            began = time.perf_counter()
            step()
            taken.append(time.perf_counter() - began)
            for cache in caches:
                cache.trim(1)
    return (median(taken[2:]) for taken in times)


BENCHMARKS = (
    ("protect.decode_ratio", bench_decode),
    ("protect.short_decode_ratio", bench_decode_short),
    ("protect.deepcopy_factor", bench_deepcopy),
)
