"""Journal lines: what stands in them for an op that was published, refused or failed."""

from __future__ import annotations

import json

import pytest

from engine.effects import Appended
from engine.errors import BadValue, Rejected, StepFailed
from engine.history import History
from engine.ops import Append, Fail, Op, Reset, Transaction
from engine.outcome import n_positions, op_text, outcome, short_json, told
from engine.rules import apply
from engine.snapshot import Record
from engine.terms import FailKind, Reason

OP = Append(3, range(100, 108), tuple(range(8)))


def line(op: Op, error: Rejected | StepFailed | None, appended: list[Appended]) -> Record:
    """A record whose other fields are of no interest."""
    common = {
        "number": 4,
        "txn": 2,
        "n_tokens": 8,
        "duration_ns": 1,
        "public_bank": 0,
        "flips": 2,
        "stages": (),
        "digests_before": (),
        "digests_after": (),
        "sequences": (),
        "wall_ns": 0,
    }
    return outcome(op, error, appended, common)


def appends(op: Op) -> list[Appended]:
    found = apply(History.empty(4, 1_000_000), op).effects
    return [effect for effect in found if isinstance(effect, Appended)]


def test_a_published_op_says_positions_and_cells() -> None:
    record = line(OP, None, appends(OP))
    assert (record.result, record.outcome, record.op, record.seq) == ("ok", "ok", "append", 3)
    assert record.sentence == "append on sequence 3: 8 positions, 100 to 107"
    assert record.positions_written == (100, 108)
    assert sum(n for _, n in record.cells_written) == 8


def test_an_op_without_appends_has_its_name_only() -> None:
    record = line(Reset(3), None, [])
    assert record.sentence == told(Reset(3), []) == "reset on sequence 3"
    assert record.positions_written is None
    assert record.cells_written == ()


def test_thousands_are_separated() -> None:
    op = Append(0, range(5_000, 6_234))
    assert told(op, appends(op)) == "append on sequence 0: 1,234 positions, 5,000 to 6,233"


def test_a_refusal_carries_expected_given_and_nearest() -> None:
    refused = Rejected("append", 3, Reason.GAP, expected=100, given=102, nearest=100)
    record = line(OP, refused, [])
    assert (record.outcome, record.result) == ("rejected", "rejected: gap")
    assert (record.expected, record.given, record.nearest) == (100, 102, 100)
    assert record.sentence == str(refused)


@pytest.mark.parametrize("kind", list(FailKind))
def test_a_failure_names_stage_kind_and_value(kind: FailKind) -> None:
    bad = BadValue("+Inf", "qsa.kv", 3, 104, (4, 0))
    record = line(OP, StepFailed("layer.3.qsa.project", kind, "append", 3, bad=bad), [])
    assert record.outcome == ("cancelled" if kind is FailKind.CANCEL else "failed")
    assert (record.stage, record.kind) == ("layer.3.qsa.project", str(kind))
    assert record.bad_value == "+Inf in qsa.kv sequence 3 position 104"


def test_a_value_without_an_owner_is_the_stages() -> None:
    bad = BadValue("NaN", None, 0, None, (0,))
    record = line(OP, StepFailed("head", FailKind.NONFINITE, bad=bad), [])
    assert record.bad_value == "NaN in head sequence 0"


def test_long_lists_are_told_by_their_ends() -> None:
    found = json.loads(op_text(Append(0, range(64), tuple(range(64)))))
    assert found["positions"] == found["tokens"] == list(range(64))
    found = json.loads(op_text(Transaction((Append(0, range(7, 72)),))))
    assert found["ops"][0]["positions"] == {"first": 7, "last": 71, "count": 65}
    assert short_json({"a": ["x", [1, 2]]}) == {"a": ["x", [1, 2]]}


def test_positions_are_counted_through_wrappers() -> None:
    both = Transaction((OP, Reset(1), Append(1, (0, 1))))
    assert n_positions(both) == 10
    assert n_positions(Fail("write", FailKind.OOM, both)) == 10
    assert n_positions(Reset(0)) == 0
