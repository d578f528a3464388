"""Kernels on an accelerator: Metal through `mx.fast.metal_kernel`, CUDA through its sister.

Which target there is, is asked up front, once. A kernel object is built once for each form it
takes: MLX writes other signatures for other types, and on Metal puts inputs of fewer than 8
elements into the constant address space, so these are part of the form. The name carries a hash of
the text, because MLX keeps compiled CUDA kernels on disk by name alone.
"""

from __future__ import annotations

import functools
import hashlib
from typing import Any, Final

import mlx.core as mx

from metal import source
from metal.kernels import KERNELS, Kernel
from metal.launch import Launch
from metal.reference import dtype_name

CONSTANT_BELOW: Final = 8
"""Inputs with fewer elements are in Metal's constant address space."""

BLOCK: Final = 256
"""Threads in a block, spread over the axes of the grid."""

MAX_BLOCKS: Final = 65535
"""Blocks of a CUDA grid along its second and third axis."""

MAX_BLOCK_Z: Final = 64
"""Threads of a CUDA block along its third axis."""


@functools.cache
def accelerator() -> str | None:
    """`metal`, `cuda`, or None where MLX sees neither."""
    if mx.metal.is_available():
        return "metal"
    cuda = getattr(mx, "cuda", None)
    return "cuda" if cuda is not None and cuda.is_available() else None


def run(kernel: Kernel, plan: Launch, target: str) -> tuple[mx.array, ...]:
    """Put one planned call into the graph and give its raw outputs, unevaluated."""
    dtypes = _dtypes(plan)
    if not all(plan.grid):
        pairs = zip(plan.shapes, dtypes, strict=True)
        return tuple(mx.zeros(shape, dtype) for shape, dtype in pairs)
    inputs = [_filled(array) for array in plan.inputs]
    inputs.append(_integers(plan.params))
    element = None if plan.element is None else inputs[plan.element].dtype
    small = tuple(target == "metal" and array.size < CONSTANT_BELOW for array in inputs)
    outputs = _built(kernel.name, target, element, small)(
        inputs=inputs,
        template=[] if element is None else [("T", element)],
        grid=plan.grid,
        threadgroup=block_of(plan.grid),
        output_shapes=list(plan.shapes),
        output_dtypes=dtypes,
        stream=mx.gpu,
    )
    return tuple(outputs)


def _dtypes(plan: Launch) -> list[mx.Dtype]:
    made = []
    for name in plan.dtypes:
        if name == "T":
            assert plan.element is not None
            name = dtype_name(plan.inputs[plan.element])
        made.append(getattr(mx, name))
    return made


def _filled(array: Any) -> mx.array:
    """An empty input as one zero element of the same number of axes: a text never reads it."""
    made = array if isinstance(array, mx.array) else mx.array(array)
    return made if made.size else mx.zeros((1,) * made.ndim, made.dtype)


@functools.lru_cache(maxsize=1024)
def _integers(params: tuple[int, ...]) -> mx.array:
    """Parameters on the device. Made from host values, so evaluated, so fit for any thread."""
    return mx.array(params, mx.int32)


@functools.lru_cache(maxsize=1024)
def block_of(grid: tuple[int, int, int]) -> tuple[int, int, int]:
    """Threads of a block along each axis: powers of two, `BLOCK` together at most.

    The first axis gets the most, since neighbours along it read neighbours in memory; but the
    others get as many as keep CUDA's number of blocks within `MAX_BLOCKS`.
    Raises: ValueError when the grid cannot be cut so.
    """
    _, y, z = (_least(n) for n in grid)
    if y * z > BLOCK or z > MAX_BLOCK_Z:
        raise ValueError(f"grid: expected {MAX_BLOCKS} blocks of {BLOCK} threads, given {grid}")
    x = 1
    while x * 2 * y * z <= BLOCK and x < grid[0]:
        x *= 2
    while y * 2 * x * z <= BLOCK and y < grid[1]:
        y *= 2
    while z * 2 * x * y <= BLOCK and z < min(grid[2], MAX_BLOCK_Z):
        z *= 2
    return x, y, z


def _least(n: int) -> int:
    """The least power of two of threads that n can be cut into at most `MAX_BLOCKS` blocks with."""
    size = 1
    while -(-n // size) > MAX_BLOCKS:
        size *= 2
    return size


@functools.cache
def _built(name: str, target: str, element: mx.Dtype | None, small: tuple[bool, ...]) -> Any:
    kernel = KERNELS[name]
    header, body = source.prelude(target), source.body(kernel, target)
    stamp = hashlib.sha256((header + body).encode()).hexdigest()[:12]
    form = "".join("c" if is_small else "d" for is_small in small)
    make = mx.fast.metal_kernel if target == "metal" else mx.fast.cuda_kernel
    return make(
        name=f"bankflip_{name}_{form}_{stamp}",
        input_names=[*kernel.types, source.PARAMS],
        output_names=list(kernel.outputs),
        source=body,
        header=header,
        ensure_row_contiguous=not kernel.strided,
    )
