"""Chains of resident blocks: where each stands, and which of its blocks are missing.

Chains share prefixes, so what a block knows of its ancestors is kept with it: the work grows with
the number of blocks, not with chains times length. Missing blocks of a path are a linked list.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.formats.kv_events.inventory import Block, Inventory, Key
from engine.formats.kv_events.publisher import Publisher
from engine.formats.report import Span

STEP_BUDGET = 50_000
"""Missing spans looked at over all chains; a sound stream has few."""


@dataclass(frozen=True, slots=True)
class Gap:
    """Missing blocks one behind another on a path, and the next gap towards the root."""

    start: int
    stop: int
    deepest: Key
    before: Gap | None


@dataclass(frozen=True, slots=True)
class Place:
    """Where a block stands, counted from the first known block of its path."""

    start: int
    gap: Gap | None
    missing: int
    """Tokens of the path's missing blocks, this one included."""
    root_parent: int | None
    """Hash of the parent that was never reported; None where the path begins at position 0."""
    root: Key
    uniform: bool = True
    """All blocks of the path have one size."""
    looped: bool = False


@dataclass(frozen=True, slots=True)
class Chain:
    """One resident block without resident descendants, and the path to it."""

    leaf: Key
    place: Place
    length: int
    """Tokens from the first known block to the end of the leaf."""
    holes: tuple[Span, ...]
    unknown: tuple[Span, ...]
    """Missing blocks that a lost message may explain."""
    evicted: tuple[Span, ...]
    """Missing blocks that left a sliding window."""
    gaps: tuple[Gap, ...]
    """The gaps behind `holes`."""
    counted: bool = True
    """False where there were too many missing ranges to list all."""
    judged: bool = True
    """False where the group's kind of cache is not known to keep every block."""

    @property
    def placed(self) -> bool:
        return self.place.root_parent is None and not self.place.looped


def chains_of(publisher: Publisher) -> list[Chain]:
    """Every chain of a publisher, by group and name of the leaf."""
    inventory = publisher.inventory
    places: dict[Key, Place] = {}
    found = []
    budget = STEP_BUDGET
    for leaf in sorted(leaves(inventory), key=lambda key: (key[0], str(key[1]))):
        place = place_of(inventory, leaf, places)
        chain, steps = chain_of(publisher, leaf, place, budget)
        budget = max(0, budget - steps)
        found.append(chain)
    return found


def leaves(inventory: Inventory) -> list[Key]:
    """Resident blocks without a resident descendant, across gaps."""
    inner: set[Key] = set()
    for key, block in inventory.blocks.items():
        if not block.resident:
            continue
        parent = parent_key(key, block)
        while parent is not None and parent not in inner:
            inner.add(parent)
            above = inventory.blocks.get(parent)
            parent = parent_key(parent, above) if above is not None else None
    return [key for key, block in inventory.blocks.items() if block.resident and key not in inner]


def parent_key(key: Key, block: Block) -> Key | None:
    return None if block.parent is None else (key[0], block.parent)


def place_of(inventory: Inventory, key: Key, places: dict[Key, Place]) -> Place:
    """Place of a block; fills in those of its ancestors, from the root down."""
    path: list[Key] = []
    on_path: set[Key] = set()
    at: Key | None = key
    looped = False
    while at is not None and at not in places and at in inventory.blocks:
        if at in on_path:
            looped = True
            break
        path.append(at)
        on_path.add(at)
        at = parent_key(at, inventory.blocks[at])
    above = places.get(at) if at is not None and not looped else None
    size = inventory.blocks[at].size if above is not None and at is not None else None
    for own in reversed(path):
        block = inventory.blocks[own]
        if above is None or size is None:
            start, gap, missing = 0, None, 0
            root_parent, root, uniform = block.parent, own, True
        else:
            start, gap, missing = above.start + size, above.gap, above.missing
            root_parent, root = above.root_parent, above.root
            uniform, looped = above.uniform and block.size == size, above.looped
        if not block.resident:
            missing += block.size
            joined = gap is not None and gap.stop == start
            gap = Gap(
                gap.start if joined and gap is not None else start,
                start + block.size,
                own,
                gap.before if joined and gap is not None else gap,
            )
        above = Place(start, gap, missing, root_parent, root, uniform, looped)
        size = block.size
        places[own] = above
    return places[key]


def chain_of(publisher: Publisher, leaf: Key, place: Place, budget: int) -> tuple[Chain, int]:
    """The chain to a leaf, and how many gaps were looked at."""
    inventory = publisher.inventory
    block = inventory.blocks[leaf]
    length = place.start + block.size
    window = inventory.windows.get(leaf[0])
    judged = keeps_all(inventory.kinds.get(leaf[0])) or window is not None
    from_token = 0 if window is None else max(0, length - window)
    holes: list[Span] = []
    unknown: list[Span] = []
    evicted: list[Span] = []
    gaps: list[Gap] = []
    steps, gap = 0, place.gap
    while gap is not None and steps < budget:
        steps += 1
        if gap.start < from_token:
            evicted.append((gap.start, min(gap.stop, from_token)))
        if gap.stop > from_token:
            span = (max(gap.start, from_token), gap.stop)
            if not judged:
                evicted.append(span)
            elif proven(publisher, gap, block):
                holes.append(span)
                gaps.append(gap)
            else:
                unknown.append(span)
        gap = gap.before
    chain = Chain(
        leaf=leaf,
        place=place,
        length=length,
        holes=tuple(sorted(holes)),
        unknown=tuple(sorted(unknown)),
        evicted=tuple(sorted(evicted)),
        gaps=tuple(reversed(gaps)),
        counted=gap is None,
        judged=judged,
    )
    return chain, steps


def keeps_all(kind: str | None) -> bool:
    """Whether a kind of cache keeps every block of a prefix; absent means full attention."""
    return kind is None or "full" in kind or "mla" in kind or kind == "attention"


def proven(publisher: Publisher, gap: Gap, leaf: Block) -> bool:
    """No lost message can have removed the leaf or stored the missing block again."""
    missing = publisher.inventory.blocks[gap.deepest]
    return not publisher.lost_after(min(missing.removed, leaf.last_stored))
