"""Two events compared."""

from __future__ import annotations

from dataclasses import replace

from app.models.compare import compare
from tests.helpers import sessions

RECORDS = sessions.journal(31)


def test_a_failed_event_equals_the_one_before():
    result = compare(RECORDS[8], RECORDS[9], RECORDS[9:10])
    assert result.same
    assert result.sentence == "events 9 and 10: the same state, all 13 owners agree"


def test_an_append_differs_from_its_first_position_on():
    result = compare(RECORDS[2], RECORDS[3], RECORDS[3:4])
    assert not result.same
    assert (result.first_seq, result.first_position, result.first_owner) == (0, 12, "history")
    assert result.table.rows[0].cells[3].text == "from position 12"
    assert result.sentence == (
        "events 3 and 4: 13 of 13 owners differ, first history; first position 12 of sequence 0"
    )


def test_same_runs_written_anew_differ_where_they_were_written():
    one = sessions.record(5, 0, 8)
    two = sessions.record(7, 4, 8)
    rewind = sessions.record(6, 0, 0, op="rewind", positions_written=None)
    result = compare(one, two, [rewind, two])
    assert result.first_position == 4


def test_only_owners_that_differ_are_marked():
    one = sessions.record(5, 0, 8)
    changed = tuple(
        (name, sessions.digest("other") if name == "logits" else value)
        for name, value in one.digests_after
    )
    result = compare(one, replace(one, number=6, digests_after=changed))
    assert result.first_owner == "logits"
    assert [r.cells[0].text for r in result.table.rows if r.cells[3].text == "differs"] == [
        "logits"
    ]


def test_a_sequence_that_came_differs_from_its_start():
    one = sessions.record(5, 0, 8)
    two = replace(one, number=6, sequences=(*one.sequences, sessions.sequence(3, 100, 104)))
    result = compare(one, two)
    assert (result.first_seq, result.first_position) == (3, 100)


def test_records_without_digests_are_compared_by_runs():
    one = replace(sessions.record(5, 0, 8), digests_after=())
    assert compare(one, replace(one, number=6)).sentence == "events 5 and 6: the same state"
