"""The two banks, and the one integer that says which of them is public.

A bank holds every owner once. `BankPair.public` is the only thing that publishes: nothing else
changes at a flip. After it the private bank lacks exactly what the last transaction wrote (the
public bank remembers that in `changes`) and what failed attempts wrote into the private one
(`touched`); `catch_up` copies that and nothing more.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

import mlx.core as mx

from engine.digest import owner_digest
from engine.errors import InvariantBroken
from engine.history import History
from engine.late_errors import drain
from engine.owner import Changes, Key, Look, Looks, Mark, Owner
from engine.owners import OWNERS
from engine.owners.fixed import FixedOwner, Values
from engine.owners.history import HistoryOwner
from engine.owners.layout import Layout
from engine.owners.positional import PositionalOwner
from engine.owners.saved import SavedOwner
from engine.owners.tokens import TokenOwner
from engine.snapshot import Digests


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Fixed-size owners of one sequence after `count` consumed tokens."""

    count: int
    id_hash: int
    values: tuple[tuple[str, Values], ...]
    """(owner name, layer to value); arrays are immutable and evaluated."""
    n_bytes: int


@dataclass(slots=True)
class Bank:
    """A complete copy of all owners."""

    owners: dict[str, Owner]
    with_model: bool
    txn: int = 0
    """Transaction whose result stands here; 0 before the first."""
    changes: Changes = field(default_factory=Changes)
    """What that transaction wrote."""
    touched: Changes = field(default_factory=Changes)
    """What attempts since then wrote into this bank while it was private."""
    spoiled: bool = False
    """An evaluation failed: no array of this bank may be used again."""
    checkpoints: dict[Key, tuple[Checkpoint, ...]] = field(default_factory=dict)
    sealed: Digests = ()
    """Digests of the owners as `seal` left them; empty until then."""
    _positional: tuple[PositionalOwner, ...] = ()
    _fixed: tuple[FixedOwner, ...] = ()
    _known: tuple[History, int, dict[Key, Look], dict[Key, Look]] | None = None
    """Looks of sequences and of slots, as long as history and lineages are these."""

    def __post_init__(self) -> None:
        self.adopt(self.owners)

    def adopt(self, owners: dict[str, Owner]) -> None:
        """Take these owners instead of the present ones."""
        self.owners = owners
        self._positional = tuple(o for o in owners.values() if isinstance(o, PositionalOwner))
        self._fixed = tuple(o for o in owners.values() if isinstance(o, FixedOwner))

    @classmethod
    def empty(cls, history: History, layout: Layout, with_model: bool) -> Bank:
        """A bank without content, with the owners that the session needs."""
        specs = [spec for spec in OWNERS if with_model or not spec.needs_model]
        bank = cls({spec.name: spec.make(spec, layout) for spec in specs}, with_model)
        bank.history.set_value(history)
        bank.saved.join(bank.owners.values())
        bank.evaluate()
        return bank

    @property
    def history(self) -> HistoryOwner:
        """Runs and cells."""
        return cast(HistoryOwner, self.owners["history"])

    @property
    def tokens(self) -> TokenOwner:
        """Ids and lineages; only with a model."""
        return cast(TokenOwner, self.owners["tokens"])

    @property
    def saved(self) -> SavedOwner:
        """Slots."""
        return cast(SavedOwner, self.owners["saved"])

    def positional(self) -> tuple[PositionalOwner, ...]:
        """Owners with tables along the cells."""
        return self._positional

    def cell_bytes(self) -> int:
        """Bytes of one cell in all tables."""
        return sum(p.n_bytes for owner in self._positional for p in owner.places)

    def fixed(self) -> tuple[FixedOwner, ...]:
        """Owners with one value a sequence and layer."""
        return self._fixed

    # what stands where

    def look(self, key: Key) -> Look:
        """Sizes of one key, from history and lineage."""
        history = self.history.value
        held = history.of(key) if isinstance(key, int) else history.slots[key]
        if not self.with_model:
            return Look(key, held.n, held.n, 0, held.extents, history.group_size)
        lineage = self.tokens.of(key)
        return Look(
            key, held.n, lineage.consumed, lineage.log.hash, held.extents, history.group_size
        )

    def sequence_looks(self) -> Looks:
        """Every sequence with content, by number."""
        return self._all_looks()[0]

    def slot_looks(self) -> Looks:
        """Every slot, by name."""
        return self._all_looks()[1]

    def looks(self) -> dict[Key, Look]:
        """Sequences, then slots."""
        sequences, slots = self._all_looks()
        return {**sequences, **slots}

    def _all_looks(self) -> tuple[dict[Key, Look], dict[Key, Look]]:
        history = self.history.value
        version = self.tokens.version if self.with_model else 0
        if self._known is not None:
            known, at, sequences, slots = self._known
            if known is history and at == version:
                return sequences, slots
        keys: set[int] = set(history.sequences)
        if self.with_model:
            keys |= {k for k in self.tokens.lineages if isinstance(k, int)}
        found = {key: self.look(key) for key in sorted(keys)}
        sequences = {key: look for key, look in found.items() if look.n_live or look.consumed}
        slots = {key: self.look(key) for key in sorted(history.slots)}
        self._known = (history, version, sequences, slots)
        return sequences, slots

    # verbs over all owners

    def catch_up(self, public: Bank) -> None:
        """Become equal to the public bank; what is copied is evaluated with what follows.

        Until an evaluation has succeeded the copied rows count as touched: rolled back tables
        lack them again.
        """
        if self.spoiled:
            for owner in self.owners.values():
                cast(Any, owner).remake(public.owners[owner.name])
        else:
            lacking = Changes()
            lacking.merge(self.touched)
            if self.txn != public.txn:
                lacking.merge(public.changes)
            lacking.cells = _merged(lacking.cells)
            # noted first: once interrupted, this is neither the old state nor the public one
            self.touched, self.txn = lacking, -1
            for owner in self.owners.values():
                owner.catch_up(public.owners[owner.name], lacking)
        self.checkpoints, self.sealed = dict(public.checkpoints), ()
        self.txn, self.changes = public.txn, Changes()

    def evaluate(self, *more: mx.array) -> None:
        """One evaluation of everything that may be unevaluated; spoils the bank if it fails."""
        for owner in self.positional():
            owner.release()
        try:
            mx.eval([a for owner in self.owners.values() for a in owner.arrays()], *more)
        except BaseException:
            self.spoiled = True
            drain()
            raise
        self.spoiled, self.touched = False, Changes()
        for owner in self.positional():
            owner.hold()

    def roll_back(self) -> None:
        """Throw unevaluated tables away; what this bank lacks now stands in `touched`."""
        for owner in self.positional():
            owner.roll_back()
        self.touched.merge(self.changes)
        self.changes = Changes()

    def copy(self, src: Key, dst: Key) -> None:
        """Every owner of `dst` as `src` has it."""
        consumed = self.tokens.of(src).consumed if self.with_model else 0
        # noted first: an interrupt in the middle must not leave a change that nobody knows of
        self.changes.touch(dst, min(consumed, self.changes.dirty.get(src, consumed)))
        for owner in self.owners.values():
            owner.copy(src, dst)
        if src in self.checkpoints:
            self.checkpoints[dst] = self.checkpoints[src]
        else:
            self.checkpoints.pop(dst, None)

    def drop(self, key: Key) -> None:
        """Every owner of `key` absent."""
        self.changes.touch(key, 0)
        for owner in self.owners.values():
            owner.drop(key)
        self.checkpoints.pop(key, None)

    def mark(self, key: Key) -> None:
        """Note in every owner that its content of `key` is where the lineage is."""
        lineage = self.tokens.of(key)
        for owner in self.owners.values():
            owner.mark(key, Mark(lineage.consumed, lineage.log.hash))

    def prepare(self) -> list[mx.array]:
        """Name every array that `seal` will hash; evaluate them before it."""
        looks = self.looks()
        return [a for o in self.owners.values() for a in o.prepare(looks, self.changes)]

    def seal(self) -> None:
        """Hash everything this transaction changed. All that can fail happens here or before."""
        for owner in self.owners.values():
            owner.seal()
        self.sealed = ()  # a bank filled from a file was sealed as something else before
        self.sealed = self.digests()

    def check(self) -> None:
        """Every owner against the lineage, and the history against itself.

        Raises: InvariantBroken.
        """
        self.history.value.check()
        if self.with_model:
            looks = self.looks()
            for owner in self.owners.values():
                owner.check(looks)

    # digests

    def digests(self, recompute: bool = False, by_layer: bool = False) -> Digests:
        """Digest of every owner, sealed or recomputed from the bytes.

        With `by_layer` owners with layers give one entry a layer, `NAME.layer.N`.
        """
        if self.sealed and not recompute and not by_layer:
            return self.sealed
        sequences, slots = self.sequence_looks(), self.slot_looks()
        found: list[tuple[str, str]] = []
        for owner in self.owners.values():
            looks: Looks = slots if owner is self.saved else sequences
            wanted: tuple[int | None, ...] = (None,)
            if by_layer and owner.layers():
                wanted = owner.layers()
            for layer in wanted:
                read = owner.audit if recompute else owner.parts
                name = owner.name if layer in (None, -1) else f"{owner.name}.layer.{layer}"
                found.append((name, owner_digest(name, *owner.describe(), read(looks, layer))))
        return tuple(found)


def _merged(extents: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same cells in as few extents as possible."""
    found: list[tuple[int, int]] = []
    for cell, count in sorted(extents):
        if found and cell <= sum(found[-1]):
            first, n = found[-1]
            found[-1] = (first, max(n, cell + count - first))
        else:
            found.append((cell, count))
    return found


@dataclass(slots=True)
class BankPair:
    """Two banks and the integer `public` (0 or 1): to publish is to change it."""

    banks: tuple[Bank, Bank]
    public: int = 0

    @property
    def public_bank(self) -> Bank:
        """What everyone sees."""
        return self.banks[self.public]

    @property
    def private_bank(self) -> Bank:
        """The working image."""
        return self.banks[1 - self.public]

    def flip(self) -> None:
        """Publish the private bank: one integer changes, and nothing else."""
        self.public = 1 - self.public

    def compare(self) -> None:
        """Recomputed digests of both banks. Raises: InvariantBroken naming the owner."""
        ours, theirs = (bank.digests(recompute=True) for bank in self.banks)
        for (name, left), (_, right) in zip(ours, theirs, strict=True):
            if left != right:
                raise InvariantBroken(f"banks differ in {name} after catch-up", left, right)
