"""Kernels that judge and move the engine's state, the same text on three targets.

Front door: `available()`, `run(name, *arrays, backend=..., **parameters)`, `check_all()`.

One `.metal` file a kernel lies in `metal/src/`. The same text runs on Metal
(`mx.fast.metal_kernel`), on CUDA (`mx.fast.cuda_kernel` behind a short prelude) and on the host
(compiled by g++ or clang++). Each has a reference in array operations with the same signature,
which is the path of the CPU backend.

To verify all of it on a Mac, in a checkout with the test tools (`pip install -e '.[test]'`):

    python -m pytest -m metal

runs every kernel on the Mac's GPU against its reference and against an independent definition in
float64 or integers, on the sizes one below, at and above each boundary, with odd strides, empty
inputs, in float32, float16 and bfloat16. `-m cuda` does the same on an NVIDIA GPU;
`python -m pytest tests/metal` runs the texts on the host on any machine with a C++ compiler,
once plainly and once under the address and undefined-behaviour sanitizers.

Imports nothing of the engine and no Qt.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import mlx.core as mx

from metal import host, loader, reference
from metal.kernels import KERNELS, Kernel
from metal.launch import Launch
from metal.reference import dtype_name

if TYPE_CHECKING:
    from metal.check import Row

BACKENDS = ("metal", "cuda", "cpu", "host")
"""Accelerators first; `cpu` is the reference, `host` the compiled text."""


def available() -> tuple[str, ...]:
    """The backends that this machine has, best first; `cpu` is always among them."""
    found = loader.accelerator()
    names = [found] if found else []
    names.append("cpu")
    return (*names, "host") if host.available() else tuple(names)


def run(name: str, *arrays: Any, backend: str, **parameters: int) -> Any:
    """Run one kernel.

    Args:
        name: a name of `KERNELS`.
        arrays: its inputs, in the order of the table.
        backend: `metal` or `cuda` (the kernel, unevaluated), `cpu` (the reference, unevaluated),
            `host` (the compiled text, evaluated at once).
        parameters: the integers that the reference names.
    Returns: one array, or a tuple of arrays where the kernel has several results.
    Raises: ValueError for an unknown name or backend, or arguments that do not fit together.
    """
    if name not in KERNELS:
        raise ValueError(f"kernel: expected one of {', '.join(KERNELS)}, given {name}")
    kernel = KERNELS[name]
    if backend not in ("cpu", loader.accelerator()) and backend not in available():
        raise ValueError(f"backend: expected one of {', '.join(available())}, given {backend}")
    plan = kernel.plan(*arrays, **parameters)
    _check_types(kernel, plan)
    if backend == "cpu":
        return kernel.reference(*arrays, **parameters)
    if backend == "host":
        names = [_out_type(plan, dtype) for dtype in plan.dtypes]
        pairs = zip(host.run(kernel, plan), names, strict=True)
        outputs = tuple(host.from_numpy(array, dtype) for array, dtype in pairs)
    else:
        outputs = loader.run(kernel, plan, backend)
    return _finish(kernel, plan, backend, outputs)


def _out_type(plan: Launch, dtype: str) -> str:
    return dtype_name(plan.inputs[plan.element or 0]) if dtype == "T" else dtype


def _check_types(kernel: Kernel, plan: Launch) -> None:
    element = None if plan.element is None else dtype_name(plan.inputs[plan.element])
    if element is not None and element not in kernel.element_types:
        expected = ", ".join(kernel.element_types)
        raise ValueError(f"{kernel.name}: expected one of {expected}, given {element}")
    for (name, dtype), array in zip(kernel.types.items(), plan.inputs, strict=True):
        wanted = element if dtype == "T" else dtype
        given = dtype_name(array)
        if given != wanted:
            raise ValueError(f"{kernel.name}, type of {name}: expected {wanted}, given {given}")


def _finish(kernel: Kernel, plan: Launch, backend: str, outputs: tuple[mx.array, ...]) -> Any:
    if kernel.finish is not None:
        return kernel.finish(plan, backend, *outputs)
    if plan.result_shapes is not None:
        pairs = zip(outputs, plan.result_shapes, strict=True)
        outputs = tuple(array.reshape(shape) for array, shape in pairs)
    return outputs[0] if len(outputs) == 1 else outputs


def check_all() -> list[Row]:
    """Check every kernel on every target of this machine, now: one row a kernel, a few seconds."""
    from metal import check

    return check.check_all()


def works(name: str, target: str) -> bool:
    """Whether a kernel gave its reference's result on a target: tried once in this process.

    False where the target is absent, or its compiler or driver refuses the text (`check_all` has
    the words). Ask before a target is chosen, not after a call failed.
    """
    from metal import check

    return check.works(name, target)


__all__ = ["BACKENDS", "KERNELS", "available", "check_all", "reference", "run", "works"]
