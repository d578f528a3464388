"""Who wrote a position, through shifts, forks, saved slots and transactions; leftovers of cells."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from app.models.journal import Journal
from app.models.provenance import history_of_cell, lineage, released_by
from app.models.state import state_of
from tests.helpers import sessions


def op(number, name, seq=0, written=None, **fields):
    """A record of an op that published."""
    return sessions.record(
        number,
        *(written or (0, 0)),
        op=name,
        seq=seq,
        op_json=json.dumps({"op": name, "seq": seq, **fields}),
        positions_written=written,
        cells_written=(),
    )


def steps(records, seq, position, upto=None):
    return [
        (step.event, step.seq, step.position, step.wrote)
        for step in lineage(Journal(records), seq, position, upto)
    ]


def test_the_newest_append_that_covers_it_wrote_it():
    records = [sessions.record(1, 0, 8), op(2, "rewind", to=4), sessions.record(3, 4, 8)]
    assert steps(records, 0, 5) == [(3, 0, 5, True)]
    assert steps(records, 0, 2) == [(1, 0, 2, True)]


def test_time_travel_looks_no_further_than_the_shown_event():
    records = [sessions.record(1, 0, 8), op(2, "rewind", to=4), sessions.record(3, 4, 8)]
    assert steps(records, 0, 5, upto=1) == [(1, 0, 5, True)]


def test_failed_and_refused_events_wrote_nothing():
    records = [
        sessions.failed(1, positions_written=(0, 8)),
        sessions.record(2, 0, 8),
        sessions.failed(3, positions_written=(4, 8)),
    ]
    assert steps(records, 0, 5) == [(2, 0, 5, True)]


def test_a_shift_is_undone_on_the_way_back():
    records = [
        sessions.record(1, 0, 16),
        op(2, "evict_front", count=8),
        op(3, "shift", delta=-8, start=None, stop=None),
        sessions.record(4, 8, 12),
    ]
    assert steps(records, 0, 3) == [(3, 0, 11, False), (1, 0, 11, True)]
    assert steps(records, 0, 9) == [(4, 0, 9, True)]


def test_a_shift_of_another_range_does_not_move_it():
    records = [sessions.record(1, 0, 16), op(2, "shift", delta=5, start=8, stop=None)]
    assert steps(records, 0, 3) == [(1, 0, 3, True)]
    assert steps(records, 0, 13) == [(2, 0, 8, False), (1, 0, 8, True)]


def test_a_fork_leads_to_its_source_before_the_fork():
    records = [
        sessions.record(1, 0, 8),
        op(2, "fork", seq=1, src=0, dst=1, stop=6),
        sessions.record(3, 6, 9, seq=1),
        op(4, "rewind", seq=0, to=2),
        sessions.record(5, 2, 8, seq=0),
    ]
    assert steps(records, 1, 4) == [(2, 0, 4, False), (1, 0, 4, True)]
    assert steps(records, 1, 7) == [(3, 1, 7, True)]
    assert steps(records, 0, 4) == [(5, 0, 4, True)]


def test_a_restore_leads_to_the_sequence_that_was_saved_as_it_was_then():
    records = [
        sessions.record(1, 0, 8),
        op(2, "save", slot="a"),
        op(3, "reset"),
        sessions.record(4, 0, 8),
        op(5, "save", slot="b"),
        op(6, "restore", slot="a"),
    ]
    assert steps(records, 0, 3) == [(6, 0, 3, False), (1, 0, 3, True)]


def test_inner_ops_of_a_transaction_are_walked_backwards():
    inner = [
        {"op": "remove", "seq": 0, "start": 4, "stop": 8},
        {"op": "shift", "seq": 0, "delta": -4, "start": 8, "stop": None},
    ]
    change = sessions.record(
        2,
        0,
        0,
        op="transaction",
        op_json=json.dumps({"op": "transaction", "ops": inner}),
        positions_written=None,
    )
    records = [sessions.record(1, 0, 16), change]
    assert steps(records, 0, 5) == [(2, 0, 9, False), (1, 0, 9, True)]
    assert steps(records, 0, 2) == [(1, 0, 2, True)]


def test_unknown_positions_have_no_history():
    assert steps([sessions.record(1, 0, 8)], 0, 30) == []
    assert steps([], 0, 0) == []


@pytest.mark.parametrize("n_records", [70_000])
def test_long_journals_are_walked_in_blocks(n_records):
    first = sessions.record(1, 0, 4)
    other = [sessions.record(2, 0, 4, seq=1)]
    records = [first, *other * (n_records - 1)]
    assert steps(records, 0, 2) == [(1, 0, 2, True)]


def test_cells_name_their_writers_newest_first_and_only_the_newest_is_live():
    records = [
        sessions.record(1, 0, 4, cells_written=((10, 4),)),
        sessions.record(2, 4, 6, cells_written=((12, 2),)),
    ]
    view = sessions.sequence(0, 4, 6, extents=((12, 2),))
    state = state_of(sessions.snapshot(view), None, 2)
    found = history_of_cell(Journal(records), state, 12)
    assert [(f.event, f.position, f.live) for f in found] == [(2, 4, True), (1, 2, False)]
    found = history_of_cell(Journal(records), state, 10)
    assert [(f.event, f.position, f.live) for f in found] == [(1, 0, False)]


def test_a_cell_written_by_a_failed_chunk_is_a_leftover():
    records = [sessions.failed(1, cells_written=((32, 4),), positions_written=(32, 36))]
    state = state_of(sessions.snapshot(sessions.sequence(0, 0, 32)), None, 1)
    found = history_of_cell(Journal(records), state, 33)
    assert [(f.event, f.position, f.live) for f in found] == [(1, 33, False)]


def test_an_append_inside_a_transaction_is_found():
    inner = [{"op": "append", "seq": 0, "positions": [8, 9]}]
    change = sessions.record(
        2,
        0,
        0,
        op="transaction",
        op_json=json.dumps({"op": "transaction", "ops": inner}),
        positions_written=None,
    )
    records = [sessions.record(1, 0, 8), change]
    assert steps(records, 0, 9) == [(2, 0, 9, True)]
    assert steps(records, 0, 3) == [(1, 0, 3, True)]


def test_what_released_a_position_is_the_first_event_after_which_it_is_gone():
    records = [
        sessions.record(1, 0, 8),
        sessions.record(2, 8, 12),
        op(3, "rewind", to=10, written=None),
        op(4, "rewind", to=2, written=None),
    ]
    records[2] = replace(records[2], sequences=(sessions.sequence(0, 0, 10),))
    records[3] = replace(records[3], sequences=(sessions.sequence(0, 0, 2),))
    journal = Journal(records)
    for position, event in ((11, 3), (9, 4), (5, 4)):
        step = lineage(journal, 0, position, None)[0]
        assert released_by(journal, step, None).number == event
    assert released_by(journal, lineage(journal, 0, 1, None)[0], None) is None
    assert released_by(journal, lineage(journal, 0, 9, None)[0], 3) is None


def test_a_failed_write_does_not_make_the_older_one_a_leftover():
    records = [
        sessions.record(1, 0, 4, cells_written=((0, 4),)),
        sessions.failed(2, cells_written=((0, 4),), positions_written=(0, 4)),
    ]
    state = state_of(sessions.snapshot(sessions.sequence(0, 0, 4)), None, 2)
    found = history_of_cell(Journal(records), state, 1)
    assert [(f.event, f.live) for f in found] == [(2, False), (1, True)]


def test_what_was_undone_does_not_count():
    records = [
        sessions.record(1, 0, 8),
        op(2, "shift", delta=4, start=None, stop=None),
        op(3, "undo"),
        sessions.record(4, 8, 12),
        op(5, "undo"),
    ]
    assert Journal(records).undone() == {1: 2, 3: 4}
    assert steps(records, 0, 5) == [(1, 0, 5, True)]
    assert steps(records, 0, 9) == []
    assert steps(records, 0, 5, upto=2) == [(2, 0, 1, False), (1, 0, 1, True)]
