"""Tiny random mlx-lm models, and folders that mlx-lm can load. Nothing is downloaded."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import mlx.core as mx
from mlx.utils import tree_flatten, tree_map

VOCABULARY = 96

_LLAMA = {
    "model_type": "llama",
    "hidden_size": 32,
    "num_hidden_layers": 4,
    "intermediate_size": 48,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "rms_norm_eps": 1e-5,
    "vocab_size": VOCABULARY,
}
CONFIGS: dict[str, dict[str, Any]] = {
    "llama": _LLAMA,
    "qwen2": _LLAMA | {"model_type": "qwen2"},
    "gemma3_text": {
        "model_type": "gemma3_text",
        "hidden_size": 32,
        "num_hidden_layers": 4,
        "intermediate_size": 48,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "head_dim": 16,
        "query_pre_attn_scalar": 16,
        "vocab_size": VOCABULARY,
        "sliding_window": 12,
        "sliding_window_pattern": 2,
    },
    "qwen3_next": {
        "model_type": "qwen3_next",
        "hidden_size": 32,
        "num_hidden_layers": 4,
        "intermediate_size": 48,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "head_dim": 16,
        "linear_num_value_heads": 2,
        "linear_num_key_heads": 1,
        "linear_key_head_dim": 32,
        "linear_value_head_dim": 16,
        "linear_conv_kernel_dim": 4,
        "num_experts": 4,
        "num_experts_per_tok": 2,
        "decoder_sparse_step": 1,
        "shared_expert_intermediate_size": 16,
        "mlp_only_layers": [],
        "moe_intermediate_size": 16,
        "rms_norm_eps": 1e-6,
        "vocab_size": VOCABULARY,
        "rope_theta": 10000.0,
        "partial_rotary_factor": 0.5,
        "max_position_embeddings": 4096,
        "full_attention_interval": 2,
    },
    "mamba": {
        "model_type": "mamba",
        "vocab_size": VOCABULARY,
        "hidden_size": 32,
        "intermediate_size": 48,
        "state_size": 8,
        "num_hidden_layers": 3,
        "conv_kernel": 4,
        "use_bias": False,
        "use_conv_bias": True,
        "time_step_rank": 4,
    },
    "deepseek_v32": {
        "model_type": "deepseek_v32",
        "vocab_size": VOCABULARY,
        "hidden_size": 32,
        "index_head_dim": 16,
        "index_n_heads": 2,
        "index_topk": 8,
        "intermediate_size": 48,
        "moe_intermediate_size": 16,
        "num_hidden_layers": 3,
        "num_attention_heads": 2,
        "num_key_value_heads": 2,
        "n_shared_experts": 1,
        "n_routed_experts": 4,
        "num_experts_per_tok": 2,
        "kv_lora_rank": 16,
        "q_lora_rank": 16,
        "qk_rope_head_dim": 8,
        "v_head_dim": 16,
        "qk_nope_head_dim": 16,
        "first_k_dense_replace": 1,
    },
    "llama4": {
        "model_type": "llama4",
        "text_config": {
            "attention_bias": False,
            "attention_chunk_size": 16,
            "head_dim": 16,
            "hidden_size": 32,
            "interleave_moe_layer_step": 2,
            "intermediate_size": 32,
            "intermediate_size_mlp": 48,
            "max_position_embeddings": 4096,
            "model_type": "llama4_text",
            "num_attention_heads": 2,
            "num_experts_per_tok": 1,
            "num_hidden_layers": 4,
            "num_key_value_heads": 1,
            "num_local_experts": 2,
            "rms_norm_eps": 1e-5,
            "rope_scaling": None,
            "rope_theta": 10000.0,
            "use_qk_norm": False,
            "vocab_size": VOCABULARY,
        },
    },
    "falcon_h1": {
        "model_type": "falcon_h1",
        "head_dim": 16,
        "hidden_size": 32,
        "intermediate_size": 48,
        "mamba_d_conv": 4,
        "mamba_d_head": 16,
        "mamba_d_ssm": 32,
        "mamba_d_state": 8,
        "mamba_n_groups": 1,
        "mamba_n_heads": 2,
        "num_attention_heads": 2,
        "num_hidden_layers": 3,
        "num_key_value_heads": 1,
        "vocab_size": VOCABULARY,
    },
}


def tiny_model(name: str, seed: int = 0) -> Any:
    """A small random model of an architecture, weights evaluated, the same for the same seed."""
    config = CONFIGS[name]
    module = import_module(f"mlx_lm.models.{name}")
    mx.random.seed(seed)
    model = module.Model(module.ModelArgs.from_dict(config))
    model.eval()
    model.update(tree_map(_loud, model.parameters()))
    mx.eval(model.parameters())
    return model


def _loud(weight: Any) -> Any:
    """Weights large enough that a wrong row changes the logits visibly."""
    return weight * 2.0 if weight.ndim > 1 and mx.issubdtype(weight.dtype, mx.floating) else weight


def tokenizer_files(folder: Path) -> None:
    """A word-level tokenizer of VOCABULARY words, `w0` to `w95`."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    words = {f"w{index}": index for index in range(VOCABULARY)}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="w0"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(
        json.dumps(
            {
                "tokenizer_class": "PreTrainedTokenizerFast",
                "unk_token": "w0",
                "eos_token": f"w{VOCABULARY - 1}",
            }
        )
    )


def model_folder(folder: Path, name: str = "llama", seed: int = 0) -> Path:
    """Write config, weights and tokenizer of a tiny model; returns the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    weights = dict(tree_flatten(tiny_model(name, seed).parameters()))
    mx.save_safetensors(str(folder / "model.safetensors"), weights, {"format": "mlx"})
    (folder / "config.json").write_text(json.dumps(CONFIGS[name]))
    tokenizer_files(folder)
    return folder


def greedy(call: Callable[..., Any], cache: list[Any], token: int, n: int) -> list[int]:
    """n greedy tokens after `token`, one call each."""
    out = []
    for _ in range(n):
        logits = call(mx.array([[token]]), cache=cache)
        token = int(mx.argmax(logits[0, -1]).item())
        out.append(token)
    return out
