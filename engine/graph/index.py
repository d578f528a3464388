"""The index of a QSA layer: groups of positions, their pooled keys, and which groups a query sees.

Group g holds the live indexes r*g .. r*g + r - 1, counted from the first live position whatever
its number; it is rotated at the position of its first member. Owner: "qsa.groups", pooled keys of
complete groups, normalised and not rotated.
"""

from __future__ import annotations

import math

import mlx.core as mx
import numpy as np

from engine.graph.backend import GROUP_BLOCK
from engine.graph.model import Model
from engine.graph.numeric import largest, rms
from engine.graph.rotary import rotate
from engine.stage import GroupCheck, Step


def partition(step: Step, layer: int) -> None:
    """Appends a status word: do the device's positions form the groups that the host counted?

    Looks at the positions from the start of the group before this chunk's first token on, so the
    work does not grow with the history; earlier groups were looked at when they were written.
    """
    r = step.model.config.group_size
    start = max(0, step.n_live_before // r * r - r)
    first = step.first_position + start
    seen = step.state.cells(start, step.n_live)
    if seen is None:
        before = np.arange(start, step.n_live_before, dtype=np.int64) + step.first_position
        seen = np.concatenate([before, step.positions])
    cells = mx.array(seen).astype(mx.int32)
    word, part = step.model.backend.group_status(cells, first, r)
    step.status.append(GroupCheck(word, part, first, step.n_live - start, r, start // r))


def pool(step: Step, layer: int) -> None:
    """Pooled keys of the groups that this chunk completes (a row of zeros if it completes none)."""
    c, p = step.model.config, f"layer.{layer}.qsa."
    r, d = c.group_size, c.indexer_head_dim
    first, stop = step.n_live_before // r, step.n_live // r
    if first == stop:
        step.values[p + "pooled"] = mx.zeros((1, d), step.model.dtype)
        return
    raw = step.state.rows("qsa.index", layer, "raw", first * r, stop * r)
    pooled = pooled_keys(step.model, layer, raw.reshape(stop - first, r, d))
    step.values[p + "pooled"] = pooled
    step.state.put_groups(layer, first, pooled)


def pooled_keys(model: Model, layer: int, raw: mx.array) -> mx.array:
    """[n, r, d] raw index keys of whole groups to [n, d]: mean in float32, then norm."""
    w = model.layers[layer].qsa
    assert w is not None
    mean = model.backend.sum_middle(raw.astype(mx.float32)) / raw.shape[1]
    return rms(mean, w.index_k_norm, model.config.rms_norm_eps).astype(model.dtype)


def select(step: Step, layer: int) -> None:
    """Scores [Q, G] float32 of all groups, unmasked, and the chosen ones [Q, topk] int32.

    Chosen groups ascend; the first `min(topk, complete)` are meant. G is the number of complete
    groups in whole blocks, the rest zeros.
    """
    c, p = step.model.config, f"layer.{layer}.qsa."
    n_groups = step.n_live // c.group_size
    padded = max(1, -(-max(n_groups, c.topk_groups) // GROUP_BLOCK)) * GROUP_BLOCK
    pooled = mx.zeros((padded, c.indexer_head_dim))
    if n_groups:
        keys = step.state.groups(layer, 0, n_groups).astype(mx.float32)
        angles = step.model.rotary.table(step.first_position, c.group_size, n_groups)
        keys = rotate(keys, angles)
        pooled = mx.pad(keys, [(0, padded - n_groups), (0, 0)])
    scores = step.model.backend.index_scores(step.values[p + "index_q"][step.queries], pooled)
    scores = scores / math.sqrt(c.indexer_head_dim)
    complete = step.once("complete", lambda: complete_groups(step))
    legal = mx.arange(padded, dtype=mx.int32) < complete
    step.values |= {
        p + "scores": scores,
        p + "groups": largest(scores, c.topk_groups, legal),
    }


def live_index(step: Step) -> mx.array:
    """[Q] int32 live index of every query row's token; padding rows have their neighbour's."""
    rows = np.arange(step.queries.start, step.queries.stop)
    token = np.clip(rows - step.lead, 0, step.n_tokens - 1)
    return mx.array((token + step.n_live_before).astype(np.int32))


def complete_groups(step: Step) -> mx.array:
    """[Q, 1] int32 complete groups that every row's token may see."""
    live: mx.array = step.once("live_index", lambda: live_index(step))
    return ((live + 1) // step.model.config.group_size)[:, None]
