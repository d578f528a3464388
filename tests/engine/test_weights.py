"""Loading a model folder: what it accepts, and one clear sentence for what it does not."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import pytest

from engine.config import read_config
from engine.errors import Malformed, Unreadable
from engine.graph.model import Model
from engine.weights import load_model, owner_shapes
from tests.helpers import golden
from tests.helpers.golden import MODELS, Runner

TINY = MODELS["qwen4exp-tiny"]
TOKENS = [7, 206, 5, 206, 120, 131, 206, 5, 206, 13, 71]

Tensors = dict[str, mx.array]


def stored() -> Tensors:
    """All tensors of the tiny model."""
    loaded: Any = mx.load(str(TINY / "model.safetensors"))
    return loaded


def write(folder: Path, tensors: Tensors, **changes: object) -> Path:
    """A model folder with these tensors and a changed configuration (None takes a field out)."""
    folder.mkdir(exist_ok=True)
    config = json.loads((TINY / "config.json").read_text()) | changes
    config = {k: v for k, v in config.items() if v is not ...}
    (folder / "config.json").write_text(json.dumps(config))
    mx.save_safetensors(str(folder / "model.safetensors"), tensors)
    return folder


def config_of(**changes: object) -> dict[str, Any]:
    """The tiny configuration with changes; ... takes a field out."""
    config = json.loads((TINY / "config.json").read_text()) | changes
    return {k: v for k, v in config.items() if v is not ...}


def logits(model: Model) -> np.ndarray:
    return Runner(model).feed(TOKENS)


def fused(tensors: Tensors) -> Tensors:
    """The layout of experts with one tensor for all."""
    out = {k: v for k, v in tensors.items() if ".experts." not in k}
    for layer in range(4):
        p = f"model.layers.{layer}.mlp.experts."
        each = [[tensors[f"{p}{e}.{w}_proj.weight"] for e in range(8)] for w in ("gate", "up")]
        halves = [mx.stack(part) for part in each]
        out[p + "gate_up_proj"] = mx.concatenate(halves, axis=1)
        out[p + "down_proj"] = mx.stack([tensors[f"{p}{e}.down_proj.weight"] for e in range(8)])
    return out


def multimodal(tensors: Tensors) -> Tensors:
    """Names of a checkpoint that has a vision part, too."""
    named = {
        k.replace("model.", "model.language_model.", 1) if k.startswith("model.") else k: v
        for k, v in tensors.items()
    }
    return named | {"model.visual.patch.weight": mx.zeros((2, 3))}


def whole_table(tensors: Tensors) -> Tensors:
    """The n-gram table in one piece."""
    p = "model.layers.1.ple.ple_embedding.ngram_embedding."
    out = {k: v for k, v in tensors.items() if not k.startswith(p)}
    return out | {p + "weight": mx.concatenate([tensors[f"{p}shard_{i}.weight"] for i in range(4)])}


def without_constants(tensors: Tensors) -> Tensors:
    """Without the integers that follow from the configuration."""
    ends = ("layer_multipliers", "ngram_heads_offsets", "ngram_heads_vocab_sizes")
    return {k: v for k, v in tensors.items() if not k.endswith(ends)}


@pytest.mark.parametrize("change", [fused, multimodal, whole_table, without_constants])
def test_other_layouts_are_the_same_model(
    change: Callable[[Tensors], Tensors], tmp_path: Path
) -> None:
    model = load_model(write(tmp_path, change(stored())))
    assert logits(model).tobytes() == logits(golden.model("qwen4exp-tiny")).tobytes()


def test_text_config_of_a_multimodal_folder(tmp_path: Path) -> None:
    write(tmp_path, multimodal(stored()))
    outer = {"model_type": "qwen4_exp", "text_config": config_of(), "vision_config": {}}
    (tmp_path / "config.json").write_text(json.dumps(outer))
    assert logits(load_model(tmp_path)).tobytes() == logits(load_model(TINY)).tobytes()


def test_sharded_files_with_an_index(tmp_path: Path) -> None:
    tensors = stored()
    write(tmp_path, {})
    (tmp_path / "model.safetensors").unlink()
    names = sorted(tensors)
    weight_map = {}
    for part in range(3):
        file = f"model-{part + 1:05}-of-00003.safetensors"
        mine = names[part::3]
        mx.save_safetensors(str(tmp_path / file), {n: tensors[n] for n in mine})
        weight_map |= dict.fromkeys(mine, file)
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))
    assert logits(load_model(tmp_path)).tobytes() == logits(load_model(TINY)).tobytes()
    (tmp_path / "model-00002-of-00003.safetensors").unlink()
    with pytest.raises(Unreadable, match=r"model-00002-of-00003.safetensors: no such file"):
        load_model(tmp_path)
    index.write_text(json.dumps({"weight_map": {"a": "../other.safetensors"}}))
    with pytest.raises(Malformed, match="expected a file beside the index"):
        load_model(tmp_path)


def test_tied_head_is_the_embedding(tmp_path: Path) -> None:
    tensors = stored()
    tensors["lm_head.weight"] = tensors["model.embed_tokens.weight"]
    untied = load_model(write(tmp_path / "a", tensors))
    del tensors["lm_head.weight"]
    tied = load_model(write(tmp_path / "b", tensors, tie_word_embeddings=True))
    assert logits(tied).tobytes() == logits(untied).tobytes()


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_precision_is_close_and_says_its_dtype(dtype: str, tmp_path: Path) -> None:
    half = {"bfloat16": mx.bfloat16, "float16": mx.float16}[dtype]
    tensors = {k: v.astype(half) if v.dtype == mx.float32 else v for k, v in stored().items()}
    model = load_model(write(tmp_path, tensors))
    assert model.dtype == half
    # digits of the weights are lost (8 or 11 bits are kept), none of the structure
    bound = {"bfloat16": 0.4, "float16": 0.05}[dtype]
    assert np.abs(logits(model) - logits(load_model(TINY))).max() < bound
    wide = load_model(write(tmp_path, tensors), "float32")
    assert wide.dtype == mx.float32


def test_folders_without_the_files(tmp_path: Path) -> None:
    with pytest.raises(Unreadable, match="not a model folder"):
        load_model(tmp_path / "none")
    with pytest.raises(Unreadable, match=r"config\.json: can't be read"):
        load_model(tmp_path)
    shutil.copy(TINY / "config.json", tmp_path)
    with pytest.raises(Unreadable, match="no weights"):
        load_model(tmp_path)
    with pytest.raises(ValueError, match="dtype: expected float32, bfloat16, float16, given int8"):
        load_model(TINY, "int8")


@pytest.mark.parametrize(
    ("size", "sentence"),
    [
        (0, "no header of a safetensors file, expected 8 bytes or more, found 0 bytes"),
        (4, "no header of a safetensors file, expected 8 bytes or more, found 4 bytes"),
        (8, "header of the file at byte 0, expected at most 0 bytes, found"),
        (100, "header of the file at byte 0, expected at most 92 bytes, found"),
        (20_000, "header of the file at byte 0, expected at most 19,992 bytes, found"),
        (-1, r"tensor .* is cut at byte \d+, expected 8,192 bytes, found 8,191"),
        (-4, r"tensor .* is cut at byte \d+, expected 8,192 bytes, found 8,188"),
    ],
)
def test_cut_off_weights(size: int, sentence: str, tmp_path: Path) -> None:
    shutil.copy(TINY / "config.json", tmp_path)
    content = (TINY / "model.safetensors").read_bytes()
    (tmp_path / "model.safetensors").write_bytes(content[:size])
    with pytest.raises(Unreadable, match=sentence) as raised:
        load_model(tmp_path)
    assert "\n" not in str(raised.value)


def test_a_header_of_impossible_length(tmp_path: Path) -> None:
    shutil.copy(TINY / "config.json", tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"\xff" * 8 + b"{}")
    with pytest.raises(Unreadable, match="expected at most 2 bytes, found 18,446,744,073,709,551"):
        load_model(tmp_path)


ANY = "model.layers.3.self_attn.k_proj.weight"


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        (ANY, None, f"tensor, expected {ANY}, found none"),
        (ANY, mx.zeros((32, 63)), r"k_proj.weight, expected shape \[32, 64\], found \[32, 63\]"),
        (ANY, mx.zeros((32 * 64,)), "k_proj.weight, expected shape"),
        (ANY, mx.zeros((32, 64), mx.int8), "k_proj.weight, expected dtype F32 or BF16 or F16"),
        ("model.embed_tokens.weight", None, "tensor, expected model.embed_tokens.weight"),
        ("lm_head.weight", None, "tensor, expected lm_head.weight"),
        ("model.layers.0.mlp.experts.7.up_proj.weight", None, "experts.7.up_proj"),
        (
            "model.layers.1.ple.ple_embedding.layer_multipliers",
            mx.array([1, 3, 5], mx.int64),
            r"layer_multipliers\[0\], expected \d+, found 1",
        ),
        (
            "model.layers.1.ple.ple_embedding.ngram_heads_offsets",
            mx.zeros((8,), mx.float32),
            "ngram_heads_offsets, expected dtype I64, found F32",
        ),
        (
            "model.layers.1.ple.ple_embedding.ngram_embedding.shard_3.weight",
            None,
            "expected 896 rows in all, found 672 rows in 3 shards",
        ),
        (
            "model.layers.1.ple.ple_embedding.ngram_embedding.shard_3.weight",
            mx.zeros((), mx.float32),
            r"shard_3.weight, expected shape \[0, 4\], found \[\]",
        ),
    ],
)
def test_wrong_tensors_are_named(
    name: str, value: mx.array | None, sentence: str, tmp_path: Path
) -> None:
    tensors = stored()
    if value is None:
        del tensors[name]
    else:
        tensors[name] = value
    with pytest.raises(Malformed, match=sentence):
        load_model(write(tmp_path, tensors))


def test_sizes_of_the_configuration_meet_the_weights_before_anything_is_allocated(
    tmp_path: Path,
) -> None:
    with pytest.raises(Malformed, match=r"embed_tokens.weight, expected shape \[256, 1073741824\]"):
        load_model(write(tmp_path, stored(), hidden_size=2**30, ple_embed_dim=32))


@pytest.mark.parametrize("name", golden.MODELS)
def test_owner_shapes_are_what_the_stages_write(name: str) -> None:
    model = golden.model(name, "bfloat16")
    runner = Runner(model)
    runner.feed([1, 2, 3, 4, 5, 6, 7, 8, 9])
    state = runner.state
    found = {(o, n, ""): (tuple(v.shape), v.dtype) for (o, n), v in state.fixed_values.items()}
    for key, parts in state.positional.items():
        found[key] = (tuple(parts[0].shape[1:]), parts[0].dtype)
    for n, rows in state.pooled.items():
        found["qsa.groups", n, ""] = (tuple(rows[0].shape[1:]), rows[0].dtype)
    dtypes = {
        "model": mx.bfloat16,
        "float32": mx.float32,
        "int32": mx.int32,
        "int64": mx.int64,
    }
    expected = {
        (s.owner, s.layer, s.part): (s.shape, dtypes[s.dtype])
        for s in owner_shapes(read_config(MODELS[name]))
    }
    assert found == expected


NO_INDEX = dict.fromkeys(
    ("indexer_n_heads", "indexer_head_dim", "indexer_budget", "indexer_compress_ratio")
)


@pytest.mark.parametrize(
    ("kept", "changes"),
    [
        ([0, 1, 2], NO_INDEX),
        ([3], {"ple_layer_ids": [], "eos_token_id": None}),
        ([3, 3, 0, 1], {"ple_layer_ids": [4]}),
    ],
    ids=["without attention", "attention only", "attention first"],
)
def test_any_order_of_layers_runs_and_cuts_exactly(
    kept: list[int], changes: dict[str, object], tmp_path: Path
) -> None:
    tensors = {k: v for k, v in stored().items() if ".layers." not in k}
    for new, old in enumerate(kept):
        p = f"model.layers.{old}."
        tensors |= {
            f"model.layers.{new}.{k.removeprefix(p)}": v
            for k, v in stored().items()
            if k.startswith(p)
        }
    kinds = json.loads((TINY / "config.json").read_text())["layer_types"]
    folder = write(
        tmp_path,
        tensors,
        num_hidden_layers=len(kept),
        layer_types=[kinds[old] for old in kept],
        **changes,
    )
    model = load_model(folder)
    whole, parts = Runner(model), Runner(model)
    expected = whole.feed(TOKENS * 3)
    found = parts.feed_all([[t] for t in TOKENS] + [TOKENS * 2])
    assert np.isfinite(expected).all()
    assert found.tobytes() == expected.tobytes()
    a, b = whole.state.arrays(), parts.state.arrays()
    assert [k for k in a if a[k].tobytes() != b[k].tobytes()] == []
