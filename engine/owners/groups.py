"""Pooled group keys: one row a complete group, derived from the raw index keys.

A group's row stands in the cell of its LAST member. The four members before and at that cell
are the same for every key that shares it, so forks and slots share groups as they share
positions, and two sequences that diverge inside a group never write the same row. When the
anchor moves, other cells become last members and their rows are made anew.
"""

from __future__ import annotations

import mlx.core as mx

from engine.cells import cut
from engine.digest import BLOCK_TOKENS
from engine.owner import Changes, Look, Reach
from engine.owners.positional import Place, PositionalOwner


class GroupOwner(PositionalOwner):
    """[cells, d] pooled keys, mean then norm, not yet rotated."""

    def units(self, look: Look) -> tuple[int, int, int]:
        return 0, look.n_groups, max(1, BLOCK_TOKENS // look.group_size)

    def positions_of_unit(self, look: Look) -> int:
        return look.group_size

    def reach(self, look: Look, start: int, consumed: int) -> Reach:
        """Numbers of the first and last complete group."""
        n = look.n_groups
        return (0, n - 1, n) if n else (None, None, 0)

    def first_dirty(self, look: Look, changes: Changes) -> int:
        if look.key in changes.regrouped:
            return 0
        return max(0, changes.dirty[look.key] - look.evicted) // look.group_size

    def unit_rows(self, place: Place, look: Look, start: int, stop: int) -> mx.array:
        size = look.group_size
        found = []
        table, at = self.tables[place], 0
        for cell, count in cut(look.extents, start * size, stop * size):
            lead = (size - 1 - at) % size
            if lead < count:
                found.append(table[cell + lead : cell + count : size])
            at += count
        if len(found) == 1:
            return found[0]
        return mx.concatenate(found) if found else table[:0]

    def put(self, place: Place, look: Look, first: int, pooled: mx.array) -> None:
        """Write [n, d] rows of groups `first` and on."""
        size, at, row = look.group_size, 0, 0
        table, stop = self.tables[place], first + pooled.shape[0]
        for cell, count in cut(look.extents, first * size, stop * size):
            lead = (size - 1 - at) % size
            n = len(range(lead, count, size))
            if n:
                table[cell + lead : cell + count : size] = pooled[row : row + n]
                row += n
            at += count
