"""Bytes that running one piece of a chunk takes at its peak, from the configuration alone.

An upper bound: what stages leave until the fence, gathered keys, scores, logits, and what passes
within a layer. Measured against the array library's own account in the tests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from engine.config import Config
from engine.graph.backend import GROUP_BLOCK, MAX_SCORE_ELEMENTS
from engine.graph.rotary import ALIGN

if TYPE_CHECKING:
    from engine.graph.model import Model

FLOAT_BYTES: Final = 4
SORT_BYTES: Final = 48
"""Of one index score while the largest are chosen: keys of 64 bits in several steps."""
STATUS_BYTES: Final = 128
"""Of one position while the device compares it with its neighbours, in several steps."""
LATE_EXTRA: Final = 3
"""Halves by which all results of all operations exceed what stages leave."""


def piece_bytes(model: Model, rows: int, n_live: int) -> int:
    """Peak bytes of one piece of `rows` padded rows at `n_live` live positions.

    What stages leave is there until the fence; what passes within a layer goes with the layer on
    the CPU. A device that frees late has every operation's result at once.
    """
    config, backend = model.config, model.backend
    stays = rows * FLOAT_BYTES * _elements_a_row(config)
    n_groups = _padded_groups(config, n_live)
    n_qsa, n_gdn = config.layers.count("qsa"), config.layers.count("gdn")
    passing = {
        "qsa": _choice_bytes(model, rows, n_groups) + _key_bytes(model, n_live, n_groups),
        "gdn": _state_bytes(model, rows),
    }
    stays += n_qsa * rows * FLOAT_BYTES * n_groups
    if backend.frees_late:
        return stays + LATE_EXTRA * stays // 2 + n_qsa * passing["qsa"] + n_gdn * passing["gdn"]
    experts = _expert_bytes(model, rows)
    return stays + max([experts, *(passing[kind] for kind in config.layers)])


def _elements_a_row(config: Config) -> int:
    """Elements of all stage outputs of one row, and of the lists of keys that it gathers."""
    streams, hidden = config.stream_width, config.hidden_size
    experts = config.num_experts_per_tok * 3 * config.moe_intermediate_size
    experts += 3 * config.shared_expert_intermediate_size + config.num_experts
    layer = 6 * streams + 8 * hidden + 4 * config.hc_lowrank + experts
    gdn = 4 * config.conv_channels
    visible = config.indexer_budget + config.group_size - 1
    qsa = 6 * visible * config.num_key_value_heads * config.head_dim
    qsa += 6 * config.num_attention_heads * (config.head_dim + visible)
    qsa += 4 * config.indexer_n_heads * config.indexer_head_dim
    total = sum(layer + (gdn if kind == "gdn" else qsa) for kind in config.layers)
    total += len(config.ple_layers) * 6 * streams
    return total + 2 * config.vocab_size + 2 * streams


def _padded_groups(config: Config, n_live: int) -> int:
    """Columns of the index scores."""
    n_groups = max(n_live // config.group_size, config.topk_groups)
    return -(-max(n_groups, 1) // GROUP_BLOCK) * GROUP_BLOCK


def _choice_bytes(model: Model, rows: int, n_groups: int) -> int:
    """Scores of all heads and the sort keys of the choice, of one layer."""
    each = rows * n_groups
    heads = model.config.indexer_n_heads * each
    if model.backend.reads_in_place:
        scores = each
    elif model.backend.frees_late:
        scores = 4 * heads + 2 * each
    else:
        scores = 2 * min(heads, MAX_SCORE_ELEMENTS) + 3 * each
    return FLOAT_BYTES * scores + SORT_BYTES * each


def _key_bytes(model: Model, n_live: int, n_groups: int) -> int:
    """Index keys of all groups, rotated; K and V where they are read as stored but lie apart."""
    config = model.config
    found = 5 * FLOAT_BYTES * n_groups * config.indexer_head_dim
    if model.backend.reads_in_place:
        width = config.num_key_value_heads * config.head_dim
        found += 2 * n_live * width * model.dtype.size
    return found


def _state_bytes(model: Model, rows: int) -> int:
    """States of the recurrence of one layer: one a token where array operations make them."""
    config, backend = model.config, model.backend
    state = config.linear_num_value_heads * config.linear_key_head_dim
    state *= config.linear_value_head_dim * FLOAT_BYTES
    if backend.reads_in_place:
        return 3 * state
    return (6 if backend.frees_late else 2) * rows * state


def _expert_bytes(model: Model, rows: int) -> int:
    """Matrices of the chosen experts of one layer, where the library has to gather them."""
    config = model.config
    if model.dtype.size == FLOAT_BYTES or model.backend.frees_late:
        return 0
    matrices = 3 * config.hidden_size * config.moe_intermediate_size
    return rows * config.num_experts_per_tok * matrices * model.dtype.size


def angle_bytes(config: Config, n_live: int) -> int:
    """Cosines and sines of the positions, whose table begins at a round one and doubles."""
    return 2 * FLOAT_BYTES * (config.rotary_dim // 2) * 2 * (n_live + ALIGN)


def regroup_bytes(model: Model, n_live: int) -> int:
    """Bytes of making all groups anew, and of the device's look at them."""
    config = model.config
    keys = config.layers.count("qsa") * config.indexer_head_dim * FLOAT_BYTES
    return n_live * (3 * keys + STATUS_BYTES)
