"""Row flags and norms of every float type, against NumPy and the definitions of 8-bit floats."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from engine.formats.rows import SLICE_BYTES, any_bad, row_flags, row_norms, to_floats
from engine.formats.safetensors import Tensor
from engine.formats.source import Source

VIEWS = {"F16": "<u2", "BF16": "<u2", "F32": "<u4", "F64": "<u8", "F8_E5M2": "u1", "F8_E4M3": "u1"}


def made(dtype: str, codes: np.ndarray) -> tuple[Source, Tensor]:  # type: ignore[type-arg]
    """A file of these bit patterns behind three odd bytes."""
    raw = b"odd" + codes.astype(VIEWS[dtype]).tobytes()
    return Source(Path("made"), raw, len(raw)), Tensor("t", dtype, codes.shape, 3, len(raw) - 3)


@pytest.mark.parametrize("dtype", VIEWS)
def test_flags_are_those_of_the_values(dtype: str) -> None:
    """Random bits, a zero row of either sign, in every head and batch entry."""
    rng = np.random.default_rng(5)
    item = np.dtype(VIEWS[dtype]).itemsize
    codes = rng.integers(0, 1 << (8 * item - 1), (2, 3, 40, 4), dtype=np.uint64)
    codes[:, :, 7] = 0
    codes[0, :, 9] = 1 << (8 * item - 1)  # minus zero
    codes[1, 0, 11] = 0  # one head of three
    source, tensor = made(dtype, codes)
    values = to_floats(bytes(source.data[3:]), dtype).reshape(codes.shape)
    flags = row_flags(source, tensor)
    assert flags is not None
    np.testing.assert_array_equal(flags.bad, ~np.isfinite(values).all(axis=(1, 3)))
    np.testing.assert_array_equal(flags.zero, (values == 0).all(axis=(1, 3)))
    assert flags.zero[0, 9]
    assert not flags.zero[1, 11]
    assert any_bad(source, tensor) == bool(flags.bad.any())


def test_a_large_tensor_is_scanned_in_slices() -> None:
    rows, width = 9_000, 128
    codes = np.full((1, 3, rows, width), 0x3C00, np.uint16)
    assert codes.nbytes > SLICE_BYTES
    codes[0, 2, 8_999, 127] = 0x7C00
    codes[0, :, 4_500] = 0
    source, tensor = made("F16", codes)
    flags = row_flags(source, tensor)
    assert flags is not None
    assert np.flatnonzero(flags.bad[0]).tolist() == [8_999]
    assert np.flatnonzero(flags.zero[0]).tolist() == [4_500]
    norms = row_norms(source, tensor, 0)
    assert norms[0] == pytest.approx(np.sqrt(3 * width))
    assert np.isinf(norms[8_999])
    assert any_bad(source, tensor)


@pytest.mark.parametrize(
    ("dtype", "code", "value"),
    [
        ("F8_E4M3", 0x38, 1.0),
        ("F8_E4M3", 0xB8, -1.0),
        ("F8_E4M3", 0x7E, 448.0),
        ("F8_E4M3", 0x01, 2.0**-9),
        ("F8_E5M2", 0x3C, 1.0),
        ("F8_E5M2", 0x7B, 57344.0),
        ("F8_E5M2", 0x01, 2.0**-16),
        ("BF16", 0x3F80, 1.0),
        ("BF16", 0xC040, -3.0),
    ],
)
def test_values_by_definition(dtype: str, code: int, value: float) -> None:
    raw = np.array([code], VIEWS[dtype]).tobytes()
    assert to_floats(raw, dtype).tolist() == [value]


def test_integers_and_empty_tensors_have_no_flags() -> None:
    source = Source(Path("made"), bytes(64), 64)
    assert row_flags(source, Tensor("t", "I32", (1, 1, 4, 2), 0, 32)) is None
    assert row_flags(source, Tensor("t", "F16", (1, 1, 4, 0), 0, 0)) is None
