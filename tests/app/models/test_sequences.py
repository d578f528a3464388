"""Tracks: what they are made of, and what stands at a position."""

from __future__ import annotations

import pytest

from app.models import columns, track_text
from app.models import sequences as model
from app.models.foreign import track_of_ranges
from app.models.sequences import Kind, Refusal
from tests.app import values


def test_left_padding_of_two_thousand_million_costs_no_array() -> None:
    view = values.sequence(0, 2**31 - 20, 2**31 - 1, padding=2**31 - 20)
    track = model.track_of(view)
    assert len(track.bounds) == 4
    usual, loud = columns.column_codes(track, 0.0, 1000 / track.hi, 1000)
    assert loud[0] == Kind.PADDING
    # all live positions fall into the last column, where the three of the tail are louder
    assert loud[999] == Kind.PADDING
    assert usual[999] == Kind.PADDING
    _, close = columns.column_codes(track, 2**31 - 20, 10.0, 190)
    assert close[0] == Kind.GROUP_A
    assert close[45] == Kind.GROUP_B
    assert close[185] == Kind.TAIL


def test_a_track_partitions_padding_evicted_groups_and_tail() -> None:
    track = model.track_of(values.sequence(0, 40, 142, evicted=34, padding=6))
    assert track_text.spans(track) == [
        (0, 5, "left padding", ""),
        (6, 39, "evicted", ""),
        (40, 139, "complete group", "g0 to g24"),
        (140, 141, "raw tail", ""),
    ]
    assert track_text.summary(track) == (
        "102 positions · 25 groups · tail 2 · evicted 34 · padding 6"
    )
    assert track.frontier == 141


def test_groups_that_a_hole_takes_something_from_are_not_counted_as_whole() -> None:
    track = track_of_ranges(0, [(0, 11), (15, 30)])
    assert track_text.summary(track) == (
        "26 positions · 5 of 7 groups whole · tail 2 · holes 4 · forgotten 4"
    )
    two_in_one_group = track_of_ranges(0, [(0, 5), (6, 7), (8, 12)])
    assert "2 of 3 groups whole" in track_text.summary(two_in_one_group)
    in_the_tail = track_of_ranges(0, [(0, 9), (10, 11)])
    assert "2 groups · tail" in track_text.summary(in_the_tail)


def test_refused_positions_show_their_hole_behind_the_frontier() -> None:
    refusal = Refusal(((142, 144), (145, 146)), "refused")
    track = model.track_of(values.sequence(0, 40, 142), None, refusal)
    assert model.holes(track) == [(144, 145)]
    assert track.wanted == ((142, 144), (145, 146))
    assert track.n_live == 102
    assert model.kind_at(track, 144) is Kind.HOLE
    assert model.kind_at(track, 143) is Kind.OUTSIDE


def test_refused_positions_on_an_empty_sequence_begin_where_they_were_asked_for() -> None:
    refusal = Refusal(((100, 102), (103, 104)), "refused")
    track = model.track_of(values.sequence(0, 0, 0), None, refusal)
    assert (track.lo, track.hi) == (100, 104)
    assert model.holes(track) == [(102, 103)]
    assert track.frontier is None


def test_a_far_refused_append_is_drawn_near() -> None:
    refusal = Refusal(((2**31 - 5, 2**31 - 1),), "refused")
    track = model.track_of(values.sequence(0, 0, 10), None, refusal)
    assert track.hi <= 10 + model.MOST_HOLE_DRAWN + 4


def test_foreign_holes_belong_to_their_group() -> None:
    track = track_of_ranges(0, [(8, 13), (14, 20)])
    assert model.holes(track) == [(13, 14)]
    assert model.group_at(track, 13) == 1
    assert model.kind_at(track, 12) is Kind.FORGOTTEN
    assert [model.is_broken(track, group) for group in range(3)] == [False, True, False]
    assert (track.n_groups, track.n_whole, track.n_live) == (3, 2, 11)
    assert model.counts_in(track, 8, 20) == [
        (Kind.HOLE, 1),
        (Kind.FORGOTTEN, 3),
        (Kind.GROUP_A, 8),
    ]


@pytest.mark.parametrize(("at", "step", "found"), [
    (None, 1, (3, 5)),
    (3, 1, (9, 10)),
    (9, 1, (3, 5)),
    (9, -1, (3, 5)),
    (None, -1, (9, 10)),
    (3, -1, (9, 10)),
])  # fmt: skip
def test_next_and_previous_hole_go_round(at, step, found) -> None:
    track = track_of_ranges(0, [(0, 3), (5, 9), (10, 12)])
    assert model.next_hole(track, at, step) == found


def test_an_empty_run_draws_nothing() -> None:
    track = model.track_of(values.sequence(0, 7, 7))
    usual, loud = columns.column_codes(track, 0.0, 1.0, 50)
    assert not usual.any()
    assert not loud.any()
    assert model.segment_at(track, 7) is None
