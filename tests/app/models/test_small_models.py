"""Selection, Go to, feed, palette, writers, refusals and what a file is."""

from __future__ import annotations

import json
import sqlite3
import struct
from pathlib import Path

import pytest

from app.models import palette
from app.models.goto import Target, made_up, parse_target, parse_tokens
from app.models.opening import FileKind, kind_of
from app.models.palette import Entry
from app.models.selection import Selection, Trail
from app.models.sequences import holes
from app.models.tracks import Tracks, refusal_of
from app.models.writers import Writers
from tests.app import values


@pytest.mark.parametrize(("typed", "target"), [
    ("812", Target("position", 812)),
    (" 1,262 ", Target("position", 1262)),
    ("g203", Target("group", 203)),
    ("cell 77", Target("cell", 77)),
    ("Event #12", Target("event", 12)),
    ("seq 1", Target("sequence", 1)),
    ("", None),
    ("x3", None),
    ("12 13x", None),
    ("-4", None),
    ("9" * 40, None),
])  # fmt: skip
def test_go_to_reads_a_place_or_nothing(typed: str, target: Target | None) -> None:
    assert parse_target(typed) == target


@pytest.mark.parametrize(("typed", "tokens"), [
    ("5, 17, 9", (5, 17, 9)),
    ("[5 17]", (5, 17)),
    ("7", (7,)),
    ("x0", None),
    ("five", None),
    ("", None),
    ("x99999999", None),
    ("1,-2", None),
])  # fmt: skip
def test_feed_reads_ids_or_nothing(typed: str, tokens: tuple[int, ...] | None) -> None:
    assert parse_tokens(typed) == tokens


def test_made_up_ids_are_the_same_every_time_and_fit_any_vocabulary() -> None:
    assert parse_tokens("x64") == made_up(64) == parse_tokens("64 x")
    assert len(made_up(64)) == 64
    assert max(made_up(5000)) < 251
    assert len(set(made_up(5000))) > 200


def test_palette_prefers_words_and_puts_what_cannot_run_last() -> None:
    entries = [
        Entry("a", "Step a stage", "Run", reason="nothing is queued"),
        Entry("b", "Step a chunk", "Run"),
        Entry("c", "Fit selection", "View"),
        Entry("d", "Save session", "File"),
    ]
    assert [e.id for e in palette.matches("step", entries)] == ["b", "a"]
    assert palette.matches("fs", entries)[0].id == "c"
    assert palette.matches("qqq", entries) == []
    assert len(palette.matches("", entries)) == 4


def test_trail_goes_back_and_forward_and_forgets_what_was_forward() -> None:
    trail = Trail(limit=3)
    one, two = Selection(start=1, stop=2), Selection(start=5, stop=9, group=1)
    assert trail.push(one)
    assert not trail.push(one)
    assert trail.push(two)
    assert trail.back() == one
    assert trail.can_go_forward
    assert trail.push(Selection(cell=4))
    assert not trail.can_go_forward
    assert trail.current.words() == "cell 4"
    assert two.words() == "positions 5 to 8, group 1"


def test_writers_follow_shift_rewind_fork_and_restore() -> None:
    writers = Writers()
    run = values.sequence(0, 0, 4)
    op = {"op": "append", "seq": 0, "positions": [0, 1, 2, 3], "tokens": [9, 8, 7, 6]}
    writers.add(values.record(1, run, op=op, positions_written=(0, 4)))
    assert writers.words(0, 2) == "token 7, written by event 1"
    writers.add(
        values.record(2, values.sequence(0, 10, 14), op={"op": "shift", "seq": 0, "delta": 10})
    )
    assert writers.words(0, 12) == "token 7, written by event 1"
    assert writers.words(0, 2) == ""
    writers.add(
        values.record(3, values.sequence(0, 10, 14), op={"op": "save", "seq": 0, "slot": "a"})
    )
    writers.add(
        values.record(4, values.sequence(0, 10, 12), op={"op": "rewind", "seq": 0, "to": 12})
    )
    assert writers.words(0, 12) == ""
    forked = (values.sequence(0, 10, 12), values.sequence(1, 10, 11))
    writers.add(values.record(5, *forked, op={"op": "fork", "src": 0, "dst": 1, "stop": 11}))
    assert writers.words(1, 10) == "token 9, written by event 1"
    assert writers.words(1, 11) == ""
    back = (values.sequence(0, 10, 14), forked[1])
    writers.add(values.record(6, *back, op={"op": "restore", "seq": 0, "slot": "a"}))
    assert writers.words(0, 13) == "token 6, written by event 1"


def test_a_refused_op_writes_nothing() -> None:
    writers = Writers()
    writers.add(values.refused(1, [4, 5, 7], 6, 7))
    assert writers.pieces == {}


def test_a_refused_hole_stays_in_sight_until_the_sequence_changes() -> None:
    tracks, run = Tracks(), values.sequence(0, 0, 4)
    tracks.add(values.refused(1, [4, 5, 7], 6, 7, run))
    (track,) = tracks.of_snapshot(values.snapshot(run))
    assert holes(track) == [(6, 7)]
    tracks.add(values.record(2, values.sequence(0, 0, 5)))
    (track,) = tracks.of_snapshot(values.snapshot(values.sequence(0, 0, 5)))
    assert holes(track) == []


def test_a_long_refused_append_is_known_by_its_ends() -> None:
    record = values.record(
        1,
        op={"op": "append", "seq": 0, "positions": {"first": 90, "last": 189, "count": 100}},
        outcome="rejected",
        reason="gap",
        expected=4,
        given=90,
    )
    refusal = refusal_of(record)
    assert refusal is not None
    assert refusal.asked == ((90, 190),)


def test_an_overlap_leaves_no_hole() -> None:
    assert refusal_of(values.record(1, outcome="rejected", reason="overlap", expected=4)) is None


def safetensors_file(path: Path, metadata: dict[str, str]) -> Path:
    header = json.dumps({"__metadata__": metadata}).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header)
    return path


def test_content_decides_what_a_file_is(tmp_path: Path) -> None:
    scenario = tmp_path / "picture.png"
    scenario.write_text('{"capacity": 4, "ops": []}')
    toml = tmp_path / "t"
    toml.write_text("capacity = 4\n[[ops]]\nop = 'append'\nseq = 0\npositions = [0]\n")
    capture = tmp_path / "c.json"
    with sqlite3.connect(capture) as database:
        database.execute("CREATE TABLE x (y)")
    database.close()
    session = safetensors_file(tmp_path / "s", {"format": "bankflip-session"})
    cache = safetensors_file(tmp_path / "k.safetensors", {"0": "KVCache"})
    model = tmp_path / "m"
    model.mkdir()
    (model / "config.json").write_text("{}")
    kinds = {
        scenario: FileKind.SCENARIO,
        toml: FileKind.SCENARIO,
        capture: FileKind.CAPTURE,
        session: FileKind.SESSION,
        cache: FileKind.FOREIGN,
        model: FileKind.MODEL,
    }
    assert {path: kind_of(path).kind for path in kinds} == kinds


def test_what_cannot_be_opened_says_why(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.touch()
    folder = tmp_path / "folder"
    folder.mkdir()
    assert kind_of(empty).reason.endswith("the file is empty")
    assert "expected a model folder with config.json" in kind_of(folder).reason
    assert kind_of(tmp_path / "no").reason.endswith("there is no such file")


@pytest.mark.parametrize(
    "content", [b"\x00" * 40, b"{" * 3000, b"\xff\xfe ops", b"[1, 2]", b"8" * 9]
)
def test_any_bytes_have_a_kind(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "any"
    path.write_bytes(content)
    assert kind_of(path).kind is FileKind.FOREIGN
