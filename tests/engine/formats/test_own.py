"""Our own captures and saved sessions through the same readers as foreign files."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from app.__main__ import main
from engine import open_engine, save_session
from engine.formats import Opened, Options, open_file, read_source
from engine.formats.source import Source
from engine.ops import Append, Save
from tests.helpers.prompt_files import archive
from tests.helpers.session_files import File


def codes(opened: Opened) -> list[str]:
    return [code.value for code in opened.report.codes]


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("own") / "c.bankflip"
    assert main(["run", "failed-stage", "--record", str(path), "--backend", "cpu"]) == 0
    return path


def test_a_capture_ends_with_its_last_state(capture: Path) -> None:
    with open_file(capture) as opened:
        assert opened.report.format == "bankflip"
        assert codes(opened) == []
        sequence = opened.report.sequences[0]
        assert sequence.run is not None
        cells = opened.cell_map(0)
        assert cells.positions[cells.member].tolist() == list(range(*sequence.run))
        assert sequence.usable == sequence.run


def test_damaged_captures_end_in_a_report(capture: Path, tmp_path: Path) -> None:
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}")
    rng = random.Random(seed)
    whole = capture.read_bytes()
    path = tmp_path / "damaged.bankflip"
    for _ in range(60):
        data = bytearray(whole)
        for _ in range(rng.choice((1, 4, 30))):
            data[rng.randrange(16, len(data))] = rng.randrange(256)
        path.write_bytes(data[: rng.choice((len(data), rng.randrange(17, len(data))))])
        with open_file(path) as opened:
            json.dumps(opened.report.to_json())
    path.write_bytes(whole[: len(whole) // 2])
    with open_file(path) as opened:
        assert codes(opened) == ["truncated"]


def test_a_saved_session_of_the_model(tmp_path: Path) -> None:
    engine = open_engine("qwen4exp-tiny", backend="cpu")
    engine.apply(Append(0, tuple(range(5, 18)), tuple(range(8, 21))))
    path = tmp_path / "s.safetensors"
    save_session(engine, path)
    with open_file(path) as opened:
        assert opened.report.format == "bankflip"
        assert codes(opened) == []
        (sequence,) = opened.report.sequences
        assert sequence.run == (5, 18)
        assert (sequence.complete_groups, sequence.tail) == (3, 1)
        assert {part.role for part in sequence.parts} == {"attention", "index"}
    path.write_bytes(path.read_bytes()[:-40])
    with open_file(path) as opened:
        assert codes(opened) == ["truncated"]


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A saved session with two sequences, a slot and a checkpoint."""
    engine = open_engine("qwen4exp-tiny", backend="cpu", mode="fast")
    for op in (
        Append(0, range(5, 71), tuple(range(66))),
        Save(0, "kept"),
        Append(4, range(3), (7, 8, 9)),
    ):
        assert engine.apply(op).outcome == "ok"
    path = tmp_path_factory.mktemp("saved") / "s.safetensors"
    save_session(engine, path)
    return path.read_bytes()


def findings(file: File) -> list[tuple[str, str]]:
    data = file.data()
    report = read_source(Source(Path("made"), data, len(data)), Options()).report
    return [(found.code.value, found.words) for found in report.findings]


def test_every_tensor_that_is_lost_is_named(saved: bytes) -> None:
    names = sorted(File(saved).tensors)
    assert len(names) > 60
    for name in names:
        file = File(saved)
        assert findings(file) == []
        del file.tensors[name]
        found = findings(file)
        assert ("missing", name) in [(c, n) for c, w in found for n in w.split() if n == name]


def test_every_tensor_whose_bytes_were_changed_is_named(saved: bytes) -> None:
    rng = random.Random(3)
    full = [name for name, (_, _, data) in sorted(File(saved).tensors.items()) if data]
    assert len(full) > 60
    for name in full:
        file = File(saved)
        dtype, shape, data = file.tensors[name]
        at = rng.randrange(len(data))
        changed = data[:at] + bytes([data[at] ^ (1 << rng.randrange(8))]) + data[at + 1 :]
        file.tensors[name] = (dtype, shape, changed)
        assert any(f"tensor {name} does not hold" in words for _, words in findings(file)), name


def test_a_tensor_that_was_not_saved_is_named(saved: bytes) -> None:
    file = File(saved)
    file.tensors["0.more"] = ("I32", [1], bytes(4))
    assert findings(file) == [
        ("inconsistent", "sequence 0: tensor 0.more is not one that was saved")
    ]


@pytest.mark.parametrize("hashes", [3, [], {"0.tokens": 3}, {"x": "y"}, {"999.a": "", "²": None}])
def test_hashes_that_are_no_hashes_are_findings(saved: bytes, hashes: Any) -> None:
    file = File(saved)
    file.about = {**file.about, "hashes": hashes}
    assert "inconsistent" in [code for code, _ in findings(file)]


def test_a_file_without_hashes_says_so(saved: bytes) -> None:
    file = File(saved)
    about = dict(file.about)
    del about["hashes"]
    file.about = about
    data = file.data()
    report = read_source(Source(Path("made"), data, len(data)), Options()).report
    assert report.findings == ()
    assert "older file without hashes" in str(dict(report.facts)["remarks"])


def session(changes: dict[str, Any], **entry: Any) -> Opened:
    tensors: dict[str, Any] = {
        "0.positions": np.arange(3, 12, dtype="<i4"),
        "0.tokens": np.arange(9, dtype="<i8"),
        "0.qsa.kv.3.k": np.ones((9, 2, 4), "<f4"),
        "0.qsa.kv.3.v": np.ones((9, 2, 4), "<f4"),
        "0.qsa.index.3.raw": np.ones((9, 4), "<f4"),
        "0.qsa.groups.3.": np.ones((2, 4), "<f4"),
        "0.logits.-1.": np.ones(8, "<f4"),
    }
    tensors = {name: own for name, own in (tensors | changes).items() if own is not None}
    key = {"key": 0, "start": 3, "stop": 12, "consumed": 9, **entry}
    about = {"format": "bankflip-session-1", "group_size": 4, "keys": [key]}
    data = archive(tensors, {"bankflip": json.dumps(about)})
    return read_source(Source(Path("made"), data, len(data)), Options())


@pytest.mark.parametrize(
    ("changes", "entry", "expected"),
    [
        ({}, {}, []),
        ({"0.positions": np.array([3, 4, 5, 7, 8, 9, 10, 11, 12], "<i4")}, {"stop": 13}, ["hole"]),
        (
            {"0.positions": np.array([3, 4, 4, 5, 6, 7, 8, 9, 10], "<i4")},
            {"stop": 11},
            ["duplicate"],
        ),
        ({}, {"stop": 13}, ["inconsistent"]),
        ({}, {"consumed": 8}, ["inconsistent"]),
        ({"0.positions": None}, {}, ["missing"]),
        ({"0.qsa.kv.3.v": np.ones((8, 2, 4), "<f4")}, {}, ["torn"]),
        ({"0.qsa.index.3.raw": np.ones((10, 4), "<f4")}, {}, ["index_drift"]),
        ({"0.qsa.groups.3.": np.ones((1, 4), "<f4")}, {}, ["index_drift"]),
        ({"0.logits.-1.": np.full(8, np.nan, "<f4")}, {}, ["non_finite"]),
    ],
)
def test_what_a_saved_session_can_have_wrong(
    changes: dict[str, Any], entry: dict[str, Any], expected: list[str]
) -> None:
    assert codes(session(changes, **entry)) == expected


def test_metadata_of_another_format_are_unreadable() -> None:
    for text in ("{", "[]", '{"format": "other"}', '{"format": "bankflip-session-1", "keys": 3}'):
        data = archive({"0.positions": np.arange(3, dtype="<i4")}, {"bankflip": text})
        opened = read_source(Source(Path("made"), data, len(data)), Options())
        assert codes(opened) == ["unreadable"]
