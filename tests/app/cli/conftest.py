"""The command line in this process."""

from __future__ import annotations

import pytest

from tests.helpers.commands import Command


@pytest.fixture
def bankflip(capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs `bankflip ARGUMENTS` here."""
    return Command(capsys)
