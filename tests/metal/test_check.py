"""What `bankflip doctor` shows of the kernels."""

from __future__ import annotations

import dataclasses

import mlx.core as mx
import pytest

import metal
from metal import check, host, reference
from metal.kernels import KERNELS


def test_every_kernel_is_checked_on_every_target_here(host_target):
    rows = metal.check_all()
    expected = tuple(name for name in metal.available() if name != "cpu")
    assert [row.kernel for row in rows] == list(KERNELS)
    for row in rows:
        assert row.ok, row
        assert row.targets == expected
        assert all(c.difference <= 2 * (row.tolerance + 2.0**-8) for c in row.checks)


def test_samples_exercise_the_kernels():
    """A sample that gives nothing but zeros would prove nothing."""
    for name, kernel in KERNELS.items():
        for element in kernel.element_types or ("float32",):
            arrays, params = check.SAMPLES[name](element)
            result = kernel.reference(*arrays, **params)
            for array in result if isinstance(result, tuple) else (result,):
                assert bool(mx.any(array != 0)), (name, element)


def test_a_wrong_result_is_reported(host_target, monkeypatch):
    def wrong(x: mx.array, weight: mx.array) -> mx.array:
        return reference.linear(x, weight) + 0.125

    monkeypatch.setitem(
        check.KERNELS, "linear", dataclasses.replace(KERNELS["linear"], reference=wrong)
    )
    row = check.check("linear")
    assert not row.ok
    assert row.targets == ()
    assert "off by" in row.checks[-1].detail


def test_a_refused_text_is_reported_not_raised(host_target, monkeypatch):
    def refuse(*_args):
        raise host.NoCompiler("the compiler refused the kernel texts: line 3")

    monkeypatch.setattr(host, "run", refuse)
    row = check.check("linear")
    host_check = next(c for c in row.checks if c.target == "host")
    assert not host_check.ok
    assert "line 3" in host_check.detail


def test_a_kernel_works_where_it_gives_the_reference(host_target):
    assert metal.works("linear", host_target)
    assert not metal.works("linear", "cpu")  # the reference itself is no kernel
    assert not metal.works("linear", "nowhere")


def test_rows_are_frozen():
    row = check.Row("linear", ("float32",), 0.0, ())
    with pytest.raises(dataclasses.FrozenInstanceError):
        row.kernel = "x"  # type: ignore[misc]
