"""Hyper-connections: residual streams into a block's input, and its output back into them.

There is no other norm before a block and none at the end. Pure functions of a token.
"""

from __future__ import annotations

import mlx.core as mx

from engine.graph.model import HyperWeights
from engine.graph.numeric import grouped_rms, silu
from engine.stage import Step


def mix(step: Step, weights: HyperWeights) -> tuple[mx.array, mx.array]:
    """Streams to (block input [R, H], logits of the injection weights [R, n or 0])."""
    c, backend = step.model.config, step.model.backend
    n = c.hc_count
    normed = grouped_rms(step.values["streams"], weights.norm, c.rms_norm_eps)
    normed = normed.astype(step.model.dtype)
    low = backend.linear(normed.reshape(step.n_rows, -1), weights.down) / n
    gate = mx.sigmoid(backend.linear(silu(low[:, : c.hc_lowrank]), weights.up))
    gated = gate.reshape(step.n_rows, n, -1) * normed
    return backend.sum_middle(gated) / n, low[:, c.hc_lowrank :]


def mix_in(step: Step, layer: int) -> None:
    """Input and injection weights [R, n] of the layer's mixer (GDN or QSA)."""
    p = f"layer.{layer}."
    block, inject = mix(step, step.model.layers[layer].attn)
    step.values[p + "mixer_in"], step.values[p + "mixer_inject"] = block, 2.0 * mx.sigmoid(inject)


def mix_mlp(step: Step, layer: int) -> None:
    """Input and injection weights [R, n] of the layer's experts."""
    p = f"layer.{layer}."
    block, inject = mix(step, step.model.layers[layer].mlp)
    step.values[p + "moe_in"], step.values[p + "moe_inject"] = block, 2.0 * mx.sigmoid(inject)


def inject(step: Step, weights: str, block: mx.array) -> None:
    """Adds a block's output [R, H] to every raw stream, times that stream's weight."""
    streams = step.values["streams"]
    step.values["streams"] = streams + step.values[weights][:, :, None] * block[:, None]
