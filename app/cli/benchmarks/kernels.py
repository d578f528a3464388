"""Each kernel against array operations and against the bytes that must move, on what is here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import metal
from metal.measure import measure


def bench_kernels() -> Iterator[dict[str, Any]]:
    """On the accelerator; without one the compiled text on the host, on a sixteenth of the size."""
    found = [target for target in metal.available() if target != "cpu"]
    if not found:
        raise RuntimeError("no target runs the kernels here: neither a GPU nor a C++ compiler")
    target = found[0]
    for times in measure(target):
        name = f"kernels.{target}.{times.sample.kernel}.{times.sample.shape}"
        common: dict[str, Any] = {"unit": "times", "goal": None, "ours": times.kernel}
        peer = {"peer": times.peer, "peer_name": times.sample.peer_name}
        yield {
            "name": name,
            "value": times.peer / times.kernel,
            "better": "higher",
            **common,
            **peer,
        }
        limit = {"peer": times.floor, "peer_name": "the bytes that must move"}
        yield {
            "name": f"{name}.limit",
            "value": times.kernel / times.floor,
            "better": "lower",
            **common,
            **limit,
        }


BENCHMARKS = (("kernels", bench_kernels),)
