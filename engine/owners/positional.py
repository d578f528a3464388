"""Owners with one row a live position, kept in tables along the bank's cells.

The history says which cells a key's rows stand in; this code only stores rows. A table has one
handle, here: a second one makes the next append copy it. While a chunk is being built the old
tables are held as well, so that a failure before evaluation loses nothing; they are let go
right before an evaluation.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import mlx.core as mx
import numpy as np
import numpy.typing as npt

from engine.cells import Extents, cut
from engine.digest import BLOCK_TOKENS, BlockHashes, Part, block_hash, canonical, hash_blocks
from engine.owner import (
    Changes,
    Differs,
    Key,
    Look,
    Looks,
    Owner,
    OwnerSpec,
    dtype_name,
    to_numpy,
)
from engine.owners.layout import Layout, PartLayout

GROW_CELLS: Final = 256
Place = tuple[int, str]


class PositionalOwner(Owner):
    """Rows a position for one or more (layer, part) tables of shape [cells, *row]."""

    def __init__(self, spec: OwnerSpec, layout: Layout) -> None:
        super().__init__(spec.name, spec.unit)
        self.places: tuple[PartLayout, ...] = tuple(layout.get(spec.name, ()))
        self.tables: dict[Place, mx.array] = {
            p.place: mx.zeros((0, *p.shape), p.dtype) for p in self.places
        }
        self._layers = tuple(sorted({p.layer for p in self.places}))
        self.n_alloc = 0
        self.blocks: dict[tuple[Key, Place], BlockHashes] = {}
        self._held: dict[Place, mx.array] | None = None
        self._pending: list[tuple[BlockHashes, list[mx.array], list[mx.array]]] = []

    # storage

    def ensure(self, n_cells: int) -> None:
        """Make room for `n_cells` cells; grows by half or more, so appends stay O(chunk)."""
        if n_cells <= self.n_alloc:
            return
        wanted = self.grown(n_cells)
        for p in self.places:
            more = mx.zeros((wanted - self.n_alloc, *p.shape), p.dtype)
            self.tables[p.place] = mx.concatenate([self.tables[p.place], more])
        self.n_alloc = wanted

    def grown(self, n_cells: int) -> int:
        """Cells that `ensure` would allocate."""
        return _grown(self.n_alloc, n_cells)

    def growth_bytes(self, n_alloc: int, public_alloc: int, n_cells: int, copied: bool) -> int:
        """Peak bytes of catching up with a public bank of `public_alloc` cells, then making room.

        Old and new tables stand side by side until the evaluation, and so do the added rows.

        Args:
            n_alloc: cells to begin with. copied: whether these are the public tables themselves,
                which the first write copies.
        """
        n, cells = n_alloc, n_alloc if copied else 0
        for wanted in (public_alloc, n_cells):
            new = _grown(n, wanted)
            cells += 2 * new - n if new > n else 0
            n = new
        return cells * sum(p.n_bytes for p in self.places)

    def write(self, place: Place, extents: Extents, rows: mx.array) -> None:
        """Put [n, *row] rows into the cells of `extents`, in order."""
        table, at = self.tables[place], 0
        for cell, count in extents:
            table[cell : cell + count] = rows[at : at + count]
            at += count

    def read(self, place: Place, extents: Extents) -> mx.array:
        """[n, *row] rows of the cells of `extents`, in order."""
        table = self.tables[place]
        found = [table[cell : cell + count] for cell, count in extents]
        if len(found) == 1:
            return found[0]
        return mx.concatenate(found) if found else table[:0]

    def hold(self) -> None:
        """Keep today's evaluated tables until `release`."""
        self._held = {place: table[:] for place, table in self.tables.items()}

    def release(self) -> None:
        """Let the old tables go, so that an evaluation may write in place."""
        self._held = None

    def roll_back(self) -> None:
        """Back to the held tables; what is not evaluated is thrown away."""
        if self._held is not None:
            self.tables, self._held = self._held, None
            # room that was made meanwhile is gone with the tables
            self.n_alloc = min((t.shape[0] for t in self.tables.values()), default=self.n_alloc)

    def arrays(self) -> list[mx.array]:
        return list(self.tables.values())

    def n_bytes(self) -> int:
        return sum(table.nbytes for table in self.tables.values())

    def layers(self) -> tuple[int, ...]:
        return self._layers

    def describe(self) -> tuple[str, tuple[int, ...]]:
        if not self.places:
            return "none", ()
        return dtype_name(self.places[0].dtype), self.places[0].shape

    # verbs

    def catch_up(self, public: PositionalOwner, changes: Changes) -> None:
        self.ensure(public.n_alloc)
        for place, table in self.tables.items():
            other = public.tables[place]
            for cell, count in changes.cells:
                stop = min(cell + count, public.n_alloc)
                if cell < stop:
                    table[cell:stop] = other[cell:stop]
        self._follow(public, changes.dirty)

    def remake(self, public: PositionalOwner) -> None:
        """Throw every array away and share the public ones; the next write copies them."""
        self._held, self._pending = None, []
        self.tables = {place: table[:] for place, table in public.tables.items()}
        self.n_alloc = public.n_alloc
        self.blocks = {name: block.copy() for name, block in public.blocks.items()}
        self.marks = dict(public.marks)

    def _follow(self, public: PositionalOwner, keys: Iterable[Key]) -> None:
        for key in keys:
            for p in self.places:
                block = public.blocks.get((key, p.place))
                if block is None:
                    self.blocks.pop((key, p.place), None)
                else:
                    self.blocks[key, p.place] = block.copy()
            if key in public.marks:
                self.marks[key] = public.marks[key]
            else:
                self.marks.pop(key, None)

    def copy(self, src: Key, dst: Key) -> None:
        self.drop(dst)
        for p in self.places:
            if (src, p.place) in self.blocks:
                self.blocks[dst, p.place] = self.blocks[src, p.place].copy()
        if src in self.marks:
            self.marks[dst] = self.marks[src]

    def drop(self, key: Key) -> None:
        for p in self.places:
            self.blocks.pop((key, p.place), None)
        self.marks.pop(key, None)

    # digests

    def units(self, look: Look) -> tuple[int, int, int]:
        """(first unit, stop, units a block) of a key: here units are consumed tokens."""
        return look.evicted, look.consumed, BLOCK_TOKENS

    def first_dirty(self, look: Look, changes: Changes) -> int:
        """First unit whose rows a transaction changed."""
        return changes.dirty[look.key]

    def unit_rows(self, place: Place, look: Look, start: int, stop: int) -> mx.array:
        """Rows of units [start, stop)."""
        first = look.evicted
        return self.read(place, cut(look.extents, start - first, stop - first))

    def prepare(self, looks: Looks, changes: Changes) -> list[mx.array]:
        wanted: list[mx.array] = []
        self._pending = []
        for key in changes.dirty:
            look = looks.get(key)
            if look is None:
                continue
            lo, hi, size = self.units(look)
            dirty = self.first_dirty(look, changes)
            for p in self.places:
                block = self.blocks.setdefault((key, p.place), BlockHashes(size))
                ranges = block.keep(lo, hi, dirty)
                rows = [[self.unit_rows(p.place, look, a, b) for a, b in part] for part in ranges]
                wanted += rows[0] + rows[1]
                self._pending.append((block, rows[0], rows[1]))
        return wanted

    def seal(self) -> None:
        for block, before, after in self._pending:
            hashed = [[block_hash(canonical(to_numpy(r))) for r in rs] for rs in (before, after)]
            block.fill(hashed[0], hashed[1])
        self._pending = []

    def _label(self, look: Look, p: PartLayout) -> tuple[int, ...]:
        lo, hi, _ = self.units(look)
        return (*look.label, p.layer, self.places.index(p), lo, hi)

    def _chosen(self, layer: int | None) -> list[PartLayout]:
        return [p for p in self.places if layer is None or p.layer == layer]

    def parts(self, looks: Looks, layer: int | None = None) -> list[Part]:
        return [
            (self._label(look, p), self.blocks[key, p.place].hashes)
            for key, look in looks.items()
            for p in self._chosen(layer)
            if (key, p.place) in self.blocks
        ]

    def audit(self, looks: Looks, layer: int | None = None) -> list[Part]:
        found: list[Part] = []
        for look in looks.values():
            lo, hi, size = self.units(look)
            for p in self._chosen(layer):
                rows = self.unit_rows(p.place, look, lo, hi)
                mx.eval(rows)
                found.append((self._label(look, p), hash_blocks(lo, size, to_numpy(rows))))
        return found

    def positions_of_unit(self, look: Look) -> int:
        """Positions that one row stands for."""
        return 1

    def named(self) -> tuple[Place, ...]:
        return tuple(p.place for p in self.places)

    def compare(self, twin: PositionalOwner, look: Look, other: Look) -> Differs:
        lo, hi, _ = self.units(look)
        for p in self.places:
            ours = self.bits(p.place, look, lo, hi)
            theirs = twin.bits(p.place, other, lo, hi)
            rows = np.flatnonzero((ours != theirs).any(axis=tuple(range(1, ours.ndim))))
            if rows.size:
                return p.layer, int(rows[0]) * self.positions_of_unit(look)
        return None

    def host(self, place: Place, look: Look, start: int, stop: int) -> npt.NDArray[Any]:
        """Host copy of units [start, stop), float32 for narrow floats (for a panel)."""
        rows = self.unit_rows(place, look, start, stop)
        if rows.dtype in (mx.bfloat16, mx.float16):
            rows = rows.astype(mx.float32)
        mx.eval(rows)
        return to_numpy(rows)

    def bits(self, place: Place, look: Look, start: int, stop: int) -> npt.NDArray[Any]:
        """Host copy of units [start, stop) as they are (narrow floats as their bits)."""
        rows = self.unit_rows(place, look, start, stop)
        mx.eval(rows)
        host = to_numpy(rows)
        # NaN is not equal to itself, its bits are
        return host.view(np.uint32) if host.dtype == np.float32 else host


def _grown(n_alloc: int, n_cells: int) -> int:
    """Cells of tables of `n_alloc` cells once they have room for `n_cells`."""
    if n_cells <= n_alloc:
        return n_alloc
    at_least = max(n_cells, n_alloc + n_alloc // 2)
    return -(-at_least // GROW_CELLS) * GROW_CELLS
