"""Owners with values of fixed size a sequence: recurrent state, windows, last-token outputs.

Values are immutable arrays that are replaced, never written into, so both banks may hold the
same one, and going back in time is keeping a reference. They carry no length of their own: the
marks say how many tokens they have seen.
"""

from __future__ import annotations

from typing import Any

import mlx.core as mx
import numpy as np
import numpy.typing as npt

from engine.digest import Part, block_hash, canonical
from engine.owner import (
    Changes,
    Differs,
    Key,
    Look,
    Looks,
    Owner,
    OwnerSpec,
    Reach,
    dtype_name,
    to_numpy,
)
from engine.owners.layout import Layout, PartLayout

Values = dict[int, mx.array]
"""Layer to value, of one key."""


class FixedOwner(Owner):
    """One value a (key, layer)."""

    def __init__(self, spec: OwnerSpec, layout: Layout) -> None:
        super().__init__(spec.name, spec.unit)
        self.places: dict[int, PartLayout] = {p.layer: p for p in layout.get(spec.name, ())}
        self._layers = tuple(sorted(self.places))
        self.values: dict[Key, Values] = {}
        self.hashes: dict[Key, dict[int, bytes]] = {}
        self._pending: list[Key] = []

    def get(self, key: Key, layer: int) -> mx.array | None:
        """The value, None at the start of a sequence."""
        return self.values.get(key, {}).get(layer)

    def write(self, key: Key, layer: int, value: mx.array) -> None:
        """Replace a value; the dict is replaced too, since others may share it."""
        self.values[key] = {**self.values.get(key, {}), layer: value}

    def replace(self, key: Key, values: Values) -> None:
        """Replace all values of a key, as when going back in time."""
        if values:
            self.values[key] = dict(values)
        else:
            self.values.pop(key, None)

    def catch_up(self, public: FixedOwner, changes: Changes) -> None:
        for key in changes.dirty:
            for mine, theirs in (
                (self.values, public.values),
                (self.hashes, public.hashes),
                (self.marks, public.marks),
            ):
                _follow(mine, theirs, key)

    def remake(self, public: FixedOwner) -> None:
        """Throw every value away and take the public ones."""
        self.values, self.hashes = dict(public.values), dict(public.hashes)
        self.marks, self._pending = dict(public.marks), []

    def copy(self, src: Key, dst: Key) -> None:
        for table in (self.values, self.hashes, self.marks):
            _follow(table, table, dst, src)

    def drop(self, key: Key) -> None:
        for table in (self.values, self.hashes, self.marks):
            _drop(table, key)

    def arrays(self) -> list[mx.array]:
        return [value for values in self.values.values() for value in values.values()]

    def prepare(self, looks: Looks, changes: Changes) -> list[mx.array]:
        self._pending = [key for key in changes.dirty if key in looks]
        return [v for key in self._pending for v in self.values.get(key, {}).values()]

    def seal(self) -> None:
        for key in self._pending:
            self.hashes[key] = self._hash(key)
        self._pending = []

    def _hash(self, key: Key) -> dict[int, bytes]:
        values = sorted(self.values.get(key, {}).items())
        return {layer: block_hash(canonical(to_numpy(value))) for layer, value in values}

    def _parts(
        self, looks: Looks, layer: int | None, hashes: dict[Key, dict[int, bytes]]
    ) -> list[Part]:
        return [
            ((*looks[key].label, at, looks[key].consumed), value)
            for key in looks
            for at, value in sorted(hashes.get(key, {}).items())
            if layer is None or layer == at
        ]

    def parts(self, looks: Looks, layer: int | None = None) -> list[Part]:
        return self._parts(looks, layer, self.hashes)

    def audit(self, looks: Looks, layer: int | None = None) -> list[Part]:
        return self._parts(looks, layer, {key: self._hash(key) for key in looks})

    def n_bytes(self) -> int:
        return sum(value.nbytes for value in self.arrays())

    def layers(self) -> tuple[int, ...]:
        return self._layers

    def reach(self, look: Look, start: int, consumed: int) -> Reach:
        """The last position seen, and all tokens consumed."""
        _, last, _ = super().reach(look, start, consumed)
        return last, last, 0 if last is None else consumed

    def describe(self) -> tuple[str, tuple[int, ...]]:
        if not self.places:
            return "none", ()
        first = next(iter(self.places.values()))
        return dtype_name(first.dtype), first.shape

    def named(self) -> tuple[tuple[int, str], ...]:
        return tuple((layer, "") for layer in self.places)

    def compare(self, twin: FixedOwner, look: Look, other: Look) -> Differs:
        for layer in self.layers():
            ours, theirs = self.bits(look.key, layer), twin.bits(other.key, layer)
            if (ours is None) != (theirs is None):
                return layer, None
            if ours is not None and not np.array_equal(ours, theirs):  # type: ignore[arg-type]
                return layer, None
        return None

    def bits(self, key: Key, layer: int) -> npt.NDArray[Any] | None:
        """Host copy of a value as it is (narrow floats as their bits)."""
        value = self.get(key, layer)
        return None if value is None else _bits(value)

    def host(self, key: Key, layer: int) -> npt.NDArray[Any] | None:
        """Host copy of a value, float32 for narrow floats (for a panel)."""
        value = self.get(key, layer)
        if value is None:
            return None
        if value.dtype in (mx.bfloat16, mx.float16):
            value = value.astype(mx.float32)
        mx.eval(value)
        return np.array(value)


def _bits(value: mx.array) -> npt.NDArray[Any]:
    host = to_numpy(value)
    return host.view(np.uint32) if host.dtype == np.float32 else host


def _drop(table: dict[Key, Any], key: Key) -> None:
    table.pop(key, None)


def _follow(
    mine: dict[Key, Any], theirs: dict[Key, Any], key: Key, source: Key | None = None
) -> None:
    """Make `mine[key]` what `theirs` has, or absent."""
    source = key if source is None else source
    if source in theirs:
        mine[key] = theirs[source]
    else:
        mine.pop(key, None)
