"""Forms to ops, refusals to corrected ops, effects."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.models import edits
from app.models.selection import Selection
from app.models.state import state_of
from engine.opjson import from_json
from tests.helpers import sessions

STATE = state_of(sessions.snapshot(sessions.sequence(0, 8, 42, evicted=8)), None, 3)
RANGE = Selection(seq=0, start=20, stop=28)


@pytest.mark.parametrize("form", edits.FORMS, ids=lambda form: form.op)
def test_defaults_of_every_form_make_an_op_of_the_engine(form):
    values = edits.defaults(form.op, STATE, RANGE)
    assert set(values) == {field.name for field in form.fields}
    op = from_json(edits.build(form.op, values))
    assert op.name == form.op


def test_defaults_come_from_the_selected_range():
    assert edits.defaults("rewind", STATE, RANGE)["to"] == "20"
    assert edits.defaults("remove", STATE, RANGE) == {"seq": "0", "start": "20", "stop": "28"}
    assert edits.defaults("evict_front", STATE, RANGE)["count"] == "20"
    assert edits.defaults("fork", STATE, RANGE) == {"src": "0", "dst": "1", "stop": "28"}
    assert edits.defaults("shift", STATE, RANGE)["delta"] == "-8"


def test_defaults_without_a_selection_are_the_frontier():
    assert edits.defaults("append", STATE, Selection())["positions"] == "42"
    assert edits.defaults("rewind", STATE, Selection())["to"] == "42"
    assert edits.defaults("remove", STATE, Selection()) == {"seq": "0", "start": "", "stop": ""}


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("12", [12]),
        ("12-15", [12, 13, 14, 15]),
        ("100, 101, 103", [100, 101, 103]),
        ("1-2 5", [1, 2, 5]),
        ("-3", [-3]),
    ],
)
def test_positions_are_read(line, wanted):
    assert edits.parse_positions(line) == wanted


@pytest.mark.parametrize(
    ("op", "values", "said"),
    [
        (
            "append",
            {"positions": ""},
            "positions: expected numbers such as 12-15 or 3, 4, given ''",
        ),
        ("append", {"positions": "a"}, "given 'a'"),
        ("append", {"positions": "0-2000000"}, "expected at most 1,000,000, given 2,000,001"),
        ("rewind", {"seq": "0", "to": "x"}, "Next position: expected a whole number, given 'x'"),
        ("rewind", {"seq": "", "to": "4"}, "Sequence: expected a whole number, given nothing"),
        ("save", {"seq": "0", "slot": " "}, "Slot: expected a name, given nothing"),
        (
            "append",
            {"seq": "0", "positions": "1-3", "tokens": "5"},
            "Token ids: expected 3 for as many positions, given 1",
        ),
    ],
)
def test_bad_fields_are_said_with_expected_and_given(op, values, said):
    filled = {"seq": "0", **values}
    with pytest.raises(edits.FormError) as caught:
        edits.build(op, filled)
    assert said in str(caught.value)


def test_a_refused_append_is_moved_to_the_nearest_legal_start():
    op = {"op": "append", "seq": 0, "positions": [50, 51, 52]}
    values, words = edits.corrected(op, sessions.refused(4, nearest=42))
    assert values == {"positions": "42-44"}
    assert words == "Use 42 – 44"


def test_a_refused_rewind_gets_the_nearest_target():
    op = {"op": "rewind", "seq": 0, "to": 3}
    values, words = edits.corrected(op, sessions.refused(4, op="rewind", nearest=8))
    assert values == {"to": "8"}
    assert words == "Use next position 8"


def test_nothing_to_correct_without_a_nearest_target():
    op = {"op": "reset", "seq": 0}
    assert edits.corrected(op, sessions.refused(4, op="reset")) is None
    assert edits.corrected({"op": "rewind"}, sessions.refused(4, nearest=None)) is None
    assert edits.corrected({"op": "rewind"}, sessions.record(4, 0, 4)) is None


def test_the_effect_names_runs_and_owners_that_change():
    then = replace(
        sessions.record(4, 42, 44),
        sequences=(sessions.sequence(0, 8, 44, evicted=8),),
        digests_before=sessions.digests(3),
        digests_after=tuple(
            (name, value if name == "saved" else sessions.digest(name, 4))
            for name, value in sessions.digests(3)
        ),
    )
    rows = {row.cells[0].text: row for row in edits.effect_table(STATE, then).rows}
    assert [cell.text for cell in rows["sequence 0: run"].cells[1:3]] == ["8 – 41", "8 – 43"]
    assert [c.text for c in rows["sequence 0: complete groups"].cells[1:3]] == ["8", "9"]
    assert "saved" not in rows
    assert "tokens" in rows


@pytest.mark.parametrize(
    ("op", "words"),
    [
        ({"op": "append", "seq": 0, "positions": [4, 5, 6]}, "append seq 0, positions 4 – 6"),
        ({"op": "append", "seq": 0, "positions": [4, 6]}, "append seq 0, positions 4, 6"),
        ({"op": "rewind", "seq": 1, "to": 4}, "rewind seq 1, to 4"),
        ({"op": "transaction", "ops": [{}, {}]}, "transaction of 2 ops"),
        (
            {"op": "fail", "stage": "verify", "kind": "oom", "during": {"op": "reset", "seq": 0}},
            "fail verify oom during reset seq 0",
        ),
    ],
)
def test_ops_in_one_line(op, words):
    assert edits.op_words(op) == words
