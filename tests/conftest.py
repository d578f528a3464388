"""Profiles and markers that every test shares."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="run the long profiles as well")


@pytest.fixture(scope="session")
def long_profile(request: pytest.FixtureRequest) -> bool:
    """True when the long profile was asked for with --long."""
    return bool(request.config.getoption("--long"))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--long"):
        return
    skip = pytest.mark.skip(reason="long profile: add --long")
    for item in items:
        if "long" in item.keywords:
            item.add_marker(skip)
