"""The backends' operations against float64, and their shapes against whole tiles only."""

from __future__ import annotations

import mlx.core as mx
import numpy as np
import pytest

import metal
from engine.errors import InvariantBroken
from engine.graph.backend import GROUP_BLOCK, Backend, DeviceBackend, FixedOrderBackend

BACKENDS = [Backend(), DeviceBackend("gpu", 16, 4), FixedOrderBackend("cpu", 8, 8)]
rng = np.random.default_rng(8)


def normal(*shape: int) -> np.ndarray:
    return rng.standard_normal(shape)


def single(array: np.ndarray) -> mx.array:
    return mx.array(array.astype(np.float32))


def close(found: mx.array, expected: np.ndarray, scale: float = 1.0) -> bool:
    """Within rounding of float32 sums."""
    array = np.array(found)
    return array.shape == expected.shape and bool(np.abs(array - expected).max() < 3e-6 * scale)


@pytest.mark.parametrize("backend", BACKENDS, ids=lambda b: type(b).__name__)
def test_products(backend: Backend) -> None:
    x, weight = normal(48, 37), normal(21, 37)
    found = backend.linear(single(x), backend.prepare(single(weight)))
    assert close(found, x @ weight.T, 40)
    with pytest.raises(InvariantBroken, match="rows in whole tiles"):
        backend.linear(single(x[:47]), backend.prepare(single(weight)))


# the library has the gathered product of the GPU backends in float32 only where it runs on a CPU
@pytest.mark.parametrize(
    ("backend", "dtype"),
    [
        (Backend(), mx.float32),
        (Backend(), mx.bfloat16),
        (BACKENDS[1], mx.float32),
        (BACKENDS[2], mx.bfloat16),
    ],
)
def test_experts(backend: Backend, dtype: mx.Dtype) -> None:
    x, weight, ids = normal(5, 1, 12), normal(4, 9, 12), rng.integers(0, 4, (5, 3))
    prepared = backend.prepare(single(weight).astype(dtype))
    out = backend.expert_linear(single(x).astype(dtype), prepared, mx.array(ids.astype(np.uint32)))
    expected = np.einsum("td,tknd->tkn", x[:, 0], weight[ids])
    scale = 1.0 if dtype == mx.float32 else 2.0**15
    assert close(out.astype(mx.float32), expected, 20 * scale)
    back = backend.prepare(single(normal(4, 9, 9)).astype(dtype))
    again = backend.expert_linear(out, back, mx.array(ids.astype(np.uint32)))
    assert again.shape == (5, 3, 9)


@pytest.mark.parametrize("backend", BACKENDS, ids=lambda b: type(b).__name__)
def test_delta_rule(backend: Backend) -> None:
    t, hk, hv, dk, dv = 11, 2, 6, 5, 7
    q, k, v = normal(t, hk, dk) * 0.3, normal(t, hk, dk) * 0.3, normal(t, hv, dv)
    alpha, beta, state = rng.random((t, hv)), rng.random((t, hv)), normal(hv, dk, dv)
    out, end = backend.delta_rule(*(single(x) for x in (q, k, v, alpha, beta, state)))
    expected = []
    for i in range(t):
        for h in range(hv):
            key, query = k[i, h // 3], q[i, h // 3]
            state[h] *= alpha[i, h]
            state[h] += np.outer(key, beta[i, h] * (v[i, h] - state[h].T @ key))
            expected.append(state[h].T @ query)
    assert close(out, np.array(expected).reshape(t, hv, dv), 4)
    assert close(end, state, 4)


@pytest.mark.parametrize("backend", BACKENDS, ids=lambda b: type(b).__name__)
@pytest.mark.parametrize("limit", [1 << 24, 1])
def test_index_scores(backend: Backend, limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.graph.backend.MAX_SCORE_ELEMENTS", limit)
    q, pooled = normal(16, 3, 10), normal(2 * GROUP_BLOCK, 10)
    expected = np.maximum(np.einsum("qhd,gd->qhg", q, pooled), 0).sum(1)
    assert close(backend.index_scores(single(q), single(pooled)), expected, 20)


@pytest.mark.parametrize("backend", BACKENDS, ids=lambda b: type(b).__name__)
def test_attention(backend: Backend) -> None:
    q, k, v = normal(8, 6, 10), normal(8, 9, 2, 10), normal(8, 9, 2, 10)
    seen = rng.random((8, 9)) < 0.5
    seen[:, 4] = True
    expected = np.empty((8, 6, 10))
    for t in range(8):
        for h in range(6):
            s = k[t, seen[t], h // 3] @ q[t, h]
            w = np.exp(s - s.max())
            expected[t, h] = (w / w.sum()) @ v[t, seen[t], h // 3]
    found = backend.attention(single(q), single(k), single(v), mx.array(seen))
    assert close(found, expected, 10)


@pytest.mark.parametrize("backend", BACKENDS, ids=lambda b: type(b).__name__)
def test_sums_over_a_middle_axis(backend: Backend) -> None:
    x = normal(16, 5, 33)
    assert close(backend.sum_middle(single(x)), x.sum(1), 5)


STATUS = np.random.default_rng(11)


@pytest.mark.parametrize("number", range(120))
def test_status_word_is_the_one_of_the_kernels_reference(number: int) -> None:
    """The short form for the CPU against the reference, for runs that were edited anywhere."""
    n, size = int(STATUS.integers(1, 14)), int(STATUS.integers(1, 6))
    anchor = int(STATUS.choice([0, 5, 2**31 - 1 - n]))
    cells = np.arange(anchor, anchor + n)
    for _ in range(number % 4):
        at, by = int(STATUS.integers(0, n)), int(STATUS.choice([-7, -1, 1, 2]))
        cells[at : None if STATUS.random() < 0.5 else at + 1] += by
    cells = mx.array(cells.astype(np.int32))
    starts = mx.arange(0, n // size * size, size, dtype=mx.int32)
    params = {"tail_start": n // size * size, "frontier": anchor + n - 1, "group_size": size}
    expected, part = metal.run(
        "group_status", cells, starts, starts + anchor, backend="cpu", **params
    )
    found, first = Backend().group_status(cells, anchor, size)
    assert found.item() == expected.item(), (number, cells.tolist(), anchor, size)
    assert first() == part.item(), (number, cells.tolist(), anchor, size)
