"""Rows along cells: storage, growth, rolling back, and hashes of blocks, against NumPy tables."""

from __future__ import annotations

import random
from typing import Any

import mlx.core as mx
import numpy as np
import pytest

from engine.cells import Extents
from engine.digest import BLOCK_TOKENS
from engine.owner import Changes, Look, Mark, OwnerSpec
from engine.owners.layout import PartLayout
from engine.owners.positional import GROW_CELLS, PositionalOwner
from tests.helpers.digests import blocks

PLACE = (3, "k")
LAYOUT = {"rows": (PartLayout(3, "k", (2,), mx.float32), PartLayout(3, "v", (1,), mx.int32))}


def owner() -> PositionalOwner:
    made = PositionalOwner(OwnerSpec("rows", PositionalOwner, unit="position"), LAYOUT)
    made.ensure(1)
    mx.eval(made.arrays())
    made.hold()
    return made


def rows(values: list[int], width: int = 2) -> mx.array:
    dtype = mx.float32 if width == 2 else mx.int32
    return mx.array(np.array(values)[:, None].repeat(width, 1)).astype(dtype)


def look(extents: Extents, consumed: int, n: int, key: Any = 0) -> Look:
    return Look(key, n, consumed, 0, extents, 4)


def cells_of(extents: Extents) -> list[int]:
    return [c for first, n in extents for c in range(first, first + n)]


def test_rows_stand_where_the_extents_say() -> None:
    seed = 1
    print("seed", seed)
    choice = random.Random(seed)
    table, made = np.zeros((GROW_CELLS, 2), np.float32), owner()
    for turn in range(40):
        free = list(range(60))
        extents = []
        for _ in range(choice.randint(1, 4)):
            first = choice.choice(free)
            n = choice.randint(1, 5)
            if all(c in free for c in range(first, first + n)):
                extents.append((first, n))
                free = [c for c in free if not first <= c < first + n]
        cells = cells_of(tuple(extents))
        values = [turn * 100 + i for i in range(len(cells))]
        made.write(PLACE, tuple(extents), rows(values) if values else mx.zeros((0, 2)))
        for cell, value in zip(cells, values, strict=True):
            table[cell] = value
        assert np.array_equal(np.array(made.read(PLACE, tuple(extents))), table[cells])
        assert np.array_equal(np.array(made.tables[PLACE]), table)
    assert made.read(PLACE, ()).shape == (0, 2)


def test_growing_keeps_the_rows_and_grows_by_half() -> None:
    made = owner()
    made.write(PLACE, ((0, 3),), rows([1, 2, 3]))
    assert made.n_alloc == GROW_CELLS
    sizes = []
    for wanted in (GROW_CELLS + 1, GROW_CELLS + 2, 10_000, 10_001, 100_000):
        promised = made.grown(wanted)
        made.ensure(wanted)
        assert made.n_alloc == promised >= wanted
        assert promised % GROW_CELLS == 0
        assert made.tables[PLACE].shape == (promised, 2)
        sizes.append(promised)
    assert sizes[0] == sizes[1]
    assert sizes[3] >= sizes[2] * 3 // 2 or sizes[3] == sizes[2]
    assert np.array(made.tables[PLACE])[:4].tolist() == [[1, 1], [2, 2], [3, 3], [0, 0]]
    made.ensure(5)
    assert made.n_alloc == sizes[-1]
    assert made.n_bytes() == sizes[-1] * (8 + 4)


def test_rolling_back_returns_to_what_was_held() -> None:
    made = owner()
    made.write(PLACE, ((0, 2),), rows([1, 2]))
    mx.eval(made.arrays())
    made.hold()
    made.write(PLACE, ((1, 1),), rows([9]))
    made.ensure(5000)
    made.roll_back()
    assert made.n_alloc == GROW_CELLS
    assert np.array(made.tables[PLACE])[:3, 0].tolist() == [1, 2, 0]
    # once let go there is nothing to go back to: the rows count as stale
    made.hold()
    made.write(PLACE, ((0, 1),), rows([7]))
    made.release()
    made.roll_back()
    assert np.array(made.tables[PLACE])[0, 0] == 7


@pytest.mark.parametrize("spoiled", [False, True])
def test_becoming_equal_to_the_public_owner(spoiled: bool) -> None:
    public, private = owner(), owner()
    for made in (public, private):
        made.write(PLACE, ((0, 4),), rows([1, 2, 3, 4]))
        made.mark(0, Mark(4, 1))
    public.ensure(2000)
    public.write(PLACE, ((2, 2), (1900, 1)), rows([30, 40, 50]))
    public.mark(0, Mark(5, 2))
    public.mark(1, Mark(1, 3))
    if spoiled:
        private.remake(public)
    else:
        private.catch_up(public, Changes([(2, 2), (1900, 1)], {0: 2, 1: 0}))
    assert private.n_alloc == public.n_alloc
    assert np.array_equal(np.array(private.tables[PLACE]), np.array(public.tables[PLACE]))
    assert private.marks == public.marks
    # what one bank writes next never shows in the other
    private.write(PLACE, ((0, 1),), rows([-1]))
    assert np.array(public.tables[PLACE])[0].tolist() == [1, 1]


def test_a_key_that_is_gone_is_forgotten() -> None:
    public, private = owner(), owner()
    for key in (0, "slot"):
        private.mark(key, Mark(1, 1))
    private.catch_up(public, Changes([], {0: 0, "slot": 0}))
    assert private.marks == {}
    private.mark(0, Mark(2, 2))
    private.copy(0, "slot")
    private.copy(5, 0)
    assert private.marks == {"slot": Mark(2, 2)}
    private.drop("slot")
    assert private.marks == {}


def test_sealed_hashes_are_those_of_the_rows() -> None:
    """Appends over several blocks and extents, an eviction, a rewind: hashed as by definition."""
    made = owner()
    values: list[int] = []
    evicted = 0
    for n, drop, cut in ((70, 0, 0), (3, 0, 0), (60, 5, 0), (0, 0, 20), (10, 64, 0)):
        if cut:
            values = values[: len(values) - cut]
        dirty = len(values)
        extents = [(0, 40), (100, 140)]
        made.ensure(300)
        cells = cells_of(tuple(extents))
        values += [1000 + len(values) + i for i in range(n)]
        for place, width in ((PLACE, 2), ((3, "v"), 1)):
            for i in range(dirty, len(values)):
                made.write(place, ((cells[i], 1),), rows([values[i]], width))
        evicted += drop
        live = tuple((c, 1) for c in cells[evicted : len(values)])
        at = look(live, len(values), len(values) - evicted)
        wanted = made.prepare({0: at}, Changes([], {0: dirty}))
        mx.eval(wanted)
        made.seal()
        expected = [
            ((0, 3, number, evicted, len(values)), blocks(evicted, BLOCK_TOKENS, packed))
            for number, packed in enumerate(
                (
                    [np.full(2, v, "<f4").tobytes() for v in values[evicted:]],
                    [np.full(1, v, "<i4").tobytes() for v in values[evicted:]],
                )
            )
        ]
        assert made.parts({0: at}) == expected
        assert made.audit({0: at}) == expected


def test_bytes_for_a_panel_and_as_they_are() -> None:
    layout = {"rows": (PartLayout(0, "", (2,), mx.bfloat16),)}
    made = PositionalOwner(OwnerSpec("rows", PositionalOwner, unit="position"), layout)
    made.ensure(1)
    made.write((0, ""), ((4, 1), (2, 1)), mx.array([[1.5, -2], [3, 4]], mx.bfloat16))
    at = look(((4, 1), (2, 1)), 12, 2)
    assert made.host((0, ""), at, 10, 12).tolist() == [[1.5, -2], [3, 4]]
    assert made.bits((0, ""), at, 11, 12).tolist() == [[0x4040, 0x4080]]
    assert made.describe() == ("bfloat16", (2,))
    assert made.layers() == (0,)
