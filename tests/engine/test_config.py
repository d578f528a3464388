"""`config.json`: defaults, and one clear sentence for every field that makes no decoder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from engine.config import parse_config, read_config
from engine.errors import Malformed, Unreadable
from tests.helpers.golden import MODELS

TINY = MODELS["qwen4exp-tiny"]


def config_of(**changes: object) -> dict[str, Any]:
    """The tiny configuration with changes; ... takes a field out."""
    config = json.loads((TINY / "config.json").read_text()) | changes
    return {k: v for k, v in config.items() if v is not ...}


def test_missing_fields_have_the_defaults_of_the_class() -> None:
    with pytest.raises(Malformed, match="indexer_n_heads"):
        parse_config({"model_type": "qwen4_exp_text"})
    config = parse_config(
        config_of(layer_types=..., ple_layer_ids=[], output_gate_type=..., hc_lowrank=...)
    )
    assert config.layers == ("gdn", "gdn", "gdn", "qsa")
    assert config.output_gate == "silu"
    assert (config.hc_lowrank, config.ple_layers) == (320, ())


BAD_CONFIGS: list[tuple[dict[str, object], str]] = [
    ({"model_type": "llama"}, "model_type, expected qwen4_exp_text or qwen4_exp, found llama"),
    ({"model_type": ...}, "model_type, expected .* found null"),
    ({"hidden_size": 0}, "hidden_size, expected an integer from 1 to 2147483647, found 0"),
    ({"hidden_size": 10**18}, "hidden_size"),
    ({"hidden_size": "64"}, "hidden_size"),
    ({"hidden_size": 64.0}, "hidden_size"),
    ({"hidden_size": True}, "hidden_size"),
    ({"num_hidden_layers": 10**9}, "num_hidden_layers, expected an integer from 1 to 4096"),
    ({"num_hidden_layers": 5}, "layer_types, expected a list of 5 names"),
    ({"layer_types": ["linear_attention"] * 3 + ["mamba"]}, r"layer_types\[3\].* found mamba"),
    ({"layer_types": [[], {}, None, 1]}, r"layer_types\[0\]"),
    ({"ple_layer_ids": [4]}, "ple_layer_ids, expected only layers of type linear_attention"),
    ({"ple_layer_ids": [0]}, "ple_layer_ids, expected layer numbers from 1 to 4, found 0"),
    ({"ple_layer_ids": [5]}, "ple_layer_ids"),
    ({"ple_layer_ids": "2"}, "ple_layer_ids"),
    ({"hc_count": 1}, "hc_count"),
    ({"rms_norm_eps": 0}, "rms_norm_eps, expected a positive number"),
    ({"rms_norm_eps": float("nan")}, "rms_norm_eps"),
    ({"rms_norm_eps": float("inf")}, "rms_norm_eps"),
    ({"num_key_value_heads": 3}, "num_attention_heads, expected a multiple of"),
    ({"linear_num_key_heads": 3}, "linear_num_value_heads, expected a multiple of"),
    ({"indexer_budget": 18}, "indexer_budget, expected a multiple of indexer_compress_ratio"),
    ({"indexer_budget": None}, "indexer_budget"),
    ({"indexer_kv_heads": 2}, "indexer_kv_heads, expected 1, found 2"),
    ({"indexer_head_dim": 6}, "indexer_head_dim, expected at least the rotary width 8"),
    ({"num_experts_per_tok": 9}, "num_experts_per_tok, expected at most 8"),
    ({"norm_topk_prob": "yes"}, "norm_topk_prob, expected true or false"),
    ({"output_gate_type": "relu"}, "output_gate_type, expected sigmoid or silu"),
    ({"hidden_act": "gelu"}, "hidden_act"),
    ({"attention_bias": True}, "attention_bias"),
    ({"eos_token_id": None}, "eos_token_id"),
    ({"eos_token_id": 256}, "eos_token_id, expected a token id below 256"),
    ({"eos_token_id": []}, "eos_token_id"),
    ({"rope_parameters": {"rope_type": "yarn"}}, "rope_parameters.rope_type"),
    ({"rope_parameters": {"rope_theta": -1}}, "rope_theta"),
    ({"rope_parameters": {"partial_rotary_factor": 1.5}}, "partial_rotary_factor"),
    ({"rope_parameters": []}, "rope_parameters, expected an object"),
    ({"ple_embed_dim": 30}, "ple_embed_dim, expected a multiple of 8"),
    ({"heads_per_ngram": 2**31 - 1}, "heads_per_ngram"),
    ({"ngram_size": 4096, "heads_per_ngram": 4096}, "heads_per_ngram, expected at most 4096"),
    ({"text_config": {"model_type": "gemma"}}, "model_type"),
]


@pytest.mark.parametrize(("changes", "sentence"), BAD_CONFIGS)
def test_bad_configurations_are_named(
    changes: dict[str, object], sentence: str, tmp_path: Path
) -> None:
    (tmp_path / "config.json").write_text(json.dumps(config_of(**changes)))
    with pytest.raises(Malformed, match=sentence) as raised:
        read_config(tmp_path)
    assert str(raised.value).startswith(str(tmp_path / "config.json"))
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("text", ["", "{", "[]", "7", "\x00", '"a"', "[" * 100_000, "{} {}"])
def test_a_configuration_that_is_no_object(text: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(Unreadable):
        read_config(tmp_path)
