"""One transaction over the caches of a model: all of them move on, or none does.

begin     everything public is evaluated, then its state is kept (see `freeze` and `guards`)
steps     model calls; each writes behind the kept frontier only
commit    every array is evaluated and nothing failed: the kept state is dropped
rollback  every cache object is as it was, arrays of the failed step are thrown away
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any

import mlx.core as mx

from .errors import StateLost
from .freeze import Node, arrays_of, freeze, leaves, restore
from .guards import PINNED, Guard, buffers, kind_of, n_rows
from .late_errors import drain

_LOST: weakref.WeakSet[Any] = weakref.WeakSet()
"""Caches whose arrays were handed in unevaluated and could not be computed."""

_SHARED: weakref.WeakSet[Any] = weakref.WeakSet()
"""Caches that a fork gave a second handle on their buffers."""

_GUARDS: dict[int, Guard] = {}
"""The innermost guard of each cache in an open transaction, by the cache's id."""


def share(cache: Any) -> None:
    """Mark a cache whose buffers have two owners: the next transaction gives it its own."""
    if kind_of(cache) is not None:
        _SHARED.add(cache)


class Transaction:
    """Use as a context: leaving it by an exception of any kind takes everything back.

    Args:
        caches: the cache objects of one or several models, as mlx-lm holds them.
        n_tokens: how many tokens the next model call brings, 0 when unknown.
    Raises: StateLost when a cache was handed in with arrays that can't be evaluated.
    """

    def __init__(self, caches: Sequence[Any], n_tokens: int = 0) -> None:
        self._caches = [cache for cache in caches if cache is not None]
        self._leaves = list(leaves(self._caches))
        self._n_tokens = n_tokens
        self._nodes: list[Node] = []
        self._guards: list[Guard] = []
        self.is_open = False

    def begin(self) -> None:
        """Keep the public state. Fails without having changed anything."""
        self._evaluate_public()
        guards = []
        for leaf in self._leaves:
            kind = kind_of(leaf)
            if kind is not None:
                guards.append(Guard.on(leaf, kind, _GUARDS.get(id(leaf))))
        guarded = {id(guard.cache) for guard in guards}
        # a cache hidden inside another object has no guard, so its buffers are kept by handle
        self._nodes = [
            freeze(cache, lambda obj: PINNED if id(obj) in guarded else ())
            for cache in self._caches
        ]
        mx.eval([guard.prefetch(self._n_tokens) for guard in guards])
        self._guards = guards
        self.is_open = True
        for guard in guards:
            _GUARDS[id(guard.cache)] = guard
            if guard.cache in _SHARED:
                _give_own_buffers(guard.cache)

    def _evaluate_public(self) -> None:
        if _LOST and any(leaf in _LOST for leaf in self._leaves):
            raise StateLost("a cache holds arrays whose evaluation failed earlier: load it again")
        try:
            # one by one: a file that can't be read is then all that its evaluation waits for
            for array in arrays_of(self._caches):
                mx.eval(array)
        except Exception as error:
            for leaf in self._leaves:  # first: an interrupt may come while late errors are awaited
                _LOST.add(leaf)
            drain()
            raise StateLost(f"a cache holds arrays that can't be evaluated: {error}") from error

    @contextlib.contextmanager
    def guarded(self) -> Iterator[None]:
        """Route the writes of a model call through the guards."""
        try:
            for guard in self._guards:
                vars(guard.cache)["update_and_fetch"] = guard.update_and_fetch
            yield
        finally:
            for guard in self._guards:
                vars(guard.cache).pop("update_and_fetch", None)

    def fence(self, *more: Any) -> None:
        """Evaluate every array of every cache, and `more`; raises what the evaluation raises."""
        mx.eval(list(arrays_of(self._caches)), *more)

    def commit(self) -> None:
        """Drop the kept state."""
        self._close()

    def release(self) -> None:
        """Let go of the caches but stay able to roll back, for the last instant of a step."""
        for guard in self._guards:
            if guard.outer is not None:
                _GUARDS[id(guard.cache)] = guard.outer
            else:
                _GUARDS.pop(id(guard.cache), None)

    def rollback(self) -> None:
        """Put everything back. An interrupt during this is held until it is done.

        Raises: the interrupt, if one came; StateLost when a buffer itself can't be read any more.
        """
        interrupt: KeyboardInterrupt | None = None
        while self.is_open:
            try:
                self._put_back()
            except KeyboardInterrupt as error:
                interrupt = error
        if interrupt is not None:
            raise interrupt

    def _put_back(self) -> None:
        drain()
        try:
            for guard in self._guards:
                guard.put_back()
        except Exception as error:
            for leaf in self._leaves:
                _LOST.add(leaf)
            self._close()
            raise StateLost(f"the buffers of a cache can't be read any more: {error}") from error
        for node in self._nodes:
            restore(node)
        self._close()

    def _close(self) -> None:
        self.release()
        self.is_open = False
        self._guards = []
        self._nodes = []

    def __enter__(self) -> Transaction:
        self.begin()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            self.commit()
        else:
            self.rollback()


def _give_own_buffers(cache: Any) -> None:
    """Replace shared buffers by copies; the shared ones stay pinned until the commit.

    A write into a buffer with two handles copies it inside the step, where the copy could fail
    together with the step; here it can't.
    """
    if n_rows(cache):
        index = mx.arange(n_rows(cache))
        copies = [mx.take(buffer, index, axis=-2) for buffer in buffers(cache)]
        mx.eval(copies)
        if isinstance(cache.keys, list | tuple):
            half = len(copies) // 2
            cache.keys, cache.values = tuple(copies[:half]), tuple(copies[half:])
        else:
            cache.keys, cache.values = copies
    _SHARED.discard(cache)
