"""Tracks of another engine's state, against what `check` says of the same files."""

from __future__ import annotations

from pathlib import Path

import pytest

from app import resources
from app.models import foreign
from app.models.foreign import track_of_ranges
from app.models.sequences import Kind, Track, holes, visible_segments
from engine.formats import open_file

DATA = Path(__file__).parents[2] / "data" / "samples"
FILES = sorted(p for p in DATA.rglob("*") if p.is_file() and p.suffix not in (".md", ".json"))
FILES += [Path(path) for path, _, _ in resources.samples()]


def ranges(track: Track, kind: Kind) -> list[list[int]]:
    """First and last position of every segment of a kind."""
    found = visible_segments(track, track.lo, track.hi, len(track.kinds))
    return [[start, stop - 1] for start, stop, of in found if of is kind]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_groups_tail_and_forgotten_positions_are_those_that_check_finds(path: Path) -> None:
    with open_file(path) as opened:
        report = opened.report.to_json()
    own = [track for track in foreign.tracks_of(report) if track.seq >= 0]
    for track, sequence in zip(own, report["sequences"], strict=True):
        if not (sequence["holes"] or sequence["duplicates"]):
            # nothing is wrong with it, so `check` says none in words either
            assert not ranges(track, Kind.FORGOTTEN)
            continue
        assert ranges(track, Kind.FORGOTTEN) == sequence["forgotten"]
        assert track.n_whole == sequence["complete_groups"]
        if not sequence["duplicates"]:
            assert track.count(Kind.TAIL) == sequence["tail"]


def test_some_files_do_have_forgotten_positions() -> None:
    found = []
    for path in FILES:
        with open_file(path) as opened:
            tracks = foreign.tracks_of(opened.report.to_json())
        found += [path.name for track in tracks if track.count(Kind.FORGOTTEN)]
    assert "llama-cpp-hole.seq" in found
    assert len(found) > 3, found


def test_a_hole_makes_the_rest_of_its_group_forgotten() -> None:
    track = track_of_ranges(0, [(0, 11), (15, 30)])
    assert ranges(track, Kind.FORGOTTEN) == [[8, 10], [15, 15]]
    assert ranges(track, Kind.GROUP_A) == [[0, 7], [16, 27]]
    assert ranges(track, Kind.TAIL) == [[28, 29]]
    assert track.n_live == 26


def test_a_repeated_position_makes_its_whole_group_forgotten() -> None:
    track = track_of_ranges(0, [(2, 20)], repeated=[(7, 8), (19, 20)])
    assert ranges(track, Kind.FORGOTTEN) == [[6, 9]]
    assert ranges(track, Kind.TAIL) == [[18, 19]], "a tail is not pooled, whatever it repeats"


def test_ranges_that_touch_make_no_hole_and_break_no_group() -> None:
    track = track_of_ranges(0, [(4, 8), (0, 3), (3, 4)])
    assert ranges(track, Kind.GROUP_A) == [[0, 7]]


def test_foreign_tracks_take_holes_and_evicted_ranges_from_the_report() -> None:
    report = {
        "sequences": [
            {
                "id": "a1",
                "run": [10, 31],
                "holes": [[14, 15], 20],
                "parts": [{"evicted": [[0, 9]]}],
            },
            {"id": 7, "run": None},
        ]
    }
    one, two = (t for t in foreign.tracks_of(report) if t.seq >= 0)
    assert holes(one) == [(14, 16), (20, 21)]
    assert one.label == "sequence a1"
    assert (one.seq, two.seq) == (0, 7)
    assert one.lo == 0
    assert two.n_live == 0
    assert foreign.renamed(one, 5, "x.bin").label == "x.bin: sequence a1"


def test_runs_of_several_files_are_numbered_anew_and_named_by_their_file() -> None:
    one = {"file": "a/one.seq", "sequences": [{"id": 3, "run": [0, 9]}]}
    two = {"file": "a/two.seq", "sequences": [{"id": 3, "run": [0, 7]}, {"id": 4, "run": [0, 3]}]}
    assert [track.seq for track in foreign.tracks_of_files([one])] == [3]
    both = [(track.seq, track.label) for track in foreign.tracks_of_files([one, two])]
    assert both == [
        (0, "one.seq: sequence 3"),
        (1, "two.seq: sequence 3"),
        (2, "two.seq: sequence 4"),
    ]


def test_what_a_rotating_cache_let_go_between_its_first_tokens_and_its_window() -> None:
    with open_file(DATA / "mlx-lm" / "wrapped-keep4-qwen3.safetensors") as opened:
        report = opened.report.to_json()
    (track, *rest) = foreign.tracks_of(report)
    assert rest == []
    assert ranges(track, Kind.EVICTED) == [[4, 14]]
    assert ranges(track, Kind.GROUP_A) == [[0, 3], [15, 31]]
    assert ranges(track, Kind.TAIL) == [[32, 34]]
    assert track.n_live == report["sequences"][0]["live"] == 24
    assert track.n_whole == report["sequences"][0]["complete_groups"] == 5


def test_what_only_some_parts_let_go_is_still_there() -> None:
    full = {"name": "layer.0", "run": [0, 19], "live": 20}
    part = {"name": "layer.1", "run": [0, 19], "live": 12, "evicted": [[4, 11]]}
    sequence = {"id": 0, "run": [0, 19], "live": 20, "parts": [full, part]}
    (track,) = foreign.tracks_of({"sequences": [sequence]})
    assert track.count(Kind.EVICTED) == 0
    assert track.n_live == 20
    (track,) = foreign.tracks_of({"sequences": [{**sequence, "live": 12, "parts": [part]}]})
    assert ranges(track, Kind.EVICTED) == [[4, 11]]
    assert track.n_live == 12
