"""Admission: bytes are counted before they are asked for.

An impossible allocation can kill the process inside the array library, so a chunk whose peak
does not fit the session's budget is refused in `reserve`. What one piece takes stands in
`footprint`, what a whole transaction asks for in `demand`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from engine.derive import CHECKPOINT_TOKENS, Piece
from engine.errors import StepFailed
from engine.footprint import angle_bytes, piece_bytes
from engine.owner import Key
from engine.terms import FailKind, TxnStage

if TYPE_CHECKING:
    from engine.graph.model import Model


def padded_rows(piece: Piece, tile: int) -> int:
    """Rows that a piece has at most, in whole tiles."""
    return -(-len(piece.tokens) // tile) * tile + tile


def peak_bytes(model: Model, pieces: Iterable[Piece], fixed: int, at_once: int | None) -> int:
    """Peak bytes of the heaviest evaluation, and of what its sequences keep until the end.

    Args:
        fixed: bytes of one sequence's values of fixed size.
        at_once: None where every piece is an evaluation; else all up to a fence are one, and each
            after the first may copy tables of this many bytes.
    """
    peak = held = 0
    reach: dict[int, int] = {}
    for piece in pieces:
        n_live = piece.at + len(piece.tokens)
        reach[piece.key] = max(n_live, reach.get(piece.key, 0))
        if held:
            held += at_once or 0
        rows = padded_rows(piece, model.backend.tile_rows)
        held += fixed + piece_bytes(model, rows, n_live)
        peak = max(peak, held)
        if piece.fence or at_once is None:
            held = 0
    return peak + sum(fixed + angle_bytes(model.config, n_live) for n_live in reach.values())


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
    """Let `needed` more bytes pass, or refuse them; what needs none passes always.

    Raises: StepFailed of kind oom naming needed, used and budget.
    """
    if needed and used + needed > budget:
        raise StepFailed(
            stage,
            FailKind.OOM,
            detail=f"needs {needed:,} bytes beside {used:,} in use, the budget is {budget:,}",
        )
