"""Benchmarks of `bankflip bench`, one module each, listed once in `MODULES`.

A module has `BENCHMARKS`, a tuple of (name, function); the function takes nothing and returns one
result or a sequence of results as in the JSON of `bench`: `name`, `value`, `unit`, `goal`,
`better` (`lower` or `higher`) and, where there is a peer, `ours`, `peer` and `peer_name`.
"""

from __future__ import annotations

MODULES: tuple[str, ...] = (
    "app.cli.benchmarks.capture",
    "app.cli.benchmarks.graph",
    "app.cli.benchmarks.history",
    "app.cli.benchmarks.kernels",
    "app.cli.benchmarks.protect",
    "app.cli.benchmarks.transaction",
    "app.cli.benchmarks.window",
)
