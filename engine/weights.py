"""Loads a model folder: `config.json` and safetensors with Hugging Face names.

Owns the names of weights and the two layouts of experts. Every shape and dtype is compared with
the configuration before anything is allocated. Weights belong to the thread that loads them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

import mlx.core as mx
import numpy as np
import numpy.typing as npt

from engine.config import Config, read_config
from engine.errors import Malformed
from engine.graph import ple_hash
from engine.graph.backend import Backend, backend_for
from engine.graph.model import (
    GdnWeights,
    HyperWeights,
    LayerWeights,
    Model,
    MoeWeights,
    PleWeights,
    QsaWeights,
)
from engine.graph.owner_shapes import OwnerShape, owner_shapes
from engine.memory import admit_bytes
from engine.tensors import TensorFolder

__all__ = ["OwnerShape", "load_model", "owner_shapes"]

DTYPES = {"float32": mx.float32, "bfloat16": mx.bfloat16, "float16": mx.float16}
PREFIXES = ("model.", "model.language_model.", "language_model.model.")
HEADS = ("lm_head.weight", "language_model.lm_head.weight")


def load_model(
    folder: str | Path, dtype: str | mx.Dtype | None = None, backend: Backend | None = None
) -> Model:
    """The decoder of a folder, evaluated in the calling thread.

    Args:
        dtype: of products and state; without it that of the stored embedding.
        backend: without it that of the array library's default device.
    Raises: Unreadable for files that can't be read, Malformed for contents that do not make the
    configured decoder, ValueError for an unknown dtype.
    """
    if isinstance(dtype, str):
        if dtype not in DTYPES:
            raise ValueError(f"dtype: expected {', '.join(DTYPES)}, given {dtype}")
        dtype = DTYPES[dtype]
    config, tensors = read_config(folder), TensorFolder(folder)
    backend = backend or backend_for()
    admit_bytes(tensors.folder, "weights", tensors.bytes_as(dtype), backend.name)
    return build_model(config, tensors, dtype, backend)


class Tensors(Protocol):
    """Where weights come from; `TensorFolder` is the one of files."""

    folder: str

    def has(self, name: str) -> bool:
        """Is there a tensor of this name?"""

    def path(self, name: str) -> str:
        """Where a tensor stands, for a sentence."""

    def shape(self, name: str) -> tuple[int, ...]:
        """The stored shape. Raises: Malformed when there is none."""

    def floats(self, name: str, shape: tuple[int, ...]) -> mx.array:
        """A float tensor of this shape. Raises: Malformed, Unreadable."""

    def integers(self, name: str, shape: tuple[int, ...]) -> npt.NDArray[np.int64]:
        """Integers of this shape. Raises: Malformed, Unreadable."""


def build_model(
    config: Config, tensors: Tensors, dtype: mx.Dtype | None, backend: Backend
) -> Model:
    """The configured decoder from tensors by name, evaluated in the calling thread.

    Raises: as `load_model`.
    """
    return _Loader(config, tensors, dtype, backend).model()


class _Loader:
    """Weights of one folder by name, cast and laid out for the stages."""

    def __init__(
        self, config: Config, tensors: Tensors, dtype: mx.Dtype | None, backend: Backend
    ) -> None:
        self.config, self.tensors, self.backend = config, tensors, backend
        self.prefix = next(
            (p for p in PREFIXES if tensors.has(p + "embed_tokens.weight")), PREFIXES[0]
        )
        shape = (config.vocab_size, config.hidden_size)
        embed = tensors.floats(self.prefix + "embed_tokens.weight", shape)
        self.dtype = embed.dtype if dtype is None else dtype
        self.embed = embed.astype(self.dtype)
        self.bytes = 0

    def model(self) -> Model:
        """Loads everything, a layer at a time."""
        c = self.config
        self._keep(self.embed)
        layers = tuple(self._layer(n) for n in range(len(c.layers)))
        final = self._hyper("hyper_connection_mixer.", inject=False)
        if c.tie_word_embeddings:
            head = self.embed
        else:
            name = next((n for n in HEADS if self.tensors.has(n)), HEADS[0])
            head = self.tensors.floats(name, (c.vocab_size, c.hidden_size)).astype(self.dtype)
        head = self._keep(self.backend.prepare(head))
        return Model(c, self.backend, self.dtype, self.embed, layers, final, head, self.bytes)

    def _keep(self, array: mx.array) -> mx.array:
        """Evaluated now, so that the stored pieces can go."""
        mx.eval(array)
        self.bytes += array.nbytes
        return array

    def _raw(self, name: str, *shape: int) -> mx.array:
        return self.tensors.floats(self.prefix + name, shape)

    def _products(self, *weights: mx.array) -> mx.array:
        """Matrices [out, in] that share an input, as one prepared matrix."""
        joined = mx.concatenate([w.astype(self.dtype) for w in weights]) if weights[1:] else None
        one = weights[0].astype(self.dtype) if joined is None else joined
        return self._keep(self.backend.prepare(one))

    def _vector(self, name: str, *shape: int) -> mx.array:
        return self._keep(self._raw(name, *shape).astype(mx.float32))

    def _norm(self, name: str, width: int, *shape: int) -> mx.array:
        """A norm weight: stored as an offset from one."""
        scale = self._raw(name, width).astype(mx.float32) + 1.0
        return self._keep(scale.reshape(shape) if shape else scale)

    def _conv(self, name: str, channels: int, width: int) -> mx.array:
        weight = self._raw(name, channels, 1, width).astype(mx.float32)
        return self._keep(mx.contiguous(weight[:, 0].T))

    def _hyper(self, p: str, inject: bool = True) -> HyperWeights:
        c = self.config
        down = [self._raw(p + "input_mix_weight_down.weight", c.hc_lowrank, c.stream_width)]
        if inject:
            down.append(self._raw(p + "block_inject_weight.weight", c.hc_count, c.stream_width))
        return HyperWeights(
            norm=self._norm(p + "hc_norm.weight", c.stream_width, c.hc_count, c.hidden_size),
            down=self._products(*down),
            up=self._products(
                self._raw(p + "input_mix_weight_up.weight", c.stream_width, c.hc_lowrank)
            ),
        )

    def _layer(self, n: int) -> LayerWeights:
        p, kind = f"layers.{n}.", self.config.layers[n]
        return LayerWeights(
            attn=self._hyper(p + "attn_hyper_connection."),
            mlp=self._hyper(p + "mlp_hyper_connection."),
            moe=self._moe(p + "mlp."),
            gdn=self._gdn(p + "linear_attn.") if kind == "gdn" else None,
            qsa=self._qsa(p + "self_attn.") if kind == "qsa" else None,
            ple=self._ple(p + "ple.", self.config.ple_layers.index(n))
            if n in self.config.ple_layers
            else None,
        )

    def _gdn(self, p: str) -> GdnWeights:
        c = self.config
        h, heads = c.hidden_size, c.linear_num_value_heads
        width = heads * c.linear_value_head_dim
        return GdnWeights(
            project=self._products(
                self._raw(p + "in_proj_qkv.weight", c.conv_channels, h),
                self._raw(p + "in_proj_z.weight", width, h),
                self._raw(p + "in_proj_a.weight", heads, h),
                self._raw(p + "in_proj_b.weight", heads, h),
            ),
            conv=self._conv(p + "conv1d.weight", c.conv_channels, c.linear_conv_kernel_dim),
            decay=self._keep(-mx.exp(self._raw(p + "A_log", heads).astype(mx.float32))),
            dt_bias=self._vector(p + "dt_bias", heads),
            norm=self._vector(p + "norm.weight", c.linear_value_head_dim),
            out=self._products(self._raw(p + "out_proj.weight", h, width)),
        )

    def _qsa(self, p: str) -> QsaWeights:
        c = self.config
        h, d = c.hidden_size, c.indexer_head_dim
        n_q, n_kv = c.num_attention_heads * c.head_dim, c.num_key_value_heads * c.head_dim
        index = (c.indexer_n_heads + 1) * d
        return QsaWeights(
            project=self._products(
                self._raw(p + "q_proj.weight", 2 * n_q, h),
                self._raw(p + "k_proj.weight", n_kv, h),
                self._raw(p + "v_proj.weight", n_kv, h),
                self._raw(p + "indexer.index_qk_proj.weight", index, h),
            ),
            q_norm=self._norm(p + "q_norm.weight", c.head_dim),
            k_norm=self._norm(p + "k_norm.weight", c.head_dim),
            index_q_norm=self._norm(p + "indexer.q_layernorm.weight", d),
            index_k_norm=self._norm(p + "indexer.k_layernorm.weight", d),
            out=self._products(self._raw(p + "o_proj.weight", h, n_q)),
        )

    def _moe(self, p: str) -> MoeWeights:
        c = self.config
        h, shared = c.hidden_size, c.shared_expert_intermediate_size
        gate_up, down = self._experts(p + "experts.")
        return MoeWeights(
            route=self._products(
                self._raw(p + "gate.weight", c.num_experts, h),
                self._raw(p + "shared_expert_gate.weight", 1, h),
                self._raw(p + "shared_expert.gate_proj.weight", shared, h),
                self._raw(p + "shared_expert.up_proj.weight", shared, h),
            ),
            gate_up=gate_up,
            down=down,
            shared_down=self._products(self._raw(p + "shared_expert.down_proj.weight", h, shared)),
        )

    def _experts(self, p: str) -> tuple[mx.array, mx.array]:
        """Both matrices of all experts, from the fused layout or from one key an expert."""
        c = self.config
        h, inner = c.hidden_size, c.moe_intermediate_size
        if self.tensors.has(self.prefix + p + "gate_up_proj"):
            gate_up = self._raw(p + "gate_up_proj", c.num_experts, 2 * inner, h)
            down = self._raw(p + "down_proj", c.num_experts, h, inner)
            return self._products(gate_up), self._products(down)
        pairs, downs = [], []
        for e in range(c.num_experts):
            gate = self._raw(f"{p}{e}.gate_proj.weight", inner, h)
            up = self._raw(f"{p}{e}.up_proj.weight", inner, h)
            pairs.append(mx.concatenate([gate.astype(self.dtype), up.astype(self.dtype)]))
            downs.append(self._raw(f"{p}{e}.down_proj.weight", h, inner).astype(self.dtype))
        return self._products(mx.stack(pairs)), self._products(mx.stack(downs))

    def _ple(self, p: str, module: int) -> PleWeights:
        c = self.config
        h, wide = c.hidden_size, c.stream_width
        e, shape = p + "ple_embedding.", (c.hc_count, c.hidden_size)
        self._check_heads(e)
        sizes, offsets, rows = ple_hash.table_sizes(c, module)
        return PleWeights(
            multipliers=self._constant(e + "layer_multipliers", ple_hash.multipliers(c, module)),
            sizes=self._constant(e + "ngram_heads_vocab_sizes", sizes),
            offsets=self._constant(e + "ngram_heads_offsets", offsets),
            table=self._table(e + "ngram_embedding.", rows, c.ple_embed_dim // c.ngram_heads),
            key_value=self._products(
                self._raw(p + "key_proj.weight", wide, c.ple_embed_dim),
                self._raw(p + "value_proj.weight", h, c.ple_embed_dim),
            ),
            norm_key=self._norm(p + "norm_key.weight", wide, *shape),
            norm_query=self._norm(p + "norm_query.weight", wide, *shape),
            norm_conv=self._norm(p + "norm_conv.weight", wide, *shape),
            conv=self._conv(p + "conv1d.weight", wide, c.ple_conv_kernel_size),
        )

    def _check_heads(self, p: str) -> None:
        """Cheap shapes first: finding the primes of a made-up number of heads takes seconds."""
        heads = self.config.ngram_heads
        for name in ("ngram_heads_vocab_sizes", "ngram_heads_offsets"):
            full = self.prefix + p + name
            if self.tensors.has(full) and self.tensors.shape(full) != (heads,):
                raise Malformed(
                    self.tensors.path(full),
                    full,
                    f"shape [{heads}]",
                    f"{list(self.tensors.shape(full))}",
                )

    def _constant(self, name: str, computed: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Integers that follow from the configuration; a stored copy must agree."""
        full = self.prefix + name
        if self.tensors.has(full):
            stored = self.tensors.integers(full, computed.shape)
            if not np.array_equal(stored, computed):
                at = int(np.flatnonzero(stored != computed)[0])
                raise Malformed(
                    self.tensors.path(full), f"{full}[{at}]", f"{computed[at]}", f"{stored[at]}"
                )
        return computed

    def _table(self, p: str, rows: int, width: int) -> mx.array:
        """The n-gram table: one tensor, or shards joined in order of their number."""
        if self.tensors.has(self.prefix + p + "weight"):
            return self._keep(self._raw(p + "weight", rows, width).astype(self.dtype))
        shards: list[mx.array] = []
        found = 0
        while self.tensors.has(f"{self.prefix}{p}shard_{len(shards)}.weight"):
            name = f"{p}shard_{len(shards)}.weight"
            part = self.tensors.shape(self.prefix + name)
            part_rows = part[0] if part else 0
            shards.append(self._raw(name, part_rows, width).astype(self.dtype))
            found += part_rows
        if found != rows:
            raise Malformed(
                self.tensors.folder,
                f"{self.prefix}{p}shard_*.weight",
                f"{rows} rows in all",
                f"{found} rows in {len(shards)} shards",
            )
        return self._keep(mx.concatenate(shards))
