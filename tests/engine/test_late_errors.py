"""Errors of a failed evaluation that the array library keeps for later."""

from __future__ import annotations

import threading
from collections.abc import Callable

import mlx.core as mx
import pytest

import engine.late_errors
import engine.protect.late_errors
from engine.engine import append
from engine.faults import unfinished
from tests.helpers.engines import good, session


class Library:
    """Stands in for `mx.synchronize`: raises where `plan` says so, then is quiet."""

    def __init__(self, *plan: bool) -> None:
        self.plan, self.calls = list(plan), 0

    def __call__(self, stream: mx.Stream) -> None:
        self.calls += 1
        if self.plan and self.plan.pop(0):
            raise RuntimeError("late")


@pytest.fixture(autouse=True)
def one_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other tests of this process may have worked on further streams."""
    monkeypatch.setattr(engine.protect.late_errors, "_SEEN", threading.local())


DRAINS = [
    (engine.late_errors.drain, engine.late_errors.MOST),
    (engine.protect.late_errors.drain, engine.protect.late_errors._MOST),
]
BOTH = pytest.mark.parametrize(("drain", "most"), DRAINS, ids=["engine", "protect"])


@BOTH
@pytest.mark.parametrize(
    ("plan", "calls"),
    [((), 2), ((True,), 3), ((True, True, True), 5), ((False, True), 4), ((False, True, True), 5)],
)
def test_until_two_rounds_are_quiet(
    plan: tuple[bool, ...],
    calls: int,
    drain: Callable[[], None],
    most: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    library = Library(*plan)
    monkeypatch.setattr(mx, "synchronize", library)
    drain()
    assert library.calls == calls
    assert calls < most


@BOTH
def test_a_lost_device_does_not_hold_up_for_ever(
    drain: Callable[[], None], most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = Library(*(True,) * 10_000)
    monkeypatch.setattr(mx, "synchronize", library)
    drain()
    assert library.calls == most


def test_a_bank_waits_for_them_before_it_reports(monkeypatch: pytest.MonkeyPatch) -> None:
    own = session()
    good(own, append(0, 0, [1, 2, 3]))
    library = Library(True, True)
    monkeypatch.setattr(mx, "synchronize", library)
    bank = own.pair.private_bank
    with pytest.raises(RuntimeError, match="BlockMaskedMM"):
        bank.evaluate(unfinished())
    assert bank.spoiled
    assert library.calls == 4
