"""Every recorded sample gives its expected verdict, findings, publishers and chains."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from engine.formats import open_file

FOLDER = Path(__file__).parents[2] / "data" / "samples" / "kv-events"
FILES: dict[str, Any] = json.loads((FOLDER / "expected.json").read_text())["files"]


@pytest.mark.parametrize("name", FILES)
def test_verdict_findings_and_publishers(name: str) -> None:
    with open_file(FOLDER / name) as opened:
        report = opened.report.to_json()
    assert report["format"] == "kv-events"
    assert report["verdict"] == FILES[name]["verdict"]
    assert report["findings"] == FILES[name]["findings"]
    assert report["publishers"] == FILES[name]["publishers"]


@pytest.mark.parametrize("name", FILES)
def test_a_chain_is_a_sequence(name: str) -> None:
    with open_file(FOLDER / name) as opened:
        sequences = opened.report.to_json()["sequences"]
    expected = [
        (chain["leaf"], publisher["port"], chain["group"], chain["run"], chain.get("holes", []))
        for publisher in FILES[name]["publishers"]
        for chain in publisher["chains"]
    ]
    found = [
        (own["id"], own["publisher"], own["group"], own["run"], own["holes"]) for own in sequences
    ]
    assert found == expected
