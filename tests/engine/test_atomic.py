"""A file that is replaced at once, and what stays when that fails."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from engine.atomic import replacing


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def test_the_new_content_is_there_at_the_end_and_not_before(tmp_path: Path) -> None:
    target = tmp_path / "session"
    target.write_text("old")
    with replacing(target, ".safetensors") as beside:
        assert beside.parent == tmp_path
        assert beside.name.endswith(".safetensors")
        beside.write_text("new")
        assert target.read_text() == "old"
    assert target.read_text() == "new"
    assert names(tmp_path) == ["session"]


@pytest.mark.parametrize("error", [ValueError, OSError, KeyboardInterrupt])
def test_an_error_leaves_the_old_content_and_nothing_beside(
    error: type[BaseException], tmp_path: Path
) -> None:
    target = tmp_path / "session"
    target.write_text("old")

    def fail() -> None:
        with replacing(target) as beside:
            beside.write_text("half")
            raise error

    with pytest.raises(error):
        fail()
    assert target.read_text() == "old"
    assert names(tmp_path) == ["session"]


def test_a_target_that_cannot_be_replaced_is_left(tmp_path: Path) -> None:
    target = tmp_path / "folder"
    (target / "inside").mkdir(parents=True)
    with pytest.raises(OSError), replacing(target) as beside:
        beside.write_text("new")
    assert names(tmp_path) == ["folder"]
    assert names(target) == ["inside"]


def test_a_link_stays_one(tmp_path: Path) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    real.write_text("old")
    link.symlink_to(real)
    with replacing(link) as beside:
        beside.write_text("new")
    assert link.is_symlink()
    assert real.read_text() == "new"


@pytest.mark.parametrize("mask", [0o022, 0o077])
def test_others_may_read_what_the_umask_says(mask: int, tmp_path: Path) -> None:
    target = tmp_path / "new"
    before = os.umask(mask)
    try:
        with replacing(target) as beside:
            beside.write_text("new")
        assert target.stat().st_mode & 0o777 == 0o666 & ~mask
        assert os.umask(mask) == mask
    finally:
        os.umask(before)


def test_a_missing_folder_is_an_error_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), replacing(tmp_path / "none" / "file"):
        pass
