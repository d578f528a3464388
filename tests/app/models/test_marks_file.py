"""The file of bookmarks: the same back, nonsense refused in a sentence, nothing overwritten."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.models.marks import MOST_KEPT, CellAt, Mark, Marks, Span
from app.models.marks_file import FORMAT, LARGEST, BadMarks, MarkFile, decode, encode
from tests.app.models import strategies

ONE = {CellAt(7): Mark(CellAt(7), 1, "name", "two\nlines")}
TWO = {**ONE, Span(0, 3, 4): Mark(Span(0, 3, 4), 2)}


def content(**changes: object) -> bytes:
    return json.dumps({**json.loads(encode(ONE)), **changes}).encode()


def with_mark(**changes: object) -> bytes:
    mark = {**json.loads(encode(ONE))["marks"][0], **changes}
    return content(marks=[mark])


@given(strategies.marks(), st.text(max_size=40), st.booleans())
def test_what_is_encoded_comes_back(marks: Marks, of: str, closed: bool) -> None:
    found, stored = decode(encode(marks, of, closed), "f")
    assert found == marks
    assert stored.closed is closed
    assert encode(found, of, closed) == encode(marks, of, closed)


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused_in_one_sentence(data: bytes) -> None:
    with pytest.raises(BadMarks) as refused:
        decode(data, "f.json")
    assert str(refused.value).startswith("f.json: expected ")
    assert "\n" not in str(refused.value)


@given(strategies.marks(), st.data())
def test_a_byte_changed_anywhere_gives_marks_or_a_refusal(marks: Marks, data: st.DataObject):
    whole = bytearray(encode(marks, "name"))
    at = data.draw(st.integers(0, len(whole) - 1))
    whole[at] = data.draw(st.integers(0, 255))
    try:
        found, _ = decode(bytes(whole), "f")
    except BadMarks:
        return
    assert decode(encode(found), "f")[0] == found


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "as JSON"),
        (b"[" * 100_000, "as JSON"),
        (b"{}", f"expected format '{FORMAT}', found another file"),
        (content(format="x" * 99), "found 'xxx"),
        (content(version=2), "expected version 1, found version 2"),
        (content(more=1), "unknown field"),
        (content(marks=[1]), "as JSON"),
        (with_mark(number=-1), "as JSON"),
        (with_mark(name="x" * 81), "as JSON"),
        (with_mark(note="x" * 2001), "as JSON"),
        (with_mark(place={"kind": "owner"}), "as JSON"),
        (with_mark(place={"kind": "two\nlines"}), "two lines"),
        (with_mark(place={"kind": "cell", "cell": 2**63}), "as JSON"),
        (with_mark(place={"kind": "event", "number": 1, "check": "zz"}), "as JSON"),
        (with_mark(place={"kind": "positions", "seq": 0, "start": 4, "stop": 4}), "start before"),
        (content(marks=json.loads(encode(ONE))["marks"] * 2), "another place and number"),
        (encode(ONE).replace(b"two", b"\\ud800"), "as JSON"),
        (b" " * (LARGEST + 1), f"at most {LARGEST:,} bytes"),
    ],
)
def test_what_is_wrong_is_named(data: bytes, words: str) -> None:
    with pytest.raises(BadMarks) as refused:
        decode(data, "f.json")
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)


def test_more_marks_than_a_file_may_hold_are_refused() -> None:
    many = {CellAt(n): Mark(CellAt(n), 0, "x") for n in range(MOST_KEPT + 1)}
    with pytest.raises(BadMarks, match="at most 10,000"):
        decode(encode(many), "f")


def test_no_file_is_no_marks_and_no_marks_are_no_file(tmp_path: Path) -> None:
    file = MarkFile(tmp_path / "folder" / "f.json")
    assert file.read().marks == {}
    assert file.write({}, closed=True) == ({}, "")
    assert list(tmp_path.iterdir()) == []
    file.write(ONE, closed=True)
    assert MarkFile(file.path).read().marks == ONE
    file.write({}, closed=True)
    assert not file.path.exists()


def test_a_window_that_ended_without_closing_is_noticed(tmp_path: Path) -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    path = tmp_path / "f.json"
    MarkFile(path, pid=child.pid).write(ONE, closed=False)
    assert MarkFile(path).read().crashed
    MarkFile(path, pid=child.pid).write(ONE, closed=True)
    assert not MarkFile(path).read().crashed


def test_a_window_that_is_still_open_has_not_crashed(tmp_path: Path) -> None:
    path = tmp_path / "f.json"
    MarkFile(path, pid=os.getppid()).write(ONE, closed=False)
    assert not MarkFile(path).read().crashed


def test_what_another_window_wrote_meanwhile_is_merged(tmp_path: Path) -> None:
    path = tmp_path / "f.json"
    one, other = MarkFile(path), MarkFile(path)
    one.write(ONE, closed=True)
    other.read()
    other.write(TWO, closed=True)
    mine = {CellAt(9): Mark(CellAt(9), 2, "mine"), **ONE}
    kept, aside = one.write(mine, closed=True)
    assert aside == ""
    assert set(kept) == {CellAt(7), CellAt(9), Span(0, 3, 4)}
    assert MarkFile(path).read().marks == kept


def test_a_bad_file_is_set_aside_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "f.json"
    for n, name in enumerate(("f.json.refused", "f.json.refused2"), 1):
        path.write_text(f"notes of my own {n}")
        file = MarkFile(path)
        with pytest.raises(BadMarks):
            file.read()
        _, aside = file.write(ONE, closed=True)
        assert name in aside
        assert (tmp_path / name).read_text() == f"notes of my own {n}"
        assert MarkFile(path).read().marks == ONE


def test_what_is_no_file_is_neither_read_nor_replaced(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    for act in (MarkFile(path).read, lambda: MarkFile(path).write(ONE, closed=True)):
        with pytest.raises(OSError, match="expected a file"):
            act()
    assert path.is_fifo()


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path, monkeypatch) -> None:
    file = MarkFile(tmp_path / "f.json")
    file.write(ONE, closed=True)
    before = file.path.read_bytes()

    def full(*_args: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space"):
        file.write(TWO, closed=True)
    assert file.path.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["f.json"]
