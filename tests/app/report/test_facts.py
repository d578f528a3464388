"""What a report says: verdicts, proofs, holes with neighbours, and how to do it again."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from app.cli.run import shipped
from app.report.facts import MOST_HOLES, MOST_JOURNAL, MOST_REFUSALS
from app.report.sources import Subject, open_subject
from app.report.words import op_words, pairs_words, parse_op
from engine import open_engine, save_session
from engine.capture import CaptureWriter
from engine.engine import append
from engine.errors import Unreadable
from tests.app.report.conftest import subject_of
from tests.helpers.records import digest, records, start_snapshot


def test_the_verdict_is_one_sentence_with_the_proof(failed_stage: Subject) -> None:
    facts = failed_stage.facts
    assert facts.ok
    assert facts.verdict == (
        "As expected: 10 ops gave what the scenario says; 6 ops refused or failed, and no public "
        "digest changed by any of them."
    )
    assert dict(facts.counts) == {"ops": 10, "ok": 4, "failed": 5, "cancelled": 1, "flips": 4}


def test_each_refusal_has_its_stage_and_every_digest_twice(failed_stage: Subject) -> None:
    facts = failed_stage.facts
    assert [r.kind for r in facts.refusals] == [
        "nonfinite",
        "command",
        "oom",
        "status",
        "structural",
        "cancel",
    ]
    first = facts.refusals[0]
    assert first.stage == "layer.3.qsa.select"
    failed = [stage for stage in first.stages if stage.state == "failed"]
    assert [stage.name for stage in failed] == ["layer.3.qsa.select"]
    assert first.n_done + first.n_not_reached + 1 == len(first.stages)
    assert len(first.digests) == 13
    assert all(line.same and line.before == line.after for line in first.digests)
    assert "NaN" in first.bad_value


def test_a_hole_that_was_asked_for_has_its_neighbours(hole_refused: Subject) -> None:
    (hole, gap) = hole_refused.facts.holes
    assert (hole.first, hole.last, hole.published) == (102, 102, False)
    assert (hole.left.position, hole.left.live) == (101, False)
    assert (hole.right.position, hole.right.live) == (103, False)
    # 96 to 99 were live: 99 is the last member of the first group, in cell 3
    assert (gap.first, gap.last) == (100, 100)
    assert (gap.left.position, gap.left.group, gap.left.place, gap.left.cell) == (99, 0, 3, 3)
    assert gap.right.position == 101


def test_the_session_ends_as_the_scenario_says(hole_refused: Subject) -> None:
    first, second = hole_refused.facts.sequences
    assert (first.run, first.complete_groups, first.tail, first.padding) == ((96, 103), 2, 0, 96)
    assert (second.run, second.complete_groups, second.tail) == ((4096, 4098), 0, 3)
    assert {check.name for check in hole_refused.facts.checks} == {"audit", "same-as-fresh"}
    assert all(check.ok for check in hole_refused.facts.checks)


def test_what_differs_from_the_expectation_leads(tmp_path: Path) -> None:
    source = json.loads(shipped()["left-padding"].read_text())
    source["expect"][3] = "ok"
    path = tmp_path / "s.json"
    path.write_text(json.dumps(source))
    subject = open_subject(path)
    assert subject.status == 1
    assert subject.facts.verdict.startswith("Not as expected: 1 expectation of the scenario failed")
    assert subject.facts.findings == ("op 3 (append): expected ok, got rejected: gap",)
    assert subject.facts.journal[3].expected == "ok"


def test_a_refusal_that_changed_something_is_unsound(tmp_path: Path) -> None:
    path = tmp_path / "c.bankflip"
    with CaptureWriter(path, start_snapshot()) as writer:
        for record in records(20):
            if record.number == 13:
                lie = (*record.digests_after[:-1], ("logits", digest("other")))
                record = replace(record, digests_after=lie)
            writer.record(record)
    facts = open_subject(path).facts
    assert not facts.ok
    assert facts.verdict.startswith("Unsound: 1 refused op of 3 changed public state")
    bad = next(r for r in facts.refusals if not r.unchanged)
    assert [line.owner for line in bad.digests if not line.same] == ["logits"]


def test_a_long_capture_is_counted_whole_and_printed_in_part(tmp_path: Path) -> None:
    path = tmp_path / "c.bankflip"
    with CaptureWriter(path, start_snapshot()) as writer:
        for record in records(1000):
            writer.record(record)
    facts = open_subject(path).facts
    refused = sum(record.outcome != "ok" for record in records(1000))
    assert facts.ok
    assert (facts.n_refusals, len(facts.refusals)) == (refused, MOST_REFUSALS)
    assert (facts.n_journal, len(facts.journal)) == (1000, MOST_JOURNAL)
    assert facts.journal[-1].number == 999
    assert len(facts.holes) <= MOST_HOLES
    assert facts.scenario == ""


def test_a_capture_tells_how_to_do_it_again(tmp_path: Path) -> None:
    from app.__main__ import main

    path = tmp_path / "c.bankflip"
    assert main(["run", "failed-stage", "--record", str(path), "--backend", "cpu"]) == 0
    facts = open_subject(path).facts
    assert facts.title == "A failed stage publishes nothing"
    again = tmp_path / "again.json"
    again.write_text(facts.scenario)
    assert open_subject(again).facts.ok
    assert dict(facts.run)["Command line"].startswith("bankflip ")
    hidden = open_subject(path, with_text=False).facts
    assert hidden.scenario == ""


def test_a_saved_session_is_loaded_and_checked(tmp_path: Path) -> None:
    engine = open_engine("qwen4exp-tiny", backend="cpu")
    engine.apply(append(0, 5, range(8, 21)))
    path = tmp_path / "s.safetensors"
    save_session(engine, path)
    subject = open_subject(path, backend="cpu")
    assert subject.status == 0
    assert subject.facts.kind == "session"
    assert subject.facts.sequences[0].run == (5, 17)
    assert dict(subject.facts.digests) == dict(engine.digests())
    content = bytearray(path.read_bytes())
    content[-3] ^= 0x40
    path.write_bytes(content)
    with pytest.raises(Unreadable):
        open_subject(path, backend="cpu")


def test_a_foreign_hole_has_its_neighbours(samples: Path) -> None:
    subject = open_subject(samples / "llama-cpp" / "hole.seq")
    facts = subject.facts
    assert subject.status == 1
    assert facts.verdict == "Unsound (hole): sequence 0, attention: positions 11..14 are missing."
    hole = facts.holes[0]
    assert (hole.first, hole.last, hole.published) == (11, 14, True)
    assert (hole.left.position, hole.left.group, hole.left.place) == (10, 2, 2)
    assert (hole.right.position, hole.right.group) == (15, 3)
    assert facts.reproduce == ("bankflip check hole.seq",)


def test_sound_and_unreadable_foreign_files(samples: Path) -> None:
    clean = open_subject(samples / "llama-cpp" / "clean.seq")
    assert clean.status == 0
    assert clean.facts.verdict.startswith("Sound: this llama.cpp-seq file holds 1 sequence")
    bad = open_subject(samples / "llama-cpp" / "bad-magic.seq")
    assert bad.status == 2
    assert bad.facts.verdict.startswith("Unsound (unreadable)")


def test_no_text_leaves_every_token_out() -> None:
    subject = subject_of("failed-stage", with_text=False)
    assert '"tokens"' not in subject.facts.scenario
    for record in subject.newest.records:
        assert "tokens" not in record.op_json


@pytest.mark.parametrize(
    ("op", "words"),
    [
        ({"op": "append", "positions": [4, 5, 6]}, "append 3 positions 4 to 6"),
        ({"op": "append", "positions": [4]}, "append 1 position 4"),
        ({"op": "append", "positions": [4, 6]}, "append 2 positions [4, 6]"),
        ({"op": "rewind", "to": 9}, "rewind to 9"),
        ({"op": "remove", "start": None, "stop": 8}, "remove below 8"),
        ({"op": "remove", "start": 4, "stop": 8}, "remove 4 to 7"),
        ({"op": "shift", "delta": -4, "start": 8, "stop": None}, "shift by -4 from 8"),
        ({"op": "fork", "src": 0, "dst": 2, "stop": None}, "fork sequence 0 to 2"),
        (
            {"op": "fail", "stage": "write", "kind": "oom", "during": {"op": "reset", "seq": 1}},
            "reset, made to fail after write (oom)",
        ),
        ({"op": "transaction", "ops": [{"op": "reset", "seq": 1}]}, "together: reset on 1"),
        ({}, "op"),
    ],
)
def test_ops_in_words(op: dict[str, object], words: str) -> None:
    assert op_words(op) == words


def test_odd_words() -> None:
    assert parse_op("nonsense") == parse_op("[1]") == {}
    assert pairs_words([]) == "none"
    assert pairs_words([(1, 1), (3, 5)], most=1) == "1 and 1 more"
