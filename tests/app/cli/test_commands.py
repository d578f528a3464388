"""Doctor, bench, completion, demo and help; statuses of real processes; no Qt without need."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.cli import COMMANDS, bench, completion, doctor
from app.cli.display import display_problem, x_answers
from engine.diagnose import FAILED, Finding
from tests.helpers.commands import ROOT, Command, child, ended_by_ctrl_c, valid

NAMES = [name for name, _, _ in COMMANDS]


def test_doctor_says_what_works(bankflip: Command) -> None:
    done = bankflip("doctor", "--json")
    report = valid("doctor", done.json)
    lines = {check["name"]: check for check in report["checks"]}
    assert report["ok"] == (done.status == 0) == all(c["state"] != "failed" for c in lines.values())
    assert lines["backend cpu"]["state"] == "ok"
    assert lines["sample run"]["state"] == "ok"
    assert "kernels" in lines
    assert any(name.startswith("exactness") for name in lines)


def test_doctor_fails_with_status_1_and_one_line_each(
    bankflip: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> Finding:
        raise RuntimeError("no\nsuch thing")

    monkeypatch.setattr(doctor.diagnose, "kernels", broken)
    monkeypatch.setattr(doctor, "qt", lambda: Finding("qt", FAILED, "no fonts"))
    done = bankflip("doctor")
    assert done.status == 1
    lines = done.out.splitlines()
    assert len([line for line in lines if line.startswith("failed")]) == 2
    assert "RuntimeError: no such thing" in done.out
    assert len(lines) == len(doctor.examine())


def test_bench_lists_runs_and_names_what_failed(
    bankflip: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def good() -> dict[str, object]:
        return {"name": "a.size", "value": 2.0, "unit": "ratio", "goal": 3, "better": "lower"}

    def bad() -> dict[str, object]:
        raise RuntimeError("no peer here")

    def late() -> Iterator[dict[str, object]]:
        yield good()
        raise RuntimeError("no more")

    monkeypatch.setattr(bench, "benchmarks", lambda modules: {"a": good, "b": bad, "c": late})
    done = bankflip("bench", "--json")
    assert done.status == 1
    report = valid("bench", done.json)
    assert [result["value"] for result in report["results"]] == [2.0, 2.0]
    reasons = [(failure["name"], failure["reason"]) for failure in report["failed"]]
    assert reasons == [("b", "no peer here"), ("c", "no more")]
    done = bankflip("bench", "a")
    assert done.status == 0
    assert "meets the goal of at most 3" in done.out
    assert bankflip("bench", "--list").out == "a\nb\nc\n"
    done = bankflip("bench", "nope")
    assert done.status == 2
    assert "expected one of a, b, c" in done.one_sentence()


def test_every_registered_benchmark_module_has_benchmarks() -> None:
    found = bench.benchmarks(bench.MODULES)
    assert "capture" in found
    assert all(callable(function) for function in found.values())


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_names_every_command_and_option(bankflip: Command, shell: str) -> None:
    script = bankflip("completion", shell).out
    for command in completion.read_commands():
        assert command.name in script
        for option in command.options:
            for name in option.names:
                assert (name if shell != "fish" else name.lstrip("-")) in script
    program = shutil.which(shell)
    if program is not None:
        subprocess.run([program, "-n"], input=script, text=True, check=True)


def test_bash_completes_commands_options_and_choices(bankflip: Command) -> None:
    bash = shutil.which("bash")
    assert bash is not None
    script = bankflip("completion", "bash").out

    def complete(*words: str) -> list[str]:
        line = " ".join(f"'{word}'" for word in words)
        code = f"COMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; _bankflip; "
        done = subprocess.run(
            [bash, "-c", f'{script}\n{code}printf "%s\\n" "${{COMPREPLY[@]}}"'],
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.split()

    assert complete("bankflip", "sw") == ["sweep"]
    assert complete("bankflip", "run", "--rec") == ["--record"]
    assert complete("bankflip", "run", "--backend", "c") == ["cuda", "cpu"]
    assert complete("bankflip", "completion", "z") == ["zsh"]
    assert complete("bankflip", "run", "--record", "") == []


def test_demo_without_a_display_does_the_same_work(tmp_path: Path) -> None:
    done = child("demo", "--backend", "cpu", cwd=tmp_path)
    assert done.status == 0, done.err
    assert "no display" in done.out
    assert "none of these changed a public byte" in done.out
    assert "layer.3.qsa.select" in done.out
    assert "expected 41, given 42" in done.out
    out = tmp_path / "bankflip-demo"
    facts = json.loads((out / "report.json").read_text())
    assert facts["ok"]
    assert all((out / picture["file"]).is_file() for picture in facts["pictures"])
    assert (out / "report.pdf").read_bytes().startswith(b"%PDF")
    assert (out / "report.html").is_file()
    assert done.err == ""


@pytest.mark.parametrize("option", ["--out", "--model", "--backend"])
def test_demo_in_the_window_refuses_what_it_would_ignore(
    option: str, bankflip: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.cli.demo.display_problem", lambda: "")
    monkeypatch.setattr("app.main.run_window", lambda start: pytest.fail(f"opened: {start}"))
    done = bankflip("demo", option, "cpu")
    assert done.status == 2
    assert f"{option} goes with --headless" in done.one_sentence()


@pytest.mark.parametrize("theme", ["light", "dark", ""])
def test_demo_in_the_window_has_the_colours_asked_for(
    theme: str, bankflip: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    starts = []
    monkeypatch.setattr("app.cli.demo.display_problem", lambda: "")
    monkeypatch.setattr("app.main.run_window", lambda start: starts.append(start) or 0)
    assert bankflip("demo", *(["--theme", theme] if theme else [])).status == 0
    assert [(start.demo, start.theme) for start in starts] == [(True, theme)]


def test_a_display_that_does_not_answer_is_found_before_qt(tmp_path: Path) -> None:
    assert "no display" in display_problem({})
    assert display_problem({"QT_QPA_PLATFORM": "offscreen", "DISPLAY": ":0"}) != ""
    assert "does not answer" in display_problem({"DISPLAY": ":65000"})
    assert "does not answer" in display_problem({"DISPLAY": "nonsense"})
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "wayland-7"))
        server.listen()
        found = {"WAYLAND_DISPLAY": "wayland-7", "XDG_RUNTIME_DIR": str(tmp_path)}
        assert display_problem(found) == ""
    assert not x_answers(":")
    assert not x_answers("nowhere:²")


@pytest.mark.parametrize("name", NAMES)
def test_help_reads_well(bankflip: Command, name: str) -> None:
    done = bankflip(name, "--help")
    assert done.status == 0
    assert done.out.startswith(f"usage: bankflip {name}")
    assert all(len(line) <= 100 for line in done.out.splitlines())
    assert "==SUPPRESS==" not in done.out


def test_the_list_of_commands_is_the_architectures(bankflip: Command) -> None:
    done = bankflip("--help")
    words = "demo run check watch generate sweep shrink report screenshot bench doctor completion"
    for word in words.split():
        assert f"    {word} " in done.out
    assert "130 cancelled" in " ".join(done.out.split())


BLOCK = """
import importlib.abc, sys
class Block(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("PySide6", "shiboken6", "pyqtgraph"):
            raise ImportError(f"{name} is blocked")
sys.meta_path.insert(0, Block())
from app.__main__ import main
sys.exit(main(sys.argv[1:]))
"""


def test_no_command_needs_qt_unless_it_makes_a_picture(tmp_path: Path) -> None:
    scenario = tmp_path / "s.json"
    op = {"op": "append", "seq": 0, "positions": [0, 1, 2]}
    scenario.write_text(json.dumps({"capacity": 8, "ops": [op], "expect": ["rejected: gap"]}))
    for status, *arguments in (
        (0, "--help"),
        (0, "completion", "bash"),
        (1, "run", scenario),
        (0, "generate", "qwen4exp-tiny", "--tokens", "8,9", "--record", tmp_path / "c.bankflip"),
        (0, "sweep", "wrap", "--json"),
        (0, "shrink", scenario),
        (0, "bench", "--list"),
        (0, "report", "wrap", "--out", tmp_path / "out", "--format", "json"),
    ):
        done = subprocess.run(
            [sys.executable, "-c", BLOCK, *map(str, arguments)],
            cwd=ROOT,
            capture_output=True,
            text=True,
        )
        assert done.returncode == status, (arguments, done.stderr)


def test_statuses_of_real_processes(tmp_path: Path) -> None:
    bad = tmp_path / "bad.json"
    bad.write_text("{")
    failing = tmp_path / "f.json"
    op = {"op": "append", "seq": 0, "positions": [0]}
    failing.write_text(json.dumps({"capacity": 8, "ops": [op], "expect": ["rejected: gap"]}))
    assert child("run", "wrap").status == 0
    assert child("run", failing).status == 1
    done = child("run", bad)
    assert done.status == 2
    assert str(bad) in done.one_sentence()
    assert child("nonsense", "--no-such-option").status == 2


def test_a_terminal_without_the_signs_gets_others(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    op = {"op": "save", "seq": 0, "slot": "größe ✓"}
    path.write_text(json.dumps({"case": "größe ✓", "capacity": 8, "ops": [op]}), encoding="utf-8")
    done = child("run", path, PYTHONIOENCODING="ascii")
    assert done.status == 0, done.err
    assert done.out.startswith("gr??e ?: ")


def test_a_bug_of_ours_is_status_3(bankflip: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    from engine.engine import Engine
    from engine.errors import InvariantBroken

    def broken(self: Engine, op: object, **more: object) -> None:
        raise InvariantBroken("the banks differ", "a", "b")

    monkeypatch.setattr(Engine, "apply", broken)
    for arguments in (
        ("run", "wrap"),
        ("sweep", "wrap"),
        ("generate", "qwen4exp-tiny", "--tokens", "8", "--backend", "cpu"),
    ):
        done = bankflip(*arguments)
        assert done.status == 3
        assert "the banks differ: expected a, found b" in done.one_sentence()


@pytest.mark.parametrize("arguments", [("run", "wrap"), ("--help",), ("file.json",)])
def test_an_interrupt_while_the_program_starts(
    bankflip: Command, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    def interrupted(name: str) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("app.__main__.build_parser", interrupted)
        patch.setattr(importlib, "import_module", interrupted)
        done = bankflip(*arguments)
    assert done.status == 130
    assert done.one_sentence() == "bankflip: cancelled"


def test_an_interrupt_is_status_130_and_leaves_no_half_file(tmp_path: Path) -> None:
    logits = tmp_path / "l.npy"
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "app",
            "generate",
            "qwen4exp-tiny",
            "--tokens",
            "8,9,10",
            "--steps",
            "100000",
            "--chunk",
            "1",
            "--logits",
            str(logits),
            "--record",
            str(tmp_path / "c.bankflip"),
            "--backend",
            "cpu",
        ],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    deadline = time.monotonic() + 120
    while not (tmp_path / "c.bankflip").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.5)
    out, err = ended_by_ctrl_c(process)
    assert process.returncode == 130, err
    assert out == ""
    assert err == "bankflip generate: cancelled\n"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["c.bankflip"]
