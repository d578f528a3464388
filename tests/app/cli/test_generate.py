"""`bankflip generate`: the reference's logits and ids, any chunks, files whole or untouched."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

from engine.capture import Capture
from tests.helpers.commands import Command, valid

GOLDEN = Path(__file__).parents[2] / "data" / "golden" / "qwen4exp-tiny"
MODEL = "qwen4exp-tiny"
OWNERS = (
    "history tokens qsa.kv qsa.index qsa.groups gdn.conv gdn.recurrent ple.history ple.conv "
    "residual routes logits saved"
)


def words(values: np.ndarray) -> str:
    return ",".join(map(str, values.tolist()))


def test_any_chunk_gives_the_same_digests(bankflip: Command) -> None:
    tokens = words(np.load(GOLDEN / "full.npz")["tokens"][:29])
    results = [
        valid(
            "generate",
            bankflip(
                "generate", MODEL, "--tokens", tokens, "--chunk", n, "--json", "--backend", "cpu"
            ).json,
        )
        for n in (1, 5, 64)
    ]
    assert results[0]["digests"] == results[1]["digests"] == results[2]["digests"]
    assert set(results[0]["digests"]) == set(OWNERS.split())
    assert [r["transactions"] for r in results] == [r["flips"] for r in results] == [29, 6, 1]
    assert {r["frontier"] for r in results} == {28}
    assert all(r["exact"] and r["backend"] == "cpu" for r in results)


def test_logits_agree_with_the_reference(bankflip: Command, tmp_path: Path) -> None:
    golden = np.load(GOLDEN / "full.npz")
    path = tmp_path / "logits.npy"
    done = bankflip(
        "generate",
        MODEL,
        "--tokens",
        words(golden["tokens"]),
        "--chunk",
        7,
        "--logits",
        path,
        "--backend",
        "cpu",
    )
    assert done.status == 0
    logits = np.load(path)
    assert logits.dtype == np.float32
    assert logits.shape == golden["logits"].shape
    assert np.abs(logits - golden["logits"]).max() <= 2e-5
    assert (logits.argmax(-1) == golden["logits"].argmax(-1)).all()


def test_greedy_ids_are_the_references_and_the_last_is_not_consumed(
    bankflip: Command, tmp_path: Path
) -> None:
    golden = np.load(GOLDEN / "greedy.npz")
    steps, prompt = len(golden["ids"]), golden["prompt"]
    tokens = tmp_path / "prompt.json"
    tokens.write_text(json.dumps(prompt.tolist()))
    path = tmp_path / "l.npy"
    done = bankflip(
        "generate",
        MODEL,
        "--tokens-file",
        tokens,
        "--steps",
        steps,
        "--logits",
        path,
        "--json",
        "--backend",
        "cpu",
    )
    result = valid("generate", done.json)
    assert result["generated"] == golden["ids"].tolist()
    assert result["tokens"] == prompt.tolist()
    assert result["frontier"] == len(prompt) + steps - 2
    logits = np.load(path)
    assert len(logits) == len(prompt) + steps - 1
    assert np.abs(logits[len(prompt) - 1 :] - golden["logits"]).max() <= 2e-5


def test_start_moves_positions_and_nothing_of_the_model(bankflip: Command) -> None:
    def run(*more: object) -> dict[str, object]:
        done = bankflip(
            "generate", MODEL, "--tokens", "9,8,10,11,12", "--json", "--backend", "cpu", *more
        )
        result: dict[str, object] = valid("generate", done.json)
        return result

    here, there = run(), run("--start", 4096)
    assert (here["frontier"], there["frontier"]) == (4, 4100)
    same = {name for name in OWNERS.split() if here["digests"][name] == there["digests"][name]}  # type: ignore[index]
    assert {"gdn.recurrent", "gdn.conv", "qsa.index"} <= same
    assert "history" not in same


def test_digests_by_layer_split_the_owners(bankflip: Command) -> None:
    base = ("generate", MODEL, "--tokens", "9,8,10,11,12", "--json", "--backend", "cpu")
    whole = bankflip(*base).json["digests"]
    split = valid("generate", bankflip(*base, "--digests", "layer").json)["digests"]
    assert len(split) > len(whole)
    assert all(any(name == o or name.startswith(f"{o}.") for o in whole) for name in split)


def test_a_refusal_is_status_1_and_leaves_the_logits_file(
    bankflip: Command, tmp_path: Path
) -> None:
    path = tmp_path / "l.npy"
    path.write_bytes(b"earlier")
    before = os.stat(path)
    done = bankflip(
        "generate",
        MODEL,
        "--tokens",
        "9,8,10,256",
        "--chunk",
        2,
        "--logits",
        path,
        "--record",
        tmp_path / "c.bankflip",
        "--backend",
        "cpu",
    )
    assert done.status == 1
    assert "token" in done.one_sentence()
    assert path.read_bytes() == b"earlier"
    assert os.stat(path).st_mtime_ns == before.st_mtime_ns
    assert sorted(p.name for p in tmp_path.iterdir()) == ["c.bankflip", "l.npy"]
    with Capture(tmp_path / "c.bankflip") as capture:
        assert [record.result for record in capture.records()] == ["ok", "rejected: token"]


def test_a_position_that_is_too_large_is_refused(bankflip: Command) -> None:
    done = bankflip(
        "generate",
        MODEL,
        "--tokens",
        "9,8,10",
        "--start",
        2**31 - 2,
        "--chunk",
        1,
        "--backend",
        "cpu",
    )
    assert done.status == 1
    assert "too-large" in done.one_sentence()


def test_the_capture_can_be_played_again(bankflip: Command, tmp_path: Path) -> None:
    tokens = words(np.arange(8, 108))
    path = tmp_path / "c.bankflip"
    base = (
        "generate",
        MODEL,
        "--tokens",
        tokens,
        "--chunk",
        90,
        "--record",
        path,
        "--json",
        "--backend",
        "cpu",
    )
    digests = bankflip(*base).json["digests"]
    with Capture(path) as capture:
        ops = [json.loads(record.op_json) for record in capture.records()]
    assert [len(op["tokens"]) for op in ops] == [90, 10]
    scenario = tmp_path / "again.json"
    scenario.write_text(json.dumps({"capacity": 4096, "model": MODEL, "ops": ops}))
    (again,) = bankflip("run", scenario, "--json", "--backend", "cpu").json
    assert again["ops"][-1]["digests_after"] == digests


@pytest.mark.parametrize(
    "more",
    [
        ("--tokens", ""),
        ("--tokens", "1,,2"),
        ("--tokens", "one"),
        ("--tokens=-1,2",),
        ("--tokens", str(10**30)),
        ("--tokens", "1.5"),
        (),
        ("--tokens", "1", "--tokens-file", "x"),
        ("--tokens-file", "no-such-file.json"),
        ("--tokens-file", "."),
        ("--tokens", "1", "--steps", "-1"),
        ("--tokens", "1", "--chunk", "0"),
        ("--tokens", "1", "--chunk", "1e3"),
        ("--tokens", "1", "--start", str(2**31)),
        ("--tokens", "1", "--logits", "no/such/folder/l.npy"),
        ("--tokens", "1", "--logits", "."),
        ("--tokens", "1", "--digests", "all"),
        ("--tokens", "1", "--backend", "tpu"),
    ],
)
def test_wrong_usage_is_status_2(bankflip: Command, more: tuple[str, ...]) -> None:
    done = bankflip("generate", MODEL, *more)
    assert done.status == 2
    assert "Traceback" not in done.err
    assert "internal error" not in done.err
    assert done.err


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{}",
        b"[]",
        b'["a"]',
        b"[1.5]",
        b"[true]",
        b"\xff\xfe",
        b"[" * 100_000,
        b"[1" + b"0" * 5000 + b"]",
    ],
)
def test_token_files_that_are_none(bankflip: Command, tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "t.json"
    path.write_bytes(content)
    done = bankflip("generate", MODEL, "--tokens-file", path)
    assert done.status == 2
    assert str(path) in done.one_sentence()


def test_folders_that_are_no_model(bankflip: Command, tmp_path: Path) -> None:
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "config.json").write_text("{")
    for name in (tmp_path, tmp_path / "none", tmp_path / "broken", tmp_path / "broken/config.json"):
        done = bankflip("generate", name, "--tokens", "1")
        assert done.status == 2
        assert str(name) in done.one_sentence()
