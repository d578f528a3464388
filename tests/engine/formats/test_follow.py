"""Following folders: new and changed files once they hold still, removed ones at once."""

from __future__ import annotations

import shutil
from pathlib import Path

from engine.formats.follow import Follower

SAMPLES = Path(__file__).parents[2] / "data" / "samples" / "llama-cpp"


def verdicts(follower: Follower) -> dict[str, str | None]:
    return {
        path.name: None if report is None else report.verdict for path, report in follower.poll()
    }


def test_files_come_change_and_go(tmp_path: Path) -> None:
    follower = Follower((tmp_path,))
    path = tmp_path / "slot.bin"
    shutil.copy(SAMPLES / "clean.seq", path)
    assert verdicts(follower) == {}  # seen once: it may still be written
    assert verdicts(follower) == {"slot.bin": "ok"}
    assert verdicts(follower) == {}
    whole = (SAMPLES / "hole.seq").read_bytes()
    path.write_bytes(whole[:300])
    assert verdicts(follower) == {}
    path.write_bytes(whole)  # half of it was there at the last look
    assert verdicts(follower) == {}
    assert verdicts(follower) == {"slot.bin": "hole"}
    path.unlink()
    assert verdicts(follower) == {"slot.bin": None}


def test_hidden_files_and_folders_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    shutil.copy(SAMPLES / "clean.seq", tmp_path / ".part")
    follower = Follower((tmp_path,))
    assert verdicts(follower) == {}
    assert verdicts(follower) == {}


def test_a_single_file_is_followed(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    lines = (SAMPLES.parent / "kv-events" / "vllm-hole.jsonl").read_text().splitlines(True)
    path.write_text("".join(lines[:1]))
    follower = Follower((path,))
    follower.poll()
    assert verdicts(follower) == {"events.jsonl": "ok"}
    path.write_text("".join(lines))
    follower.poll()
    assert verdicts(follower) == {"events.jsonl": "hole"}
