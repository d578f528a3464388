"""Which targets each kernel was checked on, in this very run.

For `bankflip doctor`: every kernel is executed on every target of this machine on small arrays,
for every data type, and compared with its reference. The whole matrix is in the tests.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import mlx.core as mx
import numpy as np

import metal
from metal.kernels import KERNELS, ROUNDING, Kernel

SIZE: Final = 4
"""Group size of the samples; their lengths leave a tail."""
N: Final = 11


@dataclass(frozen=True, slots=True)
class Check:
    """One kernel on one target against its reference."""

    target: str
    ok: bool
    difference: float
    """Largest difference, relative to the largest magnitude; 0 where bits are compared."""
    detail: str
    """What went wrong; empty when nothing did."""


@dataclass(frozen=True, slots=True)
class Row:
    """One kernel and where it was checked."""

    kernel: str
    types: tuple[str, ...]
    """What T was; empty where the kernel has fixed types."""
    tolerance: float
    checks: tuple[Check, ...]
    """Empty where this machine has neither an accelerator nor a C++ compiler."""

    @property
    def targets(self) -> tuple[str, ...]:
        """The targets that gave the reference's result."""
        return tuple(check.target for check in self.checks if check.ok)

    @property
    def ok(self) -> bool:
        """Whether no target failed."""
        return all(check.ok for check in self.checks)


def check_all() -> list[Row]:
    """Check every kernel on every target here; some seconds at most."""
    return [check(name) for name in KERNELS]


def check(name: str) -> Row:
    """Check one kernel on every target here."""
    kernel = KERNELS[name]
    targets = [target for target in metal.available() if target != "cpu"]
    types = kernel.element_types or ("float32",)
    checks = tuple(_check(kernel, target, types) for target in targets)
    return Row(name, kernel.element_types, kernel.tolerance, checks)


@functools.cache
def works(name: str, target: str) -> bool:
    """Whether a kernel gave its reference's result on a target; tried once, in its first type."""
    if target not in metal.available() or target == "cpu":
        return False
    kernel = KERNELS[name]
    return _check(kernel, target, kernel.element_types[:1] or ("float32",)).ok


def _check(kernel: Kernel, target: str, types: tuple[str, ...]) -> Check:
    worst = 0.0
    for element in types:
        arrays, params = SAMPLES[kernel.name](element)
        try:
            result = metal.run(kernel.name, *arrays, backend=target, **params)
            expected = kernel.reference(*arrays, **params)
            difference = _difference(kernel, result, expected)
        except (RuntimeError, ValueError, OSError) as error:
            # a compiler or driver that refuses a text is a result here, not a crash
            return Check(target, False, worst, f"{element}: {error}")
        worst = max(worst, difference)
        bound = kernel.tolerance + (2 * ROUNDING.get(element, 0.0) if kernel.tolerance else 0.0)
        if not difference <= bound:
            return Check(target, False, worst, f"{element}: off by {difference:.3g}, not {bound}")
    return Check(target, True, worst, "")


def _difference(kernel: Kernel, result: Any, expected: Any) -> float:
    """Largest relative difference; infinite where shapes, types or exact values differ."""
    pairs = (
        [(result, expected)] if isinstance(result, mx.array) else zip(result, expected, strict=True)
    )
    worst = 0.0
    for got, wanted in pairs:
        if got.shape != wanted.shape or got.dtype != wanted.dtype:
            return float("inf")
        if kernel.tolerance == 0:
            worst = max(worst, 0.0 if bool(mx.array_equal(got, wanted)) else float("inf"))
            continue
        a, b = (np.array(x.astype(mx.float32)).astype(np.float64) for x in (got, wanted))
        finite = np.isfinite(b)
        if not np.array_equal(a[~finite], b[~finite]):
            return float("inf")
        scale = max(1.0, float(np.abs(b[finite]).max(initial=0.0)))
        worst = max(worst, float(np.abs(a[finite] - b[finite]).max(initial=0.0)) / scale)
    return worst


# samples ----------------------------------------------------------------------------------------

Sample = tuple[tuple[mx.array, ...], dict[str, int]]


def _normal(element: str, *shape: int) -> mx.array:
    made = np.random.default_rng(list(shape)).normal(size=shape).astype(np.float32)
    return mx.array(made).astype(getattr(mx, element))


def _words(element: str, *shape: int) -> mx.array:
    top = 2 ** (8 * getattr(mx, element).size) - 1
    made = np.random.default_rng(list(shape)).integers(0, top, shape, dtype=np.uint64)
    return mx.array(made).astype(getattr(mx, element))


def _angles(pairs: int) -> tuple[mx.array, mx.array]:
    turn = _normal("float32", N, pairs)
    return mx.cos(turn), mx.sin(turn)


def _group_status(_element: str) -> Sample:
    positions = mx.arange(7, 7 + N, dtype=mx.int32)
    broken = mx.where(mx.arange(N) < 6, positions, positions + 1)  # a hole in the second group
    starts = mx.array([0, SIZE], mx.int32)
    params = {"tail_start": 2 * SIZE, "frontier": 7 + N, "group_size": SIZE}
    return (broken, starts, starts + 7), params


def _append_rows(element: str) -> Sample:
    made = _normal if element in ROUNDING else _words
    words = "uint32" if element == "int32" else element
    bank, rows = made(words, N, 3), made(words, 2, 3)
    if element == "int32":
        bank, rows = bank.view(mx.int32), rows.view(mx.int32)
    return (bank, rows), {"at": 5}


def _pool_groups(element: str) -> Sample:
    return (_normal(element, N, 6)[:, ::2],), {"group_size": SIZE}


def _index_scores(element: str) -> Sample:
    arrays = (_normal("float32", 3, 2, 8), _normal(element, N // SIZE, 8), *_angles(3))
    return arrays, {"n_keys": N, "group_size": SIZE}


def _select_groups(_element: str) -> Sample:
    scores = mx.array([[0.0, 1.0, 1.0, 0.0], [2.0, -np.inf, -np.inf, -np.inf]])
    return (scores,), {"topk": 2}


CHOSEN: Final = ((0, -1), (1, 0), (-1, 1))


def _attention_scores(element: str) -> Sample:
    queries, keys = _normal("float32", 3, 4, 8), _normal(element, N, 2, 8)
    return (queries, keys, *_angles(3), mx.array(CHOSEN, mx.int32)), {"group_size": SIZE}


def _indexed_attention(element: str) -> Sample:
    scores, values = _normal("float32", 3, 4, 3 * SIZE - 1), _normal(element, N, 2, 8)
    return (scores, values, mx.array(CHOSEN, mx.int32)), {"group_size": SIZE}


def _gdn_step(element: str) -> Sample:
    keys = _normal(element, 3, 2, 5) * 0.4
    gates = mx.sigmoid(_normal("float32", 3, 4))
    arrays = (
        keys * 0.5,
        keys,
        _normal(element, 3, 4, 6),
        gates,
        gates,
        _normal("float32", 4, 5, 6),
    )
    return arrays, {}


def _linear(element: str) -> Sample:
    return (_normal(element, 5, 300), _normal(element, 300, 9)), {}


def _expert_linear(element: str) -> Sample:
    experts = mx.array([2, 0, 0, 1, 2], mx.int32)
    return (_normal(element, 5, 300), _normal(element, 3, 300, 9), experts), {}


def _sum_parts(_element: str) -> Sample:
    return (_normal("float32", 5, 3, 7),), {}


def _find_nonfinite(element: str) -> Sample:
    values = _normal(element, N)
    return (mx.where(mx.arange(N) == 8, mx.array(-np.inf, values.dtype), values),), {}


def _digest_rows(element: str) -> Sample:
    return (_words(element, 3, 7),), {}


SAMPLES: Final[dict[str, Callable[[str], Sample]]] = {
    "group_status": _group_status,
    "append_rows": _append_rows,
    "pool_groups": _pool_groups,
    "index_scores": _index_scores,
    "select_groups": _select_groups,
    "attention_scores": _attention_scores,
    "indexed_attention": _indexed_attention,
    "gdn_step": _gdn_step,
    "linear": _linear,
    "expert_linear": _expert_linear,
    "sum_parts": _sum_parts,
    "find_nonfinite": _find_nonfinite,
    "digest_rows": _digest_rows,
}
