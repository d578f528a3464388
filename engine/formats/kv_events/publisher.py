"""One publisher's messages brought into order: duplicates, gaps and restarts noticed.

A message behind a gap is held back until the gap is filled, or given up by `give_up`. A number
that went back with a newer clock is a new publisher: everything before is forgotten.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from engine.formats.kv_events.inventory import Inventory
from engine.formats.kv_events.messages import Batch
from engine.formats.report import Span

Name = int | str | None


@dataclass(slots=True)
class Publisher:
    """State of one numbered stream."""

    name: Name
    """Port or address; a rank where there is neither."""
    last_copy_only: bool = False
    inventory: Inventory = field(default_factory=Inventory)
    next: int = 0
    """Number that comes next in order."""
    reached: int = -1
    """Highest number seen since the last start."""
    held: dict[int, Batch | None] = field(default_factory=dict)
    """Messages behind a gap; None where the payload did not decode."""
    missing: list[Span] = field(default_factory=list)
    """Numbers that never came, half-open, over all starts of the publisher."""
    lost: list[Span] = field(default_factory=list)
    """The same since the last start, undecodable messages included; ascending."""
    duplicates: int = 0
    restarts: int = 0
    undecodable: list[int] = field(default_factory=list)
    ignored: int = 0
    newest: float = float("-inf")
    """Latest clock seen."""
    restart_at: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.inventory.last_copy_only = self.last_copy_only

    def feed(self, number: int, batch: Batch | None) -> str:
        """Take one message; says `applied`, `held`, `duplicate` or `restart`."""
        seen = number < self.next or number in self.held
        newer = batch is not None and batch.ts > self.newest
        if number <= self.reached and newer:
            self.give_up()
            self.restart(number)
            self.take(number, batch)
            return "restart"
        if seen:
            self.duplicates += 1
            return "duplicate"
        self.take(number, batch)
        return "applied" if number < self.next else "held"

    def take(self, number: int, batch: Batch | None) -> None:
        if batch is not None:
            self.newest = max(self.newest, batch.ts)
        self.held[number] = batch
        self.reached = max(self.reached, number)
        self.drain()

    def drain(self) -> None:
        """Apply what is in order."""
        while self.next in self.held:
            batch = self.held.pop(self.next)
            if batch is None:
                self.undecodable.append(self.next)
                self.lost.append((self.next, self.next + 1))
            else:
                self.ignored += batch.ignored
                self.inventory.apply(self.next, batch)
            self.next += 1

    def gap(self) -> Span | None:
        """Numbers that the held messages wait for."""
        return (self.next, min(self.held)) if self.held else None

    def give_up(self) -> None:
        """Declare every open gap lost and apply what was held."""
        for number in sorted(self.held):
            if number > self.next:
                self.missing.append((self.next, number))
                self.lost.append((self.next, number))
                self.next = number
            self.drain()

    def restart(self, number: int) -> None:
        self.restarts += 1
        self.restart_at.append(number)
        self.inventory = Inventory(self.last_copy_only)
        self.next, self.reached, self.held, self.lost = 0, -1, {}, []

    def lost_before(self, number: int) -> bool:
        """Whether a message before `number` is lost."""
        return bool(self.lost) and self.lost[0][0] < number

    def lost_after(self, number: int) -> bool:
        """Whether a message after `number` is lost."""
        return bool(self.lost) and self.lost[-1][1] - 1 > number
