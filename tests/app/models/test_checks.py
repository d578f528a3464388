"""Results of checks as a grid."""

from __future__ import annotations

from app.models import checks
from engine.snapshot import CheckResult


def test_pass_and_fail_have_a_shape_and_a_word():
    result = CheckResult(
        "boundary-sweep", False, "one differs", (("4", "pass", "fail: gap"),), ("Size", "1", "5")
    )
    table = checks.result_table(result)
    assert [c.text for c in table.rows[0].cells] == ["4", "pass", "fail: gap"]
    assert [c.glyph for c in table.rows[0].cells] == ["", "tick", "cross"]
    assert checks.counts(result) == (1, 1)


def test_short_rows_and_missing_titles_are_filled_up():
    table = checks.result_table(CheckResult("audit", True, "", (("a",), ("b", "same")), ("Owner",)))
    assert [column.title for column in table.columns] == ["Owner", ""]
    assert [cell.text for cell in table.rows[0].cells] == ["a", ""]


def test_a_result_without_rows_is_an_empty_table():
    table = checks.result_table(CheckResult("audit", True, "fine"))
    assert (table.n_rows, table.columns) == (0, ())
