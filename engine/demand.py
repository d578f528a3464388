"""What a transaction will ask for, counted before its first allocation.

An upper bound: tables that grow, the tokens it runs, checkpoints and logits that stay until the
end, groups made anew after an eviction, rows that compaction moves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.admission import checkpoint_bytes, padded_rows, peak_bytes
from engine.derive import Piece
from engine.effects import Appended, Copied, Evicted, Forked, Moved, Restored, Saved
from engine.footprint import FLOAT_BYTES, regroup_bytes

if TYPE_CHECKING:
    from engine.graph.model import Model
    from engine.transaction import Transaction


def demand(txn: Transaction) -> int:
    """Bytes beside what the session holds now."""
    model = txn.session.model
    needed = _table_bytes(txn) + _moved_bytes(txn)
    if model is not None:
        needed += _piece_bytes(txn, model) + _regrouped_bytes(txn, model)
    return needed


def _table_bytes(txn: Transaction) -> int:
    """Bytes that the private bank's tables take while they grow, or while they are made anew."""
    pair, n_cells = txn.session.pair, txn.applied.history.n_cells
    both = zip(pair.private_bank.positional(), pair.public_bank.positional(), strict=True)
    copied = pair.private_bank.spoiled and _writes_rows(txn)
    spoiled = pair.private_bank.spoiled
    return sum(
        mine.growth_bytes(
            other.n_alloc if spoiled else mine.n_alloc, other.n_alloc, n_cells, copied
        )
        for mine, other in both
    )


def _writes_rows(txn: Transaction) -> bool:
    """Whether anything is written into tables."""
    effects = txn.applied.effects
    return any(isinstance(effect, (Appended, Evicted, Moved)) for effect in effects) or any(
        isinstance(work, Piece) for work in txn.work
    )


def _moved_bytes(txn: Transaction) -> int:
    """Bytes of the rows that compaction reads before it writes them."""
    moves = [move for e in txn.applied.effects if isinstance(e, Moved) for move in e.moves]
    return 2 * sum(n for _, _, n in moves) * txn.private.cell_bytes()


def _regrouped_bytes(txn: Transaction, model: Model) -> int:
    """Bytes of the groups of evicted sequences, whose anchor moved, and of their copies.

    Several evictions of one sequence make its groups anew one after the other.
    """
    longest: dict[int | str, int] = {}
    for effect in txn.applied.effects:
        if isinstance(effect, Saved) and effect.seq in longest:
            longest[effect.slot] = longest[effect.seq]
        elif isinstance(effect, Restored) and effect.slot in longest:
            longest[effect.seq] = longest[effect.slot]
        copies = isinstance(effect, (Forked, Copied)) and effect.src in longest
        if copies or isinstance(effect, Evicted):
            n = sum(piece.n for piece in effect.pieces)
            longest[effect.seq] = max(longest.get(effect.seq, 0), n)
    return sum(regroup_bytes(model, n) for n in longest.values())


def _piece_bytes(txn: Transaction, model: Model) -> int:
    """Bytes that running tokens takes at its peak, and those that stay until the end."""
    pieces = [work for work in txn.work if isinstance(work, Piece)]
    fixed = sum(p.n_bytes for owner in txn.private.fixed() for p in owner.places.values())
    needed = peak_bytes(model, pieces, fixed, txn.at_once)
    needed += checkpoint_bytes(pieces, fixed, txn.session.checkpoints_kept)
    if txn.keep_logits:  # views of whole tiles
        tile = model.backend.tile_rows
        n = sum(padded_rows(piece, tile) for piece in pieces if not piece.replay)
        needed += n * model.config.vocab_size * FLOAT_BYTES
    return needed
