"""Profiles and markers that every test shares."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

OWN_PROCESS = "BANKFLIP_TESTS_OWN_PROCESS"


def pytest_configure() -> None:
    """What a shell starts in the background ignores Ctrl-C, and so would every child here."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


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


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Runs a test marked `own_process` in a process that ends with it."""
    if "own_process" not in pyfuncitem.keywords or OWN_PROCESS in os.environ:
        return None
    environment = {**os.environ, OWN_PROCESS: "1"}
    environment.pop("PYTEST_ADDOPTS", None)
    # before this process would be ended for having waited too long
    patience = 0.8 * float(pyfuncitem.config.getini("faulthandler_timeout"))
    run = subprocess.run(
        # no plugin that spreads tests over processes, and no cache that the outer run writes, too
        [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "-p", "no:cacheprovider"]
        + ["--long"] * bool(pyfuncitem.config.getoption("--long"))
        + [f"{pyfuncitem.path}::{pyfuncitem.nodeid.partition('::')[2]}"],
        cwd=pyfuncitem.config.rootpath,
        env=environment,
        timeout=patience,
        capture_output=True,
        text=True,
        check=False,
    )
    if run.returncode or "1 passed" not in run.stdout:
        pytest.fail(f"exit status {run.returncode}\n{run.stdout}\n{run.stderr}", pytrace=False)
    return True
