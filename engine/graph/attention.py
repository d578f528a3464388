"""Attention of a QSA layer: over the chosen groups and the raw tail, in one fixed-size list.

Owners: "qsa.kv" (k normed but not rotated, and v) and "qsa.index" (raw index keys). Keys are
rotated here, at their present positions.
"""

from __future__ import annotations

import math
from typing import Final

import mlx.core as mx
import numpy as np

from engine.graph.hyper import inject
from engine.graph.index import complete_groups, live_index
from engine.graph.numeric import rms
from engine.graph.rotary import Angles, rotate
from engine.stage import Step

MAX_GATHER_ELEMENTS: Final = 1 << 24
"""Keys that one attention call gathers at most, as far as it has more than `query_rows` rows."""


def project(step: Step, layer: int) -> None:
    """ "mixer_in" to rotated queries, gate, and the rows that go to the K/V and index owners."""
    c, p = step.model.config, f"layer.{layer}.qsa."
    w = step.model.layers[layer].qsa
    assert w is not None
    rows, d = step.n_rows, c.indexer_head_dim
    joint = step.model.backend.linear(step.values[f"layer.{layer}.mixer_in"], w.project)
    n_q, n_kv = 2 * c.num_attention_heads * c.head_dim, c.num_key_value_heads * c.head_dim
    q_gate = joint[:, :n_q].reshape(rows, c.num_attention_heads, 2 * c.head_dim)
    k = joint[:, n_q : n_q + n_kv].reshape(rows, c.num_key_value_heads, c.head_dim)
    v = joint[:, n_q + n_kv : n_q + 2 * n_kv].reshape(rows, c.num_key_value_heads, c.head_dim)
    index = joint[:, n_q + 2 * n_kv :].reshape(rows, c.indexer_n_heads + 1, d)
    angles = step.once("angles", lambda: query_angles(step))
    q = rms(q_gate[..., : c.head_dim], w.q_norm, c.rms_norm_eps)
    index_q = rms(index[:, :-1], w.index_q_norm, c.rms_norm_eps)
    k = step.live(rms(k, w.k_norm, c.rms_norm_eps)).astype(step.model.dtype)
    v, raw = step.live(v), step.live(index[:, -1])
    step.values |= {
        p + "q": rotate(q, angles),
        p + "gate": q_gate[..., c.head_dim :],
        p + "index_q": rotate(index_q, angles),
        p + "k": k,
        p + "v": v,
        p + "raw": raw,
    }
    step.state.append_rows("qsa.index", layer, "raw", raw)
    step.state.append_rows("qsa.kv", layer, "k", k)
    step.state.append_rows("qsa.kv", layer, "v", v)


def query_angles(step: Step) -> Angles:
    """[R, 1, R/2] angles at the tokens' positions, for any number of heads."""
    token = np.clip(np.arange(step.n_rows) - step.lead, 0, step.n_tokens - 1)
    index = mx.array((token + step.n_live_before).astype(np.int32))
    cos, sin = step.model.rotary.table(step.first_position, 1, step.n_live)
    return mx.take(cos, index, axis=0)[:, None], mx.take(sin, index, axis=0)[:, None]


def attend(step: Step, layer: int) -> None:
    """Attention output [R, H], injected into the streams."""
    p = f"layer.{layer}.qsa."
    w = step.model.layers[layer].qsa
    assert w is not None
    attend_rows = _in_place if step.model.backend.reads_in_place else _in_lists
    mixed, out = attend_rows(step, layer)
    gate = mx.sigmoid(step.values[p + "gate"].astype(mx.float32))
    gated = (out * gate).reshape(step.n_rows, -1).astype(step.model.dtype)
    block = step.model.backend.linear(gated, w.out)
    step.values |= {p + "mixed": mixed, f"layer.{layer}.mixer_out": block}
    inject(step, f"layer.{layer}.mixer_inject", block)


def _in_place(step: Step, layer: int) -> tuple[mx.array, mx.array]:
    """The chunk's rows [T, Hq, D] and the same padded, by a kernel that reads K and V as stored."""
    c, p, backend = step.model.config, f"layer.{layer}.qsa.", step.model.backend
    n = step.n_live
    angles = step.model.rotary.table(step.first_position, 1, n)
    k, v = (step.state.rows("qsa.kv", layer, part, 0, n) for part in ("k", "v"))
    q, at = step.live(step.values[p + "q"]), step.lead - step.queries.start
    groups = step.values[p + "groups"][at : at + step.n_tokens]
    mixed = backend.attend(q, k, v, angles, groups, c.group_size)
    return mixed, step.pad(mixed)


def _in_lists(step: Step, layer: int) -> tuple[mx.array, mx.array]:
    """The query rows [Q, Hq, D] and the same padded, each row with a gathered list of keys."""
    c, p = step.model.config, f"layer.{layer}.qsa."
    index, seen = visible(step, step.values[p + "groups"])
    q = step.values[p + "q"][step.queries] / math.sqrt(c.head_dim)
    rows = step.model.backend.query_rows
    per_row = index.shape[1] * c.num_key_value_heads * c.head_dim
    rows *= max(1, MAX_GATHER_ELEMENTS // (per_row * rows))
    parts = []
    for start in range(0, q.shape[0], rows):
        part = slice(start, start + rows)
        k, v = _gather(step, layer, index[part])
        parts.append(step.model.backend.attention(q[part], k, v, seen[part]))
    mixed = parts[0] if len(parts) == 1 else mx.concatenate(parts)
    outside = (step.queries.start, step.n_rows - step.queries.stop)
    out = mx.pad(mixed, [outside, (0, 0), (0, 0)]) if any(outside) else mixed
    return mixed, out


def visible(step: Step, groups: mx.array) -> tuple[mx.array, mx.array]:
    """Live indexes that every query attends to, and which of them are meant.

    Args:
        groups: [Q, topk] chosen groups, ascending, the complete ones first.
    Returns: [Q, topk*r + r-1] int32 and bool: members of the groups, then the raw tail. What is
    not meant points at the query's own token.
    """
    r = step.model.config.group_size
    own = step.once("live_index", lambda: live_index(step))[:, None]
    complete = step.once("complete", lambda: complete_groups(step))
    members = (groups * r)[..., None] + mx.arange(r, dtype=mx.int32)
    rows = members.shape[0]
    in_group = mx.repeat(groups < complete, r, axis=1)
    tail = complete * r + mx.arange(r - 1, dtype=mx.int32)
    index = mx.concatenate([members.reshape(rows, -1), tail], axis=1)
    seen = mx.concatenate([in_group, tail <= own], axis=1)
    return mx.where(seen, index, own), seen


def _gather(step: Step, layer: int, index: mx.array) -> tuple[mx.array, mx.array]:
    """[Q, S, Hkv, D] float32 keys, rotated at their positions, and values."""
    k = step.state.gather("qsa.kv", layer, "k", index).astype(mx.float32)
    v = step.state.gather("qsa.kv", layer, "v", index).astype(mx.float32)
    cos, sin = step.model.rotary.table(step.first_position, 1, step.n_live)
    angles = (
        mx.take(cos, index, axis=0)[:, :, None],
        mx.take(sin, index, axis=0)[:, :, None],
    )
    return rotate(k, angles), v
