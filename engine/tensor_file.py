"""Tensors of one safetensors file, each read with a plain read when it is asked for.

Not with the array library's own lazy reading: one of its reads that fails (MLX 0.32.4, CPU) can
leave its count of running tasks one too high for the rest of the process, and with two such, a
later evaluation of anything may wait for ever. Not through a memory map either: a page that the
file has lost ends the process.
"""

from __future__ import annotations

import math
import os
from typing import Any, Final

import mlx.core as mx
import numpy as np
import numpy.typing as npt

from engine.errors import Malformed, Unreadable
from engine.small_file import at_once
from engine.tensor_header import Header, read_header, stamp_of

STORED: Final[dict[str, tuple[str, mx.Dtype]]] = {
    "F32": ("<f4", mx.float32),
    "F16": ("<f2", mx.float16),
    "BF16": ("<u2", mx.bfloat16),
    "I64": ("<i8", mx.int64),
    "I32": ("<i4", mx.int32),
    "I16": ("<i2", mx.int16),
    "I8": ("i1", mx.int8),
    "U64": ("<u8", mx.uint64),
    "U32": ("<u4", mx.uint32),
    "U16": ("<u2", mx.uint16),
    "U8": ("u1", mx.uint8),
    "BOOL": ("?", mx.bool_),
}
"""Type on the host and dtype by the name in the file; bfloat16 comes as its bits."""


class TensorFile:
    """Header of a file and its arrays by name. Raises in all methods: Unreadable, Malformed."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = str(path)
        self.header: Header = read_header(path)

    @property
    def n_bytes(self) -> int:
        """Bytes of all tensors as stored."""
        return sum(map(self.bytes_as, self.header.tensors))

    def bytes_as(self, name: str, dtype: mx.Dtype | None = None) -> int:
        """Bytes of a tensor in memory, of a float one as `dtype` (None: as stored)."""
        stored, shape = self.header.tensors[name]
        known = STORED.get(stored, ("", mx.uint8))[1]
        wanted = dtype if dtype is not None and mx.issubdtype(known, mx.floating) else known
        return math.prod(shape) * int(wanted.size)

    def read(self, name: str) -> mx.array:
        """A tensor that the header has, read now, in its stored shape and dtype."""
        dtype, shape = self.header.tensors[name]
        if dtype not in STORED:
            known = ", ".join(STORED)
            raise Malformed(self.path, f"dtype of tensor {name}", f"one of {known}", dtype)
        on_host, stored = STORED[dtype]
        values = self._bytes(name, on_host, math.prod(shape))
        try:
            array = mx.array(values.reshape(shape))
        except (ValueError, OverflowError):  # more dimensions, or larger ones, than arrays have
            expected, found = "dimensions of an array", str(list(shape))[:80]
            raise Malformed(self.path, f"shape of tensor {name}", expected, found) from None
        return array.view(stored) if array.dtype != stored else array

    def _bytes(self, name: str, on_host: str, count: int) -> npt.NDArray[Any]:
        offset = self.header.offsets[name]
        try:
            with open(self.path, "rb", opener=at_once) as file:
                if stamp_of(os.fstat(file.fileno())) != self.header.stamp:
                    raise Unreadable(self.path, f"changed before tensor {name} was read")
                file.seek(offset)
                values: npt.NDArray[Any] = np.fromfile(file, on_host, count)
        except OSError as error:
            raise Unreadable(
                self.path, f"tensor {name} can't be read: {error.strerror or error}"
            ) from None
        except MemoryError:
            raise Unreadable(self.path, f"tensor {name} does not fit into the memory") from None
        if values.size != count:
            given = f"{values.nbytes:,}"
            expected = f"{count * values.itemsize:,} bytes"
            raise Unreadable(self.path, f"tensor {name} is cut", expected, given, offset)
        return values
