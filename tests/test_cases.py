"""Every case file, as JSON and as the same content in TOML, executed without a model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from engine.cases import Scenario, dump, parse
from engine.replay import replay

CASES = sorted((Path(__file__).parent / "data" / "cases").glob("*.json"))


def as_toml(value: Any) -> str:
    """An inline TOML value; null is left out, since TOML has none."""
    if isinstance(value, dict):
        fields = (f"{json.dumps(k)} = {as_toml(v)}" for k, v in value.items() if v is not None)
        return "{" + ", ".join(fields) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(as_toml(item) for item in value) + "]"
    return json.dumps(value)


def in_both_forms(file: Path) -> tuple[Scenario, Scenario]:
    content = file.read_bytes()
    lines = (f"{name} = {as_toml(value)}\n" for name, value in json.loads(content).items())
    return parse(content, "x"), parse("".join(lines).encode(), "x", toml=True)


def test_all_cases_are_there() -> None:
    assert len(CASES) >= 30


@pytest.mark.parametrize("file", CASES, ids=lambda file: file.stem)
def test_case_gives_what_it_expects(file: Path) -> None:
    scenario, from_toml = in_both_forms(file)
    assert from_toml == scenario
    assert scenario.expect is not None
    found = replay(scenario)
    assert found.mismatches == ()
    assert found.results == scenario.expect
    assert found.final == scenario.final
    for history in found.histories:
        history.check()


@pytest.mark.parametrize("file", CASES, ids=lambda file: file.stem)
def test_a_wrong_expectation_is_noticed(file: Path) -> None:
    """Each result and each final number changed in turn gives exactly one mismatch."""
    value = json.loads(file.read_bytes())
    for number in range(len(value["ops"])):
        other = json.loads(file.read_bytes())
        right = other["expect"][number]
        other["expect"][number] = "rejected: cancel" if right == "ok" else "ok"
        found = replay(parse(json.dumps(other).encode()))
        assert len(found.mismatches) == 1
        assert f"op {number} " in found.mismatches[0]
    for seq in value["expect"][-1]["final"]:
        other = json.loads(file.read_bytes())
        other["expect"][-1]["final"][seq]["tail"] += 1
        assert len(replay(parse(json.dumps(other).encode())).mismatches) == 1


@pytest.mark.parametrize("file", CASES, ids=lambda file: file.stem)
def test_dump_gives_the_scenario_again(file: Path) -> None:
    scenario = parse(file.read_bytes(), "x")
    assert parse(dump(scenario).encode(), "x") == scenario
