"""Times of the whole graph with kernels and with array operations, for the benchmarks."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from engine.graph.backend import Backend

MODEL: Final = "qwen4exp-tiny"
SEED: Final = 4
WARM: Final = 64
"""Tokens that are there before the clock runs."""
N_DECODE: Final = 32
ROUNDS: Final = 3


@dataclass(frozen=True, slots=True)
class GraphTimes:
    """One way to compute the graph beside array operations: seconds a token, both in turn."""

    way: str
    step: str
    """`decode` (tokens one by one) or `prefill-N` (N tokens in one chunk)."""
    ours: float
    peer: float


def graph_times() -> tuple[str, Iterator[GraphTimes]]:
    """The target that runs the kernels, and the times on it: a GPU, else the host.

    On the host the kernels are the compiled text, one core of it, beside the array operations
    of the CPU. Raises: RuntimeError where nothing runs kernels.
    """
    from engine.kernel_times import kernel_target

    target = kernel_target()
    return target, _measure(target)


def _measure(target: str) -> Iterator[GraphTimes]:
    import mlx.core as mx

    from engine.graph.backend import Backend, DeviceBackend, FixedOrderBackend, KernelBackend

    on_host = target == "host"
    mx.set_default_device(mx.Device(mx.cpu if on_host else mx.gpu))
    tiles = {"tile_rows": 4, "query_rows": 4} if on_host else {"tile_rows": 64, "query_rows": 8}
    peer = Backend() if on_host else DeviceBackend(target, **tiles)
    ways = {
        "kernels-beside-tiles": KernelBackend(target, **tiles),
        "kernels-everywhere": FixedOrderBackend(target, tile_rows=1, query_rows=1),
    }
    n_prefill = 64 if on_host else 512
    for way, backend in ways.items():
        pair = (_fed(backend), _fed(peer))
        yield GraphTimes(way, "decode", *_in_turn(pair, _decode))
        pair = (_fed(backend), _fed(peer))
        seconds = _in_turn(pair, lambda feed: _prefill(feed, n_prefill))
        yield GraphTimes(way, f"prefill-{n_prefill}", *seconds)


Feed = Any
"""Takes the number of tokens to run as one chunk."""


def _fed(backend: Backend) -> Feed:
    """A session in place, its first tokens run: every kernel is compiled."""
    from engine.inplace import InPlace
    from engine.opening import model_folder
    from engine.weights import load_model

    model = load_model(model_folder(MODEL), None, backend)
    plain, random = InPlace(model), np.random.default_rng(SEED)

    def feed(n: int) -> None:
        plain.feed(random.integers(0, model.config.vocab_size, n).tolist())

    feed(WARM)
    feed(1)
    return feed


def _in_turn(pair: tuple[Feed, Feed], step: Callable[[Feed], float]) -> tuple[float, float]:
    ours, peer = zip(*((step(pair[0]), step(pair[1])) for _ in range(ROUNDS)), strict=True)
    return median(ours), median(peer)


def _decode(feed: Feed) -> float:
    return median(_seconds(feed, 1) for _ in range(N_DECODE))


def _prefill(feed: Feed, n: int) -> float:
    return _seconds(feed, n) / n


def _seconds(feed: Feed, n: int) -> float:
    start = time.perf_counter()
    feed(n)
    return time.perf_counter() - start
