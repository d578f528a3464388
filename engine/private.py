"""The private bank as the graph's stages see it: one sequence, one piece of a chunk.

Implements `engine.stage.State`. Turns live indexes into cells, counts what was written, and in a
replay keeps the rows that are already there: going back in time makes only fixed-size owners.
"""

from __future__ import annotations

from typing import Any, cast

import mlx.core as mx
import numpy as np
import numpy.typing as npt

from engine.bank import Bank
from engine.cells import Extents, as_array, cut
from engine.errors import InvariantBroken
from engine.owner import Look
from engine.owners.fixed import FixedOwner
from engine.owners.groups import GroupOwner
from engine.owners.history import ORDINAL
from engine.owners.positional import Place, PositionalOwner


class PrivateState:
    """State of sequence `key` in `bank` while tokens [consumed, consumed + n) run."""

    def __init__(
        self, bank: Bank, look: Look, new: Extents, n: int, first_position: int, replay: bool
    ) -> None:
        self.bank, self.look, self.new, self.n = bank, look, new, n
        self.first_position, self.replay = first_position, replay
        self.written: dict[tuple[str, Place], int] = {}
        self._map: mx.array | None = None
        if not replay:
            ordinals = mx.array(np.arange(look.consumed - n, look.consumed, dtype=np.int32))
            bank.history.write(ORDINAL, new, ordinals)

    def fixed(self, owner: str, layer: int) -> mx.array | npt.NDArray[Any] | None:
        """A value; the n-gram window comes as NumPy, since it is read on the host."""
        value = cast(FixedOwner, self.bank.owners[owner]).get(self.look.key, layer)
        return np.array(value) if value is not None and owner == "ple.history" else value

    def set_fixed(self, owner: str, layer: int, value: mx.array) -> None:
        """Replace a value and count it."""
        cast(FixedOwner, self.bank.owners[owner]).write(self.look.key, layer, value)
        self.written[owner, (layer, "")] = self.n

    def _table(self, owner: str) -> PositionalOwner:
        return cast(PositionalOwner, self.bank.owners[owner])

    def append_rows(self, owner: str, layer: int, part: str, rows: mx.array) -> None:
        """Write this piece's rows, or count them only when they are there already."""
        place = (layer, part)
        if not self.replay:
            self._table(owner).write(place, self.new, rows)
        self.written[owner, place] = self.written.get((owner, place), 0) + rows.shape[0]

    def rows(self, owner: str, layer: int, part: str, start: int, stop: int) -> mx.array:
        """Rows of live indexes [start, stop)."""
        return self._table(owner).read((layer, part), cut(self.look.extents, start, stop))

    def gather(self, owner: str, layer: int, part: str, index: mx.array) -> mx.array:
        """Rows at live indexes of any shape."""
        extents = self.look.extents
        table = self._table(owner).tables[layer, part]
        if len(extents) == 1:
            return mx.take(table, index + extents[0][0], axis=0)
        if self._map is None:
            self._map = mx.array(as_array(extents).astype(np.int32))
        return mx.take(table, mx.take(self._map, index), axis=0)

    @property
    def _groups(self) -> GroupOwner:
        return cast(GroupOwner, self.bank.owners["qsa.groups"])

    def put_groups(self, layer: int, first_group: int, pooled: mx.array) -> None:
        """Write pooled keys of the groups that this piece completed."""
        if not self.replay:
            self._groups.put((layer, ""), self.look, first_group, pooled)
        self.written["qsa.groups", (layer, "")] = pooled.shape[0]

    def groups(self, layer: int, start: int, stop: int) -> mx.array:
        """Pooled keys of groups [start, stop)."""
        return self._groups.unit_rows((layer, ""), self.look, start, stop)

    def cells(self, start: int, stop: int) -> mx.array:
        """Positions of live indexes [start, stop) as the device's table has them, int32."""
        ordinals = self.bank.history.read(ORDINAL, cut(self.look.extents, start, stop))
        return ordinals + (self.first_position - self.look.evicted)

    def check_complete(self) -> None:
        """Every owner got exactly this piece's rows. Raises: InvariantBroken naming the owner."""
        for owner in self.bank.positional():
            if owner.name not in ("history", "qsa.groups"):
                self._check_places(owner.name, [p.place for p in owner.places])
        for fixed in self.bank.fixed():
            self._check_places(fixed.name, [(layer, "") for layer in fixed.places])

    def _check_places(self, owner: str, places: list[Place]) -> None:
        for place in places:
            n = self.written.get((owner, place), 0)
            if n != self.n:
                raise InvariantBroken(
                    f"{owner} of layer {place[0]}, sequence {self.look.key}",
                    f"{self.n} tokens written",
                    f"{n}",
                )
