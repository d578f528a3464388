"""Arrays as pictures: layout, range, difference."""

from __future__ import annotations

import numpy as np
import pytest

from app.models import tensor
from engine.snapshot import ArraySlice


def array(values, start=0, bank="public"):
    return ArraySlice("qsa.kv", 3, "k", 0, bank, start, np.asarray(values))


def test_other_axes_are_laid_out_in_a_line():
    matrix = tensor.matrix_of(array(np.arange(24, dtype=np.float32).reshape(3, 2, 4), 100))
    assert matrix.values.shape == (3, 8)
    assert list(matrix.values[1]) == list(range(8, 16))
    assert (matrix.first, matrix.low, matrix.high) == (100, 0, 23)


def test_not_finite_values_are_counted_and_left_out_of_the_range():
    matrix = tensor.matrix_of(array([[1.0, np.nan], [np.inf, -2.0]]))
    assert (matrix.n_nan, matrix.n_inf, matrix.low, matrix.high) == (1, 1, -2, 1)
    assert "1 NaN, 1 Inf" in tensor.facts(matrix)


@pytest.mark.parametrize("shape", [(0, 4), (4, 0), (0,)])
def test_empty_arrays_have_no_values(shape):
    matrix = tensor.matrix_of(array(np.zeros(shape, np.float32)))
    assert matrix.values.size == 0
    assert tensor.facts(matrix).endswith("no values")


def test_a_single_number_is_one_pixel():
    matrix = tensor.matrix_of(array(np.float32(2.5)))
    assert matrix.values.shape == (1, 1)
    limits = tensor.automatic(matrix, "public")
    assert (limits.low, limits.high) == (2.0, 3.0)


def test_too_large_arrays_are_cut_and_say_so():
    matrix = tensor.matrix_of(array(np.zeros((tensor.MAX_ROWS + 1, 2), np.float32)))
    assert matrix.values.shape == (tensor.MAX_ROWS, 2)
    assert matrix.cut == "first 4,096 of 4,097 rows"


def test_difference_is_private_minus_public_over_common_rows():
    public = array([[1.0], [2.0], [3.0]], 10)
    private = array([[2.0], [5.0], [9.0]], 11, "private")
    matrix = tensor.difference(public, private)
    assert matrix.first == 11
    assert matrix.values.tolist() == [[0.0], [2.0]]
    limits = tensor.automatic(matrix, "difference")
    assert (limits.low, limits.high) == (-2.0, 2.0)


def test_no_difference_says_why():
    one = array([[1.0]], 0)
    assert "no row in common" in tensor.difference(one, array([[1.0]], 5, "private"))
    assert "shape" in tensor.difference(one, array([[1.0, 2.0]], 0, "private"))


def test_palettes_are_256_opaque_colours_and_zero_is_grey():
    assert tensor.palette("public").shape == (256, 4)
    middle = tensor.palette("difference")[128][:3].astype(int)
    assert np.ptp(middle) < 8
    assert (tensor.palette("public")[:, 3] == 255).all()


def test_sequential_palette_rises_in_brightness():
    colours = tensor.palette("public")[:, :3] @ np.array([0.2126, 0.7152, 0.0722])
    assert (np.diff(colours) > -0.5).all()
    assert colours[-1] - colours[0] > 150


def test_value_under_the_pointer():
    matrix = tensor.matrix_of(array([[1.0, 2.0]], 7))
    assert tensor.value_line(matrix, 0, 1, True) == "position 7, column 1: 2"
    assert tensor.value_line(matrix, 0, 2, True) == ""
    assert tensor.value_line(matrix, -1, 0, False) == ""
