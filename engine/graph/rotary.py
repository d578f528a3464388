"""Rotation of queries and keys at the moment of use, from integer positions.

Angles are float64 products of the position, so that a shift of positions changes nothing but
the angle and may be repeated at will. Tables are made on the host, begin at multiples of `ALIGN`
so that sequences share them, and grow by doubling: work per chunk does not grow with the history.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

import mlx.core as mx
import numpy as np

MAX_TABLES: Final = 16
ALIGN: Final = 4096
FIRST_ROWS: Final = 1024

Angles = tuple[mx.array, mx.array]
"""Cosines and sines, [..., R/2] float32 each."""


class Rotary:
    """Cosines and sines of runs of positions. Belongs to the thread that made the model."""

    def __init__(self, theta: float, width: int) -> None:
        self.half = width // 2
        self._frequency = theta ** (-2.0 * np.arange(self.half, dtype=np.float64) / width)
        self._tables: OrderedDict[int, Angles] = OrderedDict()

    def table(self, first: int, stride: int, count: int) -> Angles:
        """[count, R/2] angles of the positions first, first + stride and on."""
        base = first // ALIGN * ALIGN
        start, stop = first - base, first - base + stride * count
        cos, sin = self._covering(base, stop)
        return cos[start:stop:stride], sin[start:stop:stride]

    def _covering(self, base: int, n_rows: int) -> Angles:
        """At least `n_rows` rows for the positions from `base` on."""
        known = self._tables.get(base)
        if known is None or known[0].shape[0] < n_rows:
            rows = FIRST_ROWS
            while rows < n_rows:
                rows *= 2
            known = self.angles(base + np.arange(rows, dtype=np.int64))
            self._tables[base] = known
            while len(self._tables) > MAX_TABLES:
                self._tables.popitem(last=False)
        self._tables.move_to_end(base)
        return known

    def angles(self, positions: np.ndarray) -> Angles:
        """Of positions of any shape, int64."""
        angle = positions.astype(np.float64)[..., None] * self._frequency
        return mx.array(np.cos(angle).astype(np.float32)), mx.array(
            np.sin(angle).astype(np.float32)
        )


def rotate(x: mx.array, angles: Angles) -> mx.array:
    """Turns the first R channels of x [..., D]; channel i goes with i + R/2.

    Args:
        angles: shapes that broadcast to [..., R/2].
    """
    cos, sin = angles
    half = cos.shape[-1]
    a, b = x[..., :half], x[..., half : 2 * half]
    parts = [a * cos - b * sin, b * cos + a * sin]
    if x.shape[-1] > 2 * half:
        parts.append(x[..., 2 * half :])
    return mx.concatenate(parts, axis=-1)
