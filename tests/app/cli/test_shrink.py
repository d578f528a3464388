"""`bankflip shrink`: the same failure in the fewest ops, by expectation or by a command."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from engine import cases
from engine.replay import replay
from tests.helpers.commands import Command, valid


def append(seq: int, start: int, stop: int) -> dict[str, Any]:
    return {"op": "append", "seq": seq, "positions": list(range(start, stop))}


def write(path: Path, **fields: Any) -> Path:
    path.write_text(json.dumps({"capacity": 64, **fields}))
    return path


OPS = [
    append(0, 0, 9),
    append(1, 4, 12),
    {"op": "save", "seq": 1, "slot": "a"},
    {"op": "rewind", "seq": 0, "to": 5},
    {"op": "shift", "seq": 1, "delta": 3, "start": None, "stop": None},
    append(0, 7, 9),
    {"op": "reset", "seq": 1},
]


def test_a_wrong_expectation_shrinks_to_the_ops_it_needs(bankflip: Command, tmp_path: Path) -> None:
    path = write(tmp_path / "s.json", ops=OPS, expect=["ok"] * 7)
    done = bankflip("shrink", path, "--json")
    found = valid("shrink", done.json)
    assert done.status == 0
    assert found["failure"] == "append: expected ok, got rejected: gap"
    assert found["minimal"]
    small = found["scenario"]
    # two appends with a gap between them are the least that gives a gap
    assert [op["op"] for op in small["ops"]] == ["append", "append"]
    assert found["tokens_after"] == 2
    assert replay(cases.parse(json.dumps(small).encode())).results == ("ok", "rejected: gap")


def test_a_wrong_end_keeps_what_leads_there(bankflip: Command, tmp_path: Path) -> None:
    final = {"final": {"0": {"run": [0, 9], "complete_groups": 2, "tail": 2, "holes": []}}}
    ops = [append(1, 0, 3), append(0, 0, 6), {"op": "reset", "seq": 1}, append(0, 6, 9)]
    path = write(tmp_path / "s.json", ops=ops, expect=["ok"] * 4 + [final])
    out = tmp_path / "small.json"
    done = bankflip("shrink", path, "--out", out)
    assert done.status == 0
    assert "the end of sequence 0: expected 0 to 9, got 0 to 8" in done.one_sentence()
    small = cases.load(out)
    assert all(op.seq == 0 for op in small.ops)
    done = replay(small)
    assert not done.ok
    assert done.final[0][1].run == (0, 8)


def test_until_a_command_exits_nonzero(bankflip: Command, tmp_path: Path) -> None:
    """The command fails while sequence 1 is shifted, whatever else happens."""
    code = (
        "import json, sys; ops = json.load(open(sys.argv[1]))['ops']; "
        "sys.exit(any(op['op'] == 'shift' for op in ops) and any(op['op'] == 'save' for op in ops))"
    )
    script = tmp_path / "check.py"
    script.write_text(code)
    path = write(tmp_path / "s.json", ops=OPS)
    for until in (f"{sys.executable} {script} {{}}", f"{sys.executable} {script}"):
        found = valid("shrink", bankflip("shrink", path, "--until", until, "--json").json)
        assert [op["op"] for op in found["scenario"]["ops"]] == ["save", "shift"]


def test_what_does_not_fail_is_not_shrunk(bankflip: Command, tmp_path: Path) -> None:
    out = tmp_path / "small.json"
    for more in ((), ("--until", "true")):
        done = bankflip("shrink", "wrap", "--out", out, *more)
        assert done.status == 2
        assert "nothing to shrink" in done.one_sentence()
    for until, word in (
        ("no-such-command-here {}", "can't be run"),
        ("'", "--until"),
        ("", "--until"),
    ):
        done = bankflip("shrink", "wrap", "--until", until)
        assert done.status == 2
        assert word in done.one_sentence()
    assert not out.exists()


def test_the_limit_of_tries_is_kept_and_said(bankflip: Command, tmp_path: Path) -> None:
    path = write(tmp_path / "s.json", ops=OPS, expect=["ok"] * 7)
    found = bankflip("shrink", path, "--tries", 3, "--json").json
    assert found["tries"] == 3
    assert not found["minimal"]


def test_a_model_scenario_shrinks_on_the_engine(bankflip: Command, tmp_path: Path) -> None:
    ops = [
        append(0, 0, 8),
        append(0, 8, 12),
        {"op": "fail", "stage": "layer.1.gdn", "kind": "nonfinite", "during": append(0, 12, 20)},
        append(0, 12, 14),
    ]
    path = write(
        tmp_path / "s.json",
        ops=ops,
        model="qwen4exp-tiny",
        expect=["ok", "ok", "rejected: oom", "ok"],
    )
    found = valid("shrink", bankflip("shrink", path, "--json", "--backend", "cpu").json)
    (op,) = found["scenario"]["ops"]
    assert (op["op"], op["stage"], len(op["during"]["positions"])) == ("fail", "layer.1.gdn", 1)
