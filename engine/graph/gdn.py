"""Gated delta net: a short convolution and a recurrence over a matrix per head.

Owners: "gdn.conv" (the last K-1 rows before the convolution) and "gdn.recurrent". No position
enters; only the order of tokens does.
"""

from __future__ import annotations

import math

import mlx.core as mx

from engine.graph.hyper import inject
from engine.graph.numeric import rms, silu, softplus, unit
from engine.graph.window import convolve, device, past_rows
from engine.stage import Step


def gdn(step: Step, layer: int) -> None:
    """ "mixer_in" to "mixer_out" [R, H], injected into the streams; both owners move on."""
    c, backend, p = step.model.config, step.model.backend, f"layer.{layer}."
    w = step.model.layers[layer].gdn
    assert w is not None
    channels, n_heads = c.conv_channels, c.linear_num_value_heads
    width = n_heads * c.linear_value_head_dim
    joint = backend.linear(step.values[p + "mixer_in"], w.project)
    past = past_rows(step, "gdn.conv", layer, (c.linear_conv_kernel_dim - 1, channels))
    mixed, window = convolve(step, joint[:, :channels], past, w.conv, 1)
    q, k, v = _heads(step, silu(mixed))
    gates = joint[:, channels + width :].astype(mx.float32)
    alpha = mx.exp(w.decay * softplus(gates[:, :n_heads] + w.dt_bias))
    beta = mx.sigmoid(gates[:, n_heads:])
    start = step.state.fixed("gdn.recurrent", layer)
    if start is None:
        start = mx.zeros((n_heads, c.linear_key_head_dim, c.linear_value_head_dim))
    q, k, v, alpha, beta = (step.live(x) for x in (q, k, v, alpha, beta))
    out, end = backend.delta_rule(q, k, v, alpha, beta, device(start))
    normed = rms(step.pad(out), w.norm, c.rms_norm_eps)
    z = joint[:, channels : channels + width].astype(mx.float32).reshape(normed.shape)
    gated = normed * (mx.sigmoid(z) if c.output_gate == "sigmoid" else silu(z))
    block = backend.linear(gated.reshape(step.n_rows, -1).astype(step.model.dtype), w.out)
    step.values |= {p + "mixer_out": block, p + "gdn.window": window, p + "gdn.state": end}
    inject(step, p + "mixer_inject", block)
    step.state.set_fixed("gdn.conv", layer, window)
    step.state.set_fixed("gdn.recurrent", layer, end)


def _heads(step: Step, mixed: mx.array) -> tuple[mx.array, mx.array, mx.array]:
    """q and k of unit length (q also over sqrt(dk)) by key head, v by value head."""
    c = step.model.config
    keys = c.linear_num_key_heads * c.linear_key_head_dim
    by_key = (step.n_rows, c.linear_num_key_heads, c.linear_key_head_dim)
    by_value = (step.n_rows, c.linear_num_value_heads, c.linear_value_head_dim)
    q = unit(mixed[:, :keys].reshape(by_key)) / math.sqrt(c.linear_key_head_dim)
    k = unit(mixed[:, keys : 2 * keys].reshape(by_key))
    return q, k, mixed[:, 2 * keys :].reshape(by_value)
