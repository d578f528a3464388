"""The book of marks: changes go through the undo stack and are told."""

from __future__ import annotations

from app.models import marks as model
from app.models.marks import CellAt
from app.views.mark_book import MarkBook


def test_changes_are_told_undone_and_done_again(qapp) -> None:
    book, told = MarkBook(), []
    book.changed.connect(lambda: told.append(dict(book.marks)))
    book.do(model.toggled(book.marks, CellAt(7)))
    book.do(model.noted(book.marks, CellAt(7), "name", ""))
    assert book.stack.undoText() == "note on cell 7"
    after = book.marks
    book.stack.undo()
    book.stack.undo()
    assert book.marks == {}
    assert book.stack.redoText() == "bookmark cell 7"
    book.stack.redo()
    book.stack.redo()
    assert book.marks == after
    assert len(told) == 6


def test_a_change_of_nothing_is_no_step(qapp) -> None:
    book = MarkBook()
    book.do(model.removed(book.marks, [CellAt(7)]))
    assert not book.stack.canUndo()


def test_undo_knows_after_which_event_the_change_was_made(qapp) -> None:
    book = MarkBook()
    assert book.undo_event is None
    for event in (3, 5):
        book.newest_event = lambda event=event: event
        book.do(model.toggled(book.marks, CellAt(event)))
    assert book.undo_event == 5
    book.stack.undo()
    assert book.undo_event == 3


def test_undo_leaves_alone_what_was_merged_meanwhile(qapp) -> None:
    book = MarkBook()
    book.do(model.toggled(book.marks, CellAt(7)))
    theirs = model.toggled(book.marks, CellAt(9))
    book.replace(model.applied(book.marks, theirs))
    book.stack.undo()
    assert list(book.marks) == [CellAt(9)]


def test_a_bookmark_that_comes_back_takes_no_number_away(qapp) -> None:
    """Another window gave its number to another bookmark in the meantime."""
    book = MarkBook()
    book.do(model.toggled(book.marks, CellAt(7)))
    book.do(model.toggled(book.marks, CellAt(7)))
    book.replace(model.applied(book.marks, model.toggled(book.marks, CellAt(9))))
    book.stack.undo()
    assert {place.cell: mark.number for place, mark in book.marks.items()} == {9: 1, 7: 2}
    book.stack.undo()
    book.stack.redo()
    assert {place.cell: mark.number for place, mark in book.marks.items()} == {9: 1, 7: 2}
