"""Tracks against a slow, plain oracle that colours every position by itself."""

from __future__ import annotations

import random

import numpy as np
import pytest

from app.models import sequences as model
from app.models.sequences import Kind, Refusal, Track
from tests.app import values


def plain_kinds(track: Track) -> dict[int, Kind]:
    """Kind of every position, one by one, from the track's meaning and not from its arrays."""
    kinds = {}
    for start, stop, kind in zip(track.bounds[:-1], track.bounds[1:], track.kinds, strict=True):
        for position in range(int(start), int(stop)):
            code = Kind(int(kind))
            if code is Kind.GROUP_A and ((position - track.anchor) // track.group_size) % 2:
                code = Kind.GROUP_B
            kinds[position] = code
    return kinds


def plain_columns(track: Track, x0: float, per: float, width: int) -> tuple[list, list]:
    """Usual and loudest code of each column, position by position."""
    kinds = plain_kinds(track)
    usual, loud = [], []
    for column in range(width):
        if per >= 1:
            first = int((x0 + (column + 0.5) / per) // 1)
            positions = [first]
        else:
            first, stop = int((x0 + column / per) // 1), int((x0 + (column + 1) / per) // 1)
            positions = list(range(first, stop))
        found = [kinds.get(p, Kind.OUTSIDE) for p in positions]
        groups = {Kind.GROUP_A, Kind.GROUP_B}
        pairs = zip(positions, found, strict=True)
        named = {(p - track.anchor) // track.group_size for p, k in pairs if k in groups}
        blend = [Kind.MIX if k in groups and len(named) > 1 else k for k in found]
        loud.append(max(blend))
        counts: dict[Kind, int] = {}
        for kind in blend:
            if kind is not Kind.OUTSIDE:
                counts[kind] = counts.get(kind, 0) + 1
        most = max(counts.values(), default=0)
        usual.append(max((k for k, n in counts.items() if n == most), default=Kind.OUTSIDE))
    return usual, loud


def random_track(rng: random.Random) -> Track:
    """State of another engine with padding, evicted ranges and holes."""
    at = rng.randrange(0, 30)
    evicted = [(rng.randrange(0, 5), at)] if at > 6 and rng.random() < 0.5 else []
    live = []
    for _ in range(rng.randrange(1, 6)):
        stop = at + rng.randrange(1, 40)
        live.append((at, stop))
        at = stop + rng.randrange(1, 9)
    return model.track_of_ranges(0, live, evicted, rng.choice([2, 4, 8]))


@pytest.mark.parametrize("seed", range(12))
def test_columns_of_every_zoom_agree_with_one_position_at_a_time(seed: int) -> None:
    rng = random.Random(seed)
    track = random_track(rng)
    for _ in range(12):
        width = rng.randrange(1, 60)
        per = rng.choice([0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 16.0])
        x0 = rng.randrange(0, max(1, track.hi)) * 1.0
        usual, loud = model.column_codes(track, x0, per, width)
        plain_usual, plain_loud = plain_columns(track, x0, per, width)
        assert loud.tolist() == plain_loud, (seed, x0, per, width)
        inside = [n for n, k in enumerate(plain_usual) if k not in (1, 2, 3)]
        assert [usual[n] for n in inside] == [plain_usual[n] for n in inside]


def test_one_hole_in_a_million_positions_is_loud_and_not_usual() -> None:
    track = model.track_of_ranges(0, [(0, 600_001), (600_002, 1_000_000)])
    usual, loud = model.column_codes(track, 0.0, 1000 / 1_000_000, 1000)
    assert np.count_nonzero(loud == Kind.HOLE) == 1
    assert loud[600] == Kind.HOLE
    assert np.count_nonzero(usual == Kind.HOLE) == 0


def test_two_thousand_holes_do_not_paint_the_run_red() -> None:
    live = [(n * 500, n * 500 + 499) for n in range(2000)]
    track = model.track_of_ranges(0, live)
    usual, loud = model.column_codes(track, 0.0, 1000 / 1_000_000, 1000)
    assert np.all(loud == Kind.HOLE)
    assert np.count_nonzero(usual == Kind.HOLE) == 0


def test_left_padding_of_two_thousand_million_costs_no_array() -> None:
    view = values.sequence(0, 2**31 - 20, 2**31 - 1, padding=2**31 - 20)
    track = model.track_of(view)
    assert len(track.bounds) == 4
    usual, loud = model.column_codes(track, 0.0, 1000 / track.hi, 1000)
    assert loud[0] == Kind.PADDING
    # all live positions fall into the last column, where the three of the tail are louder
    assert loud[999] == Kind.PADDING
    assert usual[999] == Kind.PADDING
    _, close = model.column_codes(track, 2**31 - 20, 10.0, 190)
    assert close[0] == Kind.GROUP_A
    assert close[45] == Kind.GROUP_B
    assert close[185] == Kind.TAIL


def test_a_track_partitions_padding_evicted_groups_and_tail() -> None:
    track = model.track_of(values.sequence(0, 40, 142, evicted=34, padding=6))
    assert model.spans(track) == [
        (0, 5, "left padding", ""),
        (6, 39, "evicted", ""),
        (40, 139, "complete group", "g0 to g24"),
        (140, 141, "raw tail", ""),
    ]
    assert model.summary(track) == ("102 positions · 25 groups · tail 2 · evicted 34 · padding 6")
    assert track.frontier == 141


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
    track = model.track_of_ranges(0, [(8, 13), (14, 20)])
    assert model.holes(track) == [(13, 14)]
    assert model.group_at(track, 13) == 1
    assert model.kind_at(track, 12) is Kind.GROUP_B
    assert track.n_groups == 3
    assert model.counts_in(track, 8, 20) == [(Kind.HOLE, 1), (Kind.GROUP_A, 11)]


@pytest.mark.parametrize(("at", "step", "found"), [
    (None, 1, (3, 5)),
    (3, 1, (9, 10)),
    (9, 1, (3, 5)),
    (9, -1, (3, 5)),
    (None, -1, (9, 10)),
    (3, -1, (9, 10)),
])  # fmt: skip
def test_next_and_previous_hole_go_round(at, step, found) -> None:
    track = model.track_of_ranges(0, [(0, 3), (5, 9), (10, 12)])
    assert model.next_hole(track, at, step) == found


def test_text_of_a_range_names_only_what_is_in_it() -> None:
    track = model.track_of_ranges(0, [(0, 6), (7, 10)], label="sequence 3")
    text = model.as_text(track, 4, 8)
    assert text.splitlines()[1:] == [
        "positions 4 to 5: complete group",
        "position 6: hole",
        "position 7: complete group",
    ]


def test_separators_stand_where_groups_begin() -> None:
    track = model.track_of(values.sequence(0, 10, 26))
    columns = model.separator_columns(track, 10.0, 5.0, 100)
    assert columns.tolist() == [20, 40, 60, 80]


def test_an_empty_run_draws_nothing() -> None:
    track = model.track_of(values.sequence(0, 7, 7))
    usual, loud = model.column_codes(track, 0.0, 1.0, 50)
    assert not usual.any()
    assert not loud.any()
    assert model.segment_at(track, 7) is None
