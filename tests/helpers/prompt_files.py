"""Write safetensors caches from arrays: both mlx-lm layouts and tensors of transformers."""

from __future__ import annotations

import json
import struct
from typing import Any

import numpy as np

DTYPES = {"f2": "F16", "f4": "F32", "i4": "I32", "i8": "I64", "u4": "U32", "b1": "BOOL"}


def archive(tensors: dict[str, np.ndarray], metadata: dict[str, str]) -> bytes:  # type: ignore[type-arg]
    header: dict[str, Any] = {"__metadata__": metadata}
    payload = b""
    for name, array in tensors.items():
        raw = np.ascontiguousarray(array).tobytes()
        header[name] = {
            "dtype": DTYPES[array.dtype.str[1:]],
            "shape": list(array.shape),
            "data_offsets": [len(payload), len(payload) + len(raw)],
        }
        payload += raw
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + payload


def rows(n_rows: int, batch: int = 1, width: int = 4, heads: int = 2) -> np.ndarray:  # type: ignore[type-arg]
    """[B, heads, n_rows, width] ones and more, none of them zero."""
    shape = (batch, heads, n_rows, width)
    return 1 + np.arange(int(np.prod(shape)), dtype="<f4").reshape(shape).astype("<f2") % 7


def layout1(
    layers: list[tuple[str, list[np.ndarray], list[str]]],  # type: ignore[type-arg]
    user: dict[str, str] | None = None,
) -> bytes:
    """Class name, state tensors and info strings of each layer, as mlx-lm up to 0.31 wrote them."""
    tensors, metadata = {}, {f"1.{key}": value for key, value in (user or {}).items()}
    for number, (kind, state, infos) in enumerate(layers):
        metadata[f"2.{number}"] = kind
        if infos:
            metadata |= {f"0.{number}.{i}": info for i, info in enumerate(infos)}
        else:
            metadata[f"0.{number}"] = ""
        tensors |= {f"{number}.{i}": array for i, array in enumerate(state)}
    return archive(tensors, metadata)


def ints(*values: int) -> np.ndarray:  # type: ignore[type-arg]
    return np.array(values, "<i4")
