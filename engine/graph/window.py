"""Causal depthwise convolutions whose past is a window of a fixed number of rows."""

from __future__ import annotations

from typing import Any

import mlx.core as mx
import numpy as np
import numpy.typing as npt

from engine.stage import Step


def convolve(
    step: Step, rows: mx.array, past: mx.array, weight: mx.array, dilation: int
) -> tuple[mx.array, mx.array]:
    """One output row a token, from its own row and earlier ones, and the window that follows.

    Args:
        rows: [R, C], padded like every float of a step.
        past: [(K-1) * dilation, C], oldest first.
        weight: [K, C] float32, oldest first.
    Returns: ([R, C] float32 before any activation, new window like `past`).
    """
    n_past = past.shape[0]
    live = step.live(rows)
    parts = [past, live]
    if step.lead:
        parts.insert(0, mx.zeros((step.lead, rows.shape[1]), rows.dtype))
    after = step.n_rows - step.lead - step.n_tokens
    if after:
        parts.append(mx.zeros((after, rows.shape[1]), rows.dtype))
    line = mx.concatenate(parts)
    start = step.lead + step.n_tokens
    wide = line.astype(mx.float32)
    total = wide[: step.n_rows] * weight[0]
    for i in range(1, weight.shape[0]):
        total = total + wide[i * dilation : i * dilation + step.n_rows] * weight[i]
    return total, mx.contiguous(line[start : start + n_past])


def past_rows(step: Step, owner: str, layer: int, shape: tuple[int, int]) -> mx.array:
    """The owner's window, zeros at the start of a sequence."""
    past = step.state.fixed(owner, layer)
    return mx.zeros(shape, step.model.dtype) if past is None else device(past)


def device(value: mx.array | npt.NDArray[Any]) -> mx.array:
    """An owner's value as an array of the device, without a copy where it is one."""
    return value if isinstance(value, mx.array) else mx.array(value)


def host(value: mx.array | npt.NDArray[Any] | None) -> npt.NDArray[np.int64] | None:
    """An integer owner on the host; it must not be waiting for an evaluation."""
    return None if value is None else np.array(value, dtype=np.int64)
