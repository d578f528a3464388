"""`bankflip check`: output, JSON, exit statuses and errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from app.__main__ import main

DATA = Path(__file__).parents[2] / "data" / "samples"
LLAMA, MLX, EVENTS = DATA / "llama-cpp", DATA / "mlx-lm", DATA / "kv-events"
SCHEMA = Path(__file__).parents[3] / "resources" / "schemas" / "check.json"
FIELDS = {"file", "format", "verdict", "findings", "reason", "detail", "unproved", "sequences"}
SEQUENCE_FIELDS = {
    "id",
    "run",
    "usable",
    "live",
    "holes",
    "duplicates",
    "complete_groups",
    "broken",
    "tail",
    "forgotten",
    "parts",
}
PART_FIELDS = {
    "name",
    "role",
    "class",
    "run",
    "live",
    "holes",
    "evicted",
    "non_finite",
    "stale",
}


def check_json(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, Any]:
    status = main(["check", "--json", *map(str, arguments)])
    return status, json.loads(capsys.readouterr().out)


def test_the_documented_example_is_exact(capsys: pytest.CaptureFixture[str]) -> None:
    status, (report,) = check_json(capsys, MLX / "torn-prefill-llama.safetensors")
    assert status == 1
    assert set(report) == FIELDS
    assert report["format"] == "mlx-lm"
    assert report["verdict"] == "torn"
    assert report["findings"] == ["torn"]
    (sequence,) = report["sequences"]
    assert set(sequence) == SEQUENCE_FIELDS
    assert {key: sequence[key] for key in ("id", "run", "usable", "live", "tail")} == {
        "id": 0,
        "run": [0, 31],
        "usable": [0, 15],
        "live": 32,
        "tail": 0,
    }
    assert sequence["complete_groups"] == 8
    assert set(sequence["parts"][0]) == PART_FIELDS
    assert sequence["parts"][0] == {
        "name": "layer.0",
        "role": "attention",
        "class": "KVCache",
        "run": [0, 31],
        "live": 32,
        "holes": [],
        "evicted": [],
        "non_finite": [],
        "stale": [],
    }


@pytest.mark.parametrize(
    ("path", "status"),
    [
        (LLAMA / "clean.seq", 0),
        (LLAMA / "hole.seq", 1),
        (LLAMA / "bad-magic.seq", 2),
        (LLAMA / "cut-cells.seq", 2),
        (LLAMA / "debug-level1.log", 1),
        (MLX / "truncated-llama.safetensors", 2),
        (EVENTS / "vllm-lost-message.jsonl", 1),
        (EVENTS / "sglang-clean.jsonl", 0),
    ],
)
def test_exit_status(capsys: pytest.CaptureFixture[str], path: Path, status: int) -> None:
    assert main(["check", str(path)]) == status
    shown = capsys.readouterr()
    assert str(path) in shown.out
    assert ("bankflip check:" in shown.err) == (status == 2)
    assert "Traceback" not in shown.err


def test_several_files_give_the_worst_status(capsys: pytest.CaptureFixture[str]) -> None:
    paths = (LLAMA / "clean.seq", LLAMA / "cut-tokens.seq", LLAMA / "hole.seq")
    status, reports = check_json(capsys, *paths)
    assert status == 2
    assert [report["verdict"] for report in reports] == ["ok", "truncated", "hole"]


def test_every_sample_fits_the_schema(capsys: pytest.CaptureFixture[str]) -> None:
    _, reports = check_json(capsys, LLAMA, MLX, EVENTS)
    jsonschema.validate(reports, json.loads(SCHEMA.read_text()))
    assert len(reports) > 90


def test_the_group_size_is_used(capsys: pytest.CaptureFixture[str]) -> None:
    _, (report,) = check_json(capsys, LLAMA / "clean.seq", "--group-size", "7")
    sequence = report["sequences"][0]
    assert (sequence["complete_groups"], sequence["tail"]) == (3, 2)


@pytest.mark.parametrize("size", ["0", "-4", "four", "1048577"])
def test_a_group_size_that_is_none_is_refused(
    capsys: pytest.CaptureFixture[str], size: str
) -> None:
    with pytest.raises(SystemExit) as error:
        main(["check", str(LLAMA / "clean.seq"), f"--group-size={size}"])
    assert error.value.code == 2
    assert "1 to 1048576" in capsys.readouterr().err


def test_the_architecture_can_be_named(capsys: pytest.CaptureFixture[str]) -> None:
    path = LLAMA / "index-hybrid-no-index.seq"
    assert check_json(capsys, path)[0] == 0
    status, (report,) = check_json(capsys, path, "--arch", "qwen4exp")
    assert (status, report["verdict"]) == (2, "truncated")


def test_a_file_that_is_not_there(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    status = main(["check", "--json", str(tmp_path / "none"), str(LLAMA / "clean.seq")])
    shown = capsys.readouterr()
    assert status == 2
    assert [entry["verdict"] for entry in json.loads(shown.out)] == ["unreadable", "ok"]
    assert shown.err.count("\n") == 1
    assert shown.err == f"bankflip check: {tmp_path / 'none'}: No such file or directory\n"


def test_an_empty_folder_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["check", str(tmp_path)]) == 2
    assert "no files" in capsys.readouterr().err


def test_a_pickle_says_how_to_convert(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "cache.pt"
    path.write_bytes(b"PK\x03\x04" + b"archive/data.pkl" + bytes(64))
    assert main(["check", str(path)]) == 2
    assert "save_file" in capsys.readouterr().err


def test_words_name_sequence_layer_position_and_byte(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(MLX / "half-update-llama.safetensors")]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert "torn, sequence 0:" in lines[0]
    hole = next(line for line in lines if line.startswith("  hole: "))
    assert "sequence 0, layer 1: positions 12..17 are missing" in hole
    assert "[layer.1, position 12, byte " in hole
