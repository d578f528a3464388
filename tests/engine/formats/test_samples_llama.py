"""Every llama.cpp sample gives its expected verdict, findings, runs, holes and groups."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from engine.formats import Options, open_file
from engine.formats.report import Code

FOLDER = Path(__file__).parents[2] / "data" / "samples" / "llama-cpp"
EXPECTED: dict[str, Any] = json.loads((FOLDER / "expected.json").read_text())
FILES: dict[str, Any] = EXPECTED["files"]
FACTS = (
    "container",
    "memory",
    "arch",
    "tokens",
    "n_stream",
    "cell_ext",
    "k_type",
    "v_type",
    "orphan_cells",
    "shared_cells",
    "mrope_blocks",
    "file_order",
    "index_agrees",
)


@pytest.mark.parametrize("name", FILES)
def test_verdict_and_findings(name: str) -> None:
    expected = FILES[name]
    with open_file(FOLDER / name) as opened:
        report = opened.report.to_json()
    assert report["verdict"] == expected["verdict"]
    assert report["findings"] == expected["findings"]
    assert report["detail"] == expected.get("detail")


@pytest.mark.parametrize("name", [name for name in FILES if "sections" in FILES[name]])
def test_sections(name: str) -> None:
    """Runs, counts, holes, duplicates and groups of every sequence in every section."""
    expected = FILES[name]
    with open_file(FOLDER / name, Options(group_size=EXPECTED["group_size"])) as opened:
        sequences = {entry["id"]: entry for entry in opened.report.to_json()["sequences"]}
    named = {entry["seq"] for section in expected["sections"] for entry in section["sequences"]}
    assert set(sequences) == named
    explained = "mrope_blocks" in expected
    for number, section in enumerate(expected["sections"]):
        for entry in section["sequences"]:
            sequence = sequences[entry["seq"]]
            part = sequence["parts"][number]
            assert part["role"] == section["role"]
            assert part["run"] == [entry["first"], entry["last"]]
            assert part["live"] == entry["count"]
            assert part["holes"] == ([] if explained else entry["holes"])
            if number:
                continue
            assert sequence["run"] == [entry["first"], entry["last"]]
            assert sequence["holes"] == ([] if explained else entry["holes"])
            assert sequence["duplicates"] == ([] if explained else entry["duplicates"])
            groups = entry["groups"]
            assert sequence["complete_groups"] == groups["complete"]
            assert sequence["broken"] == groups["broken"]
            assert sequence["tail"] == groups["tail"]


@pytest.mark.parametrize("name", [name for name in FILES if "sections" in FILES[name]])
def test_facts(name: str) -> None:
    expected = FILES[name]
    with open_file(FOLDER / name) as opened:
        report = opened.report
    if expected["verdict"] == "ok":
        assert report.fact("file_order") == expected.get("file_order")
    for fact in FACTS:
        if fact in expected:
            assert report.fact(fact) == expected[fact], fact


def test_a_named_architecture_shows_the_missing_index() -> None:
    expected = FILES["index-hybrid-no-index.seq"]["with_arch"]
    options = Options(architecture=expected["arch"])
    with open_file(FOLDER / "index-hybrid-no-index.seq", options) as opened:
        assert opened.report.to_json()["findings"] == expected["findings"]
        assert opened.report.codes == (Code.TRUNCATED,)


LOGS: dict[str, Any] = EXPECTED["logs"]


@pytest.mark.parametrize("name", LOGS)
def test_logs(name: str) -> None:
    """Errors in order, and the last snapshots with ranges and with a map."""
    expected = LOGS[name]
    with open_file(FOLDER / name) as opened:
        report = opened.report.to_json()
    assert report["format"] == "llama.cpp-log"
    assert report["errors"] == expected.get("errors", [])
    assert ("inconsistent" in report["findings"]) == bool(expected.get("errors"))
    if expected["level"] < 2:  # no maps in such a log
        expected = {**expected, "last_map_positions": None}
    for field in ("last_minmax", "last_map_positions"):
        if field in expected:
            assert report[field] == expected[field]
