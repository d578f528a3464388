"""Norms and the deterministic choice of the largest, shared by the stages.

Norms, and whatever else is summed over a row's own columns, depend on the row alone; statistics
are float32 whatever the dtype of the model.
"""

from __future__ import annotations

import mlx.core as mx


def rms(x: mx.array, scale: mx.array | None, eps: float) -> mx.array:
    """x / sqrt(mean(x^2) + eps) over the last axis, times `scale` (float32). Returns float32."""
    return mx.fast.rms_norm(x.astype(mx.float32), scale, eps)


def grouped_rms(x: mx.array, scale: mx.array, eps: float) -> mx.array:
    """[R, n, H] normed over H, times [n, H] float32. Returns float32."""
    return mx.fast.rms_norm(x.astype(mx.float32), None, eps) * scale


def unit(x: mx.array) -> mx.array:
    """x / sqrt(sum(x^2) + 1e-6) over the last axis: a sum, and a fixed epsilon."""
    return x * mx.rsqrt((x * x).sum(axis=-1, keepdims=True) + 1e-6)


def largest(values: mx.array, k: int, legal: mx.array | None = None) -> mx.array:
    """Columns of the k largest values of every row; on ties the lower column wins.

    Args:
        values: [R, n] float32, none below zero, n >= k. A NaN ranks silently: check before.
        legal: [R, n] bool; others come after all legal ones, lower columns first.
    Returns: [R, k] int32, ascending columns.
    """
    n = values.shape[-1]
    # bits of a float that is not negative are ordered like the float; + 0.0 makes -0 a 0
    bits = (values + 0.0).view(mx.uint32).astype(mx.uint64) + 1
    if legal is not None:
        bits = mx.where(legal, bits, mx.array(0, mx.uint64))
    key = (bits << 32) | mx.arange(n - 1, -1, -1, dtype=mx.uint64)
    if n > k:
        chosen = mx.argpartition(key, n - k, axis=-1)[:, n - k :]
    else:
        chosen = mx.argsort(key, axis=-1)
    return mx.sort(chosen.astype(mx.int32), axis=-1)


def softplus(x: mx.array) -> mx.array:
    """log(1 + e^x), without overflow."""
    return mx.logaddexp(x, 0.0)


def silu(x: mx.array) -> mx.array:
    """x times its logistic."""
    return x * mx.sigmoid(x)
