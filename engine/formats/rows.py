"""One pass over cache rows: which are not finite, which were never written; and their norms.

Rows are looked at as unsigned integers with the sign cleared, so bfloat16 needs no float type.
The pass goes a few MiB at a time and gives mapped pages back, so memory stays small.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from engine.formats.opened import Floats
from engine.formats.safetensors import Tensor
from engine.formats.source import Source

SLICE_BYTES = 4 << 20
SCAN_BYTES = 256 << 10
"""A slice of the pass over all rows stays in the processor's cache."""
BITS: Final = {
    # type: unsigned view, everything but the sign, smallest value that is not finite
    "F16": ("<u2", 0x7FFF, 0x7C00),
    "BF16": ("<u2", 0x7FFF, 0x7F80),
    "F32": ("<u4", 0x7FFFFFFF, 0x7F800000),
    "F64": ("<u8", 0x7FFFFFFFFFFFFFFF, 0x7FF0000000000000),
    "F8_E5M2": ("u1", 0x7F, 0x7C),
    "F8_E4M3": ("u1", 0x7F, 0x7F),
}
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class RowFlags:
    """Per batch entry and physical row of one tensor, all heads taken together: [B, P]."""

    zero: Flags
    bad: Flags


def row_flags(source: Source, tensor: Tensor) -> RowFlags | None:
    """Scan a [B, H, P, D] or [B, P, D] tensor; None when its type has no NaN or it is empty."""
    batch, heads, rows, width = four(tensor.shape)
    if tensor.dtype not in BITS or not tensor.n_bytes:
        return None
    view, clear, limit = BITS[tensor.dtype]
    item = np.dtype(view).itemsize
    mask = np.array(clear, view)
    if tensor.n_bytes <= SLICE_BYTES:
        whole: Any = source.array(view, tensor.offset, tensor.n_bytes // item)
        top = (whole.reshape(batch, heads, rows, width) & mask).max(axis=(1, 3))
        return RowFlags(top == 0, top >= limit)
    highest = np.zeros((batch, rows), view)
    step = max(1, SCAN_BYTES // (width * item))
    scratch = np.empty((min(step, rows), width), view)
    for b in range(batch):
        for h in range(heads):
            for start in range(0, rows, step):
                n = min(step, rows - start)
                at = tensor.offset + ((b * heads + h) * rows + start) * width * item
                if source.is_hole(at, n * width * item):
                    continue
                raw: Any = source.array(view, at, n * width)
                np.bitwise_and(raw.reshape(n, width), mask, out=scratch[:n])
                part = highest[b, start : start + n]
                np.maximum(part, scratch[:n].max(axis=1), out=part)
                source.release(at, n * width * item)
    return RowFlags(highest == 0, highest >= limit)


def any_bad(source: Source, tensor: Tensor) -> bool:
    """Whether a tensor of any shape holds a value that is not finite."""
    if tensor.dtype not in BITS or not tensor.n_bytes:
        return False
    view, clear, limit = BITS[tensor.dtype]
    item = np.dtype(view).itemsize
    for start in range(0, tensor.n_bytes, SLICE_BYTES):
        n = min(SLICE_BYTES, tensor.n_bytes - start)
        if source.is_hole(tensor.offset + start, n):
            continue
        raw: Any = source.array(view, tensor.offset + start, n // item)
        found = bool(((raw & np.array(clear, view)) >= limit).any())
        source.release(tensor.offset + start, n)
        if found:
            return True
    return False


def row_norms(source: Source, tensor: Tensor, batch_entry: int) -> Floats:
    """Euclidean norm of every physical row over all heads, of one batch entry: [P]."""
    _, heads, rows, width = four(tensor.shape)
    if tensor.dtype not in BITS or not tensor.n_bytes:
        return np.full(rows, np.nan, np.float32)
    total = np.zeros(rows, np.float64)
    item = np.dtype(BITS[tensor.dtype][0]).itemsize
    step = max(1, SLICE_BYTES // (width * item))
    with np.errstate(all="ignore"):
        for h in range(heads):
            for start in range(0, rows, step):
                n = min(step, rows - start)
                at = tensor.offset + ((batch_entry * heads + h) * rows + start) * width * item
                raw = source.bytes(at, n * width * item)
                source.release(at, len(raw))
                wide = to_floats(raw, tensor.dtype).reshape(n, width).astype(np.float64)
                total[start : start + n] += (wide * wide).sum(axis=1)
        return np.sqrt(total).astype(np.float32)


def to_floats(raw: bytes, dtype: str) -> npt.NDArray[Any]:
    """Packed floats of a safetensors type as a NumPy float array."""
    if dtype == "BF16":
        return (np.frombuffer(raw, "<u2").astype(np.uint32) << 16).view(np.float32)
    if dtype.startswith("F8"):
        return eight_bit(np.frombuffer(raw, np.uint8), dtype)
    return np.frombuffer(raw, {"F16": "<f2", "F32": "<f4", "F64": "<f8"}[dtype])


def eight_bit(codes: npt.NDArray[np.uint8], dtype: str) -> Floats:
    """Values of 8-bit floats by their definition: sign, exponent, mantissa."""
    mantissa_bits, bias = (3, 7) if dtype == "F8_E4M3" else (2, 15)
    table = np.arange(256)
    exponent = (table & 0x7F) >> mantissa_bits
    mantissa = (table & ((1 << mantissa_bits) - 1)) / (1 << mantissa_bits)
    values = np.where(
        exponent == 0,
        mantissa * 2.0 ** (1 - bias),
        (1 + mantissa) * 2.0 ** (exponent.astype(float) - bias),
    )
    limit = BITS[dtype][2]
    values[(table & 0x7F) >= limit] = np.nan
    values = np.where(table & 0x80, -values, values)
    return values.astype(np.float32)[codes]


def packed_norms(
    source: Source, tensors: tuple[Tensor, ...], bits: int, group_size: int, batch_entry: int
) -> Floats:
    """Norms of quantised rows (packed words, scales, biases): value = scale * q + bias. [P]."""
    packed, scales, biases = tensors
    _, heads, rows, words = four(packed.shape)
    total = np.zeros(rows, np.float64)
    step = max(1, (SLICE_BYTES // 16) // max(1, words * 4))
    for h in range(heads):
        for start in range(0, rows, step):
            n = min(step, rows - start)
            first = (batch_entry * heads + h) * rows + start
            raw = np.frombuffer(
                source.bytes(packed.offset + first * words * 4, n * words * 4), "u1"
            )
            unpacked = np.unpackbits(raw, bitorder="little").reshape(-1, bits)
            codes = (unpacked @ (1 << np.arange(bits))).reshape(n, -1, group_size)
            with np.errstate(all="ignore"):
                factor, shift = (part_rows(source, part, first, n) for part in (scales, biases))
                values = codes * factor[..., None] + shift[..., None]
                total[start : start + n] += (values * values).sum(axis=(1, 2))
    with np.errstate(all="ignore"):
        return np.sqrt(total).astype(np.float32)


def part_rows(source: Source, tensor: Tensor, first: int, n: int) -> npt.NDArray[np.float64]:
    """Rows `first` to `first + n` of a float tensor with its leading axes flattened."""
    width = tensor.shape[-1]
    item = np.dtype(BITS[tensor.dtype][0]).itemsize
    raw = source.bytes(tensor.offset + first * width * item, n * width * item)
    return to_floats(raw, tensor.dtype).reshape(n, width).astype(np.float64)


def four(shape: tuple[int, ...]) -> tuple[int, int, int, int]:
    """Batch, heads, rows and width of a row tensor of three or four axes."""
    if len(shape) == 3:
        return shape[0], 1, shape[1], shape[2]
    batch, heads, rows, width = shape
    return batch, heads, rows, width
