"""Does this device give the same bits however the rows are cut? Measured, not believed.

Owns the check that runs at start-up on the chosen backend and that `doctor` shows: every kind of
call that the stages make, once on all rows and once on rows cut differently.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import mlx.core as mx
import numpy as np

from engine.graph.backend import GROUP_BLOCK, Backend, backend_for, fixed_order
from engine.graph.numeric import grouped_rms, largest, rms, silu

N_ROWS: Final = 192
CUTS: Final = (1, 63, 64, 64)
"""Multiples of no common tile: the second cut ends where the next whole tile begins."""
DTYPES: Final = {"float32": mx.float32, "bfloat16": mx.bfloat16}


@dataclass(frozen=True, slots=True)
class CheckRow:
    """One line of the self-check."""

    call: str
    dtype: str
    max_abs_difference: float
    required: bool
    """False for calls that are shown for comparison and that no stage makes."""

    @property
    def exact(self) -> bool:
        """Every bit was the same."""
        return self.max_abs_difference == 0.0


def self_check(backend: Backend | None = None) -> tuple[CheckRow, ...]:
    """All lines for a backend, the default device's without one. Takes well under a second."""
    backend = backend or backend_for()
    with mx.stream(backend.device):
        rows = [_plain_product()]
        for name, dtype in DTYPES.items():
            data = _Data(dtype)
            rows += [
                CheckRow(call, name, difference, True) for call, difference in _calls(backend, data)
            ]
    return tuple(rows)


def proven_backend(name: str = "auto") -> tuple[Backend, tuple[CheckRow, ...], bool]:
    """A backend, its self-check and whether that was exact.

    Where products in tiles fail, the kernel with a fixed order of sums takes their place.
    """
    backend = backend_for(name)
    rows = self_check(backend)
    if not is_exact(rows) and backend.name != "cpu":
        backend = fixed_order(backend)
        rows = self_check(backend)
    return backend, rows, is_exact(rows)


def is_exact(rows: tuple[CheckRow, ...]) -> bool:
    """True when every required line has no difference."""
    return all(row.exact for row in rows if row.required)


class _Data:
    """Fixed inputs, awkward sizes."""

    def __init__(self, dtype: mx.Dtype) -> None:
        rng = np.random.default_rng(17)

        def normal(*shape: int, of: mx.Dtype = dtype) -> mx.array:
            return mx.array(rng.standard_normal(shape).astype(np.float32)).astype(of)

        self.x = normal(N_ROWS, 328)
        self.weight = normal(200, 328)
        self.experts = normal(5, 88, 328)
        self.ids = mx.array(rng.integers(0, 5, (N_ROWS, 3)).astype(np.uint32))
        self.streams = normal(N_ROWS, 4, 96)
        self.scale = normal(4, 96, of=mx.float32)
        self.q = normal(N_ROWS, 2, 64, of=mx.float32) * 0.1
        self.k = normal(N_ROWS, 2, 64, of=mx.float32) * 0.1
        self.v = normal(N_ROWS, 4, 24, of=mx.float32)
        self.rate = mx.sigmoid(normal(N_ROWS, 4, of=mx.float32))
        self.state = normal(4, 64, 24, of=mx.float32)
        self.pooled = normal(3 * GROUP_BLOCK, 40, of=mx.float32)
        self.keys = normal(N_ROWS, 19, 2, 40, of=mx.float32)
        self.values = normal(N_ROWS, 19, 2, 40, of=mx.float32)
        self.queries = normal(N_ROWS, 6, 40, of=mx.float32)
        self.seen = mx.array(rng.random((N_ROWS, 19)) < 0.7) | (mx.arange(19) == 18)


Call = Callable[[slice], mx.array]


def _calls(backend: Backend, d: _Data) -> list[tuple[str, float]]:
    """Every kind of call with its difference between one pass and a cut one."""
    weight, experts = backend.prepare(d.weight), backend.prepare(d.experts)
    mx.eval(weight, experts)
    tile = backend.tile_rows
    rows: dict[str, Call] = {
        "rms_norm": lambda s: rms(d.x[s], None, 1e-6),
        "grouped rms_norm": lambda s: grouped_rms(d.streams[s], d.scale, 1e-6),
        "softmax": lambda s: mx.softmax(d.x[s].astype(mx.float32), axis=-1, precise=True),
        "sum over the last axis": lambda s: d.streams[s].astype(mx.float32).sum(axis=-1),
        "sum over streams": lambda s: backend.sum_middle(d.streams[s]),
        "silu": lambda s: silu(d.x[s]),
        "experts, one row each": lambda s: backend.expert_linear(
            d.x[s][:, None], experts, d.ids[s]
        ),
    }
    tiles: dict[str, Call] = {
        f"linear in tiles of {tile} rows": lambda s: backend.linear(d.x[s], weight),
        "index scores": lambda s: backend.index_scores(d.queries[s], d.pooled),
        "attention rows": lambda s: backend.attention(
            d.queries[s], d.keys[s], d.values[s], d.seen[s]
        ),
        "choice of the largest": lambda s: largest(mx.abs(d.x[s].astype(mx.float32)), 16).astype(
            mx.float32
        ),
    }
    out = [(name, _difference(call, CUTS)) for name, call in rows.items()]
    out += [(name, _difference(call, (tile, tile, 2 * tile))) for name, call in tiles.items()]
    # the library has another kernel for key widths that 32 divides
    out += [
        (f"gated delta rule, {width} wide", _recurrence(backend, d, width)) for width in (40, 64)
    ]
    return out


def _difference(call: Call, cuts: tuple[int, ...]) -> float:
    """Largest difference between all rows at once and rows in pieces (cuts repeat)."""
    whole = call(slice(0, N_ROWS)).astype(mx.float32)
    parts, at, number = [], 0, 0
    while at < N_ROWS:
        stop = min(N_ROWS, at + cuts[number % len(cuts)])
        parts.append(call(slice(at, stop)).astype(mx.float32))
        at, number = stop, number + 1
    return float(np.array(mx.abs(whole - mx.concatenate(parts)).max()))


def _recurrence(backend: Backend, d: _Data, width: int) -> float:
    """The same for the recurrence, whose pieces hand the state on."""
    q, k = d.q[..., :width], d.k[..., :width]
    first = d.state[:, :width]

    def run(start: int, stop: int, state: mx.array) -> tuple[mx.array, mx.array]:
        s = slice(start, stop)
        return backend.delta_rule(q[s], k[s], d.v[s], d.rate[s], d.rate[s] * 0.9, state)

    whole, end = run(0, N_ROWS, first)
    parts, state, at = [], first, 0
    for size in (1, 1, 5, 57, 64, 64):
        out, state = run(at, at + size, state)
        parts.append(out)
        at += size
    apart = mx.abs(whole - mx.concatenate(parts)).max()
    return float(np.array(mx.maximum(apart, mx.abs(state - end).max())))


def _plain_product() -> CheckRow:
    """The call that the stages avoid: all rows of a chunk in one product."""
    d = _Data(mx.float32)
    difference = _difference(lambda s: d.x[s] @ d.weight.T, CUTS)
    return CheckRow("product of all rows at once (not used)", "float32", difference, False)
