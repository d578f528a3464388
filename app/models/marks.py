"""Bookmarks and notes: what they mark, how they are numbered, ordered, changed and merged.

A place has at most one mark: a number where it is bookmarked, a name and a note where there are
any. Changes are values that can be done and undone. Knows no file and no Qt.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Annotated, Final, TypeAlias

from msgspec import Meta, Struct, structs

from app.models import text
from app.models.selection import Selection
from engine.snapshot import Record

MOST_MARKS: Final = 1_000
LONGEST_NAME: Final = 80
LONGEST_NOTE: Final = 2_000
MOST_KEPT: Final = 10_000
"""Marks that a file may hold: merging what two windows added can go over `MOST_MARKS`."""
MOST_KEYS: Final = 9
"""Bookmarks that have a key of their own."""
MOST_PLACE: Final = 2**62

Natural: TypeAlias = Annotated[int, Meta(ge=0, le=MOST_PLACE)]
Sequence: TypeAlias = Annotated[int, Meta(ge=-MOST_PLACE, le=MOST_PLACE)]
"""Parts of foreign files have negative numbers."""


class Span(Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="positions"):
    """Half-open logical positions of a sequence; a group is marked by its positions."""

    seq: Sequence
    start: Natural
    stop: Natural


class CellAt(Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="cell"):
    """A physical cell."""

    cell: Natural


class EventAt(Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="event"):
    """A record of the journal."""

    number: Natural
    check: Annotated[str, Meta(pattern="^[0-9a-f]{16}$")]
    """`check_of` the record: another session has another event under the same number."""


Place: TypeAlias = Span | CellAt | EventAt


class Mark(Struct, frozen=True, forbid_unknown_fields=True):
    """What a person keeps about a place."""

    place: Place
    number: Annotated[int, Meta(ge=0, le=MOST_KEPT)] = 0
    """Of the bookmark; 0: there is a note but no bookmark."""
    name: Annotated[str, Meta(max_length=LONGEST_NAME)] = ""
    note: Annotated[str, Meta(max_length=LONGEST_NOTE)] = ""

    @property
    def is_empty(self) -> bool:
        """True where nothing is left to keep."""
        return not (self.number or self.name or self.note)

    @property
    def glyph(self) -> str:
        """Shape that stands for it in drawings and tables."""
        return "bookmark" if self.number else "note"

    @property
    def label(self) -> str:
        """What stands beside the shape: number and name, or the beginning of the note."""
        if self.number:
            return f"{self.number} {self.name}".strip()
        return self.name or "note"

    @property
    def words(self) -> str:
        """The same for a screen reader and a tooltip."""
        kind = f"bookmark {self.number}" if self.number else "note"
        return f"{kind} {self.name}".strip() + (f": {self.note}" if self.note else "")


Marks: TypeAlias = Mapping[Place, Mark]


class TooManyMarks(ValueError):
    """One more than `MOST_MARKS`."""

    def __str__(self) -> str:
        return f"there are {MOST_MARKS:,} bookmarks and notes already: delete one first"


# places ---------------------------------------------------------------------------------------


def check_of(record: Record) -> str:
    """Tells an event from others of the same number; the same op with the same effect agrees."""
    told = repr((record.op, record.seq, record.result, record.digests_after))
    return blake2b(told.encode("utf-8", "backslashreplace"), digest_size=8).hexdigest()


def chosen_kind(before: Selection, after: Selection, in_cells: bool, kind: str) -> str:
    """Which part of a selection the user meant last: `positions`, `cell` or `event`.

    A selection holds all three at once; `kind` is the answer so far, `in_cells` says that the
    cell map was used, where a cell also selects the position in it.
    """
    if after.event is not None and after.event != before.event:
        return "event"
    if after.cell is not None and in_cells:
        return "cell"
    if after.start is not None and (after.start, after.stop) != (before.start, before.stop):
        return "positions"
    if after.cell is not None and after.cell != before.cell:
        return "cell"
    return kind


def place_of(selection: Selection, kind: str, check: str | None) -> Place | None:
    """The place that is selected; `check` is that of the selected event, None where it is gone."""
    places: dict[str, Place] = {}
    start, stop = selection.start, selection.stop
    if start is not None and stop is not None and 0 <= start < stop:
        places["positions"] = Span(selection.seq, start, stop)
    if selection.cell is not None:
        places["cell"] = CellAt(selection.cell)
    if selection.event is not None and check is not None:
        places["event"] = EventAt(selection.event, check)
    return places.get(kind) or next(iter(places.values()), None)


def place_words(place: Place) -> str:
    """A place in words: `positions 12 – 15 of sequence 0`, `cell 7`, `event 3`."""
    match place:
        case Span():
            word = "position" if place.stop == place.start + 1 else "positions"
            return f"{word} {text.span(place.start, place.stop)} of sequence {place.seq}"
        case CellAt():
            return f"cell {text.count(place.cell)}"
        case EventAt():
            return f"event {text.count(place.number)}"


def order_of(place: Place) -> tuple[int, int, int, int, str]:
    """Positions by sequence first, then cells, then events."""
    match place:
        case Span():
            return 0, place.seq, place.start, place.stop, ""
        case CellAt():
            return 1, place.cell, 0, 0, ""
        case EventAt():
            return 2, place.number, 0, 0, place.check


def ordered(marks: Iterable[Mark]) -> tuple[Mark, ...]:
    """As the panel and the report list them."""
    return tuple(sorted(marks, key=lambda mark: order_of(mark.place)))


def numbered(marks: Marks, number: int) -> Mark | None:
    """The bookmark with a number."""
    return next((mark for mark in marks.values() if number and mark.number == number), None)


def spans_of(marks: Marks, seq: int) -> tuple[Mark, ...]:
    """The marks on positions of a sequence, in order."""
    return ordered(m for m in marks.values() if isinstance(m.place, Span) and m.place.seq == seq)


def events_of(marks: Marks) -> dict[tuple[int, str], Mark]:
    """The marks on events by number and check."""
    places = ((mark.place, mark) for mark in marks.values())
    return {(p.number, p.check): mark for p, mark in places if isinstance(p, EventAt)}


# texts ----------------------------------------------------------------------------------------

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]")
_SURROGATE = re.compile(r"[\ud800-\udfff]")


def clean_note(given: str) -> str:
    """A note as it is kept: no control characters but line ends and tabs, no blank ends."""
    lines = given.replace("\r\n", "\n").replace("\r", "\n")
    return _SURROGATE.sub("\ufffd", _CONTROL.sub(" ", lines)).strip()


def clean_name(given: str) -> str:
    """A name as it is kept: one line."""
    return " ".join(clean_note(given).split())


# changes --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Change:
    """An edit of some marks, with what was there before."""

    words: str
    """What Undo and Redo call it, such as `bookmark cell 7`."""
    edits: tuple[tuple[Place, Mark | None, Mark | None], ...]
    """(place, before, after)."""


def applied(marks: Marks, change: Change, back: bool = False) -> dict[Place, Mark]:
    """The marks after a change, or before it.

    A bookmark that comes back gets another number where its own was given away meanwhile, as by
    another window.
    """
    result, others = dict(marks), set(marks).difference(place for place, *_ in change.edits)
    for place, before, after in change.edits:
        mark = before if back else after
        if mark is None:
            result.pop(place, None)
        else:
            result[place] = mark
    return _without_clashes(result, others)


def _change(marks: Marks, words: str, place: Place, after: Mark) -> Change:
    before, kept = marks.get(place), None if after.is_empty else after
    if before is None and kept is not None and len(marks) >= MOST_MARKS:
        raise TooManyMarks
    return Change(words, ((place, before, kept),) if before != kept else ())


def free_number(taken: Iterable[int]) -> int:
    """The lowest number that no bookmark has."""
    used = set(taken)
    return next(n for n in range(1, len(used) + 2) if n not in used)


def toggled(marks: Marks, place: Place) -> Change:
    """Bookmark a place, or take its bookmark away; a note stays. Raises: TooManyMarks."""
    mark = marks.get(place) or Mark(place)
    if mark.number:
        name = mark.name if mark.note else ""
        after = structs.replace(mark, number=0, name=name)
        return _change(marks, f"remove bookmark on {place_words(place)}", place, after)
    number = free_number(mark.number for mark in marks.values())
    after = structs.replace(mark, number=number)
    return _change(marks, f"bookmark {place_words(place)}", place, after)


def noted(marks: Marks, place: Place, name: str, note: str) -> Change:
    """Change name and note. Raises: TooManyMarks; ValueError names a limit."""
    name, note = clean_name(name), clean_note(note)
    for word, given, most in (("name", name, LONGEST_NAME), ("note", note, LONGEST_NOTE)):
        if len(given) > most:
            raise ValueError(f"{word}: expected at most {most:,} characters, given {len(given):,}")
    after = structs.replace(marks.get(place) or Mark(place), name=name, note=note)
    return _change(marks, f"note on {place_words(place)}", place, after)


def renamed(marks: Marks, place: Place, name: str) -> Change:
    """Change the name alone. Raises: as `noted`."""
    note = marks[place].note if place in marks else ""
    change = noted(marks, place, name, note)
    return Change(f"rename {place_words(place)}", change.edits)


def removed(marks: Marks, places: Iterable[Place]) -> Change:
    """Delete bookmarks with their notes."""
    edits = tuple((place, marks[place], None) for place in places if place in marks)
    one = f"delete {place_words(edits[0][0])}" if len(edits) == 1 else ""
    return Change(one or f"delete {text.count(len(edits))} bookmarks and notes", edits)


def merged(base: Marks, ours: Marks, theirs: Marks) -> dict[Place, Mark]:
    """Both sides' changes since `base`; where both changed a place, ours stays.

    A bookmark whose number another one has by then gets the lowest free one.
    """
    result: dict[Place, Mark] = {}
    for place in {**theirs, **ours}:
        mark = ours.get(place)
        if mark == base.get(place):
            mark = theirs.get(place)
        if mark is not None:
            result[place] = mark
    return _without_clashes(result, {p for p, mark in result.items() if mark == ours.get(p)})


def _without_clashes(marks: dict[Place, Mark], first: set[Place]) -> dict[Place, Mark]:
    """Each number once; the bookmarks on the places in `first` keep theirs."""
    taken: set[int] = set()
    for place in sorted(marks, key=lambda place: (place not in first, order_of(place))):
        mark = marks[place]
        if mark.number:
            number = free_number(taken) if mark.number in taken else mark.number
            taken.add(number)
            marks[place] = structs.replace(mark, number=number)
    return marks
