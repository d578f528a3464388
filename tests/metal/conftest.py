"""Which targets exist here; a missing one is said aloud, and in CI a missing compiler fails."""

from __future__ import annotations

import os

import pytest

from metal import host, loader


def need_host() -> None:
    """Skip (fail where CI=true) when no C++ compiler is there."""
    if host.available():
        return
    message = "no C++ compiler: kernels cannot be executed on the host"
    if os.environ.get("CI", "").lower() == "true":
        pytest.fail(message)
    pytest.skip(message)


def need_device(target: str) -> None:
    """Skip when MLX sees no device of that kind."""
    if loader.accelerator() != target:
        pytest.skip(f"MLX sees no {target} device on this machine")


@pytest.fixture
def host_target() -> str:
    need_host()
    return "host"


TARGETS = [
    "cpu",
    "host",
    pytest.param("metal", marks=pytest.mark.metal),
    pytest.param("cuda", marks=pytest.mark.cuda),
]


@pytest.fixture(params=TARGETS)
def target(request: pytest.FixtureRequest) -> str:
    """Every backend that a kernel or its reference runs on, one test each."""
    name = str(request.param)
    if name == "host":
        need_host()
    elif name != "cpu":
        need_device(name)
    return name
