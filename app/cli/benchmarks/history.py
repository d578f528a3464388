"""Measurements of the model-free history layer."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from engine.validate import partition, validate

N_POSITIONS = 1_000_000
START = 4096
ROUNDS = 60


def bench_validate() -> dict[str, Any]:
    """Validating and partitioning a run against one difference and one comparison pass over it.

    Both run in turn in the same process, over the same int64 array; the best of the rounds counts.
    Returns: one result as `bankflip bench --json` prints it; `ours` and `peer` are seconds.
    """
    positions = np.arange(START, START + N_POSITIONS, dtype=np.int64)

    def ours() -> None:
        found = validate(positions)
        groups = partition(positions, 4, found)
        if not found.is_run or groups.n_complete != N_POSITIONS // 4:
            raise AssertionError("a run was not recognised")

    def peer() -> None:
        if not (np.diff(positions) == 1).all():
            raise AssertionError("a run was not recognised")

    best_ours, best_peer = best_of(ours, peer)
    return {
        "name": "history.validate",
        "value": best_ours / best_peer,
        "unit": "ratio",
        "goal": 2.0,
        "better": "lower",
        "ours": best_ours,
        "peer": best_peer,
        "peer_name": "one np.diff and one comparison",
    }


def best_of(*steps: Callable[[], None], rounds: int = ROUNDS) -> list[float]:
    """The best time of each step in seconds, all steps in turn in each round."""
    best = [float("inf")] * len(steps)
    for _ in range(rounds):
        for number, step in enumerate(steps):
            start = time.perf_counter()
            step()
            best[number] = min(best[number], time.perf_counter() - start)
    return best


BENCHMARKS = (("history.validate", bench_validate),)
