"""Two checked files compared."""

from __future__ import annotations

import copy

from app.models.compare_files import compare_files
from tests.app.models.test_findings import TORN


def rows(table):
    return {row.cells[0].text: row for row in table.rows}


def test_a_file_equals_itself():
    sentence, same, table = compare_files(TORN, copy.deepcopy(TORN))
    assert same
    assert sentence.endswith("the same runs, parts and findings")
    assert {row.cells[3].text for row in table.rows} == {"same"}


def test_a_mended_file_differs_where_it_was_torn():
    mended = copy.deepcopy(TORN)
    mended |= {"file": "dir/mended.bin", "verdict": "ok", "findings": []}
    mended["sequences"][0] |= {"holes": [], "forgotten": [], "broken": [], "usable": [0, 31]}
    mended["sequences"][0]["parts"][1]["run"] = [0, 31]
    sentence, same, table = compare_files(TORN, mended)
    assert not same
    assert sentence.startswith("torn.safetensors and mended.bin: ")
    assert sentence.endswith("first verdict")
    found = rows(table)
    assert [cell.text for cell in found["sequence 0: layer.2"].cells] == [
        "sequence 0: layer.2",
        "0 – 15",
        "0 – 31",
        "differs",
    ]
    assert found["sequence 0: layer.2"].jump.positions == (16, 17)
    assert found["sequence 0: holes"].cells[1].text == "12 – 13"
    assert found["sequence 0: holes"].jump.positions == (12, 13)
    assert found["sequence 0: run"].cells[3].text == "same"


def test_a_sequence_that_one_file_lacks():
    other = copy.deepcopy(TORN) | {"sequences": []}
    _, same, table = compare_files(TORN, other)
    assert not same
    assert [c.text for c in rows(table)["sequence 0"].cells[1:3]] == ["present", "absent"]


def test_files_that_could_not_be_read_are_compared_by_their_verdict():
    bad = {"file": "x", "format": None, "verdict": "unreadable", "sequences": []}
    _, same, table = compare_files(bad, TORN)
    assert not same
    assert rows(table)["verdict"].cells[3].text == "differs"
