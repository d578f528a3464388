"""Bookmarks and notes: what is marked, numbers, order, changes and their undoing, merging."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.models import marks as model
from app.models.marks import (
    LONGEST_NAME,
    LONGEST_NOTE,
    MOST_MARKS,
    CellAt,
    EventAt,
    Mark,
    Marks,
    Span,
    TooManyMarks,
)
from app.models.selection import Selection
from tests.app import values
from tests.app.models import strategies

HERE, CELL, EVENT = Span(0, 12, 16), CellAt(7), EventAt(3, "0" * 16)


def with_bookmarks(*places: model.Place) -> dict[model.Place, Mark]:
    marks: Marks = {}
    for place in places:
        marks = model.applied(marks, model.toggled(marks, place))
    return dict(marks)


# what is selected -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after", "in_cells", "kind"),
    [
        (Selection(), Selection(start=3, stop=4, cell=3, group=0), False, "positions"),
        (Selection(), Selection(start=3, stop=4, cell=3, group=0), True, "cell"),
        (Selection(), Selection(cell=3), False, "cell"),
        (Selection(), Selection(event=5, start=3, stop=4), False, "event"),
        (Selection(event=5), Selection(event=5, start=3, stop=4), False, "positions"),
        (Selection(start=3, stop=4), Selection(start=3, stop=4, owner="tokens"), False, "kept"),
    ],
)
def test_the_part_of_the_selection_that_came_last_is_meant(before, after, in_cells, kind) -> None:
    assert model.chosen_kind(before, after, in_cells, "kept") == kind


def test_the_place_is_the_kind_meant_or_what_there_is() -> None:
    all_three = Selection(seq=2, start=3, stop=5, cell=7, event=4)
    check = "a" * 16
    assert model.place_of(all_three, "positions", check) == Span(2, 3, 5)
    assert model.place_of(all_three, "cell", check) == CellAt(7)
    assert model.place_of(all_three, "event", check) == EventAt(4, check)
    assert model.place_of(Selection(cell=7), "event", None) == CellAt(7)


def test_an_event_that_is_not_kept_is_no_place() -> None:
    assert model.place_of(Selection(event=4), "event", None) is None
    assert model.place_of(Selection(seq=3), "positions", None) is None


def test_events_are_told_apart_by_what_they_did() -> None:
    one = values.record(3, values.sequence(0, 0, 8), digests_after=(("tokens", "ab"),))
    same = values.record(9, duration_ns=5, digests_after=(("tokens", "ab"),))
    other = values.record(3, digests_after=(("tokens", "cd"),))
    assert model.check_of(one) == model.check_of(same)
    assert model.check_of(one) != model.check_of(other)
    EventAt(3, model.check_of(one))


# numbers, order ---------------------------------------------------------------------------------


def test_a_bookmark_gets_the_lowest_free_number_and_keeps_it() -> None:
    marks = with_bookmarks(HERE, CELL, EVENT)
    assert [marks[place].number for place in (HERE, CELL, EVENT)] == [1, 2, 3]
    marks = model.applied(marks, model.removed(marks, [CELL]))
    marks = model.applied(marks, model.toggled(marks, Span(0, 0, 1)))
    assert marks[Span(0, 0, 1)].number == 2
    assert marks[EVENT].number == 3
    assert model.numbered(marks, 2) == marks[Span(0, 0, 1)]
    assert model.numbered(marks, 4) is None


def test_the_list_is_sorted_by_place() -> None:
    marks = with_bookmarks(EVENT, CELL, Span(1, 0, 4), Span(0, 20, 21), HERE)
    listed = [mark.place for mark in model.ordered(marks.values())]
    assert listed == [HERE, Span(0, 20, 21), Span(1, 0, 4), CELL, EVENT]


# changes ----------------------------------------------------------------------------------------


def test_a_second_toggle_takes_the_bookmark_away_but_not_its_note() -> None:
    marks = with_bookmarks(HERE, CELL)
    marks = model.applied(marks, model.noted(marks, HERE, "name", "note"))
    marks = model.applied(marks, model.toggled(marks, HERE))
    marks = model.applied(marks, model.toggled(marks, CELL))
    assert marks == {HERE: Mark(HERE, 0, "name", "note")}


def test_an_empty_note_on_an_unmarked_place_is_no_change() -> None:
    assert model.noted({}, HERE, " ", "\n").edits == ()


def test_emptying_the_note_of_a_note_removes_it() -> None:
    marks = model.applied({}, model.noted({}, HERE, "", "note"))
    assert model.applied(marks, model.noted(marks, HERE, "", "")) == {}


def test_limits_are_named() -> None:
    with pytest.raises(ValueError, match="at most 80 characters, given 81"):
        model.noted({}, HERE, "x" * (LONGEST_NAME + 1), "")
    with pytest.raises(ValueError, match="at most 2,000 characters, given 2,001"):
        model.noted({}, HERE, "", "x" * (LONGEST_NOTE + 1))
    full = {CellAt(n): Mark(CellAt(n), n + 1) for n in range(MOST_MARKS)}
    with pytest.raises(TooManyMarks, match="1,000"):
        model.toggled(full, HERE)
    with pytest.raises(TooManyMarks):
        model.noted(full, HERE, "", "note")
    assert model.noted(full, CellAt(0), "", "note").edits
    assert model.toggled(full, CellAt(0)).edits


def test_undo_names_say_what_they_take_back() -> None:
    marks = with_bookmarks(HERE, CELL)
    assert model.toggled({}, HERE).words == "bookmark positions 12 – 15 of sequence 0"
    assert model.toggled(marks, CELL).words == "remove bookmark on cell 7"
    assert model.noted(marks, EVENT, "", "x").words == "note on event 3"
    assert model.renamed(marks, CELL, "x").words == "rename cell 7"
    assert model.removed(marks, [HERE]).words == "delete positions 12 – 15 of sequence 0"
    assert model.removed(marks, [HERE, CELL]).words == "delete 2 bookmarks and notes"


@given(strategies.marks(), st.data())
def test_every_change_can_be_taken_back(marks: Marks, data: st.DataObject) -> None:
    place = data.draw(strategies.PLACES)
    change = data.draw(
        st.sampled_from(
            (
                model.toggled(marks, place),
                model.noted(marks, place, data.draw(strategies.NAMES), "n"),
                model.renamed(marks, place, "x"),
                model.removed(marks, [*list(marks)[:2], place]),
            )
        )
    )
    after = model.applied(marks, change)
    assert model.applied(after, change, back=True) == marks
    assert not any(mark.is_empty for mark in after.values())


@given(st.text())
def test_cleaned_texts_stay_as_they_are(given_: str) -> None:
    name, note = model.clean_name(given_), model.clean_note(given_)
    assert model.clean_name(name) == name
    assert model.clean_note(note) == note
    assert "\n" not in name
    (name + note).encode("utf-8")


def test_control_characters_and_halves_of_pairs_do_not_stay() -> None:
    assert model.clean_note("a\x00b\x1bc\ud800\r\nd\te") == "a b c\ufffd\nd\te"
    assert model.clean_name("  one\ttwo\n three ") == "one two three"


# merging ----------------------------------------------------------------------------------------


@given(strategies.marks(), strategies.marks())
def test_who_changed_nothing_takes_what_the_other_did(base: Marks, other: Marks) -> None:
    assert model.merged(base, base, other) == other
    assert model.merged(base, other, base) == other


@given(strategies.marks(), strategies.marks(), strategies.marks())
def test_merging_keeps_ours_and_gives_each_number_once(base: Marks, ours: Marks, theirs: Marks):
    result = model.merged(base, ours, theirs)
    for place, mark in ours.items():
        if mark != base.get(place):
            assert result[place] == mark
    numbers = [mark.number for mark in result.values() if mark.number]
    assert len(set(numbers)) == len(numbers)


def test_what_two_windows_added_and_deleted_is_all_there() -> None:
    base = with_bookmarks(HERE, CELL)
    ours = dict(with_bookmarks(HERE, EVENT))
    theirs = {**base, Span(1, 0, 4): Mark(Span(1, 0, 4), 2, "theirs")}
    theirs[CELL] = Mark(CELL, 3)
    del theirs[HERE]
    result = model.merged(base, ours, theirs)
    assert set(result) == {EVENT, Span(1, 0, 4)}
    assert {mark.number for mark in result.values()} == {1, 2}
    assert result[EVENT].number == 2
