"""Weights of a decoder as the stages read them.

Owns the layout in memory: products that share an input are one matrix, norm weights hold the
stored offset plus one in float32, matrices are as the backend prepared them ([in, out]).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import mlx.core as mx
import numpy as np
import numpy.typing as npt

from engine.config import Config
from engine.graph.backend import Backend
from engine.graph.rotary import Rotary


@dataclass(frozen=True, slots=True)
class HyperWeights:
    """A hyper-connection: how the streams mix into a block's input and how its output goes back."""

    norm: mx.array
    """[n, H] float32."""
    down: mx.array
    """[nH, rank + n]: the low-rank input mix, then the injection weights (rank only: no block)."""
    up: mx.array
    """[rank, nH]."""


@dataclass(frozen=True, slots=True)
class GdnWeights:
    """A gated delta net layer."""

    project: mx.array
    """[H, C + Hv*dv + 2*Hv]: q, k, v; output gate z; a; b."""
    conv: mx.array
    """[K, C] float32, the oldest row first."""
    decay: mx.array
    """[Hv] float32: -exp(A_log)."""
    dt_bias: mx.array
    """[Hv] float32."""
    norm: mx.array
    """[dv] float32, stored as it is."""
    out: mx.array
    """[Hv*dv, H]."""


@dataclass(frozen=True, slots=True)
class QsaWeights:
    """An attention layer with its index."""

    project: mx.array
    """[H, 2*Hq*D + 2*Hkv*D + (Hi+1)*d]: q and gate by head; k; v; index q and k."""
    q_norm: mx.array
    k_norm: mx.array
    """[D] float32."""
    index_q_norm: mx.array
    index_k_norm: mx.array
    """[d] float32."""
    out: mx.array
    """[Hq*D, H]."""


@dataclass(frozen=True, slots=True)
class MoeWeights:
    """Router, experts and the shared expert."""

    route: mx.array
    """[H, experts + 1 + 2*Is]: router; gate of the shared expert; its gate and up halves."""
    gate_up: mx.array
    """[experts, H, 2*I]."""
    down: mx.array
    """[experts, I, H]."""
    shared_down: mx.array
    """[Is, H]."""


@dataclass(frozen=True, slots=True)
class PleWeights:
    """A per-layer n-gram embedding. The three int64 vectors stay on the host."""

    multipliers: npt.NDArray[np.int64]
    sizes: npt.NDArray[np.int64]
    offsets: npt.NDArray[np.int64]
    table: mx.array
    """[rows, E / heads]."""
    key_value: mx.array
    """[E, nH + H]."""
    norm_key: mx.array
    norm_query: mx.array
    norm_conv: mx.array
    """[n, H] float32."""
    conv: mx.array
    """[Kp, nH] float32, the oldest row first."""


@dataclass(frozen=True, slots=True)
class LayerWeights:
    """One layer: `gdn` or `qsa`, `ple` where it is listed."""

    attn: HyperWeights
    mlp: HyperWeights
    moe: MoeWeights
    gdn: GdnWeights | None = None
    qsa: QsaWeights | None = None
    ple: PleWeights | None = None


@dataclass(slots=True)
class Model:
    """A loaded decoder; it belongs to the thread that loaded it."""

    config: Config
    backend: Backend
    dtype: mx.Dtype
    embed: mx.array
    """[V, H]."""
    layers: tuple[LayerWeights, ...]
    final: HyperWeights
    head: mx.array
    """[H, V]."""
    weight_bytes: int = 0
    rotary: Rotary = field(init=False)

    def __post_init__(self) -> None:
        self.rotary = Rotary(self.config.rope_theta, self.config.rotary_dim)
