"""Times of the kernels on the best target that this machine has, for the benchmarks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from metal.measure import Times


def kernel_times() -> tuple[str, Iterator[Times]]:
    """The target, and every sample on it: a GPU, else the compiled text on the host.

    Raises: RuntimeError where neither is there.
    """
    import metal
    from metal.measure import measure

    found = [target for target in metal.available() if target != "cpu"]
    if not found:
        raise RuntimeError("no target runs the kernels here: neither a GPU nor a C++ compiler")
    return found[0], measure(found[0])
