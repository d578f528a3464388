"""Reports of foreign state as tables."""

from __future__ import annotations

from app.models import findings

TORN = {
    "file": "torn.safetensors",
    "format": "mlx-lm",
    "verdict": "torn",
    "findings": ["torn", "hole"],
    "reason": "layers 0 and 1 end at 31, layers 2 and 3 at 15",
    "detail": None,
    "unproved": ["layer.9"],
    "sequences": [
        {
            "id": 0,
            "run": [0, 31],
            "usable": [0, 15],
            "live": 30,
            "holes": [[12, 13]],
            "duplicates": [],
            "complete_groups": 8,
            "broken": [3],
            "tail": 0,
            "forgotten": [[12, 15]],
            "parts": [
                {"name": "layer.0", "role": "attention", "class": "KVCache", "run": [0, 31],
                 "live": 30, "holes": [[12, 13]], "evicted": [], "non_finite": [], "stale": []},
                {"name": "layer.2", "role": "attention", "class": "KVCache", "run": [0, 15],
                 "live": 16, "holes": [], "evicted": [], "non_finite": [], "stale": []},
            ],
        }
    ],
}  # fmt: skip


def test_verdict_in_one_sentence():
    assert findings.verdict(TORN) == ("torn: layers 0 and 1 end at 31, layers 2 and 3 at 15", False)
    assert findings.verdict({"verdict": "ok", "format": "mlx-lm", "sequences": []}) == (
        "Sound: mlx-lm, 0 sequences",
        True,
    )


def test_findings_lead_to_positions():
    table = findings.finding_table(TORN)
    rows = [(r.cells[0].text, r.cells[2].text, r.jump and r.jump.positions) for r in table.rows]
    assert rows == [
        ("torn", "16 – 31", (16, 32)),
        ("hole", "12 – 13", (12, 14)),
        ("forgotten", "12 – 15", (12, 16)),
        ("broken group", "g3", None),
        ("unproved", "–", None),
    ]


def test_parts_that_disagree_name_their_own_sequence():
    """Sequence 0 is sound, 1 has a hole of its own; 3 can be used nowhere."""
    sequences = [
        {"id": 0, "run": [0, 21], "usable": [0, 21]},
        {"id": 1, "run": [0, 30], "usable": [0, 4], "holes": [5]},
        {"id": 2, "run": [4, 21], "usable": [4, 9]},
        {"id": 3, "run": [7, 9], "usable": None},
    ]
    for code in ("torn", "index_drift", "swa_drift", "recurrent_drift"):
        for some, seq, where, positions in (
            (sequences, "2", "10 – 21", (10, 22)),
            (sequences[3:], "3", "7 – 9", (7, 10)),
            (sequences[:2], "1", "5 – 30", (5, 31)),
        ):
            row = findings.finding_table({"findings": [code], "sequences": some}).rows[0]
            assert [cell.text for cell in row.cells[:3]] == [code.replace("_", " "), seq, where]
            assert row.jump is not None
            assert (row.jump.seq, row.jump.positions) == (int(seq), positions)
        (row,) = findings.finding_table({"findings": [code], "sequences": sequences[:1]}).rows
        assert (row.cells[1].text, row.jump) == ("–", None)


def test_rows_that_are_not_finite_lead_to_their_positions():
    part = {"name": "layer.1", "role": "attention", "run": [0, 23], "non_finite": [[12, 23], 5]}
    report = {"findings": ["non_finite"], "sequences": [{"id": 4, "run": [0, 23], "parts": [part]}]}
    rows = findings.finding_table(report).rows
    assert [(r.cells[2].text, r.jump and (r.jump.seq, r.jump.positions)) for r in rows] == [
        ("12 – 23", (4, (12, 24))),
        ("5", (4, (5, 6))),
    ]
    assert rows[0].cells[3].text == "layer.1: rows that are not finite"


def test_a_hole_is_one_row_with_the_parts_that_it_concerns():
    rows = findings.finding_table(TORN).rows
    (hole,) = (row for row in rows if row.cells[0].text == "hole")
    assert hole.cells[1].text == "0"
    assert hole.cells[3].text == "missing inside the run, in layer.0"


def test_the_same_rows_of_several_parts_are_one_finding():
    parts = [{"name": f"layer.{n}", "non_finite": [[3, 4]]} for n in range(5)]
    report = {"findings": ["non_finite"], "sequences": [{"id": 0, "run": [0, 7], "parts": parts}]}
    (row,) = findings.finding_table(report).rows
    assert row.cells[3].text == "layer.0 to layer.4 (5): rows that are not finite"


def test_a_finding_without_ranges_keeps_its_reason():
    report = {"findings": ["hole"], "reason": "under two chains", "sequences": []}
    (row,) = findings.finding_table(report).rows
    assert row.cells[3].text == "a position inside the run is missing: under two chains"


def test_parts_stand_against_the_run():
    rows = findings.part_table(TORN).rows
    assert [row.cells[1].text for row in rows] == ["whole run", "layer.0", "layer.2"]
    assert rows[0].cells[6].text == "usable 0 – 15"
    assert rows[1].cells[6].text == "reaches the end"
    assert rows[1].cells[7].text == "hole 12 – 13"
    assert rows[2].cells[6].text == "behind by 16"


def test_unreadable_files_have_no_parts():
    report = {"file": "x", "format": None, "verdict": "unreadable", "findings": ["unreadable"],
              "reason": "wrong magic", "sequences": []}  # fmt: skip
    assert findings.verdict(report) == ("unreadable: wrong magic", False)
    assert findings.part_table(report).n_rows == 0
    assert findings.finding_table(report).n_rows == 1


def test_every_finding_of_the_format_is_explained():
    ordered = (
        "unreadable truncated undecodable missing inconsistent non_finite torn index_drift "
        "swa_drift recurrent_drift duplicate step hole lost_events unknown_parent"
    )
    assert list(findings.WORDS) == ordered.split()
