"""Host copies of arrays, whatever their size and type."""

from __future__ import annotations

from collections.abc import Callable

import mlx.core as mx
import numpy as np
import pytest

from engine.owner import to_numpy as copied
from metal.host import to_numpy as viewed

EMPTY: dict[str, Callable[[], mx.array]] = {
    # on CUDA the first two have no memory at all
    "arange": lambda: mx.arange(0, 0, 4, dtype=mx.int32),
    "product": lambda: mx.zeros((0, 4)) @ mx.zeros((4, 3)),
    "slice": lambda: mx.arange(8).reshape(2, 4)[:0],
    "zeros": lambda: mx.zeros((3, 0), mx.bfloat16),
    "flags": lambda: mx.zeros((0,), mx.bool_),
}


@pytest.mark.parametrize("convert", [copied, viewed])
@pytest.mark.parametrize("kind", EMPTY)
def test_an_empty_array_comes_to_the_host(
    kind: str, convert: Callable[[mx.array], np.ndarray]
) -> None:
    array = EMPTY[kind]()
    mx.eval(array)
    host = convert(array)
    assert host.shape == array.shape
    expected = "uint16" if array.dtype == mx.bfloat16 else str(array.dtype).rpartition(".")[2]
    assert host.dtype.name == expected.rstrip("_")


@pytest.mark.parametrize("convert", [copied, viewed])
def test_bfloat16_comes_as_its_bits(convert: Callable[[mx.array], np.ndarray]) -> None:
    host = convert(mx.array([1.0, -2.0, float("inf")]).astype(mx.bfloat16))
    assert host.tolist() == [0x3F80, 0xC000, 0x7F80]
