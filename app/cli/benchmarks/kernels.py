"""Each kernel against array operations and against the bytes that must move, on what is here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from engine.kernel_times import kernel_times


def bench_kernels() -> Iterator[dict[str, Any]]:
    """On the accelerator; without one the compiled text on the host, on a sixteenth of the size."""
    target, measured = kernel_times()
    for times in measured:
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
