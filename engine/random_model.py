"""A decoder of any size with random weights, for measuring where no such files are at hand.

The loader asks for every tensor by name and shape, as it asks a folder; here each answer is drawn
from the normal distribution. Nothing in the product uses this module but the benchmarks.
"""

from __future__ import annotations

import json
from typing import Any, Final

import mlx.core as mx
import numpy as np
import numpy.typing as npt

from engine.config import parse_config
from engine.errors import Malformed
from engine.graph.backend import backend_for
from engine.graph.model import Model
from engine.opening import device_named, model_folder
from engine.weights import build_model

SCALE: Final = 0.02
BASE: Final = "qwen4exp-tiny"


class RandomTensors:
    """Answers like a folder that has every weight, in the layout with fused experts."""

    folder = "random weights"

    def __init__(self, seed: int) -> None:
        self._key = mx.random.key(seed)

    def has(self, name: str) -> bool:
        """Weights are there; integers that follow from the configuration are not stored."""
        return name.endswith(("weight", "gate_up_proj"))

    def path(self, name: str) -> str:
        """There are no files."""
        return self.folder

    def shape(self, name: str) -> tuple[int, ...]:
        """Nothing is stored. Raises: Malformed."""
        raise Malformed(self.folder, "tensor", name, "none")

    def floats(self, name: str, shape: tuple[int, ...]) -> mx.array:
        """float32 numbers, different for every call."""
        self._key, mine = mx.random.split(self._key)
        return mx.random.normal(shape, key=mine) * SCALE

    def integers(self, name: str, shape: tuple[int, ...]) -> npt.NDArray[np.int64]:
        """Nothing is stored. Raises: Malformed."""
        raise Malformed(self.folder, "tensor", name, "none")


def random_model(backend: str, seed: int = 0, dtype: str = "float32", **changes: Any) -> Model:
    """The built-in model's configuration with some entries changed, and random weights.

    Args:
        backend: as for `open_engine`.
        dtype: of the weights and tables, such as `bfloat16`.
        changes: entries of `config.json`, as `hidden_size=1024`.
    Raises: Unreadable for the backend, Malformed for entries that do not fit together.
    """
    device = device_named(backend)
    mx.set_default_device(mx.Device(mx.cpu if device == "cpu" else mx.gpu))
    with open(model_folder(BASE) / "config.json", encoding="utf-8") as file:
        config = parse_config(json.load(file) | changes)
    return build_model(config, RandomTensors(seed), getattr(mx, dtype), backend_for(device))
