"""`bankflip run`: results, proofs, statuses, captures and reports."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from app.cli.run import shipped
from engine import load_session, open_engine
from engine.capture import Capture
from tests.helpers.commands import Command, valid

DATA = Path(__file__).parents[2] / "data"
CASES = sorted((DATA / "cases").glob("*.json"))


def write(path: Path, **fields: Any) -> Path:
    base = {"capacity": 8, "ops": [{"op": "append", "seq": 0, "positions": [0, 1, 2]}]}
    path.write_text(json.dumps({**base, **fields}))
    return path


@pytest.mark.parametrize("name", sorted(shipped()))
def test_every_shipped_scenario_is_as_it_says(bankflip: Command, name: str) -> None:
    done = bankflip("run", name, "--json", "--verify", "--backend", "cpu")
    (result,) = valid("run", done.json)
    source = json.loads(shipped()[name].read_text())
    assert result["results"] == source["expect"][:-1]
    assert result["final"] == source["expect"][-1]["final"]
    assert done.status == 0
    assert result["ok"]
    assert not done.err
    assert source["title"]
    assert source["note"]


def test_the_shipped_scenarios_teach_what_was_promised() -> None:
    wanted = {
        "left-padding",
        "hole-refused",
        "failed-stage",
        "context-shift",
        "rewind-with-recurrent-state",
        "fork-and-diverge",
        "wrap",
        "interleaved-turns",
    }
    assert wanted <= set(shipped())


def test_every_case_file_is_as_it_says(bankflip: Command) -> None:
    done = bankflip("run", *CASES, "--json")
    results = valid("run", done.json)
    assert done.status == 0
    assert len(results) == len(CASES) == 30
    for result, path in zip(results, CASES, strict=True):
        case = json.loads(path.read_text())
        assert result["case"] == case["case"]
        assert result["results"] == case["expect"][:-1]
        assert result["final"] == case["expect"][-1]["final"]


def test_refused_ops_have_the_same_digests_before_and_after(bankflip: Command) -> None:
    (result,) = bankflip("run", "failed-stage", "--json", "--backend", "cpu").json
    refused = [op for op in result["ops"] if op["result"] != "ok"]
    published = [op for op in result["ops"] if op["result"] == "ok"]
    assert [op["kind"] for op in refused] == [
        "nonfinite",
        "command",
        "oom",
        "status",
        "structural",
        "cancel",
    ]
    assert refused[0]["stage"] == "layer.3.qsa.select"
    for op in refused:
        assert op["digests_before"] == op["digests_after"]
    for op in published:
        assert op["digests_before"] != op["digests_after"]
    assert result["transactions"] == len(result["ops"])
    assert result["flips"] == len(published)


def test_a_hole_names_expected_and_given_and_reaches_no_stage(bankflip: Command) -> None:
    (result,) = bankflip("run", "hole-refused", "--json", "--backend", "cpu").json
    hole = result["ops"][1]
    assert (hole["result"], hole["expected"], hole["given"], hole["stage"]) == (
        "rejected: not-consecutive",
        102,
        103,
        None,
    )
    ok = sum(op["result"] == "ok" for op in result["ops"])
    assert result["transactions"] == result["flips"] == ok


def test_a_failed_expectation_is_status_1_and_says_where(bankflip: Command, tmp_path: Path) -> None:
    path = write(tmp_path / "s.json", expect=["rejected: gap"])
    done = bankflip("run", path)
    assert done.status == 1
    assert "op 0 (append): expected rejected: gap, got ok" in done.out
    final = {"final": {"0": {"run": [0, 3], "complete_groups": 1, "tail": 0, "holes": []}}}
    path = write(tmp_path / "s.json", expect=["ok", final])
    done = bankflip("run", path, "--json")
    assert done.status == 1
    assert "sequence 0: expected 0 to 3" in done.one_sentence()


def test_stop_after_judges_only_what_was_done(bankflip: Command) -> None:
    done = bankflip("run", "wrap", "--stop-after", "2", "--json")
    (result,) = valid("run", done.json)
    assert done.status == 0
    assert result["results"] == ["ok", "ok"]
    assert result["final"]["0"]["run"] == [4, 8]
    assert "stopped after 2 of 7" in bankflip("run", "wrap", "--stop-after", "2").out
    assert bankflip("run", "wrap", "--stop-after", "0", "--json").json[0]["results"] == []


def test_several_files_the_worst_status_and_every_readable_result(
    bankflip: Command, tmp_path: Path
) -> None:
    bad = write(tmp_path / "bad.json", ops=[{"op": "leap"}])
    failing = write(tmp_path / "failing.json", expect=["rejected: gap"])
    done = bankflip("run", "wrap", failing, "--json")
    assert done.status == 1
    done = bankflip("run", "wrap", bad, failing, "--json")
    assert done.status == 2
    assert [result["case"] for result in done.json] == ["wrap", "failing"]
    unreadable, unexpected = done.err.splitlines()
    assert "bad.json: op 0: the op is unknown" in unreadable
    assert unexpected.startswith("bankflip run: failing: op 0 (append): expected rejected: gap")
    assert set(done.json[0]) == {
        *("case", "ok", "results", "ops", "final", "transactions", "flips"),
    }


def test_a_stage_that_the_op_lacks_names_the_scenario(bankflip: Command, tmp_path: Path) -> None:
    reset = {"op": "fail", "stage": "layer.0.gdn", "kind": "oom"}
    path = write(tmp_path / "s.json", ops=[{**reset, "during": {"op": "reset", "seq": 0}}])
    done = bankflip("run", path, "--model", "qwen4exp-tiny", "--backend", "cpu")
    assert done.status == 2
    assert f"{path}: op 0 (fail): reset has no such stage" in done.one_sentence()


def test_toml_and_a_sequence_that_stays_empty(bankflip: Command, tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    path.write_text(
        'capacity = 8\nexpect = ["ok", "rejected: out-of-range"]\n'
        '[[ops]]\nop = "append"\nseq = 0\npositions = [5, 6]\n'
        '[[ops]]\nop = "rewind"\nseq = 3\nto = 1\n'
    )
    done = bankflip("run", path, "--json")
    assert done.status == 0
    assert done.json[0]["final"] == {
        "0": {"run": [5, 6], "complete_groups": 0, "tail": 2, "holes": []},
        "3": {"run": None, "complete_groups": 0, "tail": 0, "holes": []},
    }


def test_a_model_folder_beside_the_scenario(bankflip: Command, tmp_path: Path) -> None:
    from app.resources import MODELS, TINY_MODEL

    (tmp_path / "weights").symlink_to(MODELS / TINY_MODEL)
    path = write(tmp_path / "s.json", model="weights")
    (beside,) = bankflip("run", path, "--json", "--backend", "cpu").json
    named = write(tmp_path / "n.json", model=TINY_MODEL)
    (built_in,) = bankflip("run", named, "--json", "--backend", "cpu").json
    assert beside["ops"][0]["digests_after"] == built_in["ops"][0]["digests_after"]
    given = write(tmp_path / "g.json")
    (by_option,) = bankflip("run", given, "--json", "--backend", "cpu", "--model", TINY_MODEL).json
    assert by_option["ops"] == built_in["ops"]


def test_what_a_model_can_give_no_meaning_is_refused(bankflip: Command, tmp_path: Path) -> None:
    ops = [
        {"op": "append", "seq": 0, "positions": list(range(12))},
        {
            "op": "transaction",
            "ops": [
                {"op": "remove", "seq": 0, "start": 4, "stop": 8},
                {"op": "shift", "seq": 0, "delta": -4, "start": 8, "stop": None},
            ],
        },
    ]
    path = write(tmp_path / "s.json", ops=ops, capacity=16)
    assert bankflip("run", path, "--json").json[0]["results"] == ["ok", "ok"]
    with_model = bankflip("run", path, "--json", "--model", "qwen4exp-tiny", "--backend", "cpu")
    assert with_model.json[0]["results"] == ["ok", "rejected: not-derivable"]


def test_the_capture_holds_every_op_and_its_tokens(bankflip: Command, tmp_path: Path) -> None:
    path = tmp_path / "s.bankflip"
    assert bankflip("run", "failed-stage", "--record", path, "--backend", "cpu").status == 0
    source = json.loads(shipped()["failed-stage"].read_text())
    with Capture(path) as capture:
        assert [json.loads(r.op_json) for r in capture.records()] == source["ops"]
        assert capture.counts() == {"ok": 4, "failed": 5, "cancelled": 1}
        assert capture.about["model"] == "qwen4exp-tiny"
        failed = capture.record(2)
    assert failed.stage == "layer.3.qsa.select"
    assert failed.digests_before == failed.digests_after
    assert bankflip("run", "failed-stage", "--record", path, "--no-text").status == 0
    with Capture(path) as capture:
        assert all("tokens" not in json.loads(r.op_json) for r in capture.records())


def test_an_existing_file_that_is_no_capture_is_kept(bankflip: Command, tmp_path: Path) -> None:
    path = tmp_path / "mine.txt"
    path.write_text("mine")
    done = bankflip("run", "wrap", "--record", path)
    assert done.status == 2
    assert "will not be replaced" in done.one_sentence()
    assert path.read_text() == "mine"
    assert bankflip("run", "wrap", "left-padding", "--record", path).status == 2


def test_a_report_of_what_was_run(bankflip: Command, tmp_path: Path) -> None:
    done = bankflip("run", "left-padding", "--report", tmp_path / "out")
    assert done.status == 0
    facts = json.loads((tmp_path / "out" / "report.json").read_text())
    assert facts["ok"]
    assert facts["verdict"].startswith("As expected")
    assert (tmp_path / "out" / "report.html").is_file()


def test_the_first_line_counts_refused_and_failed_apart(bankflip: Command) -> None:
    done = bankflip("run", "failed-stage", "--backend", "cpu")
    assert done.out.splitlines()[0] == (
        "failed-stage: as expected; 10 ops, 5 failed, 1 cancelled, 4 flips"
    )
    done = bankflip("run", "hole-refused", "--backend", "cpu")
    first = done.out.splitlines()[0]
    n = sum(op != "ok" for op in json.loads(shipped()["hole-refused"].read_text())["expect"][:-1])
    assert f"{n} refused, " in first
    assert "failed" not in first


def test_a_run_without_a_model_says_so(bankflip: Command, tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    path.write_text('{"capacity": 9, "ops": [{"op": "append", "seq": 0, "positions": [3, 4]}]}')
    done = bankflip("run", path)
    assert done.out == "s: done; 1 op, none refused, 1 flip (history only: no model)\n"


def test_the_session_after_the_last_op_is_saved(bankflip: Command, tmp_path: Path) -> None:
    saved = tmp_path / "s.safetensors"
    done = bankflip("run", "failed-stage", "--backend", "cpu", "--save", saved)
    assert done.status == 0
    engine = open_engine("qwen4exp-tiny", backend="cpu")
    load_session(engine, saved)
    (result,) = bankflip("run", "failed-stage", "--backend", "cpu", "--json").json
    last = result["ops"][-1]["digests_after"]
    assert dict(engine.digests()) == (last if isinstance(last, dict) else dict(last))


def test_a_place_for_the_session_is_judged_before_any_work(
    bankflip: Command, tmp_path: Path
) -> None:
    for place in (tmp_path, tmp_path / "missing" / "s.safetensors"):
        done = bankflip("run", "failed-stage", "--save", place)
        assert done.status == 2
        assert str(place) in done.one_sentence()
        assert done.out == ""
    done = bankflip("run", "failed-stage", "wrap", "--save", tmp_path / "s")
    assert (done.status, done.out) == (2, "")
    assert "--save takes one scenario, given 2" in done.err
