"""The safetensors container: names, types, shapes and spans, each checked against the file.

The header is not padded, so tensors may start at odd bytes. Payload is never read here.
"""

from __future__ import annotations

import itertools
import math
import struct
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt

from engine.formats.positions import Ints
from engine.formats.source import Damaged, Source

ITEM_BYTES: Final = {
    "BOOL": 1,
    "U8": 1,
    "I8": 1,
    "F8_E4M3": 1,
    "F8_E5M2": 1,
    "I16": 2,
    "U16": 2,
    "F16": 2,
    "BF16": 2,
    "I32": 4,
    "U32": 4,
    "F32": 4,
    "I64": 8,
    "U64": 8,
    "F64": 8,
}
INTEGERS: Final = {
    "BOOL": "u1",
    "U8": "u1",
    "I8": "i1",
    "I16": "<i2",
    "U16": "<u2",
    "I32": "<i4",
    "U32": "<u4",
    "I64": "<i8",
}
HEAD = struct.Struct("<Q")
MAX_HEADER = 100_000_000
MAX_DIMENSIONS = 8


@dataclass(frozen=True, slots=True)
class Tensor:
    """A named span of the file."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    offset: int
    """Byte in the file."""
    n_bytes: int


@dataclass(frozen=True, slots=True)
class Archive:
    """Header of a safetensors file."""

    tensors: dict[str, Tensor]
    metadata: dict[str, str]
    payload: int
    """Byte at which the payload starts."""
    cut: tuple[str, ...]
    """Names of tensors that lie past the end of the file."""
    stop: int
    """Byte behind the last tensor as the header has it."""


def is_safetensors(source: Source) -> bool:
    """A header length that is no nonsense, then a JSON object."""
    if source.size < 9:
        return False
    (count,) = HEAD.unpack_from(source.data)
    return 2 <= count <= MAX_HEADER and source.bytes(8, 1) == b"{"


def read_archive(source: Source) -> Archive:
    """Header and spans of a file; raises Damaged when the header itself does not hold."""
    (count,) = source.unpack(HEAD, 0, "a header length")
    source.need(8, count, "the JSON header")
    try:
        header = msgspec.json.decode(source.bytes(8, count))
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError, ValueError) as error:
        raise Damaged("structure", 8, "a JSON header", str(error)[:120]) from None
    if not isinstance(header, dict):
        raise Damaged("structure", 8, "a JSON object", type(header).__name__)
    metadata = header.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(
        isinstance(value, str) for value in metadata.values()
    ):
        raise Damaged("structure", 8, "metadata of strings", "other values")
    payload = 8 + count
    tensors = {name: tensor_of(name, entry, payload) for name, entry in header.items()}
    refuse_overlap(list(tensors.values()))
    stop = max((tensor.offset + tensor.n_bytes for tensor in tensors.values()), default=payload)
    cut = tuple(
        name
        for name, tensor in tensors.items()
        if tensor.offset + tensor.n_bytes > source.size and tensor.n_bytes
    )
    return Archive(tensors, metadata, payload, cut, stop)


def refuse_overlap(tensors: list[Tensor]) -> None:
    """Two tensors never share bytes; a scan is then bounded by the file's size."""
    filled = sorted((tensor for tensor in tensors if tensor.n_bytes), key=lambda own: own.offset)
    for before, after in itertools.pairwise(filled):
        stop = before.offset + before.n_bytes
        if after.offset < stop:
            expected = f"{after.name!r} behind byte {stop} where {before.name!r} ends"
            raise Damaged("structure", 8, expected, f"byte {after.offset}")


def tensor_of(name: str, entry: Any, payload: int) -> Tensor:
    """One header entry, checked; raises Damaged."""
    try:
        dtype, shape, (start, stop) = entry["dtype"], entry["shape"], entry["data_offsets"]
        whole = all(type(size) is int and size >= 0 for size in (*shape, start, stop))
    except (TypeError, KeyError, ValueError):
        raise Damaged("structure", 8, f"a tensor entry for {name!r}", "another form") from None
    if not isinstance(dtype, str) or dtype not in ITEM_BYTES:
        raise Damaged("structure", 8, f"a known type for {name!r}", repr(dtype)[:40])
    if not whole or len(shape) > MAX_DIMENSIONS:
        raise Damaged("structure", 8, f"a shape and a span of {name!r}", repr(shape)[:80])
    expected = math.prod(shape) * ITEM_BYTES[dtype]
    if stop - start != expected:
        raise Damaged("structure", 8, f"{expected} bytes for {name!r}", f"{stop - start} bytes")
    return Tensor(name, dtype, tuple(shape), payload + start, expected)


def integers(source: Source, tensor: Tensor, limit: int = 4096) -> Ints | None:
    """Values of a small integer tensor, flat; None when it holds something else or too many."""
    count = math.prod(tensor.shape)
    if count > limit or tensor.offset + tensor.n_bytes > source.size:
        return None
    if tensor.dtype == "U64":
        wide = source.array("<u8", tensor.offset, count)
        return wide.astype(np.int64) if not (wide > np.uint64(2**63 - 1)).any() else None
    if tensor.dtype == "F32":
        values: npt.NDArray[Any] = source.array("<f4", tensor.offset, count)
        whole = np.isfinite(values) & (np.abs(values) < 2**53)
        return values.astype(np.int64) if whole.all() else None
    if tensor.dtype not in INTEGERS:
        return None
    return source.array(INTEGERS[tensor.dtype], tensor.offset, count).astype(np.int64)
