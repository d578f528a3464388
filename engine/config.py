"""The configuration of a Qwen4Exp text decoder, checked field by field.

Owns the meaning of `config.json`: names, class defaults, limits, and which combinations make a
decoder. Reads no weights and uses no array library, so that a bad file is refused before
anything is allocated.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from engine.errors import Malformed, Unreadable
from engine.small_file import content_of
from engine.terms import GROUP_SIZE

GDN: Final = "linear_attention"
QSA_NAMES: Final = ("full_attention", "indexed_attention", "qwen_sparse_attention")
MODEL_TYPES: Final = ("qwen4_exp_text", "qwen4_exp")
MAX_CONFIG_BYTES: Final = 1 << 24
MAX_SIZE: Final = 2**31 - 1
MAX_LAYERS: Final = 4096
MAX_SMALL: Final = 4096
"""Limit of counts that make loops on the host: streams, heads, kernel widths, n-gram heads."""

LayerKind = Literal["gdn", "qsa"]


@dataclass(frozen=True, slots=True)
class Config:
    """Sizes and choices of one decoder. Field names follow `config.json` where they exist."""

    vocab_size: int
    hidden_size: int
    rms_norm_eps: float
    layers: tuple[LayerKind, ...]
    ple_layers: tuple[int, ...]
    """Layers (from 0) with a PLE module, ascending: entry j has PLE module j."""
    hc_count: int
    hc_lowrank: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    rope_theta: float
    rotary_dim: int
    linear_num_key_heads: int
    linear_num_value_heads: int
    linear_key_head_dim: int
    linear_value_head_dim: int
    linear_conv_kernel_dim: int
    output_gate: Literal["sigmoid", "silu"]
    num_experts: int
    num_experts_per_tok: int
    norm_topk_prob: bool
    moe_intermediate_size: int
    shared_expert_intermediate_size: int
    indexer_n_heads: int
    indexer_head_dim: int
    indexer_budget: int
    group_size: int
    """`indexer_compress_ratio`: positions in a group."""
    ple_embed_dim: int
    ple_conv_kernel_size: int
    ngram_size: int
    heads_per_ngram: int
    ngram_vocab_size_base: int
    make_ngram_vocab_size_divisible_by: int
    seed: int
    split_ngram_parts: int
    eos_token_id: int
    """First entry where the file has a list; -1 where it has none (legal without PLE)."""
    tie_word_embeddings: bool

    @property
    def topk_groups(self) -> int:
        """Groups that a query attends to at most."""
        return self.indexer_budget // self.group_size

    @property
    def conv_channels(self) -> int:
        """Channels of the GDN convolution: q, k and v of all heads."""
        keys = self.linear_num_key_heads * self.linear_key_head_dim
        return 2 * keys + self.linear_num_value_heads * self.linear_value_head_dim

    @property
    def stream_width(self) -> int:
        """All residual streams of a token side by side."""
        return self.hc_count * self.hidden_size

    @property
    def ngram_heads(self) -> int:
        """Hash heads of a PLE module, all orders together."""
        return (self.ngram_size - 1) * self.heads_per_ngram


class _Fields:
    """Reads fields of one JSON object; every refusal names the file, the field and both values."""

    def __init__(self, path: str, data: dict[str, Any]) -> None:
        self.path, self.data = path, data

    def bad(self, what: str, expected: str, given: object) -> Malformed:
        found = json.dumps(given) if not isinstance(given, str) else given
        return Malformed(self.path, what, expected, found[:80])

    def integer(self, key: str, default: int | None, low: int = 1, high: int = MAX_SIZE) -> int:
        value = self.data.get(key, default)
        if type(value) is not int or not low <= value <= high:
            raise self.bad(key, f"an integer from {low} to {high}", value)
        return value

    def number(self, data: dict[str, Any], key: str, default: float) -> float:
        value = data.get(key, default)
        # 1e30 is far above any sensible base and keeps every product finite
        if type(value) not in (int, float) or not 0 < value < 1e30:
            raise self.bad(key, "a positive number", value)
        return float(value)

    def flag(self, key: str, default: bool) -> bool:
        value = self.data.get(key, default)
        if type(value) is not bool:
            raise self.bad(key, "true or false", value)
        return value

    def only(self, key: str, legal: object) -> None:
        """A field whose other values would be another model."""
        if key in self.data and self.data[key] is not None and self.data[key] != legal:
            raise self.bad(key, json.dumps(legal), self.data[key])


def read_config(folder: str | Path) -> Config:
    """The checked configuration of a model folder.

    A multimodal `config.json` is read at its `text_config`.
    Raises: Unreadable when there is no such file or it isn't JSON, Malformed when a field is
    missing, of a wrong type, out of range, or at odds with another one.
    """
    path = Path(folder) / "config.json"
    try:
        if not Path(folder).is_dir():
            raise Unreadable(str(folder), "not a model folder", "a folder with config.json")
        data = json.loads(content_of(path, MAX_CONFIG_BYTES))
    except OSError as error:
        raise Unreadable(str(path), f"can't be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise Unreadable(str(path), "not JSON", "a JSON object", str(error)[:80]) from None
    return parse_config(data, str(path))


def parse_config(data: object, path: str = "config.json") -> Config:
    """The checked configuration out of parsed JSON; errors as in `read_config`."""
    if not isinstance(data, dict):
        raise Malformed(path, "configuration", "a JSON object", type(data).__name__)
    if isinstance(data.get("text_config"), dict):
        outer = data
        data = dict(data["text_config"])
        data.setdefault("tie_word_embeddings", outer.get("tie_word_embeddings", False))
    f = _Fields(path, data)
    if data.get("model_type") not in MODEL_TYPES:
        raise f.bad("model_type", " or ".join(MODEL_TYPES), data.get("model_type"))
    for key, legal in (("hidden_act", "silu"), ("attention_bias", False)):
        f.only(key, legal)
    layers = _layers(f)
    theta, rotary = _rotary(f)
    qsa = _indexer(f, rotary, required="qsa" in layers)
    ple_layers = _ple_layers(f, layers)
    hidden = f.integer("hidden_size", 2048)
    config = Config(
        vocab_size=f.integer("vocab_size", 248320),
        hidden_size=hidden,
        rms_norm_eps=f.number(data, "rms_norm_eps", 1e-6),
        layers=layers,
        ple_layers=ple_layers,
        hc_count=f.integer("hc_count", 4, 2, MAX_SMALL),
        hc_lowrank=f.integer("hc_lowrank", 320),
        num_attention_heads=f.integer("num_attention_heads", 16, 1, MAX_SMALL),
        num_key_value_heads=f.integer("num_key_value_heads", 2, 1, MAX_SMALL),
        head_dim=f.integer("head_dim", 256),
        rope_theta=theta,
        rotary_dim=rotary,
        linear_num_key_heads=f.integer("linear_num_key_heads", 16, 1, MAX_SMALL),
        linear_num_value_heads=f.integer("linear_num_value_heads", 32, 1, MAX_SMALL),
        linear_key_head_dim=f.integer("linear_key_head_dim", 128),
        linear_value_head_dim=f.integer("linear_value_head_dim", 128),
        linear_conv_kernel_dim=f.integer("linear_conv_kernel_dim", 4, 2, MAX_SMALL),
        output_gate=_output_gate(f),
        num_experts=f.integer("num_experts", 512),
        num_experts_per_tok=f.integer("num_experts_per_tok", 10, 1, MAX_SMALL),
        norm_topk_prob=f.flag("norm_topk_prob", True),
        moe_intermediate_size=f.integer("moe_intermediate_size", 512),
        shared_expert_intermediate_size=f.integer("shared_expert_intermediate_size", 512),
        indexer_n_heads=qsa[0],
        indexer_head_dim=qsa[1],
        indexer_budget=qsa[2],
        group_size=qsa[3],
        ple_embed_dim=hidden
        if data.get("ple_embed_dim") is None
        else f.integer("ple_embed_dim", None),
        ple_conv_kernel_size=f.integer("ple_conv_kernel_size", 4, 1, MAX_SMALL),
        ngram_size=f.integer("ngram_size", 3, 2, MAX_SMALL),
        heads_per_ngram=f.integer("heads_per_ngram", 8, 1, MAX_SMALL),
        ngram_vocab_size_base=f.integer("ngram_vocab_size_base", 20_000_000),
        make_ngram_vocab_size_divisible_by=f.integer("make_ngram_vocab_size_divisible_by", 128),
        seed=f.integer("seed", 1234, -(2**63), 2**63 - 1),
        split_ngram_parts=f.integer("split_ngram_parts", 512, 1, 1 << 20),
        eos_token_id=_eos(f, bool(ple_layers)),
        tie_word_embeddings=f.flag("tie_word_embeddings", False),
    )
    _check_ratios(f, config)
    return config


def _layers(f: _Fields) -> tuple[LayerKind, ...]:
    n = f.integer("num_hidden_layers", 40, 1, MAX_LAYERS)
    names = f.data.get("layer_types")
    if names is None:
        every = f.integer("full_attention_interval", 4)
        return tuple("gdn" if (i + 1) % every else "qsa" for i in range(n))
    if not isinstance(names, list) or len(names) != n:
        given = len(names) if isinstance(names, list) else names
        raise f.bad("layer_types", f"a list of {n} names, one a layer", given)
    for i, name in enumerate(names):
        if name != GDN and name not in QSA_NAMES:
            raise f.bad(f"layer_types[{i}]", f"{GDN} or {' or '.join(QSA_NAMES)}", name)
    return tuple("gdn" if name == GDN else "qsa" for name in names)


def _rotary(f: _Fields) -> tuple[float, int]:
    rope = f.data.get("rope_parameters")
    rope = {} if rope is None else rope
    if not isinstance(rope, dict):
        raise f.bad("rope_parameters", "an object", rope)
    if rope.get("rope_type", "default") != "default":
        raise f.bad("rope_parameters.rope_type", "default", rope.get("rope_type"))
    theta = f.number(rope, "rope_theta", f.number(f.data, "rope_theta", 10_000.0))
    factor = f.number(rope, "partial_rotary_factor", f.number(f.data, "partial_rotary_factor", 1.0))
    head = f.integer("head_dim", 256)
    width = int(head * factor)
    if width % 2 or not 2 <= width <= head:
        raise f.bad(
            "head_dim times partial_rotary_factor", f"an even width from 2 to {head}", width
        )
    return theta, width


def _indexer(f: _Fields, rotary: int, required: bool) -> tuple[int, int, int, int]:
    """(heads, width, budget, group size); nothing but a group size where no layer needs them."""
    keys = ("indexer_n_heads", "indexer_head_dim", "indexer_budget", "indexer_compress_ratio")
    if not required and all(f.data.get(key) is None for key in keys):
        return 0, 0, 0, GROUP_SIZE
    heads = f.integer(keys[0], None, 1, MAX_SMALL)
    width, budget, ratio = (f.integer(key, None) for key in keys[1:])
    if f.data.get("indexer_kv_heads", 1) != 1:
        raise f.bad("indexer_kv_heads", "1", f.data["indexer_kv_heads"])
    if ratio > MAX_SMALL or budget % ratio:
        raise f.bad("indexer_budget", f"a multiple of indexer_compress_ratio ({ratio})", budget)
    if rotary > width:
        raise f.bad("indexer_head_dim", f"at least the rotary width {rotary}", width)
    return heads, width, budget, ratio


def _ple_layers(f: _Fields, layers: tuple[LayerKind, ...]) -> tuple[int, ...]:
    ids = f.data.get("ple_layer_ids")
    ids = [] if ids is None else ids
    if not isinstance(ids, list) or not all(type(i) is int for i in ids):
        raise f.bad("ple_layer_ids", "a list of layer numbers, counted from 1", ids)
    for i in ids:
        if not 1 <= i <= len(layers):
            raise f.bad("ple_layer_ids", f"layer numbers from 1 to {len(layers)}", i)
        if layers[i - 1] != "gdn":
            raise f.bad("ple_layer_ids", f"only layers of type {GDN}", f"layer number {i}")
    return tuple(sorted({i - 1 for i in ids}))


def _output_gate(f: _Fields) -> Literal["sigmoid", "silu"]:
    value = f.data.get("output_gate_type")
    if value is None or value == "silu":
        return "silu"
    if value == "sigmoid":
        return "sigmoid"
    raise f.bad("output_gate_type", "sigmoid or silu", value)


def _eos(f: _Fields, required: bool) -> int:
    value = f.data.get("eos_token_id")
    first = value[0] if isinstance(value, list) and value else value
    if first is None and not required:
        return -1
    vocab = f.integer("vocab_size", 248320)
    if type(first) is not int or not 0 <= first < vocab:
        raise f.bad("eos_token_id", f"a token id below {vocab}, or a list of them", value)
    return first


def _check_ratios(f: _Fields, c: Config) -> None:
    """Sizes that must divide or bound each other."""
    for upper, lower in (
        ("num_attention_heads", "num_key_value_heads"),
        ("linear_num_value_heads", "linear_num_key_heads"),
    ):
        if getattr(c, upper) % getattr(c, lower):
            raise f.bad(upper, f"a multiple of {lower} ({getattr(c, lower)})", getattr(c, upper))
    if c.num_experts_per_tok > c.num_experts:
        raise f.bad("num_experts_per_tok", f"at most {c.num_experts}", c.num_experts_per_tok)
    if not c.ple_layers:
        return
    if c.ngram_heads > MAX_SMALL or c.ngram_heads * len(c.ple_layers) > 4 * MAX_SMALL:
        raise f.bad("heads_per_ngram", f"at most {MAX_SMALL} n-gram heads", c.ngram_heads)
    if c.ple_embed_dim % c.ngram_heads:
        raise f.bad("ple_embed_dim", f"a multiple of {c.ngram_heads} n-gram heads", c.ple_embed_dim)
    if c.ple_conv_kernel_size * c.ngram_size > MAX_SMALL:
        raise f.bad("ple_conv_kernel_size", f"a window of at most {MAX_SMALL} rows", c.ngram_size)
