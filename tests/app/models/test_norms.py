"""Row norms stacked to one picture."""

from __future__ import annotations

import numpy as np

from app.models import norms
from engine.formats import RowNorms


def test_lines_of_all_parts_stand_over_each_other():
    one = RowNorms(("layer 0 K", "layer 0 V"), np.array([[1, 2, 3], [4, 5, 6]], np.float32))
    two = RowNorms(("layer 1 K",), np.array([[7, 0]], np.float32))
    stack = norms.stacked([one, two])
    matrix = stack.matrix
    assert stack.names == ("layer 0 K", "layer 0 V", "layer 1 K")
    assert matrix.values[:2].tolist() == [[1, 2, 3], [4, 5, 6]]
    assert matrix.values[2, :2].tolist() == [7, 0]
    assert matrix.values[2, 2] == 0
    assert (matrix.low, matrix.high, matrix.n_nan) == (0, 7, 0)
    assert norms.summary(stack) == "norms of 3 tensors over 3 cells: 1 row zero, 0 not finite"


def test_rows_that_are_not_finite_are_counted():
    stack = norms.stacked([RowNorms(("a",), np.array([[1, np.nan, np.inf]], np.float32))])
    assert (stack.matrix.n_nan, stack.matrix.n_inf) == (1, 1)
    assert (stack.matrix.low, stack.matrix.high) == (1, 1)
    assert norms.summary(stack).endswith("0 rows zero, 2 not finite")


def test_nothing_to_show():
    stack = norms.stacked([])
    assert stack.names == ()
    assert norms.summary(stack) == "This file has no rows to show."


def test_recurrent_parts_have_no_rows():
    report = {
        "sequences": [
            {"parts": [{"name": "a", "role": "attention"}, {"name": "b", "role": "recurrent"}]}
        ]
    }
    assert norms.parts_with_rows(report, 0) == ["a"]
    assert norms.parts_with_rows(report, 1) == []
    assert norms.parts_with_rows({}, 0) == []
