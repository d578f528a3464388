"""The history as an owner: which position is in which cell, for which sequence.

The value is immutable and made by `engine.rules`; both banks may hold the same one. With a model a
table of ordinals stands beside it, for the check on the device. The digest covers runs and
ordinals in logical order, so it never depends on the physical layout.
"""

from __future__ import annotations

from typing import Final

from engine.digest import Part
from engine.history import History
from engine.owner import Changes, Key, Looks, OwnerSpec
from engine.owners.layout import Layout
from engine.owners.positional import PositionalOwner

ORDINAL: Final = (-1, "ordinal")
"""Table of the consumed index of the token in each cell: what the device knows of the order.

Sequences that share a cell share its ordinal, whatever position a shift gave it since; a
position is its ordinal plus a constant of the sequence.
"""


class HistoryOwner(PositionalOwner):
    """`value` is the history; `origins` the position each run had first, for left padding."""

    def __init__(self, spec: OwnerSpec, layout: Layout) -> None:
        super().__init__(spec, layout)
        self.value = History.empty()
        self.origins: dict[Key, int] = {}

    def set_value(self, value: History) -> None:
        """Replace the value."""
        self.value = value

    def set_origin(self, key: Key, position: int | None) -> None:
        """Note where the run of a key began, None for nowhere."""
        if position is None:
            self.origins.pop(key, None)
        else:
            self.origins[key] = position

    def catch_up(self, public: PositionalOwner, changes: Changes) -> None:
        super().catch_up(public, changes)
        self._take(public)

    def remake(self, public: PositionalOwner) -> None:
        super().remake(public)
        self._take(public)

    def _take(self, public: PositionalOwner) -> None:
        assert isinstance(public, HistoryOwner)
        self.value, self.origins = public.value, dict(public.origins)

    def copy(self, src: Key, dst: Key) -> None:
        super().copy(src, dst)
        if src in self.origins:
            self.origins[dst] = self.origins[src]

    def drop(self, key: Key) -> None:
        super().drop(key)
        self.origins.pop(key, None)

    def parts(self, looks: Looks, layer: int | None = None) -> list[Part]:
        return self._runs(looks) + super().parts(looks, layer)

    def audit(self, looks: Looks, layer: int | None = None) -> list[Part]:
        return self._runs(looks) + super().audit(looks, layer)

    def _runs(self, looks: Looks) -> list[Part]:
        found: list[Part] = []
        for key, look in looks.items():
            held = self.value.of(key) if isinstance(key, int) else self.value.slots[key]
            found.append(((*look.label, held.run.start, held.run.stop), b""))
        return found

    def layers(self) -> tuple[int, ...]:
        return ()

    def part_layers(self) -> tuple[int, ...]:
        return (-1,)

    def n_bytes(self) -> int:
        held = (*self.value.sequences.values(), *self.value.slots.values())
        runs = sum(16 * (1 + len(cells.extents)) for cells in held)
        return super().n_bytes() + runs
