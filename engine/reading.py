"""Rows of an owner copied out for a panel: read-only NumPy, never an array of the library."""

from __future__ import annotations

from engine.bank import Bank
from engine.commands import ReadArray
from engine.engine import Engine
from engine.errors import Unreadable
from engine.owners.fixed import FixedOwner
from engine.owners.positional import PositionalOwner
from engine.snapshot import ArraySlice

MAX_ROWS = 65536


def arrays_of(bank: Bank) -> tuple[tuple[str, int, str], ...]:
    """(owner, layer, part) of everything that `read_array` can copy out."""
    owners = bank.owners.values()
    return tuple((owner.name, layer, part) for owner in owners for layer, part in owner.named())


def read_array(engine: Engine, wanted: ReadArray) -> ArraySlice:
    """Copy rows out; at most `MAX_ROWS` from the start of the range.

    Raises: Unreadable naming what does not exist or cannot be read now.
    """
    bank = _bank(engine, wanted)
    place = (wanted.owner, wanted.layer, wanted.part)
    if place not in arrays_of(bank):
        raise Unreadable(
            "array", f"no {wanted.owner} of layer {wanted.layer} {wanted.part}".strip()
        )
    owner, look = bank.owners[wanted.owner], bank.look(wanted.seq)
    if isinstance(owner, FixedOwner):
        value = owner.host(wanted.seq, wanted.layer)
        if value is None:
            raise Unreadable("array", f"{wanted.owner} of sequence {wanted.seq} is absent")
        start, values = 0, value
    else:
        assert isinstance(owner, PositionalOwner)
        lo, hi, _ = owner.units(look)
        first = bank.history.value.of(wanted.seq).run.start if owner.unit == "position" else 0
        start = first if wanted.start is None else max(first, wanted.start)
        stop = first + hi - lo if wanted.stop is None else min(first + hi - lo, wanted.stop)
        stop = max(start, min(stop, start + MAX_ROWS))
        values = owner.host(
            (wanted.layer, wanted.part), look, start - first + lo, stop - first + lo
        )
    values.setflags(write=False)
    return ArraySlice(
        wanted.owner, wanted.layer, wanted.part, wanted.seq, wanted.bank, start, values
    )


def _bank(engine: Engine, wanted: ReadArray) -> Bank:
    if wanted.bank == "public":
        return engine.pair.public_bank
    if wanted.bank != "private":
        raise Unreadable("array", "unknown bank", "public or private", wanted.bank)
    private = engine.pair.private_bank
    if private.spoiled:
        raise Unreadable(
            "array", "the private bank holds nothing usable before the next transaction"
        )
    if engine.open is not None and engine.mode == "fast":
        raise Unreadable("array", "in fast mode the private image is not evaluated yet")
    return private
