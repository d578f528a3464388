"""The benchmarks of the mlx-lm wrapper, on caches so short that they run in a test."""

from __future__ import annotations

import pytest

from app.cli.benchmarks import MODULES, protect


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protect, "N_CACHED", 40)
    monkeypatch.setattr(protect, "N_TOKENS", 2)
    monkeypatch.setattr(protect, "ROUNDS", 1)


@pytest.mark.parametrize("name", [name for name, _ in protect.BENCHMARKS if "short" not in name])
def test_a_result_compares_two_measured_times(name: str) -> None:
    result = dict(protect.BENCHMARKS)[name]()
    assert result["name"] == name
    assert result["ours"] > 0
    assert result["unit"] == "ratio"
    assert "40 tokens" in result["peer_name"]


def test_goals_are_those_of_the_design() -> None:
    assert protect.__name__ in MODULES
    assert protect.bench_decode()["goal"] == 1.05
    assert protect.bench_decode()["better"] == "lower"
    assert protect.bench_deepcopy()["goal"] == 100.0
    assert protect.bench_deepcopy()["better"] == "higher"


def test_the_cache_keeps_its_length_while_it_is_measured() -> None:
    caches = protect._filled(40)
    protect._decode_seconds(protect._model(), caches, 2)
    assert [cache.offset for cache in caches] == [40] * protect.N_LAYERS
