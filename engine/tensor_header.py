"""The header of a safetensors file, read before any of its bytes are trusted.

The safetensors library checks the structure; the tensor that a cut file lost is named here, which
the library does not do.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from safetensors import SafetensorError, safe_open

from engine.errors import Unreadable
from engine.small_file import at_once

MAX_HEADER_BYTES: Final = 100_000_000


@dataclass(frozen=True, slots=True)
class Header:
    """Metadata texts, and dtype and shape of every tensor."""

    metadata: dict[str, str]
    tensors: dict[str, tuple[str, tuple[int, ...]]]
    offsets: dict[str, int]
    """Byte of the file at which a tensor starts."""
    stamp: tuple[int, ...]
    """Size in bytes, time of the last change in ns and number of the file, at that time."""


def read_header(path: str | os.PathLike[str]) -> Header:
    """Header of a file. Raises: Unreadable with the tensor that is not all there."""
    name = str(path)
    try:
        if not Path(path).is_file():
            raise Unreadable(name, "no such file")
        header, payload, stamp = _raw_header(Path(path))
    except OSError as error:
        raise Unreadable(name, f"can't be read: {error.strerror or error}") from None
    try:
        with safe_open(name, framework="numpy") as file:
            metadata = dict(file.metadata() or {})
    except (SafetensorError, OSError, ValueError) as error:
        raise Unreadable(name, f"not a safetensors file: {error}") from error
    entries = {key: entry for key, entry in header.items() if key != "__metadata__"}
    tensors = {key: (str(e["dtype"]), tuple(e["shape"])) for key, e in entries.items()}
    offsets = {key: payload + e["data_offsets"][0] for key, e in entries.items()}
    return Header(metadata, tensors, offsets, stamp)


def stamp_of(status: os.stat_result) -> tuple[int, ...]:
    """What a file that nobody touched keeps."""
    return status.st_size, status.st_mtime_ns, status.st_ino


def _raw_header(path: Path) -> tuple[dict[str, Any], int, tuple[int, ...]]:
    """Entries by name, the byte at which the payload starts, and the stamp of the file."""
    with open(path, "rb", opener=at_once) as file:
        stamp = stamp_of(os.fstat(file.fileno()))
        size = stamp[0]
        length = int.from_bytes(file.read(8), "little")
        if size < 8:
            raise Unreadable(
                str(path), "no header of a safetensors file", "8 bytes or more", f"{size} bytes"
            )
        if length > min(size - 8, MAX_HEADER_BYTES):
            most = f"at most {min(size - 8, MAX_HEADER_BYTES):,} bytes"
            raise Unreadable(str(path), "header of the file", most, f"{length:,} bytes", 0)
        try:
            header = json.loads(file.read(length))
        except (ValueError, RecursionError) as error:
            raise Unreadable(str(path), f"header of the file is not JSON: {error}") from None
    if not isinstance(header, dict):
        raise Unreadable(str(path), "header of the file", "an object", type(header).__name__)
    tensors = {name: entry for name, entry in header.items() if name != "__metadata__"}
    for name, entry in tensors.items():
        if not _is_entry(entry):
            expected = "dtype, shape and data_offsets"
            raise Unreadable(str(path), f"header of tensor {name}", expected)
    # the first in the file that is not all there, whatever the order of the header
    for name, entry in sorted(tensors.items(), key=lambda item: item[1]["data_offsets"]):
        first, stop = entry["data_offsets"]
        if 8 + length + stop > size:
            raise Unreadable(
                str(path),
                f"tensor {name} is cut",
                f"{stop - first:,} bytes",
                f"{max(0, size - 8 - length - first):,}",
                8 + length + first,
            )
    return header, 8 + length, stamp


def _is_entry(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and isinstance(value.get("dtype"), str)
        and _is_shape(value.get("shape"))
        and _is_range(value.get("data_offsets"))
    )


def _is_shape(value: Any) -> bool:
    return isinstance(value, list) and all(type(n) is int and n >= 0 for n in value)


def _is_range(value: Any) -> bool:
    return (
        isinstance(value, list)
        and len(value) == 2
        and all(type(v) is int for v in value)
        and 0 <= value[0] <= value[1]
    )
