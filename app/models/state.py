"""The one state that every panel shows: the newest one, or the one after a past transaction.

Owns the choice between a snapshot and a journal record, so that no panel mixes the two.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.snapshot import Digests, OpenView, OwnerView, Record, SequenceView, SlotView, Snapshot


@dataclass(frozen=True, slots=True)
class State:
    """What is known of the session right after one event."""

    live: bool
    """False in time travel."""
    event: int | None
    """Number of the record that it follows; None before the first."""
    txn: int
    flips: int
    public_bank: int
    group_size: int
    capacity: int
    window: int | None
    n_cells: int
    sequences: tuple[SequenceView, ...]
    digests: Digests
    owners: tuple[OwnerView, ...] = ()
    """Empty in time travel: of the past only the public digests are kept."""
    slots: tuple[SlotView, ...] = ()
    open: OpenView | None = None
    broken: str = ""
    backend: str = "none"
    model: str = ""

    def sequence(self, seq: int | None) -> SequenceView | None:
        """The sequence with this number, or None."""
        return next((view for view in self.sequences if view.seq == seq), None)


def state_of(snapshot: Snapshot | None, shown: Record | None, newest: int | None) -> State | None:
    """The state to show; `newest` is the number of the newest record, for the live state."""
    if snapshot is None:
        return None
    if shown is None:
        return State(
            live=True,
            event=newest,
            txn=snapshot.txn,
            flips=snapshot.flips,
            public_bank=snapshot.public_bank,
            group_size=snapshot.group_size,
            capacity=snapshot.capacity,
            window=snapshot.window,
            n_cells=snapshot.n_cells,
            sequences=snapshot.sequences,
            digests=tuple((view.name, view.public_digest) for view in snapshot.owners),
            owners=snapshot.owners,
            slots=snapshot.slots,
            open=snapshot.open,
            broken=snapshot.broken,
            backend=snapshot.backend,
            model=snapshot.model,
        )
    return State(
        live=False,
        event=shown.number,
        txn=-1 if shown.txn is None else shown.txn,
        flips=shown.flips,
        public_bank=shown.public_bank,
        group_size=snapshot.group_size,
        capacity=snapshot.capacity,
        window=snapshot.window,
        n_cells=snapshot.n_cells,
        sequences=shown.sequences,
        digests=shown.digests_after,
        backend=snapshot.backend,
        model=snapshot.model,
    )


def cell_of(view: SequenceView, position: int) -> int | None:
    """Physical cell that holds a live position; None where the position is not live."""
    left = position - view.start
    if not 0 <= left < view.n_live:
        return None
    for first, n_cells in view.extents:
        if left < n_cells:
            return first + left
        left -= n_cells
    return None


def position_in(view: SequenceView, cell: int) -> int | None:
    """Live position that a physical cell holds for a sequence; None where it holds none."""
    position = view.start
    for first, n_cells in view.extents:
        if first <= cell < first + n_cells:
            return position + cell - first
        position += n_cells
    return None


def kind_of(view: SequenceView, position: int) -> str:
    """Word for what a position is: group, tail, padding, evicted or outside."""
    if view.start <= position < view.stop:
        return "group" if position < view.start + view.n_groups * view.group_size else "tail"
    if position >= view.start or position < 0 or view.n_live == 0:
        return "outside"
    if position >= view.start - view.evicted:
        return "evicted"
    return "padding"


def group_of(view: SequenceView, position: int) -> int | None:
    """Number of the complete group that holds a position, counted from the first live one."""
    if kind_of(view, position) != "group":
        return None
    return (position - view.start) // view.group_size
