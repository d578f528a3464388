"""Arming, the armed list and the proof."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.models import faults
from tests.helpers import sessions


@pytest.mark.parametrize(
    ("choice", "nth", "wanted"),
    [("once", 9, (1, 0)), ("always", 9, (0, 0)), ("nth", 1, (1, 0)), ("nth", 3, (1, 2))],
)
def test_choices_become_times_and_passes(choice, nth, wanted):
    arming = faults.Arming.of(choice, nth)
    assert (arming.times, arming.skip) == wanted


def test_a_failure_that_changed_nothing_is_proved():
    proof = faults.proof(sessions.failed(3))
    assert proof.holds
    assert proof.sentence == "failed: all 13 owners unchanged, byte for byte"
    assert {row.cells[3].text for row in proof.table.rows} == {"unchanged"}
    assert [row.cells[1].copy for row in proof.table.rows] == [d for _, d in sessions.digests(2)]


def test_a_failure_that_changed_an_owner_is_called_a_bug():
    record = sessions.failed(3)
    after = (("tokens", sessions.digest("changed")), *record.digests_after[2:])
    bad = replace(record, digests_after=(record.digests_after[0], *after))
    proof = faults.proof(bad)
    assert not proof.holds
    assert proof.sentence == "failed, but tokens changed: this is a bug"
    assert proof.table.rows[1].cells[3].glyph == "cross"


def test_a_refusal_says_refused():
    assert faults.proof(sessions.refused(4)).sentence.startswith("refused: all 13 owners")


def test_success_counts_what_was_published():
    proof = faults.proof(sessions.record(3, 0, 4))
    assert proof.holds
    assert proof.sentence == "published: 13 of 13 owners changed, one flip"


def test_without_digests_nothing_is_claimed():
    record = replace(sessions.failed(3), digests_before=(), digests_after=())
    assert faults.proof(record).sentence == "no digests were kept for this event"


def test_result_line_adds_what_the_sentence_lacks():
    assert faults.result_line(sessions.refused(4)) == (
        "append on sequence 0: not-consecutive, expected 102, given 103"
    )
    assert faults.result_line(sessions.failed(4)).endswith("(NaN at position 34)")


def test_armed_table():
    table = faults.armed_table((("head", "oom", 0, 0), ("publish", "cancel", 1, 4)))
    assert [[c.text for c in row.cells] for row in table.rows] == [
        ["head", "oom", "always"],
        ["publish", "cancel", "on time 5"],
    ]
    assert table.rows[0].jump.stage == "head"
    assert faults.armed_table(()).n_rows == 0


def test_every_failure_kind_is_explained():
    assert set(faults.KIND_WORDS) == set(faults.FailKind)
