"""Cells against the positions that were put into them one by one."""

from __future__ import annotations

import random

import numpy as np
import pytest

from app.models import cells as model
from app.models.cells import LEFTOVER
from app.models.sequences import Kind
from tests.app import values


@pytest.mark.parametrize("seed", range(6))
def test_expanded_extents_are_the_cells_in_logical_order(seed: int) -> None:
    rng = random.Random(seed)
    extents, plain = [], []
    for _ in range(rng.randrange(0, 20)):
        first, n = rng.randrange(0, 500), rng.randrange(1, 9)
        extents.append((first, n))
        plain += list(range(first, first + n))
    assert model.expand(tuple(extents)).tolist() == plain


def test_the_chosen_sequence_is_shown_where_cells_are_shared() -> None:
    one = values.sequence(0, 0, 10, ((0, 10),))
    two = values.sequence(1, 100, 106, ((2, 6),))
    grid = model.grid_of((one, two), 16, chosen=1)
    assert grid.positions[2:8].tolist() == [100, 101, 102, 103, 104, 105]
    assert grid.seqs[2] == 1
    assert grid.sharing.tolist() == [1, 1, 2, 2, 2, 2, 2, 2, 1, 1, 0, 0, 0, 0, 0, 0]
    assert grid.codes[2] == Kind.GROUP_A
    assert grid.codes[6] == Kind.TAIL
    assert grid.count(LEFTOVER) == 6
    assert model.grid_of((one, two), 16, chosen=0).positions[2] == 2


def test_a_past_state_may_lie_in_cells_that_were_given_back() -> None:
    grid = model.grid_of((values.sequence(0, 0, 4, ((60, 4),)),), 0)
    assert grid.n_cells == 64
    assert grid.positions[60:].tolist() == [0, 1, 2, 3]


def test_a_chunk_in_flight_reaches_beyond_the_cells_in_use() -> None:
    grid = model.grid_of((values.sequence(0, 0, 4),), 4, ghost=((4, 3),))
    assert grid.n_cells == 7
    assert model.words_at(grid, 5) == "cell 5, being written in the private bank"
    assert model.words_at(grid, 2) == "cell 2, position 2 of sequence 0"


def test_cell_of_a_position_follows_the_extents() -> None:
    view = values.sequence(0, 40, 50, ((7, 4), (20, 6)))
    assert [model.cell_of(view, p) for p in (39, 40, 43, 44, 49, 50)] == [None, 7, 10, 20, 25, None]
    assert model.cell_ranges(view, 42, 46) == [(9, 11), (20, 22)]
    assert model.cell_ranges(view, 0, 1000) == [(7, 11), (20, 26)]


@pytest.mark.parametrize(("width", "n", "height"), [(900, 64, 90), (400, 65536, 400), (300, 1, 50)])
def test_columns_are_a_multiple_of_sixteen_that_uses_the_space(width, n, height) -> None:
    columns = model.columns_for(width, n, height)
    assert columns % 16 == 0

    def size(c: int) -> float:
        return min(width / c, height / -(-n // c))

    assert size(columns) >= max(size(c) for c in range(16, max(17, n + 16), 16) if c <= 4096) - 1e-9


def test_a_million_cells_are_one_array() -> None:
    view = values.sequence(0, 5, 1_000_005, ((0, 1_000_000),))
    grid = model.grid_of((view,), 1_000_000)
    assert np.count_nonzero(grid.codes == Kind.GROUP_A) == 500_000
    assert grid.positions[999_999] == 1_000_004
