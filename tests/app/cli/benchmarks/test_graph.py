"""The benchmark of the whole graph: both steps of every way, each beside array operations."""

from __future__ import annotations

import pytest

import metal
from app.cli.benchmarks import graph
from engine import graph_times


def test_both_steps_of_every_way_stand_beside_array_operations(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if not any(target != "cpu" for target in metal.available()):
        pytest.skip("no target runs the kernels: neither a GPU nor a C++ compiler")
    monkeypatch.setattr(graph_times, "N_DECODE", 1)
    monkeypatch.setattr(graph_times, "ROUNDS", 1)
    results = list(graph.bench_graph())
    steps = [result["name"].rsplit(".", 2)[1:] for result in results]
    assert [way for way, _ in steps] == ["kernels-beside-tiles"] * 2 + ["kernels-everywhere"] * 2
    assert [step.partition("-")[0] for _, step in steps] == ["decode", "prefill"] * 2
    for result in results:
        assert result["value"] == pytest.approx(result["peer"] / result["ours"])
