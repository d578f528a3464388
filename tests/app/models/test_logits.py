"""The likeliest tokens."""

from __future__ import annotations

import math

import numpy as np

from app.models.logits import summary, token_table, top_tokens


def test_probabilities_are_the_softmax():
    top = top_tokens(np.log(np.array([[0.5, 0.125, 0.375]], np.float64)), 2)
    assert top.ids == (0, 2)
    assert np.allclose(top.probabilities, (0.5, 0.375))
    wanted = -sum(p * math.log(p) for p in (0.5, 0.125, 0.375))
    assert math.isclose(top.entropy, wanted)


def test_ties_take_the_lower_id_first():
    assert top_tokens(np.array([1.0, 3.0, 3.0, 3.0]), 3).ids == (1, 2, 3)


def test_not_finite_logits_are_counted_and_never_likely():
    top = top_tokens(np.array([np.nan, 1.0, np.inf]))
    assert top.ids == (1,)
    assert top.n_not_finite == 2
    assert "2 not finite" in summary(top, 0, 9)


def test_all_not_finite_shows_nothing():
    top = top_tokens(np.full(4, np.nan))
    assert top.ids == ()
    assert token_table(top).n_rows == 0


def test_large_logits_do_not_overflow():
    top = top_tokens(np.array([1e4, 1e4 - 1], np.float32), 1)
    assert math.isclose(top.probabilities[0], 1 / (1 + math.exp(-1)), rel_tol=1e-6)


def test_table_copies_full_numbers():
    top = top_tokens(np.array([0.1, 0.2]))
    row = token_table(top).rows[0]
    assert row.cells[1].plain == "1"
    assert float(row.cells[3].plain) == top.probabilities[0]
