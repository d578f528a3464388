"""The one state that is shown, and what lies at a position or in a cell."""

from __future__ import annotations

import pytest

from app.models import state
from tests.helpers import sessions


def test_no_session_is_no_state():
    assert state.state_of(None, None, None) is None


def test_live_state_is_the_snapshot():
    snapshot = sessions.snapshot(sessions.sequence(0, 0, 8), version=3)
    shown = state.state_of(snapshot, None, 5)
    assert shown.live
    assert (shown.event, shown.txn, shown.flips) == (5, 3, 3)
    assert shown.owners == snapshot.owners


def test_time_travel_takes_nothing_but_the_sizes_from_the_snapshot():
    snapshot = sessions.snapshot(sessions.sequence(0, 0, 32), version=9)
    past = sessions.record(2, 4, 8)
    shown = state.state_of(snapshot, past, 9)
    assert not shown.live
    assert shown.sequences == past.sequences
    assert shown.digests == past.digests_after
    assert shown.owners == ()
    assert shown.open is None
    assert shown.capacity == snapshot.capacity


@pytest.mark.parametrize(
    ("position", "cell"), [(99, None), (100, 7), (102, 9), (103, 40), (105, 42), (106, None)]
)
def test_cell_of_follows_extents_in_logical_order(position, cell):
    view = sessions.sequence(0, 100, 106, extents=((7, 3), (40, 3)))
    assert state.cell_of(view, position) == cell
    if cell is not None:
        assert state.position_in(view, cell) == position


def test_a_cell_between_extents_holds_nothing():
    view = sessions.sequence(0, 100, 106, extents=((7, 3), (40, 3)))
    assert state.position_in(view, 10) is None


@pytest.mark.parametrize(
    ("position", "kind", "group"),
    [
        (0, "padding", None),
        (3, "padding", None),
        (4, "evicted", None),
        (11, "evicted", None),
        (12, "group", 0),
        (19, "group", 1),
        (20, "tail", None),
        (21, "tail", None),
        (22, "outside", None),
        (-1, "outside", None),
    ],
)
def test_kind_and_group_of_a_position(position, kind, group):
    view = sessions.sequence(0, 12, 22, evicted=8, padding=4)
    assert state.kind_of(view, position) == kind
    assert state.group_of(view, position) == group
