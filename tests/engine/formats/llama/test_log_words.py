"""Words of a position map."""

from __future__ import annotations

import pytest

from engine.formats.llama.log import cells_of


@pytest.mark.parametrize(
    ("line", "cells"),
    [
        ("    0    1    . *", [0, 1, -1]),
        ("100000 100001 .", [100000, 100001, -1]),
        # digits that are no numbers, and a number without an end
        ("    ²    1", [1]),
        ("ⅷ ³ 7 " + "9" * 5000, [7, -1]),
    ],
)
def test_cells_of_a_line(line: str, cells: list[int]) -> None:
    assert cells_of(line) == cells
