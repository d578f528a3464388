"""What a transaction will ask for, counted before its first allocation.

An upper bound: tables that grow, the tokens it runs, checkpoints and logits that stay until the
end, groups made anew after an eviction, rows that compaction moves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.admission import checkpoint_bytes, peak_bytes
from engine.derive import Piece
from engine.effects import Evicted, Moved
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
    """Bytes that the private bank's tables take while they grow."""
    pair, n_cells = txn.session.pair, txn.applied.history.n_cells
    both = zip(pair.private_bank.positional(), pair.public_bank.positional(), strict=True)
    spoiled = pair.private_bank.spoiled
    return sum(mine.growth_bytes(other.n_alloc, n_cells, spoiled) for mine, other in both)


def _moved_bytes(txn: Transaction) -> int:
    """Bytes of the rows that compaction reads before it writes them."""
    moves = [move for e in txn.applied.effects if isinstance(e, Moved) for move in e.moves]
    return 2 * sum(n for _, _, n in moves) * txn.private.cell_bytes()


def _regrouped_bytes(txn: Transaction, model: Model) -> int:
    """Bytes of the groups of evicted sequences, whose anchor moved."""
    evicted = [e for e in txn.applied.effects if isinstance(e, Evicted)]
    return sum(regroup_bytes(model, e.after.n) for e in evicted)


def _piece_bytes(txn: Transaction, model: Model) -> int:
    """Bytes that running tokens takes at its peak, and those that stay until the end."""
    pieces = [work for work in txn.work if isinstance(work, Piece)]
    needed = peak_bytes(model, pieces, txn.at_once)
    fixed = (p for owner in txn.private.fixed() for p in owner.places.values())
    mark = sum(p.n_bytes for p in fixed)
    needed += checkpoint_bytes(pieces, mark, txn.session.checkpoints_kept)
    if txn.keep_logits:
        n = sum(len(piece.tokens) for piece in pieces if not piece.replay)
        needed += n * model.config.vocab_size * FLOAT_BYTES
    return needed
