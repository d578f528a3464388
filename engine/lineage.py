"""What a sequence consumed: token ids in order, and when evictions and shifts took effect.

Immutable values, so both banks, forks and slots may hold the same one. Ids stand in leaves of
4096; an append copies at most one leaf. The running hash is independent of how the tokens were
cut. Knows no array library and no bank.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt
import xxhash

LEAF: Final = 4096
Ids = npt.NDArray[np.int64]
_EMPTY: Final[Ids] = np.zeros(0, np.int64)
_EMPTY.setflags(write=False)


class TokenLog:
    """All token ids that a sequence consumed, evicted ones included."""

    __slots__ = ("_hasher", "_leaves", "_tail", "n")

    def __init__(self) -> None:
        self._leaves: tuple[Ids, ...] = ()
        self._tail: Ids = _EMPTY
        self._hasher: Any = xxhash.xxh3_64()
        self.n = 0

    def extended(self, ids: Iterable[int] | Ids) -> TokenLog:
        """This log with more tokens at the end: O(new tokens + one leaf)."""
        fresh = np.asarray(ids if isinstance(ids, np.ndarray) else list(ids), np.int64)
        log = TokenLog()
        log._hasher = self._hasher.copy()
        log._hasher.update(fresh.astype("<i8").tobytes())
        tail = np.concatenate((self._tail, fresh))
        whole = len(tail) // LEAF * LEAF
        leaves = [tail[i : i + LEAF] for i in range(0, whole, LEAF)]
        log._leaves, log._tail = self._leaves + tuple(leaves), tail[whole:]
        for leaf in (*leaves, log._tail):
            leaf.setflags(write=False)
        log.n = self.n + len(fresh)
        return log

    def slice(self, start: int, stop: int) -> Ids:
        """Ids of consumed indexes [start, stop), a copy."""
        stop = min(stop, self.n)
        if start >= stop:
            return _EMPTY
        parts = [*self._leaves[start // LEAF : -(-stop // LEAF)]]
        if stop > len(self._leaves) * LEAF:
            parts.append(self._tail)
        first = min(start // LEAF, len(self._leaves)) * LEAF
        return np.concatenate(parts)[start - first : stop - first]

    def cut(self, n: int) -> TokenLog:
        """The first `n` tokens as a log."""
        return self if n == self.n else TokenLog().extended(self.slice(0, n))

    @property
    def hash(self) -> int:
        """64-bit hash of all ids, the same for any cutting."""
        return int(self._hasher.intdigest())


EventKind = Literal["start", "evict", "shift"]


@dataclass(frozen=True, slots=True)
class Event:
    """Something that took effect when `count` tokens were consumed."""

    count: int
    kind: EventKind
    value: int
    """start: position of the next token; evict: positions dropped; shift: delta."""


@dataclass(frozen=True, slots=True)
class Lineage:
    """How a sequence came to be: enough to make it again in a new session."""

    log: TokenLog
    events: tuple[Event, ...] = ()
    evicted: int = 0
    """Positions dropped from the front: the sum over the evict events, kept for speed."""

    @classmethod
    def empty(cls) -> Lineage:
        """Nothing consumed."""
        return cls(TokenLog())

    @property
    def consumed(self) -> int:
        """Tokens consumed."""
        return self.log.n

    @property
    def n_live(self) -> int:
        """Live positions."""
        return self.consumed - self.evicted

    def appended(self, start: int, ids: Sequence[int] | Ids) -> Lineage:
        """With tokens at `start`; a new start is noted where the run was empty."""
        events = self.events
        if self.n_live == 0:
            events = (*events, Event(self.consumed, "start", start))
        return Lineage(self.log.extended(ids), events, self.evicted)

    def with_event(self, kind: EventKind, value: int) -> Lineage:
        """With an eviction or a shift that takes effect now; a shift by 0 leaves no trace."""
        if value == 0:
            return self
        evicted = self.evicted + (value if kind == "evict" else 0)
        return Lineage(self.log, (*self.events, Event(self.consumed, kind, value)), evicted)

    def clipped(self, count: int) -> Lineage:
        """As if only `count` tokens had been consumed; later events take effect there.

        Where nothing is live any more, shifts and starts of what was dropped leave no trace.
        """
        if count == self.consumed:
            return self
        if count == 0:
            return Lineage.empty()
        events = tuple(
            event if event.count <= count else replace(event, count=count) for event in self.events
        )
        while count == self.evicted and events[-1].kind != "evict":
            events = events[:-1]
        return Lineage(self.log.cut(count), events, self.evicted)

    def last_move(self) -> int:
        """Consumed count at which the last eviction or shift took effect, -1 for none."""
        counts = [event.count for event in self.events if event.kind != "start"]
        return max(counts, default=-1)

    def positions(self, start: int, stop: int) -> Ids:
        """Positions that the tokens [start, stop) had when they were consumed."""
        where = np.empty(stop - start, np.int64)
        for low, high, base in self._segments():
            a, b = max(low, start), min(high, stop)
            if a < b:
                where[a - start : b - start] = np.arange(a, b) + base
        return where

    def live_before(self, count: int) -> int:
        """Live positions when the token of consumed index `count` came."""
        dropped = sum(e.value for e in self.events if e.kind == "evict" and e.count <= count)
        return count - dropped

    def _segments(self) -> Iterable[tuple[int, int, int]]:
        """(first token, stop, position - consumed index) of stretches without events."""
        base, low = 0, 0
        for event in self.events:
            if event.kind == "evict":
                continue
            if event.count > low:
                yield low, event.count, base
                low = event.count
            base = event.value - event.count if event.kind == "start" else base + event.value
        yield low, self.consumed, base

    def numbers(self) -> list[int]:
        """Integers that, with the ids, determine this value (for digests and files)."""
        kinds = {"start": 0, "evict": 1, "shift": 2}
        return [n for e in self.events for n in (e.count, kinds[e.kind], e.value)]
