"""Legal ranges of ops."""

from __future__ import annotations

from app.models.limits import limit_table
from engine.snapshot import LimitView


def test_a_legal_range_and_an_impossible_op():
    table = limit_table(
        2,
        (
            LimitView("rewind", 112, 64, "no-checkpoint"),
            LimitView("copy", None, None, "not-derivable"),
        ),
    )
    assert [cell.text for cell in table.rows[0].cells] == ["rewind", "64 – 112", "no-checkpoint"]
    assert table.rows[0].jump.positions == (64, 65)
    assert [cell.text for cell in table.rows[1].cells] == [
        "copy",
        "–",
        "not possible: not-derivable",
    ]
    assert table.rows[1].cells[0].glyph == "cross"
    assert table.rows[1].jump.seq == 2


def test_no_limits_is_an_empty_table():
    assert limit_table(0, ()).n_rows == 0
