"""Rotation from integer positions: right at any position, the same from any table."""

from __future__ import annotations

from fractions import Fraction

import mlx.core as mx
import numpy as np
import pytest

from engine.graph.rotary import ALIGN, MAX_TABLES, Rotary, rotate

LAST = 2**31 - 1


@pytest.mark.parametrize("position", [0, 1, 4095, 10**6, 2**24 + 1, LAST])
@pytest.mark.parametrize("theta", [1e4, 1e7])
def test_angles_are_right_at_every_position(position: int, theta: float) -> None:
    width = 64
    cos, sin = Rotary(theta, width).table(position, 1, 1)
    # long double has 11 bits more than what is tested
    i = np.arange(width // 2, dtype=np.longdouble)
    angle = position * np.longdouble(theta) ** (-2 * i / width)
    # one rounding of the angle in float64 and one of the result in float32
    bound = 2.0**-24 + float(position) * 2.0**-51
    assert np.abs(np.array(cos[0]) - np.cos(angle)).max() <= bound
    assert np.abs(np.array(sin[0]) - np.sin(angle)).max() <= bound


@pytest.mark.parametrize("stride", [1, 4])
def test_a_position_has_the_same_bits_in_every_table(stride: int) -> None:
    rotary = Rotary(1e4, 16)
    position, compared = 5000, 0
    expected = [np.array(x) for x in rotary.angles(np.array([position]))]
    for first in (0, 4, 4096, 5000):
        for count in (1, 300, 1300):
            row = (position - first) // stride
            if row >= count or (position - first) % stride:
                continue
            cos, sin = rotary.table(first, stride, count)
            assert np.array(cos[row]).tobytes() == expected[0].tobytes()
            assert np.array(sin[row]).tobytes() == expected[1].tobytes()
            compared += 1
    assert compared >= 4


def test_tables_are_shared_grow_by_doubling_and_are_few() -> None:
    rotary = Rotary(1e4, 8)
    for first, stride, count in ((0, 1, 1), (700, 1, 1), (3, 4, 5000), (4095, 3, 2), (0, 1, 0)):
        assert rotary.table(first, stride, count)[0].shape == (count, 4)
    rows = [len(cos) for cos, _ in rotary._tables.values()]
    assert rows == [2**15]
    for first in range(0, 3 * MAX_TABLES * ALIGN, ALIGN):
        rotary.table(first, 1, 1)
    assert len(rotary._tables) == MAX_TABLES


def test_pairs_are_half_the_rotary_width_apart_and_the_rest_passes() -> None:
    rng = np.random.default_rng(3)
    x = rng.standard_normal((5, 2, 10)).astype(np.float32)
    cos, sin = Rotary(100.0, 6).table(7, 1, 5)
    found = np.array(rotate(mx.array(x), (cos[:5, None], sin[:5, None])))
    for t in range(5):
        for i in range(3):
            turn = np.exp(1j * float(Fraction(7 + t)) * 100.0 ** (-2 * i / 6))
            pair = (x[t, :, i] + 1j * x[t, :, i + 3]) * turn
            assert np.allclose(found[t, :, i], pair.real, atol=1e-6)
            assert np.allclose(found[t, :, i + 3], pair.imag, atol=1e-6)
    assert np.array_equal(found[..., 6:], x[..., 6:])
