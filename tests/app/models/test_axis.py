"""Pan, zoom and rulers."""

from __future__ import annotations

import random

import pytest

from app.models.axis import WIDEST, Axis, nice_step

MARKS = [(14.2, 60, 5), (1, 60, 100), (0.001, 60, 100_000), (64, 60, 1)]


@pytest.mark.parametrize("seed", range(8))
def test_no_way_of_moving_loses_the_run(seed: int) -> None:
    rng = random.Random(seed)
    axis = Axis(lo=rng.randrange(0, 100), width=rng.randrange(100, 2000))
    axis.hi = axis.lo + rng.randrange(1, 1_000_000)
    axis.clamp()
    for _ in range(200):
        move = rng.randrange(4)
        if move == 0:
            axis.zoom(rng.choice([0.3, 0.8, 1.5, 9.0]), rng.uniform(0, axis.width))
        elif move == 1:
            axis.pan(rng.uniform(-5000, 5000))
        elif move == 2:
            start = rng.uniform(axis.lo, axis.hi)
            axis.fit(start, start + rng.uniform(0, 1000))
        else:
            start = rng.uniform(axis.lo, axis.hi - 1)
            axis.reveal(start, start + 1)
        assert axis.lo - 1e-6 <= axis.x0
        assert axis.x1 <= axis.hi + 1e-6 or axis.x0 == axis.lo
        assert axis.narrowest <= axis.per_position <= WIDEST


def test_zoom_keeps_the_position_under_the_pointer() -> None:
    axis = Axis(lo=0, hi=1000, x0=200, per_position=4, width=800)
    before = axis.x0 + 300 / axis.per_position
    axis.zoom(2.0, 300)
    assert axis.x0 + 300 / axis.per_position == pytest.approx(before)


@pytest.mark.parametrize(("pixels", "least", "step"), MARKS)
def test_ruler_marks_are_round_and_far_enough_apart(pixels, least, step) -> None:
    assert nice_step(pixels, least) == step
    assert step * pixels >= least
