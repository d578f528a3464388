"""Whatever is handed in: one sentence, status 2, no traceback."""

from __future__ import annotations

import json
import os
import random
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from app.cli.run import shipped
from app.resources import MODELS, TINY_MODEL
from engine.small_file import content_of
from tests.helpers.commands import Command, child

READERS = (
    ("run", "{}"),
    ("sweep", "{}"),
    ("shrink", "{}"),
    ("report", "{}", "--out", "OUT", "--format", "json"),
)

CONTENTS = {
    "empty": b"",
    "space": b" \n\t ",
    "binary": bytes(range(256)) * 8,
    "zeros": bytes(4096),
    "utf-16": "{}".encode("utf-16"),
    "half": b'{"capacity": 8, "ops": [',
    "list": b"[]",
    "number": b"1",
    "nothing": b"{}",
    "no capacity": b'{"ops": []}',
    "negative capacity": b'{"ops": [], "capacity": -1}',
    "huge capacity": b'{"ops": [], "capacity": 1' + b"0" * 5000 + b"}",
    "negative chunk": b'{"ops": [], "capacity": 8, "chunk": -5}',
    "odd window": b'{"ops": [], "capacity": 8, "window": 3}',
    "ops object": b'{"ops": {}, "capacity": 8}',
    "op text": b'{"ops": ["append"], "capacity": 8}',
    "no positions": b'{"ops": [{"op": "append", "seq": 0}], "capacity": 8}',
    "floats": b'{"ops": [{"op": "append", "seq": 0, "positions": [0.5]}], "capacity": 8}',
    "stage": b'{"ops": [{"op": "fail", "stage": "nowhere", "kind": "oom", "during": '
    b'{"op": "append", "seq": 0, "positions": [0]}}], "capacity": 8}',
    "no model": b'{"ops": [], "capacity": 8, "model": "no-such-model"}',
    "deep": b'{"ops":' + b"[" * 50_000,
    "twice": b'{"ops": [], "ops": [], "capacity": 8}',
    "capture": b"SQLite format 3\0" + bytes(52) + b"BFlp" + bytes(28),
}


def filled(arguments: tuple[str, ...], path: Path, out: Path) -> list[str]:
    return [word.replace("{}", str(path)).replace("OUT", str(out)) for word in arguments]


@pytest.mark.parametrize("reader", READERS, ids=lambda words: words[0])
@pytest.mark.parametrize("content", CONTENTS.values(), ids=CONTENTS)
def test_files_that_are_nothing(
    bankflip: Command, tmp_path: Path, reader: tuple[str, ...], content: bytes
) -> None:
    path = tmp_path / "given"
    path.write_bytes(content)
    done = bankflip(*filled(reader, path, tmp_path / "out"))
    if reader[0] == "report":
        # a file of no known kind gets a report that says so
        assert "Traceback" not in done.err
        assert "given" in done.one_sentence() or "no-such-model" in done.one_sentence()
        assert done.status == 2
        return
    assert done.status == 2
    assert "given" in done.one_sentence() or "no-such-model" in done.one_sentence()


@pytest.mark.parametrize("reader", READERS, ids=lambda words: words[0])
def test_folders_missing_files_and_odd_names(
    bankflip: Command, tmp_path: Path, reader: tuple[str, ...]
) -> None:
    for name in (tmp_path, tmp_path / "none", tmp_path / ("x" * 300), tmp_path / "new\nline"):
        done = bankflip(*filled(reader, name, tmp_path / "out"))
        assert done.status == 2
        assert "Traceback" not in done.err
        assert "internal error" not in done.err


@pytest.mark.parametrize(
    "arguments",
    [
        ("run",),
        ("run", "wrap", "--stop-after", "-1"),
        ("run", "wrap", "--stop-after", "9" * 30),
        ("run", "wrap", "--backend", "abacus"),
        ("run", "wrap", "--record", "no/such/folder/x"),
        ("run", "wrap", "--record", "."),
        ("run", "wrap", "--model", "no-such-model"),
        (
            "run",
            "failed-stage",
            "--backend",
            "metal" if __import__("sys").platform == "linux" else "cuda",
        ),
        ("sweep", "wrap", "--most", "0"),
        ("sweep", "wrap", "--cuts", "-3"),
        ("sweep", "wrap", "--out", "no/such/folder/x.png"),
        ("shrink", "wrap", "--tries", "0"),
        ("shrink", "wrap", "--out", "."),
        ("report", "wrap"),
        ("report", "wrap", "--out", "out", "--format", "doc"),
        ("report", "wrap", "--out", "out", "--format", ","),
        ("report", "wrap", "--out", "out", "--theme", "pink"),
        ("report", "wrap", "--out", "out", "--group-size", "0"),
        ("bench", "nothing-like-it"),
        ("completion", "csh"),
        ("completion",),
        ("doctor", "extra"),
        ("generate",),
        ("generate", "no-such-model", "--tokens", "1"),
        ("demo", "--theme", "pink"),
    ],
    ids=" ".join,
)
def test_wrong_usage(
    bankflip: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    done = bankflip(*arguments)
    assert done.status == 2
    assert done.err
    assert "Traceback" not in done.err
    assert "internal error" not in done.err
    assert list(tmp_path.iterdir()) == []


def test_a_folder_for_output_that_is_a_file(bankflip: Command, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    for arguments in (
        ("report", "wrap", "--out", tmp_path / "file", "--format", "json"),
        ("run", "wrap", "--report", tmp_path / "file" / "x"),
    ):
        done = bankflip(*arguments)
        assert done.status == 2
        assert "file" in done.one_sentence()
    assert (tmp_path / "file").read_text() == "mine"


def harmed(value: Any, chance: random.Random) -> Any:
    """The value with something in it replaced."""
    strange = [None, -1, 2**31, 2**63, 10**40, "", "x", [], {}, True, 0.5, "layer.0.gdn", [-5, 7]]
    if chance.random() < 0.08:
        return chance.choice(strange)
    if isinstance(value, dict):
        return {k: harmed(v, chance) for k, v in value.items() if chance.random() > 0.02}
    if isinstance(value, list):
        return [harmed(v, chance) for v in value]
    return value


def test_scenarios_with_random_harm(bankflip: Command, tmp_path: Path, long_profile: bool) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    sources = [json.loads(path.read_text()) for path in shipped().values()]
    path = tmp_path / "s.json"
    statuses = set()
    for _ in range(2000 if long_profile else 150):
        scenario = chance.choice(sources)
        scenario = {**scenario, "ops": scenario["ops"][:4], "expect": None, "model": None}
        ops = [
            {**op, "stage": "write"} if op.get("stage", "").startswith("layer") else op
            for op in scenario["ops"]
        ]
        path.write_text(json.dumps(harmed({**scenario, "ops": ops}, chance)))
        done = bankflip("run", path, "--json")
        statuses.add(done.status)
        assert done.status in (0, 2), done.err
        if done.status:
            assert "s.json" in done.one_sentence()
    assert 2 in statuses


ODD = os.fsdecode(b"odd\xff")
"""A file's name that is not UTF-8; legal on Linux."""


@pytest.mark.skipif(sys.platform == "darwin", reason="the file system takes UTF-8 names only")
def test_names_that_are_not_utf_8(tmp_path: Path) -> None:
    strict = {"PYTHONIOENCODING": "utf-8:strict"}
    given, capture = tmp_path / f"{ODD}.json", tmp_path / f"{ODD}.bankflip"
    given.write_text('{"ops": [{"op": "append", "seq": 0, "positions": [0]}], "capacity": 8}')
    for arguments in (
        ("run", given, "--record", capture),
        ("run", given, "--json"),
        ("check", capture),
        ("report", given, "--out", tmp_path / f"1{ODD}", "--format", "html,pdf,json"),
        ("report", capture, "--out", tmp_path / f"2{ODD}", "--format", "html,json"),
        ("sweep", given),
    ):
        done = child(*arguments, **strict)
        assert done.status == 0, (arguments, done.err)
        assert not done.err, arguments
    (tmp_path / ODD).symlink_to(MODELS / TINY_MODEL)
    done = child("generate", tmp_path / ODD, "--tokens", "1", **strict)
    assert done.status == 0, done.err
    assert not done.err
    failing = tmp_path / f"not{ODD}.json"
    failing.write_text(given.read_text()[:-1] + ', "expect": ["rejected: gap"]}')
    smallest = tmp_path / f"small{ODD}.json"
    done = child("shrink", failing, "--out", smallest, **strict)
    assert done.status == 0, done.err
    assert json.loads(smallest.read_bytes())["case"].startswith("notodd")
    page = json.loads((tmp_path / f"2{ODD}" / "report.json").read_bytes())
    assert r"odd\udcff" in page["title"]


def test_pipes_that_nobody_writes_to_and_files_without_an_end(
    bankflip: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """None of them is waited for, and no more is read than any scenario needs."""
    os.mkfifo(tmp_path / "pipe")
    monkeypatch.setattr(content_of, "__defaults__", (1 << 20,))
    for path in (tmp_path / "pipe", Path("/dev/zero")):
        for arguments in (
            ("run", path),
            ("sweep", path),
            ("shrink", path),
            ("generate", TINY_MODEL, "--tokens-file", path),
        ):
            done = bankflip(*arguments)
            assert done.status == 2, arguments
            assert str(path) in done.one_sentence(), arguments


def test_a_scenario_comes_through_a_pipe(tmp_path: Path, bankflip: Command) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    text = '{"ops": [{"op": "append", "seq": 0, "positions": [0]}], "capacity": 8}'
    writer = threading.Thread(target=lambda: pipe.write_text(text))
    writer.start()
    # as a shell's <(command) does: somebody has it open before it is read
    handle = os.open(pipe, os.O_RDWR)
    threading.Timer(0.3, os.close, (handle,)).start()
    done = bankflip("run", pipe)
    writer.join()
    assert done.status == 0, done.err


def test_results_replace_no_pipe_and_no_device_and_follow_links(
    bankflip: Command, tmp_path: Path
) -> None:
    pipe, link, real = tmp_path / "pipe", tmp_path / "link.json", tmp_path / "real.json"
    os.mkfifo(pipe)
    failing = tmp_path / "s.json"
    failing.write_text(
        '{"ops": [{"op": "append", "seq": 0, "positions": [0]}], "capacity": 8,'
        ' "expect": ["rejected: gap"]}'
    )
    for arguments in (
        ("shrink", failing, "--out", pipe),
        ("sweep", "wrap", "--out", pipe),
        ("screenshot", "--out", pipe),
        ("generate", TINY_MODEL, "--tokens", "1", "--logits", pipe),
        ("generate", TINY_MODEL, "--tokens", "1", "--logits", "/dev/null"),
    ):
        done = bankflip(*arguments)
        assert done.status == 2, arguments
        assert "expected a file to write" in done.one_sentence()
        assert pipe.is_fifo()
    real.write_text("old")
    link.symlink_to(real)
    assert bankflip("shrink", failing, "--out", link).status == 0
    assert link.is_symlink()
    assert json.loads(real.read_bytes())["ops"]


def test_a_sentence_is_one_line_whatever_the_name(bankflip: Command, tmp_path: Path) -> None:
    name = tmp_path / "new\nline  twice"
    name.write_bytes(b"{")
    for arguments in (("run",), ("sweep",), ("shrink",), ("check",), ("report", "--out", tmp_path)):
        done = bankflip(*arguments, name)
        assert done.status == 2
        assert "new line" in done.one_sentence()
    assert bankflip("check", name).out.startswith(f"{tmp_path}/new line  twice: unreadable")


def test_reports_of_several_cases_stay_in_their_folder(bankflip: Command, tmp_path: Path) -> None:
    cases = ("../../outside", "/outside", "..", "same", "Same", "a/b", "", "x" * 300)
    for number, case in enumerate(cases):
        scenario = {"case": case, "capacity": 8, "ops": [{"op": "reset", "seq": 0}]}
        (tmp_path / f"{number}.json").write_text(json.dumps(scenario))
    out = tmp_path / "deep" / "out"
    files = [tmp_path / f"{number}.json" for number in range(len(cases))]
    done = bankflip("run", *files, "--report", out)
    assert done.status == 0, done.err
    assert len(list(out.glob("*/report.json"))) == len(cases)
    assert len(list(tmp_path.rglob("report.json"))) == len(cases)


@pytest.mark.parametrize("said", ["Unable to allocate 745 GiB", ""])
def test_memory_that_is_not_there_is_one_sentence(
    said: str, bankflip: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(_: object) -> int:
        raise MemoryError(said)

    monkeypatch.setattr("app.cli.check.run", run)
    done = bankflip("check", "x")
    assert done.status == 2
    told = f"bankflip check: not enough memory: {said}" if said else "not enough memory"
    assert done.one_sentence().strip().endswith(told)
