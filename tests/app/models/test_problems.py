"""Problems: first error on top, repeats counted, what an empty list says."""

from __future__ import annotations

from app.models import problems
from app.models.problems import Problem, Problems
from engine.snapshot import CheckResult
from tests.helpers import sessions


def test_what_published_is_no_problem():
    assert problems.of_record(sessions.record(1, 0, 4)) is None


def test_a_refusal_has_expected_given_nearest_and_a_place():
    found = problems.of_record(sessions.refused(7))
    assert (found.severity, found.expected, found.given, found.nearest) == (
        "refused",
        "102",
        "103",
        "102",
    )
    assert found.jump.positions == (103, 104)
    assert found.jump.event == 7


def test_a_failure_leads_to_its_stage_and_positions():
    found = problems.of_record(sessions.failed(7))
    assert found.severity == "failed"
    assert found.jump.stage == "layer.3.qsa.select"
    assert found.jump.positions == (32, 36)
    assert found.given == "NaN"


def test_the_first_error_stays_on_top():
    items = Problems()
    for record in (sessions.refused(3), sessions.failed(5), sessions.refused(9)):
        items.add(problems.of_record(record))
    assert [items.table().cell(row, 1).text for row in range(3)] == ["3", "5", "9"]
    assert items.headline().event == 3


def test_a_bug_of_ours_is_above_all():
    items = Problems()
    items.add(problems.of_record(sessions.refused(3)))
    items.add(Problem("bug", "banks disagree"))
    assert items.headline().sentence == "banks disagree"
    assert items.table().cell(0, 0).text == "bug"


def test_the_same_in_a_row_counts_up():
    items = Problems()
    for number in (3, 4, 5):
        items.add(problems.of_record(sessions.refused(number)))
    assert items.count() == 1
    assert items.table().cell(0, 5).text.endswith("(3 times)")


def test_more_than_the_limit_is_counted():
    items = Problems(limit=2)
    for number in range(4):
        items.add(Problem("failed", f"number {number}"))
    assert (items.count(), items.n_more) == (2, 2)
    assert items.headline().sentence == "number 0"


def test_an_empty_list_says_which_checks_ran():
    items = Problems()
    assert items.empty_words().startswith("No problems. No check ran yet")
    items.add_check(CheckResult("audit", True, "fine"))
    assert items.empty_words() == "No problems. 1 of 1 check passed: audit."
    items.add_check(CheckResult("same-as-fresh", False, "differs at 4"))
    assert items.headline().sentence == "same-as-fresh: differs at 4"
    items.clear()
    assert items.items == []
