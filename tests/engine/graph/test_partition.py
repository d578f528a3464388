"""The partition stage: a hole in the device's own positions sets a status word."""

from __future__ import annotations

import mlx.core as mx
import numpy as np
import pytest

from metal.status import StatusBit
from tests.helpers import golden
from tests.helpers.golden import Runner

TOKENS = [int(t) for t in golden.arrays("qwen4exp-tiny", "full")["tokens"][:15]]


def runner(positions: np.ndarray, first: int) -> Runner:
    made = Runner(golden.model("qwen4exp-tiny"), first)
    made.state.positions = mx.array(positions.astype(np.int32))
    return made


@pytest.mark.parametrize("first", [0, 9, 2**31 - 1 - 14])
def test_right_positions_are_good(first: int) -> None:
    made = runner(first + np.arange(15), first)
    made.feed(TOKENS[:6])
    made.feed(TOKENS[6:])
    assert made.status == 0


@pytest.mark.parametrize("row", range(1, 15))
def test_a_hole_at_every_row_is_refused(row: int) -> None:
    positions = 9 + np.arange(15)
    positions[row:] += 1
    made = runner(positions, 9)
    made.feed(TOKENS)
    assert made.status & StatusBit.HOLE
    assert made.status & StatusBit.FRONTIER


@pytest.mark.parametrize("row", range(8, 15))
def test_a_hole_in_what_a_later_chunk_writes_is_refused(row: int) -> None:
    made = runner(9 + np.arange(15), 9)
    made.feed(TOKENS[:10])
    assert made.status == 0
    edited = 9 + np.arange(15)
    edited[row:] += 1
    made.state.positions = mx.array(edited.astype(np.int32))
    made.feed(TOKENS[10:])
    assert made.status & StatusBit.HOLE


def test_groups_that_all_moved_have_wrong_anchors() -> None:
    made = runner(10 + np.arange(15), 9)
    made.feed(TOKENS)
    assert made.status & StatusBit.ANCHOR
    assert not made.status & StatusBit.HOLE
