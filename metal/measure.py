"""Times of kernels beside the array operations that they replace and the bytes that must move.

Every kernel of the table has at least one sample of a size that a real model has; `host` runs a
sixteenth of it, since the compiled text uses one core. The floor is the bytes of inputs and
outputs at the rate at which the device copies a large array.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import median
from typing import Any, Final

import mlx.core as mx
import numpy as np

from metal import reference, run

ROUNDS: Final = 5
SEED: Final = 1
GROUP: Final = 4
Arrays = tuple[mx.array, ...]


@dataclass(frozen=True, slots=True)
class Sample:
    """One call to measure."""

    kernel: str
    shape: str
    inputs: Arrays
    params: dict[str, int]
    peer: Callable[..., Any]
    """Takes the inputs; the array operations that give the same."""
    peer_name: str
    n_bytes: int
    """Bytes that must be read and written."""


@dataclass(frozen=True, slots=True)
class Times:
    """What a sample took, in seconds a call."""

    sample: Sample
    kernel: float
    peer: float
    floor: float


def measure(target: str) -> Iterator[Times]:
    """Every sample on a target, the kernel and its peer in turn.

    Args:
        target: `metal`, `cuda` or `host`.
    """
    small = target == "host"
    rate = copy_rate(1 << 24 if small else 1 << 28)
    for sample in samples(16 if small else 1):
        mx.eval(sample.inputs)
        kernel, peer = _in_turn(sample, target)
        yield Times(sample, kernel, peer, sample.n_bytes / rate)


def copy_rate(n: int) -> float:
    """Bytes a second that reading and writing `n` floats moves."""
    large = mx.random.normal((n,), key=mx.random.key(SEED))
    mx.eval(large, large + 1.0)
    return 2 * large.nbytes / median(_seconds(lambda: large + 1.0) for _ in range(ROUNDS))


def _in_turn(sample: Sample, target: str) -> tuple[float, float]:
    def ours() -> Any:
        return run(sample.kernel, *sample.inputs, backend=target, **sample.params)

    def theirs() -> Any:
        return sample.peer(*sample.inputs)

    mx.eval(ours(), theirs())  # compiled once, before the clock runs
    pairs = [(_seconds(ours), _seconds(theirs)) for _ in range(ROUNDS)]
    return median(a for a, _ in pairs), median(b for _, b in pairs)


def _seconds(call: Callable[[], Any]) -> float:
    """Seconds of one call among several in a row, so that waiting for the device is shared."""
    calls = 1
    while True:
        mx.synchronize()
        start = time.perf_counter()
        mx.eval([call() for _ in range(calls)])
        mx.synchronize()
        spent = time.perf_counter() - start
        if spent > 0.01 or calls >= 64:
            return spent / calls
        calls *= 4


class _Draw:
    """Random inputs, the same in every run."""

    def __init__(self) -> None:
        self._key = mx.random.key(SEED)
        self.host = np.random.default_rng(SEED)

    def normal(self, *shape: int, dtype: mx.Dtype = mx.float32, scale: float = 1.0) -> mx.array:
        self._key, mine = mx.random.split(self._key)
        return (mx.random.normal(shape, key=mine) * scale).astype(dtype)

    def angles(self, n: int, pairs: int) -> tuple[mx.array, mx.array]:
        turn = self.normal(n, pairs)
        return mx.cos(turn), mx.sin(turn)

    def integers(self, *shape: int, below: int) -> mx.array:
        return mx.array(self.host.integers(0, below, shape).astype(np.int32))


def samples(divisor: int) -> Iterator[Sample]:
    """All samples, their long side divided by `divisor`."""
    draw = _Draw()
    yield from _products(draw, divisor)
    yield from _index(draw, divisor)
    yield from _attention(draw, divisor)
    yield from _recurrence(draw, divisor)
    yield from _rows(draw, divisor)


def _products(draw: _Draw, divisor: int) -> Iterator[Sample]:
    wide = 2048 // divisor
    for dtype in (mx.float32, mx.bfloat16):
        for rows in (1, 64):
            inputs = (draw.normal(rows, wide, dtype=dtype), draw.normal(wide, wide, dtype=dtype))
            shape = f"{rows}x{wide}x{wide}.{reference.NAMES[dtype]}"
            moved = _bytes(*inputs) + rows * wide * inputs[0].itemsize
            yield Sample("linear", shape, inputs, {}, mx.matmul, "one product, not exact", moved)
    n_experts = 64 // divisor
    # the array library multiplies gathered matrices on the CPU in float32 only
    dtype = mx.bfloat16 if divisor == 1 else mx.float32
    for rows in (8, 128):
        experts = draw.integers(rows, below=n_experts)
        weight = draw.normal(n_experts, wide, wide // 2, dtype=dtype, scale=0.02)
        x = draw.normal(rows, wide, dtype=dtype)
        used = min(rows, n_experts) * weight[0].nbytes
        moved = x.nbytes + used + rows * wide // 2 * x.itemsize
        shape = f"{rows}-rows.{n_experts}-experts.{reference.NAMES[dtype]}"
        yield Sample(
            "expert_linear", shape, (x, weight, experts), {}, _gathered, "gather_mm", moved
        )
    parts = (draw.normal(8, 64, wide),)
    yield Sample(
        "sum_parts", f"8x64x{wide}", parts, {}, _sum, "sum", _bytes(*parts) + parts[0].nbytes // 8
    )


def _gathered(x: mx.array, weight: mx.array, experts: mx.array) -> mx.array:
    return mx.gather_mm(x[:, None], weight, rhs_indices=experts.astype(mx.uint32))[:, 0]


def _sum(parts: mx.array) -> mx.array:
    return parts.sum(axis=0)


def _index(draw: _Draw, divisor: int) -> Iterator[Sample]:
    n = 32768 // divisor
    angles = draw.angles(n, 32)
    keys = draw.normal(n // GROUP, 128)
    params = {"n_keys": n, "group_size": GROUP}
    topk = 512 // divisor
    for rows in (1, 64):
        queries = draw.normal(rows, 4, 128)
        moved = _bytes(queries, keys) + n // GROUP * 64 * 4 + rows * n // GROUP * 4
        shape = f"{rows}-queries.{n // GROUP}-groups"
        yield _against("index_scores", shape, (queries, keys, *angles), params, moved)
        scores = mx.maximum(draw.normal(rows, n // GROUP), 0)
        moved = scores.nbytes + rows * topk * 4
        yield _against("select_groups", shape, (scores,), {"topk": topk}, moved)
    pool = (draw.normal(n, 128),)
    yield _against("pool_groups", f"{n}x128", pool, {"group_size": GROUP}, _bytes(*pool) * 5 // 4)
    positions = mx.arange(7, 7 + n, dtype=mx.int32)
    starts = mx.arange(0, n, GROUP, dtype=mx.int32)
    plan = {"tail_start": n, "frontier": n + 6, "group_size": GROUP}
    status = (positions, starts, starts + 7)
    yield _against("group_status", f"{n}-positions", status, plan, _bytes(*status) + n)


def _attention(draw: _Draw, divisor: int) -> Iterator[Sample]:
    n, n_groups = 32768 // divisor, 512 // divisor
    angles = draw.angles(n, 32)
    k, v = (draw.normal(n, 2, 128, dtype=mx.bfloat16) for _ in range(2))
    for rows in (1, 64):
        chosen = [draw.host.permutation(n // GROUP - 20)[:n_groups] for _ in range(rows)]
        groups = mx.array(np.stack(chosen).astype(np.int32))
        q = draw.normal(rows, 16, 128)
        params = {"group_size": GROUP}
        seen = min(rows * (n_groups * GROUP + GROUP - 1), n) * 2 * 128 * 2
        shape = f"{rows}-queries.{n_groups}-groups"
        inputs = (q, k, *angles, groups)
        yield _against("attention_scores", shape, inputs, params, q.nbytes + seen)
        scores = reference.attention_scores(*inputs, group_size=GROUP)
        moved = scores.nbytes + seen + q.nbytes
        yield _against("indexed_attention", shape, (scores, v, groups), params, moved)


def _recurrence(draw: _Draw, divisor: int) -> Iterator[Sample]:
    heads = 32 // divisor
    state = draw.normal(heads, 128, 128)
    for tokens in (1, 64):
        q, k = (draw.normal(tokens, heads // 2, 128, scale=0.09) for _ in range(2))
        gates = [mx.sigmoid(draw.normal(tokens, heads)) for _ in range(2)]
        inputs = (q, k, draw.normal(tokens, heads, 128), *gates, state)
        moved = _bytes(*inputs) + inputs[2].nbytes + state.nbytes
        yield _against("gdn_step", f"{tokens}-tokens.{heads}-heads", inputs, {}, moved)


def _rows(draw: _Draw, divisor: int) -> Iterator[Sample]:
    n = 32768 // divisor
    bank = draw.normal(n, 256)
    append = (bank, draw.normal(64, 256))
    yield _against("append_rows", f"64-rows-into-{n}x256", append, {"at": 1000}, 2 * bank.nbytes)
    values = (draw.normal((1 << 26) // divisor),)
    yield _against("find_nonfinite", f"{values[0].size}-float32", values, {}, values[0].nbytes)
    words = (draw.integers(n, 512, below=1 << 31).astype(mx.uint32),)
    yield _against("digest_rows", f"{n}x512-words", words, {}, _bytes(*words) + 8 * n)


def _against(kernel: str, shape: str, inputs: Arrays, params: dict[str, int], moved: int) -> Sample:
    """A sample whose peer is the kernel's reference."""

    def peer(*arrays: mx.array) -> Any:
        return getattr(reference, kernel)(*arrays, **params)

    return Sample(kernel, shape, inputs, params, peer, "array operations", moved)


def _bytes(*arrays: mx.array) -> int:
    return sum(array.nbytes for array in arrays)
