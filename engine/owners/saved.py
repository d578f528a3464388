"""Named saved slots. Their content stands with the other owners, under the slot's name as key;
this owner names the slots and answers for all of a slot's content together."""

from __future__ import annotations

from collections.abc import Iterable

import mlx.core as mx

from engine.digest import Part
from engine.owner import Changes, Key, Looks, Mark, Owner, OwnerSpec
from engine.owners.layout import Layout


class SavedOwner(Owner):
    """The digest runs over every other owner's parts of the slots."""

    def __init__(self, spec: OwnerSpec, layout: Layout) -> None:
        super().__init__(spec.name, spec.unit)
        self.others: tuple[Owner, ...] = ()

    def join(self, others: Iterable[Owner]) -> None:
        """Learn the other owners of the same bank."""
        self.others = tuple(other for other in others if other is not self)

    def catch_up(self, public: SavedOwner, changes: Changes) -> None:
        """The other owners have caught up with the slots' keys."""

    def remake(self, public: SavedOwner) -> None:
        """The other owners are made anew with the slots' keys."""

    def copy(self, src: Key, dst: Key) -> None:
        """The other owners have the content."""

    def drop(self, key: Key) -> None:
        """The other owners have the content."""

    def prepare(self, looks: Looks, changes: Changes) -> list[mx.array]:
        return []

    def seal(self) -> None:
        """The other owners have sealed the slots' content."""

    def parts(self, looks: Looks, layer: int | None = None) -> list[Part]:
        return [part for other in self.others for part in other.parts(looks)]

    def audit(self, looks: Looks, layer: int | None = None) -> list[Part]:
        return [part for other in self.others for part in other.audit(looks)]

    def mark(self, key: Key, mark: Mark) -> None:
        """The other owners keep the counts."""

    def check(self, looks: Looks) -> None:
        """The other owners check the slots' content."""

    def n_bytes(self) -> int:
        return 0
