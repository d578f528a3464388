"""Golden folders, a state of plain lists, and ways to run a model over it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np

from engine.graph import graph_stages
from engine.graph.model import Model
from engine.stage import Stage, Step
from engine.weights import load_model

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "data" / "golden"
MODELS = {
    "qwen4exp-tiny": ROOT / "resources" / "models" / "qwen4exp-tiny",
    "qwen4exp-mixed": GOLDEN / "qwen4exp-mixed",
}
"""Golden folder to the folder of its model."""


@dataclass
class ListState:
    """A sequence's state in plain lists and dictionaries: a test double of the banks."""

    group_size: int = 4
    fixed_values: dict[tuple[str, int], mx.array] = field(default_factory=dict)
    positional: dict[tuple[str, int, str], list[mx.array]] = field(default_factory=dict)
    pooled: dict[int, list[mx.array]] = field(default_factory=dict)
    positions: Any = None
    """Positions as the device has them, where a test wants others than the step's."""

    def fixed(self, owner: str, layer: int) -> mx.array | None:
        return self.fixed_values.get((owner, layer))

    def set_fixed(self, owner: str, layer: int, value: mx.array) -> None:
        self.fixed_values[owner, layer] = value

    def append_rows(self, owner: str, layer: int, part: str, rows: mx.array) -> None:
        self.positional.setdefault((owner, layer, part), []).append(rows)

    def rows(self, owner: str, layer: int, part: str, start: int, stop: int) -> mx.array:
        whole = mx.concatenate(self.positional[owner, layer, part])
        self.positional[owner, layer, part] = [whole]
        assert 0 <= start < stop <= whole.shape[0]
        return whole[start:stop]

    def gather(self, owner: str, layer: int, part: str, index: mx.array) -> mx.array:
        assert index.dtype == mx.int32
        whole = mx.concatenate(self.positional[owner, layer, part])
        return mx.take(whole, index, axis=0)

    def put_groups(self, layer: int, first_group: int, pooled: mx.array) -> None:
        have = self.pooled.setdefault(layer, [])
        assert sum(p.shape[0] for p in have) == first_group
        have.append(pooled)

    def groups(self, layer: int, start: int, stop: int) -> mx.array:
        return mx.concatenate(self.pooled[layer])[start:stop]

    def cells(self, start: int, stop: int) -> Any:
        return None if self.positions is None else self.positions[start:stop]

    def copy(self) -> ListState:
        """An independent state with the same content."""
        return ListState(
            self.group_size,
            dict(self.fixed_values),
            {k: list(v) for k, v in self.positional.items()},
            {k: list(v) for k, v in self.pooled.items()},
        )

    def arrays(self) -> dict[str, np.ndarray]:
        """Every owner's content by name, for comparing bit by bit."""
        out = {f"{o}.{n}": value for (o, n), value in self.fixed_values.items()}
        for (o, n, part), rows in self.positional.items():
            out[f"{o}.{n}.{part}"] = mx.concatenate(rows)
        for n, rows in self.pooled.items():
            out[f"qsa.groups.{n}"] = mx.concatenate(rows)
        mx.eval(*out.values())
        return {k: to_numpy(v) for k, v in sorted(out.items())}


def to_numpy(array: mx.array) -> np.ndarray:
    """A NumPy copy; bfloat16 as its bits."""
    return np.array(array.view(mx.uint16) if array.dtype == mx.bfloat16 else array)


@dataclass
class Runner:
    """One sequence of a model, fed in chunks."""

    model: Model
    first_position: int = 0
    state: ListState = field(default_factory=ListState)
    consumed: int = 0
    n_live: int = 0
    status: int = 0
    stages: tuple[Stage, ...] = ()

    def __post_init__(self) -> None:
        self.stages = self.stages or graph_stages(self.model)

    def step(self, tokens: Iterable[int]) -> Step:
        """The context of the next chunk."""
        ids = np.array(list(tokens), dtype=np.int64)
        start = self.first_position + self.n_live
        positions = np.arange(start, start + len(ids), dtype=np.int64)
        return Step(
            self.model, ids, positions, self.n_live, self.first_position, self.consumed, self.state
        )

    def feed(self, tokens: Iterable[int]) -> np.ndarray:
        """Logits [T, V] of a chunk; one evaluation."""
        step = self.step(tokens)
        for stage in self.stages:
            stage.run(step)
        kept = [
            step.values["logits"],
            *(c.word for c in step.status),
            *self.state.fixed_values.values(),
        ]
        kept += [rows for parts in self.state.positional.values() for rows in parts]
        kept += [rows for parts in self.state.pooled.values() for rows in parts]
        mx.eval(kept)
        for check in step.status:
            self.status |= check.word.item()
        self.consumed += step.n_tokens
        self.n_live += step.n_tokens
        return np.array(step.values["logits"])

    def feed_all(self, chunks: Iterable[Iterable[int]]) -> np.ndarray:
        """Logits of several chunks, one after the other."""
        return np.concatenate([self.feed(chunk) for chunk in chunks])

    def fork(self) -> Runner:
        """An independent sequence with the same past."""
        other = Runner(self.model, self.first_position, self.state.copy(), stages=self.stages)
        other.consumed, other.n_live = self.consumed, self.n_live
        return other


def cut(tokens: Iterable[int], sizes: Iterable[int]) -> Iterator[list[int]]:
    """Tokens in chunks of the given sizes, which must add up."""
    line, at = [int(t) for t in tokens], 0
    for size in sizes:
        yield line[at : at + size]
        at += size
    assert at == len(line)


def random_sizes(rng: np.random.Generator, total: int) -> list[int]:
    """Chunk sizes of one to about a third of `total`."""
    sizes: list[int] = []
    while sum(sizes) < total:
        high = int(rng.choice([2, 5, 10, max(3, total // 3)]))
        sizes.append(int(min(rng.integers(1, high + 1), total - sum(sizes))))
    return sizes


@lru_cache(maxsize=8)
def model(name: str, dtype: str | None = None) -> Model:
    """The model of a golden folder, loaded once in this thread.

    BANKFLIP_TEST_DTYPE makes tests that compare bytes with bytes run in another dtype.
    """
    return load_model(MODELS[name], dtype or os.environ.get("BANKFLIP_TEST_DTYPE"))


@lru_cache(maxsize=4)
def stored_model(name: str) -> Model:
    """The same as it is stored, whatever the variable says: for comparing with golden values."""
    return load_model(MODELS[name])


@lru_cache(maxsize=64)
def arrays(name: str, case: str) -> dict[str, np.ndarray]:
    """The arrays of one case of a golden folder."""
    with np.load(GOLDEN / name / f"{case}.npz") as data:
        return {key: data[key] for key in data.files}


@lru_cache(maxsize=8)
def manifest(name: str) -> dict[str, Any]:
    """The manifest of a golden folder."""
    return json.loads((GOLDEN / name / "manifest.json").read_text())


def feeds(name: str, case: str) -> list[int]:
    """Chunk sizes of a case."""
    return next(c["feeds"] for c in manifest(name)["cases"] if c["name"] == case)
