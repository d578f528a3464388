"""Reports of shipped scenarios, made once a session of tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.cli.run import load
from app.play import engine_for, play
from app.report.sources import Subject, of_played


def subject_of(name: str, with_text: bool = True) -> Subject:
    """A shipped scenario, executed."""
    scenario = load(name)
    return of_played(play(scenario, engine_for(scenario, backend="cpu")), with_text)


@pytest.fixture(scope="session")
def failed_stage() -> Subject:
    """Six failures, one of each kind."""
    return subject_of("failed-stage")


@pytest.fixture(scope="session")
def hole_refused() -> Subject:
    """A hole, a gap and an overlap."""
    return subject_of("hole-refused")


@pytest.fixture
def epoch(monkeypatch: pytest.MonkeyPatch) -> str:
    """A fixed date."""
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    return "2023-11-14 22:13 UTC"


@pytest.fixture
def samples() -> Path:
    """Files of other engines."""
    return Path(__file__).parents[2] / "data" / "samples"
