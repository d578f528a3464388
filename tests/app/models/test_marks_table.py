"""The table of bookmarks says whether each place is there in what is shown."""

from __future__ import annotations

import pytest

from app.models import marks as model
from app.models.foreign import track_of_ranges
from app.models.marks import CellAt, EventAt, Mark, Span
from app.models.marks_table import Shown, presence, table_of
from app.models.sequences import track_of
from app.models.state import state_of
from tests.app import values

# positions 0 - 3 evicted, 4 - 11 two groups, 12 - 13 tail
VIEW = values.sequence(0, 4, 14, ((8, 10),), evicted=4, consumed=14)
RECORD = values.record(3, VIEW)
SHOWN = Shown(
    (track_of(VIEW),),
    state_of(values.snapshot(VIEW, n_cells=20), None, 3),
    {3: RECORD}.get,
)


@pytest.mark.parametrize(
    ("place", "there", "words"),
    [
        (Span(0, 4, 8), True, "live, group 0"),
        (Span(0, 5, 6), True, "live, in group 0"),
        (Span(0, 6, 10), True, "live, groups 0 to 1"),
        (Span(0, 13, 14), True, "live, tail"),
        (Span(0, 2, 6), True, "2 of 4 live, 2 evicted"),
        (Span(0, 12, 20), True, "2 of 8 live, 6 not in the run"),
        (Span(0, 0, 4), False, "evicted"),
        (Span(0, 50, 54), False, "not in the run"),
        (Span(5, 0, 4), False, "no sequence 5 here"),
        (CellAt(8), True, "holds position 4 of sequence 0"),
        (CellAt(19), True, "leftover, seen by no sequence"),
        (CellAt(20), False, "never used here"),
        (EventAt(3, model.check_of(RECORD)), True, "append: ok"),
        (EventAt(3, "0" * 16), False, "another event is here now"),
        (EventAt(4, "0" * 16), False, "no such event here"),
    ],
)
def test_each_place_is_there_or_says_why_not(place, there, words) -> None:
    now = presence(place, SHOWN)
    assert (now.there, now.words) == (there, words)


def test_another_engines_state_has_no_cells_and_no_events() -> None:
    shown = Shown((track_of_ranges(0, [(0, 4), (6, 8)]),))
    assert presence(CellAt(0), shown).words == "no cells here"
    assert presence(EventAt(3, "0" * 16), shown).words == "no such event here"
    assert presence(Span(0, 4, 6), shown).words == "hole"
    assert presence(Span(0, 6, 8), shown).words == "live, forgotten"
    assert presence(Span(0, 2, 8), shown).words == "4 of 6 live, 2 hole"


def test_rows_show_number_name_place_and_note() -> None:
    marks = [Mark(Span(0, 4, 8), 2, "name", "two\nlines"), Mark(CellAt(30), 0, "", "note")]
    table = table_of(marks, SHOWN)
    first = [table.cell(0, column).text for column in range(5)]
    assert first == ["2", "name", "positions 4 – 7 of sequence 0", "live, group 0", "two lines"]
    assert table.cell(0, 4).plain == "two\nlines"
    assert [table.cell(row, 0).glyph for row in (0, 1)] == ["bookmark", "note"]
    assert [table.cell(row, 3).glyph for row in (0, 1)] == ["tick", "dash"]
    assert table.key(0) != table.key(1)
