"""Per-layer n-gram embedding, added to the streams before the mixer.

Owners: "ple.history" (the last N-1 ids) and "ple.conv" (the last (Kp-1)*N normed rows).
"""

from __future__ import annotations

import math

import mlx.core as mx
import numpy as np

from engine.graph import ple_hash
from engine.graph.model import PleWeights
from engine.graph.numeric import grouped_rms, silu
from engine.graph.window import convolve, host, past_rows
from engine.stage import Step


def ple(step: Step, layer: int) -> None:
    """Adds [R, n, H] to "streams"; the gate's dot product and the sum are checked."""
    c, p = step.model.config, f"layer.{layer}.ple."
    w = step.model.layers[layer].ple
    assert w is not None
    rows = _table_rows(step, layer, w)
    emb = step.pad(mx.take(w.table, rows, axis=0).reshape(step.n_tokens, -1))
    both = step.model.backend.linear(emb, w.key_value)
    streams = step.values["streams"]
    shape = streams.shape
    key = grouped_rms(both[:, : c.stream_width].reshape(shape), w.norm_key, c.rms_norm_eps)
    query = grouped_rms(streams, w.norm_query, c.rms_norm_eps)
    dot = (key * query).sum(axis=-1) / math.sqrt(c.hidden_size)
    gate = mx.sigmoid(mx.sign(dot) * mx.sqrt(mx.maximum(mx.abs(dot), 1e-6)))
    gated = gate[:, :, None] * both[:, None, c.stream_width :].astype(mx.float32)
    normed = grouped_rms(gated, w.norm_conv, c.rms_norm_eps).astype(step.model.dtype)
    n_past = (c.ple_conv_kernel_size - 1) * c.ngram_size
    past = past_rows(step, "ple.conv", layer, (n_past, c.stream_width))
    mixed, window = convolve(step, normed.reshape(step.n_rows, -1), past, w.conv, c.ngram_size)
    out = (gated + silu(mixed).reshape(shape)).astype(step.model.dtype)
    step.values |= {p + "dot": dot, p + "out": out, p + "window": window, p + "rows": rows}
    step.values["streams"] = streams + out
    step.state.set_fixed("ple.conv", layer, window)


def _table_rows(step: Step, layer: int, w: PleWeights) -> mx.array:
    """[T, heads] int32 or int64 rows of the table; moves the history on."""
    c = step.model.config
    history = host(step.state.fixed("ple.history", layer))
    if history is None:
        history = np.full(c.ngram_size - 1, c.eos_token_id, dtype=np.int64)
    context = ple_hash.contexts(step.tokens, history, c.eos_token_id)
    following = np.concatenate([history, step.tokens])[-len(history) :]
    step.state.set_fixed("ple.history", layer, mx.array(following))
    return mx.array(ple_hash.rows_of(context, w.multipliers, w.sizes, w.offsets))
