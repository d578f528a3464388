"""Which blocks of one publisher are resident, and the skeleton of parents that places them.

Blocks are counted per tier, since an engine may hold several copies. Parents are remembered for
good, also after removal: they place what is left.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from engine.formats.kv_events.messages import Batch, Cleared, Event, Removed, Stored

Key = tuple[int, int]
"""Group and hash of a block."""


@dataclass(slots=True)
class Block:
    """One block that was ever stored."""

    parent: int | None
    """Hash of the block before it, in the same group; None at position 0."""
    size: int
    first_stored: int
    """Number of the message that stored it first."""
    last_stored: int
    removed: int = -1
    """Number of the message after which no copy was left; -1 while there is one."""
    copies: dict[str, int] = field(default_factory=dict)
    kept_copy: bool = False
    """A removal arrived while several copies were counted."""

    @property
    def resident(self) -> bool:
        return bool(self.copies)


@dataclass(slots=True)
class Inventory:
    """Blocks of one publisher since its start."""

    last_copy_only: bool = False
    blocks: dict[Key, Block] = field(default_factory=dict)
    kinds: dict[int, str] = field(default_factory=dict)
    """Kind of cache of each group, as the stream names it."""
    windows: dict[int, int] = field(default_factory=dict)
    """Sliding window of each group in tokens."""
    contradictions: list[tuple[Key, int | None, int | None]] = field(default_factory=list)
    """Blocks with two parents: block, the first and the second one."""
    unknown_removals: int = 0
    resizes: list[tuple[Key, int, int]] = field(default_factory=list)

    def apply(self, number: int, batch: Batch) -> None:
        for event in batch.events:
            self.apply_event(number, event)

    def apply_event(self, number: int, event: Event) -> None:
        if isinstance(event, Stored):
            self.store(number, event)
        elif isinstance(event, Removed):
            for name in event.hashes:
                self.remove(number, (event.group, name), event.tier)
        elif isinstance(event, Cleared):
            for block in self.blocks.values():
                if block.copies:
                    block.copies, block.removed = {}, number

    def store(self, number: int, event: Stored) -> None:
        if event.kind is not None:
            self.kinds[event.group] = event.kind
        if event.window is not None:
            self.windows[event.group] = event.window
        parent = event.parent
        for name in event.hashes:
            key = (event.group, name)
            block = self.blocks.get(key)
            if block is None:
                block = Block(parent, event.block_size, number, number)
                self.blocks[key] = block
            elif block.parent != parent:
                self.contradictions.append((key, block.parent, parent))
            elif block.size != event.block_size:
                self.resizes.append((key, block.size, event.block_size))
            block.last_stored, block.removed = number, -1
            block.copies[event.tier] = block.copies.get(event.tier, 0) + 1
            parent = name

    def remove(self, number: int, key: Key, tier: str) -> None:
        block = self.blocks.get(key)
        if block is None or tier not in block.copies:
            self.unknown_removals += 1
            return
        if block.copies[tier] > 1 and not self.last_copy_only:
            block.copies[tier] -= 1
            block.kept_copy = True
            return
        del block.copies[tier]
        if not block.copies:
            block.removed = number
