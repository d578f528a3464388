"""Where bookmarks are kept: by what is open, every 30 s, at the end, after a crash."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

import pytest

from app.mark_store import AUTOSAVE_MS, PIECE_BYTES, MarkStore, beside
from app.models import marks as model
from app.models.marks import CellAt, Mark
from app.models.marks_file import SUFFIX, MarkFile
from app.views.mark_book import MarkBook

ONE = {CellAt(7): Mark(CellAt(7), 1, "name")}


class Desk:
    """A book, its store, and what the store said."""

    def __init__(self, folder: Path | None) -> None:
        self.book = MarkBook()
        self.store = MarkStore(folder, self.book)
        self.told: list[str] = []
        self.refused: list[str] = []
        self.store.told.connect(self.told.append)
        self.store.refused.connect(self.refused.append)

    def mark(self, cell: int) -> None:
        self.book.do(model.toggled(self.book.marks, CellAt(cell)))

    @property
    def cells(self) -> list[int]:
        return sorted(place.cell for place in self.book.marks)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "state" / "bookmarks"


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    path = tmp_path / "some.bankflip"
    path.write_bytes(b"x" * (PIECE_BYTES + 5))
    return path


def hashed(wait, desk: Desk) -> None:
    wait(lambda: not desk.store._hash.is_running)


def key(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() + SUFFIX


def test_bookmarks_of_a_file_lie_under_its_content_and_the_file_is_not_touched(
    qapp, wait, folder: Path, capture: Path
) -> None:
    before = capture.read_bytes(), capture.stat().st_mtime_ns
    desk = Desk(folder)
    desk.store.open_files([capture])
    hashed(wait, desk)
    desk.mark(7)
    desk.store.close()
    assert desk.cells == []
    assert [path.name for path in folder.iterdir()] == [key(capture)]
    assert (capture.read_bytes(), capture.stat().st_mtime_ns) == before
    assert sorted(path.name for path in capture.parent.iterdir()) == ["some.bankflip", "state"]
    moved = capture.rename(capture.with_name("other"))
    other = Desk(folder)
    other.store.open_files([moved])
    hashed(wait, other)
    assert other.cells == [7]
    assert other.told == other.refused == []


def test_what_is_marked_before_the_content_is_known_joins_what_was_kept(
    qapp, wait, folder: Path, capture: Path
) -> None:
    MarkFile(folder / key(capture)).write(ONE, closed=True)
    desk = Desk(folder)
    desk.store.open_files([capture])
    desk.mark(9)
    hashed(wait, desk)
    assert desk.cells == [7, 9]
    assert {mark.number for mark in desk.book.marks.values()} == {1, 2}


def test_closing_at_once_still_keeps_what_was_marked(qapp, folder: Path, capture: Path) -> None:
    desk = Desk(folder)
    desk.store.open_files([capture])
    desk.mark(9)
    desk.store.flush()
    assert MarkFile(folder / key(capture)).read().marks.keys() == {CellAt(9)}


def test_a_file_read_again_with_other_content_keeps_its_bookmarks(
    qapp, wait, folder: Path, capture: Path
) -> None:
    desk = Desk(folder)
    desk.store.open_files([capture])
    hashed(wait, desk)
    desk.mark(7)
    capture.write_bytes(b"more")
    desk.store.open_files([capture])
    hashed(wait, desk)
    assert desk.cells == [7]
    desk.store.flush()
    assert (folder / key(capture)).exists()


def test_a_saved_session_has_its_bookmarks_beside_it(qapp, tmp_path: Path, folder: Path) -> None:
    session = tmp_path / "s.safetensors"
    session.write_bytes(b"session")
    desk = Desk(folder)
    desk.store.open_beside(session)
    desk.mark(7)
    desk.store.close()
    assert beside(session).exists()
    assert not folder.exists()
    desk.store.open_beside(session)
    assert desk.cells == [7]
    assert session.read_bytes() == b"session"


def test_saving_a_session_keeps_its_bookmarks_in_both_places(
    qapp, tmp_path: Path, folder: Path
) -> None:
    session = tmp_path / "s.safetensors"
    desk = Desk(folder)
    desk.store.open_started("tiny", "tiny")
    desk.mark(7)
    desk.store.also_beside(session)
    desk.mark(8)
    desk.store.flush()
    kept = [MarkFile(path).read().marks for path in (beside(session), *folder.iterdir())]
    assert kept == [desk.book.marks] * 2


def test_bookmarks_of_a_session_that_is_replaced_are_set_aside(
    qapp, tmp_path: Path, folder: Path
) -> None:
    session = tmp_path / "s.safetensors"
    MarkFile(beside(session)).write(ONE, closed=True)
    desk = Desk(folder)
    desk.store.open_started("tiny", "tiny")
    desk.mark(8)
    desk.store.also_beside(session)
    assert MarkFile(beside(session)).read().marks.keys() == {CellAt(8)}
    aside = beside(session).with_name(beside(session).name + ".replaced")
    assert MarkFile(aside).read().marks == ONE
    assert aside.name in desk.told[0]


def test_a_restart_of_the_same_keeps_bookmarks_and_undo(qapp, folder: Path) -> None:
    for where in (folder, None):
        desk = Desk(where)
        desk.store.open_started("tiny", "tiny")
        desk.mark(7)
        desk.store.open_started("tiny", "tiny")
        assert desk.cells == [7]
        desk.book.stack.undo()
        assert desk.cells == []


def test_another_session_has_other_bookmarks_and_nothing_to_undo(qapp, folder: Path) -> None:
    desk = Desk(folder)
    desk.store.open_started("one", "one")
    desk.mark(7)
    desk.store.open_started("two", "two")
    assert desk.cells == []
    assert not desk.book.stack.canUndo()
    desk.store.open_started("one", "one")
    assert desk.cells == [7]


def test_changes_are_saved_by_themselves_after_a_while(qapp, wait, folder: Path) -> None:
    desk = Desk(folder)
    desk.store.open_started("tiny", "tiny")
    assert not desk.store._timer.isActive()
    desk.mark(7)
    assert desk.store._timer.isActive()
    assert desk.store._timer.interval() == AUTOSAVE_MS == 30_000
    assert not folder.exists()
    desk.store._timer.start(1)
    wait(folder.exists)
    assert not desk.store.is_dirty
    assert not desk.store._timer.isActive()


def test_after_a_crash_the_last_autosave_comes_back_and_is_told_once(qapp, folder: Path) -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    crashed = Desk(folder)
    crashed.store.open_started("tiny", "tiny")
    crashed.store.homes[0].pid = child.pid
    crashed.mark(7)
    crashed.store.autosave()
    desk = Desk(folder)
    desk.store.open_started("tiny", "tiny")
    assert desk.cells == [7]
    assert len(desk.told) == 1
    assert "tiny ended without closing: 1 bookmark or note came back" in desk.told[0]
    desk.store.close()
    again = Desk(folder)
    again.store.open_started("tiny", "tiny")
    assert (again.cells, again.told) == ([7], [])


def test_undo_beside_another_window_leaves_a_file_that_can_be_read(qapp, folder: Path) -> None:
    one, other, again = (Desk(folder) for _ in range(3))
    one.store.open_started("same", "same")
    for _ in range(2):  # there and gone again: its number is free
        one.mark(7)
        one.store.autosave()
    other.store.open_started("same", "same")
    other.mark(9)
    other.store.autosave()
    one.book.do(model.noted(one.book.marks, CellAt(3), "", "a note"))
    one.store.autosave()
    one.book.stack.undo()
    one.book.stack.undo()
    one.store.close()
    again.store.open_started("same", "same")
    assert again.refused == []
    assert {place.cell: mark.number for place, mark in again.book.marks.items()} == {9: 1, 7: 2}


def test_a_damaged_file_is_refused_and_set_aside_at_the_first_change(qapp, folder: Path) -> None:
    desk = Desk(folder)
    desk.store.open_started("tiny", "tiny")
    path = desk.store.homes[0].path
    folder.mkdir(parents=True)
    path.write_text("{")
    other = Desk(folder)
    other.store.open_started("tiny", "tiny")
    assert len(other.refused) == 1
    assert "expected bookmarks as JSON" in other.refused[0]
    other.store.flush()
    assert path.read_text() == "{"
    other.mark(7)
    other.store.flush()
    assert path.with_name(f"{path.name}.refused").read_text() == "{"
    assert MarkFile(path).read().marks.keys() == {CellAt(7)}


def test_a_folder_that_cannot_be_written_is_told_and_nothing_is_lost(qapp, tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("no folder")
    desk = Desk(blocked / "bookmarks")
    desk.store.open_started("tiny", "tiny")
    desk.mark(7)
    desk.store.autosave()
    assert desk.cells == [7]
    assert desk.refused
    assert "can't be kept" in desk.refused[-1]
    assert desk.store.is_dirty


def test_fresh_reads_and_writes_nothing(qapp, tmp_path: Path, capture: Path) -> None:
    session = tmp_path / "s.safetensors"
    MarkFile(beside(session)).write(ONE, closed=True)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    desk = Desk(None)
    for begin in (
        lambda: desk.store.open_started("tiny", "tiny"),
        lambda: desk.store.open_beside(session),
        lambda: desk.store.open_files([capture]),
    ):
        begin()
        assert desk.cells == []
        desk.mark(9)
        desk.store.also_beside(tmp_path / "t.safetensors")
        desk.store.autosave()
        desk.store.flush()
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before
