"""Random lives of a session, and a plain model of what each sequence should have become."""

from __future__ import annotations

import random
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from engine.engine import Engine, append
from engine.faults import Fault
from engine.ops import (
    Append,
    Copy,
    EvictFront,
    Fork,
    Op,
    Remove,
    Reset,
    Restore,
    Rewind,
    Save,
    Shift,
    Transaction,
)
from engine.snapshot import Record
from engine.terms import FailKind

GROUP = 4


@dataclass
class Line:
    """One sequence in plain lists: every consumed token, and how it was seen when it came."""

    ids: list[int] = field(default_factory=list)
    positions: list[int] = field(default_factory=list)
    """Position of each token when it was consumed."""
    before: list[int] = field(default_factory=list)
    """Live positions when each token was consumed."""
    start: int = 0
    n_live: int = 0

    @property
    def stop(self) -> int:
        return self.start + self.n_live

    def append(self, start: int, ids: list[int], window: int | None) -> None:
        if not self.n_live:
            self.start = start
        for token in ids:
            if window is not None and self.n_live == window:
                self.evict(GROUP)
            self.ids.append(token)
            self.positions.append(self.stop)
            self.before.append(self.n_live)
            self.n_live += 1

    def evict(self, count: int) -> None:
        self.start += count
        self.n_live -= count

    def keep(self, n_left: int) -> None:
        drop = self.n_live - n_left
        if drop:
            del self.ids[-drop:], self.positions[-drop:], self.before[-drop:]
        self.n_live = n_left


@dataclass
class World:
    """Every sequence and slot."""

    window: int | None = None
    lines: dict[int, Line] = field(default_factory=dict)
    slots: dict[str, Line] = field(default_factory=dict)

    def of(self, seq: int) -> Line:
        return self.lines.setdefault(seq, Line())

    def do(self, op: Op) -> None:
        """What a published op did."""
        match op:
            case Transaction():
                for inner in op.ops:
                    self.do(inner)
            case Append():
                self.of(op.seq).append(op.positions[0], list(op.tokens or ()), self.window)
            case EvictFront():
                self.of(op.seq).evict(op.count)
            case Rewind():
                self.of(op.seq).keep(op.to - self.of(op.seq).start)
            case Remove():
                line = self.of(op.seq)
                first = line.start if op.start is None else op.start
                if first > line.start:
                    line.keep(first - line.start)
                else:
                    self.lines[op.seq] = Line()  # nothing is left to remember anything
            case Shift():
                self.of(op.seq).start += op.delta
            case Fork() | Copy():
                line = deepcopy(self.of(op.src))
                line.keep((line.stop if op.stop is None else op.stop) - line.start)
                self.lines[op.dst] = line
            case Reset():
                self.lines[op.seq] = Line()
            case Save():
                self.slots[op.slot] = deepcopy(self.of(op.seq))
            case Restore():
                self.lines[op.seq] = deepcopy(self.slots[op.slot])


class Ops:
    """Random ops that are mostly legal, with tokens of a vocabulary."""

    def __init__(self, seed: int, vocab: int) -> None:
        self.random, self.vocab = random.Random(seed), vocab

    def tokens(self, n: int) -> list[int]:
        return [self.random.randrange(self.vocab) for _ in range(n)]

    def op(self, world: World) -> Op:
        if self.random.random() < 0.25:
            trial, ops = deepcopy(world), []
            for _ in range(self.random.randint(2, 4)):
                ops.append(self.plain(trial))
                trial.do(ops[-1])
            return Transaction(tuple(ops))  # type: ignore[arg-type]
        return self.plain(world)

    def plain(self, world: World) -> Any:
        """One op; where nothing is live the first thing is an append."""
        rnd = self.random
        seq = rnd.randrange(4)
        line = world.of(seq)
        empty = [s for s in range(4) if not world.of(s).n_live]
        name = rnd.choices(
            ("append", "evict", "rewind", "shift", "fork", "save", "restore", "reset", "remove"),
            (34, 12, 14, 7, 14, 6, 6, 3, 4),
        )[0]
        if not line.n_live and name in ("evict", "rewind", "shift", "remove"):
            name = "append"
        if name == "fork" and (not line.n_live or not empty):
            name = "append"
        if name == "restore" and not world.slots:
            name = "save"
        if name == "append":
            n = rnd.choice((1, 2, 3, 4, 5, 8, 17, 30, 70))
            start = line.stop if line.n_live else rnd.choice((0, 3, 4096))
            return append(seq, start, self.tokens(n), rnd.choice((None, None, 1, 3, 64)))
        if name == "evict":
            most = min(line.n_live, rnd.choice((4, 9, line.n_live)))
            return EvictFront(seq, rnd.randint(1, most))
        if name == "rewind":
            return Rewind(seq, rnd.randint(max(line.start, line.stop - 40), line.stop))
        if name == "remove":
            return Remove(seq, rnd.randint(max(line.start, line.stop - 9), line.stop - 1), None)
        if name == "shift":
            return Shift(seq, rnd.choice((1, 100, -min(line.start, 2))))
        if name == "fork":
            stop = rnd.choice((None, rnd.randint(line.start + 1, line.stop)))
            dst = rnd.choice(empty)
            return Copy(seq, dst, line.start, stop) if rnd.random() < 0.2 else Fork(seq, dst, stop)
        slot = rnd.choice(sorted(world.slots)) if name == "restore" else rnd.choice("ab")
        return (
            Restore(seq, slot)
            if name == "restore"
            else (Save(seq, slot) if name == "save" else Reset(seq))
        )

    def fault(self, engine: Engine) -> Fault:
        """A fault somewhere in the plan of the next op."""
        kind = self.random.choice(list(FailKind))
        return Fault("*", kind, self.random.choice((0, 1)), nth=self.random.randrange(60))


def agrees(engine: Engine, world: World) -> str:
    """The first sequence whose run, ids or sight of its past is not the plain model's."""
    bank = engine.pair.public_bank
    history = bank.history.value
    held: dict[Any, tuple[Line, Any]] = {s: (x, history.of(s)) for s, x in world.lines.items()}
    for slot, line in world.slots.items():
        held[slot] = (line, history.slots[slot])
    for key, (line, cells) in held.items():
        if line.n_live and (cells.run.start, cells.run.stop) != (line.start, line.stop):
            return f"run of {key}: {cells.run}, expected {line.start} to {line.stop}"
        if not line.n_live and cells.run.n:
            return f"run of {key}: {cells.run}, expected nothing"
        lineage = bank.tokens.of(key)
        n = lineage.consumed
        if lineage.log.slice(0, n).tolist() != line.ids or lineage.n_live != line.n_live:
            return f"ids of {key}: {n} and {lineage.n_live} live, expected {len(line.ids)}"
        if n and lineage.positions(0, n).tolist() != line.positions:
            return f"positions of {key}"
        if [lineage.live_before(i) for i in range(n)] != line.before:
            return f"live positions of {key} before each token"
    return ""


def told(record: Record) -> str:
    return f"{record.op} {record.op_json}: {record.sentence}"
