"""What is measured: every kernel, against something that gives the same, with its own bytes."""

from __future__ import annotations

import mlx.core as mx
import numpy as np
import pytest

import metal
from metal import KERNELS, host, run
from metal.measure import Sample, copy_rate, measure, samples

SMALL = tuple(samples(16))


def test_every_kernel_is_measured_and_every_sample_has_a_name_of_its_own() -> None:
    assert {sample.kernel for sample in SMALL} == set(KERNELS)
    names = [(sample.kernel, sample.shape) for sample in SMALL]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("sample", SMALL, ids=lambda s: f"{s.kernel}.{s.shape}")
def test_the_peer_gives_what_the_kernel_gives(sample: Sample) -> None:
    ours = run(sample.kernel, *sample.inputs, backend="cpu", **sample.params)
    theirs = sample.peer(*sample.inputs)
    pairs = zip(*(r if isinstance(r, tuple) else (r,) for r in (ours, theirs)), strict=True)
    for a, b in pairs:
        left, right = (np.array(x.astype(mx.float32)) for x in (a, b))
        assert left.shape == right.shape
        finite = np.isfinite(right)
        assert np.array_equal(left[~finite], right[~finite])
        scale = max(1.0, float(np.abs(right[finite]).max(initial=0.0)))
        tolerance = 1e-2 if mx.bfloat16 in (a.dtype, b.dtype) else 1e-4
        apart = np.abs(left[finite] - right[finite]).max(initial=0.0)
        assert apart <= tolerance * scale
    # nothing can move less than its outputs, nor much more than all of its inputs and outputs
    outputs = sum(r.nbytes for r in (ours if isinstance(ours, tuple) else (ours,)))
    inputs = sum(array.nbytes for array in sample.inputs)
    assert 0 < sample.n_bytes <= inputs + 2 * outputs + inputs // 4


def test_inputs_are_the_same_in_every_run() -> None:
    for one, other in zip(SMALL, samples(16), strict=True):
        assert all(mx.array_equal(a, b) for a, b in zip(one.inputs, other.inputs, strict=True))


@pytest.mark.skipif(not host.available(), reason="no C++ compiler: the host target is absent")
def test_times_are_of_all_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    cheap = [s for s in SMALL if s.kernel in ("group_status", "pool_groups")]
    monkeypatch.setattr("metal.measure.samples", lambda divisor: iter(cheap))
    monkeypatch.setattr("metal.measure.copy_rate", lambda n: 1e9)
    found = list(measure("host"))
    assert [t.sample.kernel for t in found] == [s.kernel for s in cheap]
    for times in found:
        assert times.kernel > 0
        assert times.peer > 0
        assert times.floor == times.sample.n_bytes / 1e9


def test_a_copy_has_a_rate() -> None:
    assert copy_rate(1 << 12) > 0
    assert "cpu" in metal.available()
