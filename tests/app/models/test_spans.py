"""The table form of a run."""

from __future__ import annotations

from itertools import pairwise

import pytest

from app.models.foreign import track_of_ranges
from app.models.spans import SpanTable, in_flight, spans_of
from app.models.state import state_of
from tests.helpers import sessions


def kinds(view):
    return [(s.kind, s.start, s.stop, s.groups, s.cells) for s in spans_of(view)]


def test_groups_and_tail():
    assert kinds(sessions.sequence(0, 0, 10)) == [
        ("groups", 0, 8, (0, 2), (0, 8)),
        ("tail", 8, 10, None, (8, 10)),
    ]


def test_padding_and_evicted_lie_before_the_run():
    view = sessions.sequence(0, 12, 22, evicted=8, padding=4, extents=((3, 10),))
    assert kinds(view) == [
        ("padding", 0, 4, None, None),
        ("evicted", 4, 12, None, None),
        ("groups", 12, 20, (0, 2), (3, 11)),
        ("tail", 20, 22, None, (11, 13)),
    ]


def test_spans_are_cut_where_cells_are_not_consecutive():
    view = sessions.sequence(0, 0, 9, extents=((10, 3), (2, 6)))
    assert kinds(view) == [
        ("groups", 0, 3, (0, 1), (10, 13)),
        ("groups", 3, 8, (0, 2), (2, 7)),
        ("tail", 8, 9, None, (7, 8)),
    ]


def test_live_spans_partition_the_run():
    view = sessions.sequence(0, 7, 1_000_007, extents=((5, 400_000), (900_000, 600_000)))
    live = [s for s in spans_of(view) if s.kind in ("groups", "tail")]
    assert live[0].start == 7
    assert live[-1].stop == 1_000_007
    assert all(one.stop == two.start for one, two in pairwise(live))


def test_an_empty_sequence_has_no_span():
    assert kinds(sessions.sequence(0, 0, 0)) == []


def test_what_is_in_flight_is_named_as_private():
    opened = sessions.open_view(32, 36)
    assert [(s.kind, s.start, s.stop, s.cells) for s in in_flight(opened)] == [
        ("in flight", 32, 36, (32, 36))
    ]
    state = state_of(sessions.snapshot(sessions.sequence(), opened=opened), None, 1)
    table = SpanTable(state)
    row = table.n_rows - 1
    assert table.cell(row, 1).glyph == "ring"
    assert table.cell(row, 7).text == "private bank only"


@pytest.mark.parametrize(("position", "row"), [(0, 0), (27, 0), (28, 1), (30, None)])
def test_a_position_is_found_in_its_span(position, row):
    state = state_of(sessions.snapshot(sessions.sequence(0, 0, 30)), None, 1)
    assert SpanTable(state).row_at(0, position) == row


def test_cells_of_a_row():
    state = state_of(sessions.snapshot(sessions.sequence(1, 0, 30)), None, 1)
    table = SpanTable(state)
    assert [table.cell(0, column).text for column in range(7)] == [
        "1",
        "groups",
        "0",
        "27",
        "28",
        "g0 – g6",
        "64 – 91",
    ]
    assert table.jump(0).positions == (0, 28)
    assert SpanTable(None).n_rows == 0


def test_another_engines_run_has_its_holes_and_what_they_make_forgotten():
    track = track_of_ranges(0, [(0, 11), (15, 30)], label="sequence 0 layer.1")
    table = SpanTable(None, (track,))
    rows = [[table.cell(row, column).text for column in range(8)] for row in range(table.n_rows)]
    assert rows == [
        ["0 layer.1", "groups", "0", "7", "8", "g0 – g1", "–", "–"],
        ["0 layer.1", "forgotten", "8", "10", "3", "g2", "–", "–"],
        ["0 layer.1", "hole", "11", "14", "4", "–", "–", "–"],
        ["0 layer.1", "forgotten", "15", "15", "1", "g3", "–", "–"],
        ["0 layer.1", "groups", "16", "27", "12", "g4 – g6", "–", "–"],
        ["0 layer.1", "tail", "28", "29", "2", "–", "–", "–"],
    ]
    assert table.cell(1, 1).role == "forgotten"
    assert table.row_at(0, 15) == 3
