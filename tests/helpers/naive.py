"""The op table of the case format written down once more, as naively as it can be.

A sequence is a dict from position to token; its insertion order is the order of the tokens. Nothing
is shared with the implementation: no runs, no extents, no arithmetic of groups, no reasons' enum.
Ops come as the plain objects of a case file.
"""

from __future__ import annotations

from typing import Any

LARGEST = 2147483647
Sequence = dict[int, int]


class Refused(Exception):
    """The reason's word."""


class Naive:
    """All sequences and slots of one world, and the ops on them."""

    def __init__(self, group_size: int, capacity: int, window: int | None = None) -> None:
        self.group_size, self.capacity, self.window = group_size, capacity, window
        self.seqs: dict[int, Sequence] = {}
        self.slots: dict[str, Sequence] = {}
        self.next_token = 0

    def __getitem__(self, seq: int) -> Sequence:
        return self.seqs.setdefault(seq, {})

    def live(self) -> dict[int, Sequence]:
        return {seq: held for seq, held in self.seqs.items() if held}

    def do(self, op: dict[str, Any]) -> str:
        """Execute an op; `ok` or the reason, and then nothing has changed."""
        seqs = {seq: dict(held) for seq, held in self.seqs.items()}
        slots = {slot: dict(held) for slot, held in self.slots.items()}
        try:
            if op["op"] == "transaction":
                for inner in op["ops"]:
                    getattr(self, inner["op"])(inner, True)
                self.judge_result()
            else:
                getattr(self, op["op"])(op, False)
        except Refused as refused:
            self.seqs, self.slots = seqs, slots
            return str(refused)
        return "ok"

    def judge_result(self) -> None:
        everything = [*self.seqs.values(), *self.slots.values()]
        if any(d and is_line(sorted(d)) and list(d) != sorted(d) for d in everything):
            raise Refused("overlap")
        if any(d and not is_line(sorted(d)) for d in everything):
            raise Refused("gap")

    def append(self, op: dict[str, Any], inside: bool) -> None:
        positions = list(op["positions"])
        held = self[op["seq"]]
        if len(set(positions)) != len(positions):
            raise Refused("duplicate")
        if not is_line(positions):
            raise Refused("not-consecutive")
        if any(p < 0 for p in positions):
            raise Refused("negative")
        if any(p > LARGEST for p in positions):
            raise Refused("too-large")
        self.judge_start(held, positions[0], inside)
        for position in positions:
            self.add(held, position, self.next_token)
            self.next_token += 1

    def judge_start(self, held: Sequence, start: int, inside: bool) -> None:
        if held and start <= max(held):
            raise Refused("overlap")
        if held and start > max(held) + 1 and not inside:
            raise Refused("gap")

    def add(self, held: Sequence, position: int, token: int) -> None:
        """One token, with the window's eviction before it."""
        if self.window is not None and len(held) + 1 > self.window:
            for oldest in sorted(held)[: self.group_size]:
                del held[oldest]
        if len(held) + 1 > self.capacity:
            raise Refused("capacity")
        held[position] = token

    def remove(self, op: dict[str, Any], inside: bool) -> None:
        held = self[op["seq"]]
        hit = in_range(held, op)
        if not hit:
            raise Refused("out-of-range")
        if not inside and min(hit) != min(held) and max(hit) != max(held):
            raise Refused("internal-hole")
        for position in hit:
            del held[position]

    def evict_front(self, op: dict[str, Any], inside: bool) -> None:
        held = self[op["seq"]]
        if op["count"] < 1 or op["count"] > len(held):
            raise Refused("out-of-range")
        for position in sorted(held)[: op["count"]]:
            del held[position]

    def rewind(self, op: dict[str, Any], inside: bool) -> None:
        held = self[op["seq"]]
        if not held or op["to"] < min(held) or op["to"] > max(held) + 1:
            raise Refused("out-of-range")
        for position in [p for p in held if p >= op["to"]]:
            del held[position]

    def shift(self, op: dict[str, Any], inside: bool) -> None:
        held = self[op["seq"]]
        hit = in_range(held, op)
        if not hit:
            raise Refused("out-of-range")
        moved = [(p + op["delta"] if p in hit else p, token) for p, token in held.items()]
        if any(p < 0 for p, _ in moved):
            raise Refused("negative")
        if any(p > LARGEST for p, _ in moved):
            raise Refused("too-large")
        positions = [p for p, _ in moved]
        if len(set(positions)) != len(positions):
            raise Refused("overlap")
        if not inside and not is_line(sorted(positions)):
            raise Refused("gap")
        if not inside and positions != sorted(positions):
            raise Refused("overlap")  # tokens would change places
        self.seqs[op["seq"]] = dict(moved)

    def fork(self, op: dict[str, Any], inside: bool) -> None:
        source = self[op["src"]]
        if self[op["dst"]]:
            raise Refused("destination-not-empty")
        if not source:
            raise Refused("out-of-range")
        stop = max(source) + 1 if op["stop"] is None else op["stop"]
        if not min(source) + 1 <= stop <= max(source) + 1:
            raise Refused("out-of-range")
        self.seqs[op["dst"]] = {p: token for p, token in source.items() if p < stop}

    def copy(self, op: dict[str, Any], inside: bool) -> None:
        source = self[op["src"]]
        start = op["start"] if op["start"] is not None else min(source, default=0)
        stop = op["stop"] if op["stop"] is not None else max(source, default=-1) + 1
        if stop - start > len(source):
            raise Refused("out-of-range")
        wanted = list(range(start, stop))
        if not wanted or any(p not in source for p in wanted):
            raise Refused("out-of-range")
        taken = [(p, source[p]) for p in wanted]
        held = self[op["dst"]]
        self.judge_start(held, wanted[0], inside)
        for position, token in taken:
            self.add(held, position, token)

    def reset(self, op: dict[str, Any], inside: bool) -> None:
        self.seqs[op["seq"]] = {}

    def save(self, op: dict[str, Any], inside: bool) -> None:
        if not self[op["seq"]]:
            raise Refused("out-of-range")
        self.slots[op["slot"]] = dict(self[op["seq"]])

    def restore(self, op: dict[str, Any], inside: bool) -> None:
        if op["slot"] not in self.slots:
            raise Refused("unknown-slot")
        self.seqs[op["seq"]] = dict(self.slots[op["slot"]])


def is_line(positions: list[int]) -> bool:
    """True when each position is its predecessor plus one."""
    return positions == list(range(positions[0], positions[0] + len(positions)))


def in_range(held: Sequence, op: dict[str, Any]) -> list[int]:
    low = min(held, default=0) if op["start"] is None else op["start"]
    return [p for p in held if p >= low and (op["stop"] is None or p < op["stop"])]
