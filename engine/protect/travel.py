"""Going back in time: `rewind`, `trim` and `fork`, exact or refused.

State that is made of rows is cut. Everything else (recurrent layers, rings, classes unknown here)
is put back to the nearest checkpoint at or before the target, and the tokens in between run again
in the same calls as before. All of it is one transaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mlx.core as mx

from .errors import Refused
from .freeze import clone, freeze, leaves, restore
from .lineage import Lineage, cut, is_cuttable, lineage_of, position_of, remember
from .transaction import Transaction, share
from .weights import Weights


class TimeTravel:
    """The part of `TransactionalModel` that moves caches back; it uses the wrapped model."""

    _model: Any
    _weights: Weights

    def position(self, cache: Sequence[Any]) -> int | None:
        """Tokens that the caches have consumed; None when nobody can tell."""
        position = lineage_of(cache).position
        return position_of(cache) if position is None else position

    def rewind(self, cache: Sequence[Any], position: int) -> int:
        """Bring every cache to the state it had after `position` tokens.

        Returns: how many tokens ran again.
        Raises: Refused with the nearest legal target; whatever a replay raises. In both cases
            nothing changed.
        """
        return self._go_back("rewind", cache, position)

    def trim(self, cache: Sequence[Any], n_tokens: int) -> int:
        """Take back the last `n_tokens`; like mlx-lm's `trim_prompt_cache`, but never in silence.

        Returns: `n_tokens`.
        """
        now = self._known_position("trim", cache)
        if not 0 <= n_tokens <= now:
            raise Refused(
                "trim", "out of range", given=n_tokens, nearest=max(0, min(n_tokens, now))
            )
        self._go_back("trim", cache, now - n_tokens)
        return n_tokens

    def fork(self, cache: Sequence[Any], position: int | None = None) -> list[Any]:
        """New caches with the state after `position` tokens (None: now); both go on by themselves.

        Buffers are shared until one of the two is written.
        """
        lineage = lineage_of(cache)
        twin: list[Any] = [clone(freeze(item)) for item in cache]
        remember(twin, lineage.copy())
        if position is not None and position != lineage.position:
            # a fork below the frontier works on buffers of its own from the first replayed row on
            _share_all(twin)
            self._go_back("fork", twin, position)
        _share_all(cache)
        _share_all(twin)
        return twin

    def legal_targets(self, cache: Sequence[Any]) -> dict[str, Any]:
        """`first` and `last` of the range in which every position can be reached."""
        lineage = lineage_of(cache)
        now = self.position(cache)
        if now is None:
            return {"first": None, "last": None}
        first = _first_reachable(lineage, cache)
        return {"first": now if first is None else first, "last": now}

    def _known_position(self, op: str, cache: Sequence[Any]) -> int:
        now = self.position(cache)
        if now is None:
            raise Refused(op, "position unknown", detail="a batch, or recurrent layers only")
        return now

    def _go_back(self, op: str, cache: Sequence[Any], target: int) -> int:
        now = self._known_position(op, cache)
        if not 0 <= target <= now:
            raise Refused(op, "out of range", given=target, nearest=max(0, min(target, now)))
        if target == now:
            return 0
        lineage = lineage_of(cache)
        items = list(leaves(cache))
        cuttable = all(_can_cut(item, target) for item in items)
        start = target if cuttable else _start_for(lineage, target)
        if start is None:
            first = _first_reachable(lineage, cache)
            raise Refused(
                op,
                "no checkpoint",
                given=target,
                nearest=now if first is None else first,
                detail="a layer here can't be cut, and no earlier state of it is kept",
            )
        before = lineage.copy()
        transaction = Transaction(cache)
        try:
            transaction.begin()
            if cuttable:
                for item in items:
                    _shorten(item, target)
            else:
                self._replay(transaction, cache, lineage, start, target)
            _forget(lineage, target)
            transaction.release()
            return target - start
        except BaseException:
            transaction.rollback()
            lineage.assign(before)
            raise

    def _replay(
        self,
        transaction: Transaction,
        cache: Sequence[Any],
        lineage: Lineage,
        start: int,
        target: int,
    ) -> None:
        """Put the caches at `start` and run the tokens up to `target`, cut as they were before."""
        self._weights.check()
        self._put_at(cache, lineage, start)
        base = lineage.base or 0
        done = start
        for end in [at for at in lineage.cuts if start < at < target] + [target]:
            piece = lineage.tokens[done - base : end - base]
            if piece:
                with transaction.guarded():
                    self._model(mx.array([piece]), cache=cache)
                transaction.fence()
            done = end

    def _put_at(self, cache: Sequence[Any], lineage: Lineage, start: int) -> None:
        kept = lineage.kept.get(start)
        if kept is None:
            self._empty(cache)
            return
        for leaf, node in zip(leaves(cache), kept.nodes, strict=True):
            if node is None:
                cut(leaf, start)
            else:
                _become(leaf, clone(node))

    def _empty(self, cache: Sequence[Any]) -> None:
        """Back to position 0: rows are cut, the rest is as a new cache of the model has it."""
        from .model import make_prompt_cache

        if all(is_cuttable(leaf) for leaf in leaves(cache)):
            for leaf in leaves(cache):
                cut(leaf, 0)
            return
        fresh = list(leaves(make_prompt_cache(self._model)))
        for leaf, new in zip(leaves(cache), fresh, strict=True):
            if is_cuttable(leaf):
                cut(leaf, 0)
            elif type(new) is type(leaf):
                _become(leaf, new)
            else:
                raise Refused("rewind", "unknown start", detail=f"{type(leaf).__name__}")


def _become(leaf: Any, other: Any) -> None:
    """Give an object the attributes of another one of its class."""
    own = getattr(leaf, "__dict__", None)
    if own is None:
        restore(("state", leaf, freeze(other.state)))
        return
    own.clear()
    own.update(vars(other))


def _can_cut(leaf: Any, target: int) -> bool:
    if is_cuttable(leaf):
        return True
    whole_ring = hasattr(leaf, "max_size") and hasattr(leaf, "keep")
    if whole_ring and isinstance(leaf.offset, int):
        return bool(leaf.offset < leaf.max_size)
    return False


def _shorten(leaf: Any, target: int) -> None:
    if is_cuttable(leaf):
        cut(leaf, target)
    else:
        leaf.trim(leaf.offset - target)


def _start_for(lineage: Lineage, target: int) -> int | None:
    """The best state to replay from: a checkpoint, or the very beginning."""
    if lineage.base is None or not lineage.replayable:
        return None
    starts = [at for at in lineage.kept if at <= target]
    if lineage.base == 0:
        starts.append(0)
    return max(starts, default=None)


def _first_reachable(lineage: Lineage, cache: Sequence[Any]) -> int | None:
    if all(_can_cut(leaf, 0) for leaf in leaves(cache)):
        return 0
    if lineage.base is None or not lineage.replayable:
        return None
    return 0 if lineage.base == 0 else min(lineage.kept, default=None)


def _forget(lineage: Lineage, target: int) -> None:
    if lineage.base is not None and target < lineage.base:
        lineage.base = target
        lineage.kept.clear()
    lineage.truncate(target)


def _share_all(caches: Sequence[Any]) -> None:
    for leaf in leaves(caches):
        share(leaf)
