"""The whole graph with kernels against array operations: tokens one by one, and as one prompt."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from engine.graph_times import graph_times


def bench_graph() -> Iterator[dict[str, Any]]:
    """On the accelerator; without one with the compiled text on the host. Seconds a token."""
    target, measured = graph_times()
    for times in measured:
        yield {
            "name": f"graph.{target}.{times.way}.{times.step}",
            "value": times.peer / times.ours,
            "unit": "times",
            "goal": None,
            "better": "higher",
            "ours": times.ours,
            "peer": times.peer,
            "peer_name": "array operations",
        }


BENCHMARKS = (("graph", bench_graph),)
