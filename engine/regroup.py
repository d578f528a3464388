"""Groups made anew when an anchor moves, and the device's own look at them.

A pooled key depends on its four raw keys alone, so making it again gives the bytes that a run
with this anchor would have made. Work goes in blocks of fixed size, so memory stays bounded.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, cast

import mlx.core as mx
import numpy as np

import metal
from engine.bank import Bank
from engine.cells import cut
from engine.graph.index import pooled_keys
from engine.owner import Look
from engine.owners.history import ORDINAL
from engine.owners.positional import PositionalOwner
from engine.stage import GroupCheck

if TYPE_CHECKING:
    from engine.graph.model import Model

GROUPS_AT_ONCE: Final = 1024


def pooled_groups(
    model: Model, bank: Bank, look: Look, layer: int
) -> Iterator[tuple[int, mx.array]]:
    """(first group, [n, d] pooled keys) of all complete groups of a key, block by block."""
    raw = cast(PositionalOwner, bank.owners["qsa.index"])
    size = look.group_size
    for first in range(0, look.n_groups, GROUPS_AT_ONCE):
        stop = min(first + GROUPS_AT_ONCE, look.n_groups)
        rows = raw.read((layer, "raw"), cut(look.extents, first * size, stop * size))
        yield first, pooled_keys(model, layer, rows.reshape(stop - first, size, -1))


def group_status(bank: Bank, look: Look, first_live: int, backend: str) -> GroupCheck:
    """The device's look at a key's groups and tail, from the group of `first_live` on.

    The device reads the ordinals that its own table has; the host gives the anchors that the
    history implies. Source: `metal/src/group_status.metal`, on the CPU its reference.
    """
    size = look.group_size
    first = max(0, first_live // size - 1)
    start = first * size
    held = (
        bank.history.value.of(look.key)
        if isinstance(look.key, int)
        else (bank.history.value.slots[look.key])
    )
    # ordinals and positions differ by a constant of the sequence
    base = held.run.start - look.evicted
    ordinals = bank.history.read(ORDINAL, cut(look.extents, start, look.n_live))
    n_groups = look.n_groups - first
    starts = np.arange(n_groups, dtype=np.int32) * size
    word, part = metal.run(
        "group_status",
        ordinals + base,
        mx.array(starts),
        mx.array(starts + (held.run.start + start)),
        backend=backend,
        tail_start=n_groups * size,
        frontier=held.run.stop - 1,
        group_size=size,
    )
    return GroupCheck(
        word, lambda: int(part.item()), held.run.start + start, look.n_live - start, size, first
    )
