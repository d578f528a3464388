"""`bankflip watch` as a command: streams findings, ends on Ctrl-C with 130."""

from __future__ import annotations

import json
import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
import zmq

from app.__main__ import main
from tests.helpers.commands import ended_by_ctrl_c

ROOT = Path(__file__).parents[3]
SAMPLES = ROOT / "tests" / "data" / "samples"


@contextmanager
def watching(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """The command with `--json`, killed at the end if it still runs."""
    process = subprocess.Popen(
        [sys.executable, "-m", "app", "watch", "--json", *arguments],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def until(process: subprocess.Popen[str], **wanted: Any) -> dict[str, Any]:
    """The first line with these fields; the test's own time limit ends a wait in vain."""
    assert process.stdout is not None
    for line in process.stdout:
        record = parsed(line, line)
        if all(record.get(key) == value for key, value in wanted.items()):
            return record
    raise AssertionError(f"the command ended without {wanted}")


def stopped(process: subprocess.Popen[str]) -> tuple[int, list[dict[str, Any]], str]:
    """Send Ctrl-C; status, the last lines and what stands on stderr."""
    out, err = ended_by_ctrl_c(process)
    return process.returncode, [parsed(line, out) for line in out.splitlines()], err


def parsed(line: str, out: str) -> dict[str, Any]:
    """A line of the output, which says more than its parser when it is none."""
    try:
        record: dict[str, Any] = json.loads(line)
    except ValueError as error:
        raise AssertionError(f"no JSON: {line!r} in {out!r}") from error
    return record


@pytest.mark.skipif(os.name == "nt", reason="Ctrl-C is sent as SIGINT")
def test_findings_stream_and_ctrl_c_ends_with_130() -> None:
    context: Any = zmq.Context()
    publisher = context.socket(zmq.XPUB)
    port = publisher.bind_to_random_port("tcp://127.0.0.1")
    event = {
        "type": "BlockStored",
        "block_hashes": [1, 2, 3],
        "parent_block_hash": None,
        "token_ids": list(range(24)),
        "block_size": 8,
    }
    gone = {"type": "BlockRemoved", "block_hashes": [1]}
    try:
        with watching(f"tcp://127.0.0.1:{port}") as process:
            publisher.recv()
            for number, own in enumerate((event, gone)):
                data = msgspec.msgpack.encode([float(number), [own]])
                publisher.send_multipart([b"", struct.pack(">Q", number), data])
            found = until(process, code="hole")
            assert found["state"] == "new"
            assert found["position"] == 0
            status, lines, err = stopped(process)
        assert status == 130
        assert lines[-1]["report"]["verdict"] == "hole"
        assert "Traceback" not in err
    finally:
        context.destroy(linger=0)


@pytest.mark.skipif(os.name == "nt", reason="Ctrl-C is sent as SIGINT")
def test_a_folder_is_followed(tmp_path: Path) -> None:
    shutil.copy(SAMPLES / "llama-cpp" / "clean.seq", tmp_path / "slot.bin")
    with watching(str(tmp_path)) as process:
        assert until(process, state="verdict")["verdict"] == "ok"
        shutil.copy(SAMPLES / "llama-cpp" / "hole.seq", tmp_path / "slot.bin")
        assert until(process, code="hole")["position"] == 11
        (tmp_path / "slot.bin").unlink()
        assert until(process, state="removed")["source"].endswith("slot.bin")
        assert stopped(process)[0] == 130


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("nowhere-at-all",), "neither an address nor a folder"),
        (("tcp://127.0.0.1:1", "--replay", "tcp://a:1", "--replay", "tcp://b:2"), "replay"),
        (("nonsense://x",), "no address to watch, expected such as tcp://127.0.0.1:5557"),
        (("tcp://127.0.0.1",), "tcp://127.0.0.1: no address to watch, expected such as tcp://"),
        (("tcp://127.0.0.1:1", "."), "not both at once"),
    ],
)
def test_what_cannot_be_watched(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], words: str
) -> None:
    assert main(["watch", *arguments]) == 2
    assert words in capsys.readouterr().err
