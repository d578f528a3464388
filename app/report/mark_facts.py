"""The bookmarks and notes that a report lists, from the file beside its subject or from another."""

from __future__ import annotations

from pathlib import Path

from app.models import foreign
from app.models.marks import EventAt, Mark, Marks, ordered, place_words
from app.models.marks_file import SUFFIX, BadMarks, MarkFile
from app.models.marks_table import Shown, presence
from app.models.state import state_of
from app.models.tracks import Tracks
from app.report.facts import MarkFacts
from app.report.scene import Scene
from engine.errors import Unreadable


def read_marks(path: Path) -> Marks:
    """The marks of a file; none where there is no such. Raises: Unreadable, OSError."""
    try:
        return MarkFile(path).read().marks
    except BadMarks as error:
        raise Unreadable(str(path), str(error).removeprefix(f"{path.name}: ")) from error


def beside(subject: Path) -> Path:
    """Where the marks of a file are looked for when nobody names another file."""
    return subject.with_name(subject.name + SUFFIX)


def mark_facts(marks: Marks, scene: Scene) -> tuple[MarkFacts, ...]:
    """The marks in their order, with whether each place is there at the end."""
    shown = _shown(scene)
    return tuple(_fact(mark, shown) for mark in ordered(marks.values()))


def _shown(scene: Scene) -> Shown:
    if scene.foreign is not None:
        return Shown(foreign.tracks_of(scene.foreign, scene.group_size))
    records = {record.number: record for record in scene.records}
    newest = scene.records[-1].number if scene.records else None
    tracks = Tracks().of_snapshot(scene.snapshot) if scene.snapshot is not None else ()
    return Shown(tracks, state_of(scene.snapshot, None, newest), records.get)


def _fact(mark: Mark, shown: Shown) -> MarkFacts:
    now = presence(mark.place, shown)
    words = now.words
    if isinstance(mark.place, EventAt) and shown.record_of(mark.place.number) is None:
        words = "not among the events of this report"
    return MarkFacts(mark.number, mark.name, place_words(mark.place), now.there, words, mark.note)
