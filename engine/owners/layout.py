"""Which arrays each owner has for a given model: one `PartLayout` an array."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

import mlx.core as mx


@dataclass(frozen=True, slots=True)
class PartLayout:
    """One array of an owner: a table of rows a cell, or one value a sequence."""

    layer: int
    """Layer from 0; -1 for a part that belongs to the whole sequence."""
    part: str
    shape: tuple[int, ...]
    """Shape of one row, or of the value."""
    dtype: mx.Dtype

    @property
    def place(self) -> tuple[int, str]:
        """What names the array inside its owner."""
        return self.layer, self.part

    @property
    def n_bytes(self) -> int:
        """Bytes of one row, or of the value."""
        return prod(self.shape) * self.dtype.size


Layout = Mapping[str, tuple[PartLayout, ...]]
"""Owner name to its parts; owners without arrays are absent."""
