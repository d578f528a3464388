"""What an owner is: the only code that writes one part of the persistent state.

Every owner stands once in each bank and has the same verbs: `catch_up`, `write` (in the form
that fits its storage), `copy`, `drop`, `seal`, `digest` and `check`. None has a flip or a
rollback of its own. State belongs to keys: a sequence number, or a slot's name (a saved slot is
a sequence that cannot be appended to, so save and restore are copies of references).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import mlx.core as mx
import numpy as np
import numpy.typing as npt

from engine.digest import Part
from engine.errors import InvariantBroken
from engine.snapshot import Extents

Key = int | str
"""A sequence number, or the name of a slot."""


def to_numpy(array: mx.array) -> npt.NDArray[Any]:
    """A host copy of an evaluated array; bfloat16 comes as its uint16 bits."""
    if array.size == 0:  # on CUDA some empty arrays have no memory, and looking at it is fatal
        return np.empty(
            array.shape, "uint16" if array.dtype == mx.bfloat16 else dtype_name(array.dtype)
        )
    return np.array(array.view(mx.uint16) if array.dtype == mx.bfloat16 else array)


def dtype_name(dtype: mx.Dtype) -> str:
    """Name of a dtype, such as `float32`."""
    return str(dtype).rsplit(".", 1)[-1]


@dataclass(frozen=True, slots=True)
class Look:
    """What a bank's history and lineage say of one key: owners size themselves by it."""

    key: Key
    n_live: int
    consumed: int
    id_hash: int
    extents: Extents
    group_size: int

    @property
    def evicted(self) -> int:
        """Consumed tokens that are not live any more."""
        return self.consumed - self.n_live

    @property
    def n_groups(self) -> int:
        """Complete groups, counted from the first live position."""
        return self.n_live // self.group_size

    @property
    def label(self) -> tuple[int, ...]:
        """Integers that name the key in a digest."""
        if isinstance(self.key, int):
            return (self.key,)
        return tuple(self.key.encode())


Looks = Mapping[Key, Look]


@dataclass(slots=True)
class Changes:
    """What a transaction wrote into its bank: exactly what the other bank will lack."""

    cells: list[tuple[int, int]] = field(default_factory=list)
    """Extents of physical cells."""
    dirty: dict[Key, int] = field(default_factory=dict)
    """Consumed index from which a key's rows are new; keys that were dropped are here, too."""
    regrouped: set[Key] = field(default_factory=set)
    """Keys whose groups were made anew."""

    def touch(self, key: Key, consumed: int) -> None:
        """Note that rows of `key` changed from `consumed` on."""
        self.dirty[key] = min(consumed, self.dirty.get(key, consumed))

    def merge(self, other: Changes) -> None:
        """Add what another transaction wrote."""
        self.cells.extend(other.cells)
        self.regrouped |= other.regrouped
        for key, consumed in other.dirty.items():
            self.touch(key, consumed)


Reach = tuple[int | None, int | None, int]
"""(first, last, count), both None when a part is absent."""


Differs = tuple[int, int | None] | None
"""(layer, live index of the first row or None for a whole value); None when nothing differs."""


@dataclass(frozen=True, slots=True)
class Mark:
    """How far an owner's content of one key is: consumed tokens and the hash of their ids."""

    consumed: int
    id_hash: int


class Owner(ABC):
    """One owner in one bank."""

    def __init__(self, name: str, unit: str) -> None:
        self.name, self.unit = name, unit
        self.marks: dict[Key, Mark] = {}

    @abstractmethod
    def catch_up(self, public: Any, changes: Changes) -> None:
        """Become equal to the public bank's owner, which is ahead by `changes`."""

    @abstractmethod
    def copy(self, src: Key, dst: Key) -> None:
        """Give `dst` everything that `src` has; no array is copied."""

    @abstractmethod
    def drop(self, key: Key) -> None:
        """Forget a key."""

    @abstractmethod
    def prepare(self, looks: Looks, changes: Changes) -> list[mx.array]:
        """Name the arrays whose bytes `seal` will hash, so that one evaluation serves all."""

    @abstractmethod
    def seal(self) -> None:
        """Hash what `prepare` named. Everything that can fail happens here or before."""

    @abstractmethod
    def parts(self, looks: Looks, layer: int | None = None) -> list[Part]:
        """Sealed hashes of the given keys in order, for a digest; of one layer or of all."""

    @abstractmethod
    def audit(self, looks: Looks, layer: int | None = None) -> list[Part]:
        """The same as `parts`, recomputed from the bytes."""

    @abstractmethod
    def n_bytes(self) -> int:
        """Bytes of this bank's storage."""

    def arrays(self) -> list[mx.array]:
        """Every array of this bank that is or may be unevaluated."""
        return []

    def layers(self) -> tuple[int, ...]:
        """Layers that have a part of their own, ascending."""
        return ()

    def part_layers(self) -> tuple[int, ...]:
        """Layers of what a sequence's view names, -1 for the owner as a whole."""
        return self.layers()

    def reach(self, look: Look, start: int, consumed: int) -> Reach:
        """First and last position (or group) that the content of a key has, and how much it is.

        Args:
            start: first live position of the key. consumed: tokens that the content has seen.
        """
        last = start + consumed - look.evicted - 1
        if not consumed or last < start:
            return None, None, 0
        return start, last, consumed - look.evicted

    def named(self) -> tuple[tuple[int, str], ...]:
        """(layer, part) of every array that a panel may read."""
        return ()

    def compare(self, twin: Any, look: Look, other: Look) -> Differs:
        """Where the content of a key first differs from a twin's, bit by bit.

        Args:
            look, other: sizes of the key here and of its counterpart in the twin.
        """
        return None

    def describe(self) -> tuple[str, tuple[int, ...]]:
        """Dtype and row shape for the digest's header."""
        return "int64", ()

    def mark(self, key: Key, mark: Mark) -> None:
        """Note how far the content of `key` is."""
        self.marks[key] = mark

    def check(self, looks: Looks) -> None:
        """Compare what was consumed with the lineage.

        Raises: InvariantBroken naming the owner, the key and both counts.
        """
        for key, look in looks.items():
            mark = self.marks.get(key, Mark(0, EMPTY_HASH))
            if mark != Mark(look.consumed, look.id_hash):
                raise InvariantBroken(
                    f"{self.name} of sequence {key} is not where its lineage is",
                    f"{look.consumed} tokens (ids {look.id_hash:016x})",
                    f"{mark.consumed} tokens (ids {mark.id_hash:016x})",
                )


def _empty_hash() -> int:
    from engine.lineage import TokenLog

    return TokenLog().hash


EMPTY_HASH: Final = _empty_hash()


@dataclass(frozen=True, slots=True)
class OwnerSpec:
    """One line of `OWNERS`: name, what makes it, unit of its rows."""

    name: str
    make: Callable[[OwnerSpec, Any], Owner]
    """(spec, layout of the model or None) to the owner of one bank."""
    unit: str
    needs_model: bool = True
