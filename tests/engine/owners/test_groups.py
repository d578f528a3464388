"""Pooled rows in the cell of a group's last member, for any layout and anchor."""

from __future__ import annotations

import random

import mlx.core as mx
import numpy as np
import pytest

from engine.owner import Changes, Look, OwnerSpec
from engine.owners.groups import GroupOwner
from engine.owners.layout import PartLayout

PLACE = (3, "")


def owner(n: int = 300) -> GroupOwner:
    layout = {"groups": (PartLayout(3, "", (1,), mx.float32),)}
    made = GroupOwner(OwnerSpec("groups", GroupOwner, unit="group"), layout)
    made.ensure(n)
    return made


def random_extents(choice: random.Random, n: int) -> tuple[tuple[int, int], ...]:
    """`n` cells in runs of any length and order."""
    starts, extents = list(range(0, 300, 12)), []
    choice.shuffle(starts)
    while n:
        count = min(n, choice.randint(1, 11))
        extents.append((starts.pop(), count))
        n -= count
    return tuple(extents)


@pytest.mark.parametrize("size", [1, 2, 4, 5])
def test_a_group_stands_with_its_last_member(size: int) -> None:
    seed = 40 + size
    print("seed", seed)
    choice = random.Random(seed)
    for _ in range(60):
        n = choice.randint(0, 60)
        extents = random_extents(choice, n)
        cells = [c for first, count in extents for c in range(first, first + count)]
        look = Look(0, n, n + 7, 0, extents, size)
        made = owner()
        n_groups = n // size
        first = choice.randint(0, n_groups)
        values = np.arange(1, n_groups + 1, dtype=np.float32)
        for a, b in ((0, first), (first, n_groups)):
            made.put(PLACE, look, a, mx.array(values[a:b, None]))
        table = np.array(made.tables[PLACE])[:, 0]
        last = cells[size - 1 :: size]
        assert table[last].tolist() == values.tolist()
        assert np.count_nonzero(table) == n_groups
        low = choice.randint(0, n_groups)
        high = choice.randint(low, n_groups)
        found = np.array(made.unit_rows(PLACE, look, low, high))[:, 0]
        assert found.tolist() == values[low:high].tolist()


def test_two_that_diverge_inside_a_group_write_different_rows() -> None:
    made = owner()
    left = Look(0, 8, 8, 0, ((0, 8),), 4)
    right = Look(1, 8, 8, 0, ((0, 6), (20, 2)), 4)
    made.put(PLACE, left, 0, mx.array([[1.0], [2.0]]))
    made.put(PLACE, right, 1, mx.array([[3.0]]))
    assert np.array(made.unit_rows(PLACE, left, 0, 2))[:, 0].tolist() == [1, 2]
    assert np.array(made.unit_rows(PLACE, right, 0, 2))[:, 0].tolist() == [1, 3]


def test_groups_are_counted_from_the_first_live_position() -> None:
    made = owner()
    look = Look(0, 13, 20, 0, ((0, 13),), 4)
    assert made.units(look) == (0, 3, 16)
    assert made.first_dirty(look, Changes(dirty={0: 20})) == 3
    assert made.first_dirty(look, Changes(dirty={0: 17})) == 2
    assert made.first_dirty(look, Changes(dirty={0: 15})) == 2
    assert made.first_dirty(look, Changes(dirty={0: 3})) == 0
    assert made.first_dirty(look, Changes(dirty={0: 20}, regrouped={0})) == 0
