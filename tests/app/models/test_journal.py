"""The journal: filter by masks, rows by number, last good state."""

from __future__ import annotations

import random

import numpy as np
import pytest

from app.models import filters
from app.models.journal import Journal, JournalTable, compared, record_cell
from tests.helpers import sessions

RECORDS = sessions.journal(60)


def events(query: str, records=RECORDS):
    journal = Journal(records)
    return [records[row].number for row in journal.matching(filters.parse(query))]


def test_empty_query_lets_all_through():
    assert JournalTable(Journal(RECORDS)).n_rows == 60


@pytest.mark.parametrize(
    ("query", "keep"),
    [
        ("failed", lambda r: r.outcome == "failed"),
        ("outcome:rejected", lambda r: r.outcome == "rejected"),
        ("-ok", lambda r: r.outcome != "ok"),
        ("kind:nonf", lambda r: r.kind == "nonfinite"),
        ("stage:layer.3", lambda r: r.stage.startswith("layer.3")),
        ("event:10-20", lambda r: 10 <= r.number <= 20),
        ("event:>55", lambda r: r.number > 55),
        ("event:<3", lambda r: r.number < 3),
        ("failed event:20-40", lambda r: r.outcome == "failed" and 20 <= r.number <= 40),
        ("seq:1", lambda r: r.seq == 1),
        ("op:append tokens:4", lambda r: r.op == "append" and r.n_tokens == 4),
        ("time:>1.5ms", None),
    ],
)
def test_filters_agree_with_a_plain_loop(query, keep):
    if keep is None:
        assert filters.parse(query).problem
        return
    assert events(query) == [record.number for record in RECORDS if keep(record)]


def test_position_filter_finds_who_wrote_it():
    wanted = [
        r.number
        for r in RECORDS
        if r.positions_written and r.positions_written[0] <= 42 < r.positions_written[1]
    ]
    assert wanted
    assert events("pos:42") == wanted


def test_time_filter_has_units():
    assert events("time:>1ms") == [r.number for r in RECORDS if r.duration_ns > 1_000_000]
    assert events("time:<2us") == []


def test_bad_terms_are_named_and_left_out():
    query = filters.parse("failed colour:red")
    assert query.problem.startswith("expected one of op, result")
    assert len(query.terms) == 1
    assert filters.parse("event:").problem == "expected something after event:, given nothing"
    assert filters.parse("event:x").problem.endswith("given x")
    assert filters.parse("event:9-3").problem.endswith("given 9-3")


def test_growing_keeps_what_was_read():
    records = []
    journal = Journal(records)
    for record in sessions.journal(700):
        records.append(record)
        if len(records) % 37 == 0:
            assert journal.catch_up() == 37
    journal.catch_up()
    assert journal.catch_up() == 0
    assert list(journal.numbers("event")) == [record.number for record in records]


def test_row_of_finds_numbers_and_only_those():
    journal = Journal(RECORDS)
    assert journal.row_of(1) == 0
    assert journal.row_of(60) == 59
    assert journal.row_of(61) is None
    assert journal.row_of(0) is None


def test_last_good_state_is_the_newest_published_before():
    journal = Journal(RECORDS)
    assert RECORDS[journal.last_good()].number == 59
    assert RECORDS[journal.last_good(29)].number == 29
    assert RECORDS[journal.last_good(20)].number == 19
    assert Journal([sessions.refused(1)]).last_good() is None


def test_next_problem_goes_both_ways():
    journal = Journal(RECORDS)
    assert RECORDS[journal.next_problem(0, 1)].number == 10
    assert RECORDS[journal.next_problem(59, -1)].number == 50
    assert journal.next_problem(0, -1) is None


def test_filtered_rows_are_found_again():
    journal = Journal(RECORDS)
    table = JournalTable(journal, filters.parse("failed"))
    assert [table.record(row).number for row in range(table.n_rows)] == [10, 20, 30, 40, 50, 60]
    assert table.shown_at(19) == 1
    assert table.shown_at(20) is None
    assert table.jump(0).event == 10
    assert table.key(1) == "20"


def test_cells_of_a_refusal():
    cells = [record_cell(sessions.refused(7), column) for column in range(9)]
    assert [cell.text for cell in cells] == [
        "7",
        "–",
        "0",
        "append",
        "rejected",
        "–",
        "1.27 ms",
        "not-consecutive",
        "append on sequence 0: not-consecutive, expected 102, given 103",
    ]
    assert cells[4].glyph == "cross"


def test_two_events_are_found_older_first():
    assert [r.number for r in compared(RECORDS, (30, 4))] == [4, 30]
    assert compared(RECORDS, (30, 400)) is None


class Million:
    """A million records made when they are looked at."""

    def __len__(self):
        return 1_000_000

    def __getitem__(self, row):
        return sessions.record(row + 1, row, row + 1)


def test_a_million_rows_are_filtered_by_masks():
    """Columns as a capture file gives them; nothing is read a row at a time."""
    n = 1_000_000
    seed = 20_260
    print(f"seed {seed}")
    rng = np.random.default_rng(seed)
    codes = rng.integers(1, 4, n).astype(np.int32)
    numbers = {"event": np.arange(1, n + 1), "start": np.arange(n), "stop": np.arange(n) + 1}
    journal = Journal.of_columns(
        Million(), numbers, {"outcome": codes}, {"outcome": ["", "ok", "failed", "rejected"]}
    )
    table = JournalTable(journal, filters.parse("outcome:failed event:>500000"))
    wanted = np.flatnonzero((codes == 2) & (np.arange(1, n + 1) > 500_000))
    assert np.array_equal(table.rows, wanted)
    row = random.Random(seed).randrange(table.n_rows)
    assert table.record(row).number == wanted[row] + 1
    assert len(JournalTable(journal, filters.parse("pos:812")).rows) == 1
