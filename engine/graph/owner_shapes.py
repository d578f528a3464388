"""What every owner keeps of a sequence, for allocation, session files and checks. No arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from engine.config import Config

Unit = Literal["sequence", "position", "group"]


@dataclass(frozen=True, slots=True)
class OwnerShape:
    """One array of an owner."""

    owner: str
    layer: int
    """From 0; -1 where there is one for the whole sequence."""
    part: str
    """"k", "v", "raw"; empty where the owner has one part."""
    unit: Unit
    """What there is one array (sequence) or one row (position, group) of."""
    shape: tuple[int, ...]
    """Without the axis of positions or groups."""
    dtype: str
    """"float32", "int32", "int64", or "model" for the dtype of the weights."""


def owner_shapes(config: Config) -> tuple[OwnerShape, ...]:
    """Every array of every owner of one sequence, owner by owner, layers ascending."""
    c = config
    out: list[OwnerShape] = []

    def add(owner: str, layer: int, part: str, unit: Unit, shape: tuple[int, ...], dt: str) -> None:
        out.append(OwnerShape(owner, layer, part, unit, shape, dt))

    gdn = [n for n, kind in enumerate(c.layers) if kind == "gdn"]
    qsa = [n for n, kind in enumerate(c.layers) if kind == "qsa"]
    for n in qsa:
        for part in ("k", "v"):
            row = (c.num_key_value_heads, c.head_dim)
            add("qsa.kv", n, part, "position", row, "model")
    for n in qsa:
        add("qsa.index", n, "raw", "position", (c.indexer_head_dim,), "model")
    for n in qsa:
        add("qsa.groups", n, "", "group", (c.indexer_head_dim,), "model")
    matrix = (c.linear_num_value_heads, c.linear_key_head_dim, c.linear_value_head_dim)
    for n in gdn:
        window = (c.linear_conv_kernel_dim - 1, c.conv_channels)
        add("gdn.conv", n, "", "sequence", window, "model")
    for n in gdn:
        add("gdn.recurrent", n, "", "sequence", matrix, "float32")
    for n in c.ple_layers:
        add("ple.history", n, "", "sequence", (c.ngram_size - 1,), "int64")
    for n in c.ple_layers:
        window = ((c.ple_conv_kernel_size - 1) * c.ngram_size, c.stream_width)
        add("ple.conv", n, "", "sequence", window, "model")
    add("residual", -1, "", "sequence", (c.hc_count, c.hidden_size), "model")
    for n in range(len(c.layers)):
        add("routes", n, "", "sequence", (c.num_experts_per_tok,), "int32")
    add("logits", -1, "", "sequence", (c.vocab_size,), "float32")
    return tuple(out)
