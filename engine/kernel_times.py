"""Times of the kernels on the best target that this machine has, for the benchmarks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from metal.measure import Times


def kernel_target() -> str:
    """A GPU, else the compiled text on the host. Raises: RuntimeError where neither is there."""
    import metal

    found = [target for target in metal.available() if target != "cpu"]
    if not found:
        raise RuntimeError("no target runs the kernels here: neither a GPU nor a C++ compiler")
    return found[0]


def kernel_times() -> tuple[str, Iterator[Times]]:
    """The target, and every sample on it. Raises: RuntimeError as `kernel_target`."""
    from metal.measure import measure

    target = kernel_target()
    return target, measure(target)
