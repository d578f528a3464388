"""What a list of caches has consumed, and checkpoints of the state that can't be cut.

A lineage belongs to the first cache object of a list, weakly, so a plain list, a slice of it or
the list that mlx-lm makes by itself all find it again.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import mlx.core as mx
import numpy as np
from mlx_lm.models import cache as lm

from .freeze import Node, freeze, leaves, nbytes

_CUTTABLE = {
    lm.KVCache.update_and_fetch,
    lm.QuantizedKVCache.update_and_fetch,
    lm.ConcatenateKVCache.update_and_fetch,
}


def is_cuttable(cache: Any) -> bool:
    """True when the state at any earlier position is just the first rows of the present one."""
    return getattr(type(cache), "update_and_fetch", None) in _CUTTABLE


def cut(cache: Any, position: int) -> None:
    """Shorten a cuttable cache to `position` rows."""
    if isinstance(cache, lm.ConcatenateKVCache) and cache.keys is not None:
        cache.keys = cache.keys[..., :position, :]
        cache.values = cache.values[..., :position, :]
    cache.offset = position


def position_of(caches: Sequence[Any]) -> int | None:
    """How many tokens the caches have taken in; None when no layer can tell (recurrent, batch)."""
    offsets = [getattr(leaf, "offset", None) for leaf in leaves(caches)]
    known = [offset for offset in offsets if isinstance(offset, int)]
    return max(known) if known else None


def is_fresh(caches: Sequence[Any]) -> bool:
    """True when no cache has taken in anything."""
    return all(_is_empty(leaf) for leaf in leaves(caches))


def _is_empty(leaf: Any) -> bool:
    try:
        return bool(leaf.empty())
    except (AttributeError, NotImplementedError):
        return getattr(leaf, "offset", None) == 0


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """When to keep state that can't be cut, and how much of it."""

    every: int
    n_bytes: int


@dataclass(frozen=True, slots=True)
class Kept:
    """State of every cache that can't be cut, at one position; None for the others."""

    nodes: tuple[Node | None, ...]
    n_bytes: int

    @classmethod
    def of(cls, caches: Sequence[Any]) -> Kept:
        nodes = tuple(None if is_cuttable(leaf) else freeze(leaf) for leaf in leaves(caches))
        return cls(nodes, sum(nbytes(node) for node in nodes if node is not None))


@dataclass(frozen=True, slots=True)
class Step:
    """What one committed call adds to a lineage."""

    tokens: tuple[int, ...] | None
    n_tokens: int
    kept: Kept | None


Mark = tuple[int | None, int, int, bool, dict[int, Kept]]


@dataclass(slots=True)
class Lineage:
    """Consumed tokens from position `base` on."""

    base: int | None = 0
    """First position whose token is known; None when the caches can't tell where they are."""
    tokens: list[int] = field(default_factory=list)
    cuts: list[int] = field(default_factory=list)
    """Positions after each call, ascending."""
    kept: dict[int, Kept] = field(default_factory=dict)
    replayable: bool = True
    """False after a call whose tokens are not known (a batch, embeddings)."""

    @property
    def position(self) -> int | None:
        return None if self.base is None else self.base + len(self.tokens)

    def prepare(self, inputs: Any, n_tokens: int, caches: Sequence[Any], rule: Checkpoints) -> Step:
        """The record of a call that has just been evaluated. Changes nothing."""
        whole = inputs.ndim == 2 and tuple(inputs.shape) == (1, n_tokens)
        integer = mx.issubdtype(inputs.dtype, mx.integer)
        known = whole and integer and self.base is not None
        tokens = tuple(np.array(inputs).reshape(-1).tolist()) if known else None
        kept = None
        if tokens is not None and rule.every and self.position is not None:
            before = self.position
            if (before + n_tokens) // rule.every > before // rule.every:
                found = Kept.of(caches)
                kept = found if 0 < found.n_bytes <= rule.n_bytes else None
        return Step(tokens, n_tokens, kept)

    def take(self, step: Step, rule: Checkpoints) -> None:
        """Record a committed call."""
        if step.tokens is None or self.base is None:
            self.replayable = False
            self.base = None
            return
        self.tokens.extend(step.tokens)
        end = self.base + len(self.tokens)
        self.cuts.append(end)
        if step.kept is not None:
            self.kept[end] = step.kept
            self._drop_oldest(rule.n_bytes)

    def _drop_oldest(self, budget: int) -> None:
        total = sum(kept.n_bytes for kept in self.kept.values())
        for position in sorted(self.kept):
            if total <= budget or position == self.base:
                continue
            total -= self.kept.pop(position).n_bytes

    def truncate(self, position: int) -> None:
        """Forget everything after `position`."""
        if self.base is None:
            return
        del self.tokens[max(0, position - self.base) :]
        self.cuts = [c for c in self.cuts if c < position]
        if position > self.base:
            self.cuts.append(position)
        self.kept = {at: kept for at, kept in self.kept.items() if at <= position}

    def mark(self) -> Mark:
        """For `reset`: the record as it is now."""
        return (self.base, len(self.tokens), len(self.cuts), self.replayable, dict(self.kept))

    def reset(self, mark: Mark) -> None:
        """Take back what was recorded since `mark`."""
        self.base, n_tokens, n_cuts, self.replayable, self.kept = mark
        del self.tokens[n_tokens:]
        del self.cuts[n_cuts:]

    def assign(self, other: Lineage) -> None:
        """Become what `other` is."""
        self.base, self.replayable = other.base, other.replayable
        self.tokens, self.cuts, self.kept = other.tokens, other.cuts, other.kept

    def copy(self) -> Lineage:
        """An independent record; the checkpoints themselves are shared, nobody changes them."""
        return Lineage(
            self.base, list(self.tokens), list(self.cuts), dict(self.kept), self.replayable
        )


_LINEAGES: weakref.WeakKeyDictionary[Any, Lineage] = weakref.WeakKeyDictionary()


def lineage_of(caches: Sequence[Any]) -> Lineage:
    """The lineage of a list of caches, brought in line with what the caches say."""
    first = next(leaves(caches), None)
    lineage = _LINEAGES.get(first) if first is not None else None
    if lineage is None or is_fresh(caches):
        lineage = _adopt(caches)
        remember(caches, lineage)
        return lineage
    now = position_of(caches)
    if now is not None and lineage.position is not None and now != lineage.position:
        if now < lineage.position and lineage.base is not None and now >= lineage.base:
            lineage.truncate(now)
        else:
            lineage = _adopt(caches)
            remember(caches, lineage)
    return lineage


def remember(caches: Sequence[Any], lineage: Lineage) -> None:
    """Tie a lineage to a list of caches."""
    first = next(leaves(caches), None)
    if first is not None:
        _LINEAGES[first] = lineage


def _adopt(caches: Sequence[Any]) -> Lineage:
    """A lineage for caches that came from elsewhere: nothing before their end is known."""
    if is_fresh(caches):
        return Lineage(0)
    position = position_of(caches)
    if position is None:
        return Lineage(None, replayable=False)
    lineage = Lineage(position)
    if not all(is_cuttable(leaf) for leaf in leaves(caches)):
        lineage.kept[position] = Kept.of(caches)
    return lineage
