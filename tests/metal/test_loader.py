"""How a call is cut into blocks, and what form of a kernel it takes."""

from __future__ import annotations

import mlx.core as mx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metal import loader
from metal.kernels import KERNELS
from metal.loader import BLOCK, MAX_BLOCK_Z, MAX_BLOCKS, block_of

AXIS = st.integers(1, 1 << 22)


@given(st.integers(1, 2**31 - 1), AXIS, st.integers(1, 1 << 20))
def test_every_grid_is_covered_within_the_limits(x: int, y: int, z: int) -> None:
    try:
        bx, by, bz = block_of((x, y, z))
    except ValueError:
        assert y > MAX_BLOCKS or z > MAX_BLOCKS
        return
    assert bx * by * bz <= BLOCK
    assert bz <= MAX_BLOCK_Z
    assert -(-y // by) <= MAX_BLOCKS
    assert -(-z // bz) <= MAX_BLOCKS
    assert all(size & (size - 1) == 0 for size in (bx, by, bz))


@pytest.mark.parametrize(
    ("grid", "block"),
    [
        ((1, 1, 1), (1, 1, 1)),
        ((255, 4, 1), (256, 1, 1)),
        ((256, 65535, 1), (256, 1, 1)),
        ((256, 65536, 1), (128, 2, 1)),
        ((3, 100, 1), (4, 64, 1)),
        ((1, 1, 1000), (1, 1, 64)),
        ((16, 2, 65536), (16, 2, 8)),
    ],
)
def test_the_first_axis_gets_the_most(grid, block) -> None:
    assert block_of(grid) == block


def test_a_grid_that_no_block_covers_is_refused() -> None:
    with pytest.raises(ValueError, match="grid: expected 65535 blocks"):
        block_of((1, MAX_BLOCKS * BLOCK + 1, 1))


class Recorder:
    """Stands for a compiled kernel and keeps what it was called with."""

    def __init__(self, made: dict) -> None:
        self.made = made

    def __call__(self, **call) -> list[mx.array]:
        self.made["call"] = call
        pairs = zip(call["output_shapes"], call["output_dtypes"], strict=True)
        return [mx.zeros(shape, dtype) for shape, dtype in pairs]


@pytest.mark.parametrize("target", ["metal", "cuda"])
def test_what_mlx_is_asked_for(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names, types, contiguity and the empty input, without a device."""
    built = []

    def maker(**form):
        built.append(form)
        return Recorder(form)

    monkeypatch.setattr(mx.fast, f"{target}_kernel", maker)
    loader._built.cache_clear()
    for name in ("linear", "pool_groups"):
        kernel = KERNELS[name]
        arrays = (mx.zeros((2, 9)), mx.zeros((9, 3))) if name == "linear" else (mx.zeros((9, 3)),)
        plan = kernel.plan(*arrays, **({} if name == "linear" else {"group_size": 4}))
        for _ in range(2):
            loader.run(kernel, plan, target)
    loader._built.cache_clear()
    assert len(built) == 2, "a kernel is built once, not per call"
    linear, pool = built
    assert linear["input_names"] == ["x", "weight", "params"]
    assert linear["ensure_row_contiguous"]
    assert not pool["ensure_row_contiguous"]
    assert KERNELS["linear"].text in linear["source"]
    assert ("make_uint3" in linear["source"]) == (target == "cuda")
    assert "#define STATUS_HOLE 1u" in linear["header"]
    assert linear["name"] != pool["name"]
    assert linear["call"]["template"] == [("T", mx.float32)]


def test_on_metal_small_inputs_are_another_form(monkeypatch: pytest.MonkeyPatch) -> None:
    names = []

    def maker(**form):
        names.append(form["name"])
        return Recorder(form)

    monkeypatch.setattr(mx.fast, "metal_kernel", maker)
    loader._built.cache_clear()
    kernel = KERNELS["sum_parts"]
    for n in (7, 8):
        loader.run(kernel, kernel.plan(mx.zeros((1, n))), "metal")
    loader._built.cache_clear()
    assert len(set(names)) == 2


def test_an_empty_input_is_given_one_element_that_no_text_reads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: dict = {}
    monkeypatch.setattr(mx.fast, "cuda_kernel", lambda **form: Recorder(made))
    loader._built.cache_clear()
    kernel = KERNELS["linear"]
    loader.run(kernel, kernel.plan(mx.zeros((2, 0)), mx.zeros((0, 3))), "cuda")
    loader._built.cache_clear()
    assert [a.shape for a in made["call"]["inputs"][:2]] == [(1, 1), (1, 1)]
    assert made["call"]["inputs"][2].tolist()[:3] == [2, 3, 0]
