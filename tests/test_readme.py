"""The README tells the truth about commands, folders and files."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from app.cli import COMMANDS
from app.play import engine_for, play
from engine import cases

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
SET_UP = [line.strip() for line in README.splitlines() if line.startswith("    python3 -m venv")]


def test_there_are_exactly_two_set_up_commands() -> None:
    demo, tests = SET_UP
    assert demo.endswith("bankflip demo")
    assert tests.split("&& ")[-1].startswith(".venv/bin/python -m pytest")


def test_ci_runs_the_test_command_word_for_word() -> None:
    assert SET_UP[1] in (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()


def test_every_subcommand_is_told_and_every_told_one_exists() -> None:
    names = {name for name, _, _ in COMMANDS}
    told = set(re.findall(r"`bankflip ([a-z]+)\b", README))
    assert told <= names
    assert names <= told


def test_every_file_and_folder_that_is_named_exists() -> None:
    named = set(
        re.findall(r"`((?:app|engine|metal|resources|tests|\.ci|\.github)/[\w./-]*)`", README)
    )
    named |= set(re.findall(r"\]\((resources/[\w./-]+)\)", README))
    templates = {"engine/owners/x.py", "engine/graph/x.py", "metal/src/x.metal"}
    templates |= {"engine/formats/x.py", "app/models/x.py", "app/views/x.py", "app/cli/x.py"}
    missing = {path for path in named - templates if not (ROOT / path).exists()}
    assert not missing
    assert len(named) > 10


def test_the_scenario_gives_what_it_expects() -> None:
    (text,) = re.findall(r"```toml\n(.*?)```", README, re.DOTALL)
    scenario = cases.parse(text.encode(), toml=True)
    played = play(scenario, engine_for(scenario, backend="cpu"))
    assert played.ok, played.mismatches
    assert scenario.expect is not None


def test_the_loop_to_protect_imports_what_is_there() -> None:
    pytest.importorskip("mlx_lm")
    lines = re.findall(r"^    ((?:from|import) [\w. ]+)", README, re.MULTILINE)
    assert len(lines) == 3
    exec("\n".join(lines), {})


def test_the_top_level_is_as_the_readme_says() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("not a git checkout")
    tops = {line.split("/")[0] for line in listed.stdout.splitlines() if "/" in line}
    told = set(re.findall(r"^\| `(\w+)/` \|", README, re.MULTILINE))
    assert tops - {".ci", ".github"} == told
