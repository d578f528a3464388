"""Admission: bytes are counted before they are asked for.

An impossible allocation can kill the process inside the array library, so a chunk whose peak
does not fit the session's budget is refused in `reserve`. The estimate is an upper bound of what
pieces keep until their fence: all stage outputs, gathered keys, scores, logits; and of the
checkpoints and logits that stay until the end.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable
from typing import Final

from engine.config import Config
from engine.derive import CHECKPOINT_TOKENS, Piece
from engine.errors import StepFailed
from engine.owner import Key
from engine.terms import FailKind, TxnStage

FLOAT_BYTES: Final = 4
DEFAULT_SHARE: Final = 2
"""One part in this many of the machine's memory is the default budget."""


def default_budget() -> int:
    """Half of the machine's memory in bytes; 8 GiB where the system does not say."""
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        return 8 << 30
    return total // DEFAULT_SHARE if total > 0 else 8 << 30


def piece_bytes(config: Config, rows: int, n_live: int) -> int:
    """Peak bytes of one piece of `rows` padded rows at `n_live` live positions."""
    streams, hidden = config.stream_width, config.hidden_size
    experts = config.num_experts_per_tok * 3 * config.moe_intermediate_size
    experts += 3 * config.shared_expert_intermediate_size + config.num_experts
    layer = 6 * streams + 8 * hidden + experts
    gdn = 4 * config.conv_channels
    visible = config.indexer_budget + config.group_size - 1
    qsa = 4 * visible * config.num_key_value_heads * config.head_dim
    qsa += 6 * config.num_attention_heads * (config.head_dim + visible)
    qsa += 3 * (n_live // config.group_size + 64)
    total = sum(layer + (gdn if kind == "gdn" else qsa) for kind in config.layers)
    total += len(config.ple_layers) * 6 * streams
    if "gdn" in config.layers:  # one layer's states at a time, one a token where ops make them
        sides = config.linear_key_head_dim * config.linear_value_head_dim
        total += 2 * config.linear_num_value_heads * sides
    return rows * FLOAT_BYTES * (total + 2 * config.vocab_size + 2 * streams)


def peak_bytes(config: Config, pieces: Iterable[Piece], tile: int, at_once: bool) -> int:
    """Peak bytes of the heaviest evaluation.

    Args:
        tile: rows of the backend's tiles.
        at_once: whether all pieces up to a fence are one evaluation, as in fast mode.
    """
    peak = held = 0
    for piece in pieces:
        n = len(piece.tokens)
        rows = -(-n // tile) * tile + tile
        held += piece_bytes(config, rows, piece.at + n)
        peak = max(peak, held)
        if piece.fence or not at_once:
            held = 0
    return peak


def checkpoint_bytes(pieces: Iterable[Piece], each: int, kept: int) -> int:
    """Bytes of the checkpoints that pieces will leave; earlier ones go only with the flip.

    Args:
        each: bytes of one. kept: the most that one sequence keeps.
    """
    new: Counter[Key] = Counter()
    for piece in pieces:
        new[piece.key] += (piece.at + len(piece.tokens)) % CHECKPOINT_TOKENS == 0
    return sum(min(n, kept) for n in new.values()) * each


def admit(needed: int, used: int, budget: int, stage: str = TxnStage.RESERVE) -> None:
    """Let `needed` more bytes pass, or refuse them.

    Raises: StepFailed of kind oom naming needed, used and budget.
    """
    if used + needed > budget:
        raise StepFailed(
            stage,
            FailKind.OOM,
            detail=f"needs {needed:,} bytes beside {used:,} in use, the budget is {budget:,}",
        )
