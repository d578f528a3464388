"""Token ids and lineage of each sequence and slot: what everything else can be made from."""

from __future__ import annotations

import mlx.core as mx

from engine.digest import BLOCK_TOKENS, BlockHashes, Part, block_hash, canonical, hash_blocks
from engine.lineage import Lineage
from engine.owner import Changes, Key, Looks, Mark, Owner, OwnerSpec
from engine.owners.layout import Layout


class TokenOwner(Owner):
    """A `Lineage` a key; its own count is the one that all other owners are compared with."""

    def __init__(self, spec: OwnerSpec, layout: Layout) -> None:
        super().__init__(spec.name, spec.unit)
        self.lineages: dict[Key, Lineage] = {}
        self.blocks: dict[Key, BlockHashes] = {}
        self._pending: list[tuple[Key, BlockHashes, list[bytes], list[bytes]]] = []
        self.version = 0
        """Grows with every change, so that sizes derived from lineages can be kept."""

    def of(self, key: Key) -> Lineage:
        """The lineage of a key; an empty one when it never consumed a token."""
        return self.lineages.get(key) or Lineage.empty()

    def write(self, key: Key, lineage: Lineage) -> None:
        """Replace the lineage of a key."""
        self.version += 1
        self.lineages[key] = lineage
        self.marks[key] = Mark(lineage.consumed, lineage.log.hash)

    def catch_up(self, public: TokenOwner, changes: Changes) -> None:
        for key in changes.dirty:
            self._take(public, key, key)

    def remake(self, public: TokenOwner) -> None:
        """Take the public lineages, which are immutable."""
        self.version += 1
        self.lineages, self.marks = dict(public.lineages), dict(public.marks)
        self.blocks = {key: block.copy() for key, block in public.blocks.items()}
        self._pending = []

    def copy(self, src: Key, dst: Key) -> None:
        self._take(self, src, dst)

    def _take(self, source: TokenOwner, src: Key, dst: Key) -> None:
        self.version += 1
        if src in source.lineages:
            self.lineages[dst], self.marks[dst] = source.lineages[src], source.marks[src]
        else:
            self.lineages.pop(dst, None)
            self.marks.pop(dst, None)
        if src in source.blocks:
            self.blocks[dst] = source.blocks[src].copy()
        else:
            self.blocks.pop(dst, None)

    def drop(self, key: Key) -> None:
        self.version += 1
        self.lineages.pop(key, None)
        self.marks.pop(key, None)
        self.blocks.pop(key, None)

    def prepare(self, looks: Looks, changes: Changes) -> list[mx.array]:
        self._pending = []
        for key, dirty in changes.dirty.items():
            if key not in looks:
                continue
            block = self.blocks.setdefault(key, BlockHashes(BLOCK_TOKENS))
            log = self.of(key).log
            ranges = block.keep(0, log.n, dirty)
            hashed = [[block_hash(canonical(log.slice(a, b))) for a, b in r] for r in ranges]
            self._pending.append((key, block, hashed[0], hashed[1]))
        return []

    def seal(self) -> None:
        for _, block, before, after in self._pending:
            block.fill(before, after)
        self._pending = []

    def parts(self, looks: Looks, layer: int | None = None) -> list[Part]:
        return [
            ((*looks[key].label, *self.of(key).numbers()), self.blocks[key].hashes)
            for key in looks
            if key in self.blocks
        ]

    def audit(self, looks: Looks, layer: int | None = None) -> list[Part]:
        found: list[Part] = []
        for key in looks:
            lineage = self.of(key)
            ids = lineage.log.slice(0, lineage.consumed)
            numbers = (*looks[key].label, *lineage.numbers())
            found.append((numbers, hash_blocks(0, BLOCK_TOKENS, ids)))
        return found

    def part_layers(self) -> tuple[int, ...]:
        return (-1,)

    def n_bytes(self) -> int:
        return sum(8 * lineage.consumed for lineage in self.lineages.values())
