"""A history together with what stands in its cells, and random ops for it.

The cells are written only as the effects say, so a wrong cell, an alias or a reuse too early shows
as a wrong token when a sequence is read back.
"""

from __future__ import annotations

import random
from typing import Any

from engine.cells import Extents
from engine.effects import Appended, Applied, Moved
from engine.errors import Rejected
from engine.history import History
from engine.opjson import from_json
from engine.ops import Op
from engine.rules import apply, compact

Token = int


class World:
    """Executes plain op objects; `tokens` are given out one after the other, as `Naive` does."""

    def __init__(self, history: History) -> None:
        self.history = history
        self.memory: dict[int, Token] = {}
        self.next_token = 0
        self.refusal: Rejected | None = None
        self.applied: Applied | None = None

    def branch(self) -> World:
        """A copy that goes its own way."""
        other = World(self.history)
        other.memory, other.next_token = dict(self.memory), self.next_token
        return other

    def do(self, op: dict[str, Any] | Op) -> str:
        """`ok` or the reason; a refusal leaves history and memory alone."""
        self.refusal = self.applied = None
        try:
            self.applied = apply(self.history, from_json(op) if isinstance(op, dict) else op)
        except Rejected as refusal:
            self.refusal = refusal
            return str(refusal.reason)
        self.execute(self.applied)
        return "ok"

    def compact(self) -> None:
        self.execute(compact(self.history))

    def execute(self, applied: Applied) -> None:
        """Write the cells as the effects say, and compare the states between them."""
        states = applied.states
        for effect, state in zip(applied.effects, states, strict=True):
            if isinstance(effect, Appended):
                for cell in cells(effect.extents):
                    self.memory[cell] = self.next_token
                    self.next_token += 1
            elif isinstance(effect, Moved):
                gathered = [
                    (new + i, self.memory[old + i])
                    for old, new, count in effect.moves
                    for i in range(count)
                ]
                self.memory.update(gathered)
            if state is not None:
                state_of = state.slots if hasattr(effect, "slot") else state.sequences
                assert all(held.run for held in state_of.values())
        if applied.effects and states[-1] is not None:
            assert states[-1].sequences.keys() == applied.history.sequences.keys()
            for seq, held in states[-1].sequences.items():
                assert held.extents == applied.history.of(seq).extents
                assert held.run == applied.history.of(seq).run
            assert states[-1].slots == applied.history.slots
        self.history = applied.history

    def read(self) -> dict[int, dict[int, Token]]:
        """Position to token of every sequence, as the cells hold it."""
        return {
            seq: self._read(held.run.start, held.extents)
            for seq, held in self.history.sequences.items()
        }

    def read_slots(self) -> dict[str, dict[int, Token]]:
        return {
            slot: self._read(held.run.start, held.extents)
            for slot, held in self.history.slots.items()
        }

    def _read(self, start: int, extents: Extents) -> dict[int, Token]:
        return {start + i: self.memory[cell] for i, cell in enumerate(cells(extents))}


def cells(extents: Extents) -> list[int]:
    return [cell for first, count in extents for cell in range(first, first + count)]


class ShuffledPolicy:
    """Takes cells anywhere, in pieces, also far behind the highest used one."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def __call__(self, free: Extents, wanted: int, after: int | None) -> Extents:
        bounded = [(first, min(count, wanted + 7)) for first, count in free]
        every = [cell for first, count in bounded for cell in range(first, first + count)]
        self.random.shuffle(every)
        return tuple((cell, 1) for cell in every[:wanted])


class RandomOps:
    """Random plain ops near the edges of what is legal."""

    def __init__(self, seed: int, n_sequences: int = 3) -> None:
        self.random = random.Random(seed)
        self.n = n_sequences

    def op(self, world: World) -> dict[str, Any]:
        if self.random.random() < 0.15:
            count = self.random.choice((1, 2, 2, 2, 3, 4))
            if self.random.random() < 0.5:
                return {"op": "transaction", "ops": self.close_a_hole(world)}
            return {"op": "transaction", "ops": [self.plain(world) for _ in range(count)]}
        return self.plain(world)

    def close_a_hole(self, world: World) -> list[dict[str, Any]]:
        """A context shift, mostly right."""
        seq = self.seq()
        run = world.history.of(seq).run
        start = self.near(run.start, run.stop)
        stop = start + self.random.randint(1, 4)
        delta = start - stop + self.random.choice((0, 0, 0, 0, 1, -1))
        remove = {"op": "remove", "seq": seq, "start": start, "stop": stop}
        return [remove, {"op": "shift", "seq": seq, "delta": delta, "start": stop, "stop": None}]

    def seq(self) -> int:
        return self.random.randrange(self.n)

    def near(self, start: int, stop: int) -> int:
        choices = (start, stop, self.random.randint(start, stop))
        return self.random.choice(choices) + self.random.choice((0, 0, 0, -1, 1, 2))

    def end(self, start: int, stop: int) -> int | None:
        return None if self.random.random() < 0.3 else self.near(start, stop)

    def plain(self, world: World) -> dict[str, Any]:
        kinds = ("append",) * 6 + ("remove", "evict_front", "rewind", "shift", "fork", "copy")
        kind = self.random.choice((*kinds, "reset", "save", "restore"))
        seq, other = self.seq(), self.seq()
        run = world.history.of(seq).run
        op: dict[str, Any] = {"op": kind, "seq": seq}
        if kind == "append":
            op["positions"] = self.positions(run.start, run.stop)
        elif kind in ("remove", "shift"):
            op |= {"start": self.end(run.start, run.stop), "stop": self.end(run.start, run.stop)}
            if kind == "shift":
                whole = self.random.random() < 0.6
                op |= {"start": None, "stop": None} if whole else {}
                op["delta"] = self.random.choice((-run.start, *range(-6, 7), run.n, -run.n))
        elif kind == "evict_front":
            op["count"] = self.random.choice((*range(-1, 6), run.n, run.n + 1))
        elif kind == "rewind":
            op["to"] = self.near(run.start, run.stop)
        elif kind in ("fork", "copy"):
            op = {"op": kind, "src": seq, "dst": other, "stop": self.end(run.start, run.stop)}
            if kind == "copy":
                following = world.history.of(other).run.stop
                op["start"] = self.random.choice((self.end(run.start, run.stop), following))
        elif kind in ("save", "restore"):
            op["slot"] = self.random.choice(("a", "b", "c"))
        return op

    def positions(self, start: int, stop: int) -> list[int]:
        empty = start == stop
        at = self.random.choice((0, 3, 100, 2**31 - 4)) if empty else stop
        if self.random.random() < 0.1:
            at += self.random.choice((-1, 1, -stop - 1, 2, -3))
        found = list(range(at, at + self.random.choice((1, 1, 1, 2, 3, 4, 5, 8, 13))))
        if self.random.random() < 0.05:
            found[self.random.randrange(len(found))] += self.random.choice((-2, -1, 1, 2))
        return found
