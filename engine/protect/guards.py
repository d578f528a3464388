"""Which rows of which buffers a step writes in place, and how the old rows survive.

Measured with MLX 0.32.4: after a failed evaluation an array that was part of it counts as
evaluated although its content is undefined, and waiting for one that was never started can hang.
A cache that appends in place consumes its own buffer, so the buffer must never be part of an
evaluation that can fail. A guard therefore computes the new keys and values first, with a fence;
then writes them, alone; then lets the layer go on. Whatever fails later leaves the buffer whole
up to its old frontier, without a copy and without a second handle.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import mlx.core as mx
from mlx_lm.models import cache as lm

Rows = tuple[int, int]
"""Half-open range of physical rows."""


@dataclass(frozen=True, slots=True)
class Kind:
    """How a class of caches uses its `keys` and `values`."""

    writes: Callable[[Any, int], Rows | None]
    """Rows that the next update of n tokens overwrites in place; None when it makes new arrays."""
    visible: Callable[[Any], int]
    """Rows below this one belong to the public state."""


def n_rows(cache: Any) -> int:
    """Physical rows of a buffer, used or not."""
    keys = cache.keys
    if keys is None:
        return 0
    return int((keys[0] if isinstance(keys, list | tuple) else keys).shape[-2])


def _appends(frontier: Callable[[Any], int]) -> Kind:
    def writes(cache: Any, n: int) -> Rows | None:
        start = frontier(cache)
        return (start, start + n) if start + n <= n_rows(cache) else None

    return Kind(writes, frontier)


def _ring(seen: str, wrapped: Callable[[Any], bool], restart: Callable[[Any], int]) -> Kind:
    def writes(cache: Any, n: int) -> Rows | None:
        held = n_rows(cache)
        grows = getattr(cache, seen) >= held and held < cache.max_size
        if n != 1 or held == 0 or held > cache.max_size or grows:
            return None
        row = restart(cache) if cache._idx == cache.max_size else cache._idx
        return (row, row + 1)

    def visible(cache: Any) -> int:
        return n_rows(cache) if wrapped(cache) else int(cache._idx)

    return Kind(writes, visible)


def _is_wrapped(cache: Any) -> bool:
    return not (cache.offset <= n_rows(cache) and cache._idx == cache.offset)


KINDS: dict[Any, Kind] = {
    lm.KVCache.update_and_fetch: _appends(lambda c: int(c.offset)),
    lm.QuantizedKVCache.update_and_fetch: _appends(lambda c: int(c.offset)),
    lm.ChunkedKVCache.update_and_fetch: _appends(lambda c: int(c.offset - c.start_position)),
    lm.BatchKVCache.update_and_fetch: _appends(lambda c: int(c._idx)),
    lm.RotatingKVCache.update_and_fetch: _ring("offset", _is_wrapped, lambda c: int(c.keep)),
    lm.BatchRotatingKVCache.update_and_fetch: _ring(
        "_offset", lambda c: bool(c.rotated), lambda _: 0
    ),
}
"""By the method that writes, so a subclass counts as long as it does not replace that method."""


def kind_of(cache: Any) -> Kind | None:
    """None: nothing is known of this class, and all of its arrays are kept by handle."""
    return KINDS.get(getattr(type(cache), "update_and_fetch", None))


PINNED = ("keys", "values")
"""Attributes of a guarded cache whose old content is protected by rows, not by a handle."""


def buffers(cache: Any) -> list[Any]:
    """The row buffers of a cache: keys and values, or the six arrays of a quantised one."""
    found: list[Any] = []
    for value in (cache.keys, cache.values):
        if isinstance(value, list | tuple):
            found.extend(value)
        elif value is not None:
            found.append(value)
    return found


@dataclass(slots=True, eq=False)
class Guard:
    """Keeps the public rows of one cache through one transaction."""

    cache: Any
    kind: Kind
    pins: list[Any] = field(default_factory=list)
    visible: int = 0
    saved: list[tuple[Rows, list[Any]]] = field(default_factory=list)
    outer: Guard | None = None
    """The guard of an enclosing transaction on the same cache."""

    @classmethod
    def on(cls, cache: Any, kind: Kind, outer: Guard | None = None) -> Guard:
        return cls(cache, kind, buffers(cache), kind.visible(cache), [], outer)

    def prefetch(self, n_tokens: int) -> list[Any]:
        """Copies of the public rows that an update of n tokens overwrites, not yet evaluated."""
        return self._copy(self.kind.writes(self.cache, n_tokens))

    def _copy(self, rows: Rows | None) -> list[Any]:
        if rows is None or not self.pins:
            return []
        low, high = rows[0], min(rows[1], self.visible)
        if low >= high or any(a <= low and high <= b for (a, b), _ in self.saved):
            return []
        index = mx.arange(low, high)
        # a gather, not a slice: a slice shares the buffer, and then the write would copy it all
        copies = [mx.take(pin, index, axis=-2) for pin in self.pins]
        self.saved.append(((low, high), copies))
        return copies

    def keep(self, rows: Rows | None) -> None:
        """Save what is about to be overwritten, here and in every enclosing transaction."""
        guard: Guard | None = self
        while guard is not None:
            if guard.pins and guard.holds_buffers():
                copies = guard._copy(rows)
                if copies:
                    mx.eval(copies)
            guard = guard.outer

    def holds_buffers(self) -> bool:
        """True while the cache still writes into the buffers that were pinned."""
        now = buffers(self.cache)
        return any(buffer is pin for buffer in now for pin in self.pins)

    def update_and_fetch(self, keys: Any, values: Any) -> Any:
        """Stands in for the method of the cache during a model call."""
        mx.eval(keys, values)
        self.keep(self.kind.writes(self.cache, int(keys.shape[2])))
        result = type(self.cache).update_and_fetch(self.cache, keys, values)
        mx.eval(buffers(self.cache))
        return result

    def put_back(self) -> None:
        """Write the saved rows into the pinned buffers again; safe to call again."""
        if not self.pins:
            return
        mx.eval(self.pins)
        for (low, high), copies in reversed(self.saved):
            for pin, rows in zip(self.pins, copies, strict=True):
                pin[..., low:high, :] = rows
            mx.eval(self.pins)
