"""Errors of a failed evaluation that the array library keeps for later."""

from __future__ import annotations

import mlx.core as mx
import pytest

from engine import late_errors
from engine.engine import append
from engine.faults import unfinished
from tests.helpers.engines import good, session


class Library:
    """Stands in for `mx.synchronize`: raises where `plan` says so, then is quiet."""

    def __init__(self, *plan: bool) -> None:
        self.plan, self.calls = list(plan), 0

    def __call__(self) -> None:
        self.calls += 1
        if self.plan and self.plan.pop(0):
            raise RuntimeError("late")


@pytest.mark.parametrize(
    ("plan", "calls"),
    [((), 2), ((True,), 3), ((True, True, True), 5), ((False, True), 4), ((False, True, True), 5)],
)
def test_until_two_rounds_are_quiet(
    plan: tuple[bool, ...], calls: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = Library(*plan)
    monkeypatch.setattr(mx, "synchronize", library)
    late_errors.drain()
    assert library.calls == calls


def test_a_lost_device_does_not_hold_up_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    library = Library(*(True,) * 10_000)
    monkeypatch.setattr(mx, "synchronize", library)
    late_errors.drain()
    assert library.calls == late_errors.MOST


def test_a_bank_waits_for_them_before_it_reports(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = session()
    good(engine, append(0, 0, [1, 2, 3]))
    library = Library(True, True)
    monkeypatch.setattr(mx, "synchronize", library)
    bank = engine.pair.private_bank
    with pytest.raises(RuntimeError, match="BlockMaskedMM"):
        bank.evaluate(unfinished())
    assert bank.spoiled
    assert library.calls == 4
