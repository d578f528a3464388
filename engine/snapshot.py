"""What the outside may see of a session: frozen values of ints, strings and tuples.

A snapshot is taken at publish. Runs are half-open ranges, cells are run-length pairs; nothing
here is as long as the history. Arrays travel separately, as read-only NumPy (`ArraySlice`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Digests = tuple[tuple[str, str], ...]
"""(owner name, 32 hex digits) in the order of `OWNERS`."""

Extents = tuple[tuple[int, int], ...]
"""(first physical cell, number of cells) in logical order."""


@dataclass(frozen=True, slots=True)
class PartView:
    """How far one owner's part of one sequence reaches (`layer` is -1 for a whole owner)."""

    owner: str
    layer: int
    first: int | None
    """First live position (first group number for groups); None when absent."""
    last: int | None
    count: int
    """Rows, groups or, for fixed-size owners, consumed tokens."""


@dataclass(frozen=True, slots=True)
class SequenceView:
    """One sequence after a transaction."""

    seq: int
    start: int
    """First live position; equal to `stop` when the run is empty."""
    stop: int
    """Frontier + 1."""
    group_size: int
    n_groups: int
    n_tail: int
    extents: Extents
    consumed: int
    """Tokens ever consumed on this lineage, evicted ones included."""
    evicted: int
    """Positions evicted from the front."""
    padding: int
    """Positions before the first live one that never existed (left padding)."""
    parts: tuple[PartView, ...] = ()

    @property
    def n_live(self) -> int:
        """Live positions."""
        return self.stop - self.start


@dataclass(frozen=True, slots=True)
class OwnerView:
    """One owner in both banks."""

    name: str
    unit: str
    n_bytes: int
    """Bytes of one bank's storage for it."""
    public_digest: str
    private_digest: str
    """Empty while the private bank lacks the last transaction or holds an unsealed image."""
    state: str
    """`same`, `stale` (catch-up due), `in flight`, `sealed`, or `single` (no second bank)."""
    n_stale_rows: int
    layers: tuple[tuple[int, str], ...] = ()
    """(layer, public digest of that layer) for owners with layers."""


@dataclass(frozen=True, slots=True)
class SlotView:
    """A named saved state."""

    name: str
    start: int
    stop: int
    consumed: int
    n_bytes: int


@dataclass(frozen=True, slots=True)
class StageView:
    """One stage of the plan of the open or the last transaction."""

    name: str
    kind: str
    """`transaction` or `graph`."""
    state: str
    """`pending`, `running`, `done`, `failed` or `not reached`."""
    time_ns: int = 0
    piece: int = 0
    """Which private piece of the op the stage worked on, from 0."""
    seq: int = 0
    fail_kind: str = ""
    detail: str = ""
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    armed: tuple[str, ...] = ()
    """Failure kinds armed on this stage, as `kind/when`."""


@dataclass(frozen=True, slots=True)
class OpenView:
    """The transaction in flight."""

    txn: int
    op: str
    seq: int
    n_tokens: int
    start: int
    """First position the op writes (start == stop: none)."""
    stop: int
    extents: Extents
    next_stage: str


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The public state after transaction `txn`, and what is known of the private bank."""

    number: int
    txn: int
    flips: int
    public_bank: int
    group_size: int
    capacity: int
    window: int | None
    n_cells: int
    """Physical cells that were ever used."""
    sequences: tuple[SequenceView, ...]
    slots: tuple[SlotView, ...]
    owners: tuple[OwnerView, ...]
    backend: str = "none"
    """`cpu`, `metal`, `cuda`, or `none` without a model."""
    model: str = ""
    mode: str = "inspect"
    exact: str = "proved"
    """`proved`, `unproved` or `not checked`, from the start-up self-check."""
    budget_bytes: int = 0
    used_bytes: int = 0
    open: OpenView | None = None
    broken: str = ""
    """The sentence of an `InvariantBroken`; nothing is published any more."""


@dataclass(frozen=True, slots=True)
class Record:
    """One line of the journal: an op, what became of it, and the proof."""

    number: int
    txn: int | None
    """Transaction number; None when the op was refused before `reserve`."""
    op: str
    seq: int
    op_json: str
    result: str
    """`ok` or `rejected: REASON`, as scenarios write it."""
    outcome: str
    """`ok`, `rejected`, `failed` or `cancelled`."""
    sentence: str
    n_tokens: int
    duration_ns: int
    public_bank: int
    flips: int
    stage: str = ""
    kind: str = ""
    reason: str = ""
    expected: int | None = None
    given: int | None = None
    nearest: int | None = None
    bad_value: str = ""
    stages: tuple[StageView, ...] = ()
    digests_before: Digests = ()
    digests_after: Digests = ()
    sequences: tuple[SequenceView, ...] = ()
    """Every sequence after this op (unchanged by a refusal)."""
    cells_written: Extents = ()
    """Physical cells that this op wrote, for provenance."""
    positions_written: tuple[int, int] | None = None
    """Half-open range of positions that this op wrote."""
    wall_ns: int = 0
    """Time of day in nanoseconds since the epoch."""


@dataclass(frozen=True, slots=True)
class ArraySlice:
    """Rows of an owner's array, copied out for a panel."""

    owner: str
    layer: int
    part: str
    seq: int
    bank: str
    """`public` or `private`."""
    start: int
    """First live position of the rows (0 for fixed-size owners)."""
    values: npt.NDArray[np.generic]


@dataclass(frozen=True, slots=True)
class LimitView:
    """How far one kind of op may go from here, and why not further."""

    op: str
    nearest: int | None
    farthest: int | None
    reason: str


@dataclass(frozen=True, slots=True)
class CheckResult:
    """Result of a one-click check."""

    name: str
    ok: bool
    sentence: str
    rows: tuple[tuple[str, ...], ...] = ()
    columns: tuple[str, ...] = ()
