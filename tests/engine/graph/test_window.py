"""Causal convolutions over a carried window, against the definition on the whole line."""

from __future__ import annotations

import mlx.core as mx
import numpy as np
import pytest

from engine.graph.window import convolve
from engine.stage import Step
from tests.helpers import golden
from tests.helpers.golden import ListState

SEED = 12
WIDTH = 6


def by_definition(line: np.ndarray, weight: np.ndarray, dilation: int) -> np.ndarray:
    """y[p] = sum of weight[i] x[p - (K-1-i) * dilation], zeros before the start."""
    out = np.zeros(line.shape)
    for p in range(len(line)):
        for i, w in enumerate(weight):
            at = p - (len(weight) - 1 - i) * dilation
            if at >= 0:
                out[p] += w * line[at]
    return out


@pytest.mark.parametrize(("kernel", "dilation"), [(4, 1), (2, 1), (4, 3), (3, 5)])
def test_any_cut_is_the_convolution_of_the_whole_line(kernel: int, dilation: int) -> None:
    rng = np.random.default_rng(SEED)
    line = rng.standard_normal((30, WIDTH)).astype(np.float32)
    weight = rng.standard_normal((kernel, WIDTH)).astype(np.float32)
    model = golden.model("qwen4exp-tiny")
    n_past = (kernel - 1) * dilation
    results = []
    for sizes in ([30], [1] * 30, golden.random_sizes(rng, 30), golden.random_sizes(rng, 30)):
        past, at, found = mx.zeros((n_past, WIDTH)), 0, []
        for size in sizes:
            ids = np.zeros(size, np.int64)
            step = Step(model, ids, ids, at, 0, at, ListState())
            rows = step.pad(mx.array(line[at : at + size]))
            out, past = convolve(step, rows, past, mx.array(weight), dilation)
            assert out.shape == rows.shape
            found.append(np.array(step.live(out)))
            at += size
        expected_past = np.concatenate([np.zeros((n_past, WIDTH), np.float32), line])[30:]
        assert np.array_equal(np.array(past), expected_past), (SEED, sizes)
        results.append(np.concatenate(found))
        assert np.abs(results[-1] - by_definition(line, weight, dilation)).max() < 1e-5
        assert results[-1].tobytes() == results[0].tobytes(), (SEED, sizes)
