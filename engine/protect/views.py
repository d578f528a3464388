"""What can be shown of a list of caches: the run of each layer, and digests of what is visible.

Rows are put in logical order first, so a digest does not depend on where a ring has its start.
The rules for rings were taken from mlx-lm 0.32.2 and hold for its classes only; of an unknown
class every array counts as visible.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any

import mlx.core as mx
import numpy as np

from .freeze import arrays_of, is_stateful
from .guards import kind_of, n_rows


def owners(caches: Sequence[Any]) -> Iterator[tuple[str, Any]]:
    """Name and cache of every layer: `layer.3`, and `layer.3.1` for a child of a list."""
    for index, cache in enumerate(caches):
        yield from _named(f"layer.{index}", cache)


def _named(name: str, cache: Any) -> Iterator[tuple[str, Any]]:
    children = getattr(cache, "caches", None)
    if isinstance(children, list | tuple):
        for index, child in enumerate(children):
            yield from _named(f"{name}.{index}", child)
    elif cache is not None:
        yield name, cache


def layers(caches: Sequence[Any]) -> list[dict[str, Any]]:
    """One record a layer: owner, class, runs (see `runs`) and bytes."""
    return [
        {
            "owner": name,
            "class": type(cache).__name__,
            "runs": runs(cache),
            "n_bytes": sum(int(array.nbytes) for array in arrays_of(cache)),
        }
        for name, cache in owners(caches)
    ]


def runs(cache: Any) -> list[list[list[int]]] | None:
    """Inclusive runs of live positions for each sequence of a cache; None: it can't tell."""
    if kind_of(cache) is None and not isinstance(getattr(cache, "offset", None), int):
        return None
    if isinstance(cache.offset, int):
        return [_single_runs(cache)]
    ends = np.array(cache.offset).tolist()
    padding = np.array(cache.left_padding).tolist()
    used = min(int(getattr(cache, "_offset", cache._idx)), _columns(cache))
    return [_run(end - used + max(pad, 0), end) for end, pad in zip(ends, padding, strict=True)]


def _columns(cache: Any) -> int:
    return n_rows(cache) if hasattr(cache, "rotated") else int(cache._idx)


def _single_runs(cache: Any) -> list[list[int]]:
    offset = int(cache.offset)
    if hasattr(cache, "keep") and hasattr(cache, "max_size"):
        rows = n_rows(cache)
        if offset <= rows and cache._idx == offset:
            return _run(0, offset)
        first = offset - (rows - cache.keep)
        return (
            _run(0, offset)
            if first <= cache.keep
            else [
                *_run(0, cache.keep),
                *_run(first, offset),
            ]
        )
    return _run(int(getattr(cache, "start_position", 0)), offset)


def _run(first: int, stop: int) -> list[list[int]]:
    return [[first, stop - 1]] if stop > first else []


def visible(cache: Any) -> list[Any]:
    """The visible arrays of one cache, rows oldest first; not yet evaluated."""
    if kind_of(cache) is None:
        return list(arrays_of(cache))
    arrays = _buffers(cache)
    extra = [
        array
        for name, value in vars(cache).items()
        if name not in ("keys", "values")
        for array in arrays_of(value)
    ]
    return [_in_order(cache, array) for array in arrays] + extra


def _buffers(cache: Any) -> list[Any]:
    return [array for value in (cache.keys, cache.values) for array in arrays_of(value)]


def _in_order(cache: Any, rows: Any) -> Any:
    kind = kind_of(cache)
    assert kind is not None
    used = kind.visible(cache)
    if not hasattr(cache, "max_size") or used < rows.shape[-2]:
        return rows[..., :used, :]
    keep = int(getattr(cache, "keep", 0))
    split = max(int(cache._idx), keep)
    parts = [rows[..., :keep, :], rows[..., split:, :], rows[..., keep:split, :]]
    return mx.concatenate(parts, axis=-2)


def digests(caches: Sequence[Any]) -> dict[str, str]:
    """A digest of the visible content of every layer: class, metadata, rows in logical order.

    BLAKE2b, 128 bits. Scalars that only say where a ring starts (`_idx`) are left out.
    """
    return {name: _digest(cache, place=False) for name, cache in owners(caches)}


def fingerprints(caches: Sequence[Any]) -> dict[str, str]:
    """As `digests`, with every scalar attribute: equal only for an untouched cache."""
    return {name: _digest(cache, place=True) for name, cache in owners(caches)}


def _digest(cache: Any, *, place: bool) -> str:
    state = hashlib.blake2b(digest_size=16)
    state.update(type(cache).__name__.encode())
    attributes = getattr(cache, "__dict__", {})
    for name in sorted(attributes):
        value = attributes[name]
        if isinstance(value, int | float | str | bool | type(None)) and (place or name != "_idx"):
            state.update(f"|{name}={value!r}".encode())
    for array in visible(cache):
        state.update(f"|{array.dtype}{tuple(array.shape)}".encode())
        state.update(array_bytes(array))
    return state.hexdigest()


def array_bytes(array: Any) -> bytes:
    """The bytes of an array in row order, bit for bit, of any type."""
    if array.size == 0:
        return b""
    flat = mx.contiguous(array).reshape(-1)
    return np.array(flat.view(mx.uint8)).tobytes()


__all__ = [
    "array_bytes",
    "digests",
    "fingerprints",
    "is_stateful",
    "layers",
    "owners",
    "runs",
    "visible",
]
