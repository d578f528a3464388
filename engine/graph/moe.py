"""Mixture of experts: routing of one token never depends on another.

Owner: "routes", the experts that the last token chose, ascending. Only chosen experts are
computed, each token with each of its experts by itself, and added in ascending order.
"""

from __future__ import annotations

import mlx.core as mx

from engine.graph.hyper import inject
from engine.graph.numeric import largest, silu
from engine.stage import Step


def route(step: Step, layer: int) -> None:
    """Router probabilities [R, experts] float32 and chosen experts [T, k] int32, ascending."""
    c, p = step.model.config, f"layer.{layer}.moe."
    joint = step.model.backend.linear(
        step.values[f"layer.{layer}.moe_in"], step.model.layers[layer].moe.route
    )
    probs = mx.softmax(joint[:, : c.num_experts].astype(mx.float32), axis=-1, precise=True)
    experts = largest(step.live(probs), c.num_experts_per_tok)
    step.values |= {p + "probs": probs, p + "experts": experts, p + "shared_in": joint}
    step.state.set_fixed("routes", layer, experts[-1])


def experts(step: Step, layer: int) -> None:
    """Weighted sum of the chosen experts and of the shared one, injected into the streams."""
    c, backend, p = step.model.config, step.model.backend, f"layer.{layer}."
    w = step.model.layers[layer].moe
    chosen = step.values[p + "moe.experts"]
    share = mx.take_along_axis(step.live(step.values[p + "moe.probs"]), chosen, axis=-1)
    if c.norm_topk_prob:
        share = share / share.sum(axis=-1, keepdims=True)
    share = share.astype(step.model.dtype)
    x = step.live(step.values[p + "moe_in"])
    ids = chosen.astype(mx.uint32)
    wide = backend.expert_linear(x[:, None], w.gate_up, ids)
    half = c.moe_intermediate_size
    each = backend.expert_linear(silu(wide[..., :half]) * wide[..., half:], w.down, ids)
    total = backend.sum_middle(share[..., None] * each)
    joint, start = step.values[p + "moe.shared_in"], c.num_experts + 1
    half = c.shared_expert_intermediate_size
    inner = silu(joint[:, start : start + half]) * joint[:, start + half :]
    shared = backend.linear(inner, w.shared_down) * mx.sigmoid(joint[:, start - 1 : start])
    block = step.pad(total) + shared
    step.values |= {p + "moe_out": block, p + "moe.weights": share}
    inject(step, p + "moe_inject", block)
