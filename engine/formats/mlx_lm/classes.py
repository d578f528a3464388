"""What each mlx-lm cache class keeps, and where its rows stand in the sequence.

One builder a class, one line in `CLASSES`. The rules from rows to positions are those of the
format page; bookkeeping that contradicts itself is a problem of the layer, and gives no run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from engine.formats.layers import Held, Layer, Segment
from engine.formats.mlx_lm.layout import Entry
from engine.formats.positions import Ints
from engine.formats.report import Code, Span
from engine.formats.safetensors import Tensor, integers
from engine.formats.source import Source

MAX_BATCH, MAX_HEADS = 512, 65_536
LIMIT = 2**31


class Reader:
    """Reads the state of one entry into a layer, noting what is wrong."""

    def __init__(self, source: Source, entry: Entry, layout: int) -> None:
        self.source, self.entry, self.layout = source, entry, layout
        self.layer = Layer(entry.name, entry.kind)

    def wrong(self, words: str, code: Code = Code.INCONSISTENT) -> None:
        self.layer.problem(code, words)

    def tensor(self, key: str) -> Tensor | None:
        """A state tensor; None when it is absent or stands for None."""
        tensor = self.entry.tensors.get(key)
        return None if tensor is None or tensor.shape == (0,) else tensor

    def scalar(self, key: str, info: int, what: str) -> int | None:
        """A number: tensor `key` in layout 2, info string `info` in layout 1."""
        if self.layout == 1:
            text = (
                self.entry.infos[info]
                if -len(self.entry.infos) <= info < len(self.entry.infos)
                else ""
            )
            return self.number(text, what)
        tensor = self.tensor(key)
        if tensor is None:
            self.wrong(f"no {what}", Code.MISSING)
            return None
        values = integers(self.source, tensor)
        if values is None or values.size != 1:
            self.wrong(f"{what} is not one number")
            return None
        return self.bounded(int(values[0]), what)

    def number(self, text: str, what: str) -> int | None:
        if text in ("True", "False"):
            return int(text == "True")
        digits = text.removeprefix("-")
        if not (digits.isascii() and digits.isdigit() and len(digits) < 20):
            self.wrong(f"no {what}" if not text else f"{what} is {text[:40]!r}, not a number")
            return None
        return self.bounded(int(text), what)

    def bounded(self, value: int, what: str) -> int | None:
        if -LIMIT < value < LIMIT:
            return value
        self.wrong(f"{what} is {value}, beyond the largest position")
        return None

    def vector(self, key: str, what: str) -> Ints | None:
        """One number for each sequence of the batch."""
        tensor = self.tensor(key)
        if tensor is None:
            self.wrong(f"no {what}", Code.MISSING)
            return None
        values = integers(self.source, tensor)
        if values is None or values.size != self.layer.batch:
            self.wrong(f"{what} does not hold {self.layer.batch} numbers")
            return None
        if ((values <= -LIMIT) | (values >= LIMIT)).any():
            self.wrong(f"{what} is beyond the largest position")
            return None
        return values

    def rows(self) -> bool:
        """Keys and values of a plain class; False when there are none to place."""
        keys, values = self.tensor("0"), self.tensor("1")
        if keys is None and values is None:
            if "0" in self.entry.tensors or "1" in self.entry.tensors:
                self.layer.empty = True
            else:
                self.wrong("a class name without tensors", Code.MISSING)
                self.layer.empty = True
            return False
        if keys is None or values is None:
            self.wrong(
                "keys without values" if values is None else "values without keys", Code.MISSING
            )
            return False
        if len(keys.shape) != 4 or len(values.shape) != 4:
            self.wrong(f"keys of shape {list(keys.shape)}, expected four axes")
            return False
        if keys.shape[:3] != values.shape[:3]:
            self.wrong(f"keys of shape {list(keys.shape)}, values of {list(values.shape)}")
            return False
        return self.place(keys.shape, values.shape[3], (keys,), (values,))

    def place(
        self,
        shape: tuple[int, ...],
        width: int,
        keys: tuple[Tensor, ...],
        values: tuple[Tensor, ...],
    ) -> bool:
        """Take over tensors of a common [B, H, P]; False when there is nothing in them."""
        layer = self.layer
        batch, heads, rows = shape[:3]
        if batch > MAX_BATCH or heads > MAX_HEADS:
            self.wrong(f"{batch} sequences of {heads} heads are more than are read")
            return False
        layer.batch, layer.rows = batch, rows
        layer.keys, layer.values = keys, values
        layer.signature = (heads, shape[3], width)
        if not batch or not rows or not heads or not shape[3]:
            layer.empty = True
            return False
        return True

    def everywhere(self, segments: tuple[Segment, ...], reach: Span, evicted: Span | None) -> None:
        """The same rows for every sequence of the batch."""
        gaps = (evicted,) if evicted is not None and evicted[0] < evicted[1] else ()
        self.layer.held = [Held(segments, gaps, reach) for _ in range(self.layer.batch)]


def growing(reader: Reader, offset: int | None) -> None:
    """Row s is position s for s below the offset."""
    layer = reader.layer
    if offset is None:
        return
    if not 0 <= offset <= layer.rows:
        reader.wrong(f"offset {offset}, but {layer.rows} rows are stored")
        return
    if offset:
        reader.everywhere((Segment(0, 0, offset),), (0, offset), None)


def kv_cache(reader: Reader) -> None:
    if reader.rows():
        rows = reader.layer.rows
        growing(reader, rows if reader.layout == 1 else reader.scalar("2", 0, "offset"))


def concatenate_cache(reader: Reader) -> None:
    if reader.rows():
        growing(reader, reader.layer.rows)


def quantized_cache(reader: Reader) -> None:
    """Packed words, scales and biases; a row whose scales are all zero was never written."""
    layer = reader.layer
    parts = {key: reader.tensor(key) for key in ("0.0", "0.1", "0.2", "1.0", "1.1", "1.2")}
    if all(part is None for part in parts.values()):
        layer.empty = True
        if not reader.entry.tensors:
            reader.wrong("a class name without tensors", Code.MISSING)
        return
    found = [part for part in parts.values() if part is not None]
    if len(found) < len(parts):
        absent = [key for key, part in parts.items() if part is None]
        reader.wrong(f"no {', '.join(absent)} of the packed rows", Code.MISSING)
        return
    first = found[0].shape
    if any(len(part.shape) != 4 or part.shape[:3] != first[:3] for part in found):
        reader.wrong("packed rows, scales and biases have different shapes")
        return
    fields = ("offset", "group size", "bits")
    offset, group_size, bits = (reader.scalar(str(2 + i), i, what) for i, what in enumerate(fields))
    if group_size is None or bits is None or offset is None:
        return
    for side in ("0", "1"):
        packed, scales, biases = (parts[f"{side}.{i}"] for i in range(3))
        assert packed is not None
        assert scales is not None
        assert biases is not None
        if scales.shape != biases.shape or packed.shape[3] * 32 != (
            scales.shape[3] * group_size * bits
        ):
            reader.wrong(f"{bits} bits in groups of {group_size} do not fit the packed rows")
            return
        layer.packed = (*layer.packed, (packed, scales, biases))
    layer.bits, layer.group_size = bits, group_size
    keys, values = layer.packed
    if reader.place(keys[1].shape, values[1].shape[3], keys[1:], values[1:]):
        growing(reader, offset)


def rotating_cache(reader: Reader) -> None:
    """A ring: the first `keep` rows stay, the others are overwritten from `idx` on."""
    layer = reader.layer
    layer.role = "attention-swa"
    if not reader.rows():
        return
    if reader.layout == 1:
        # keep, max_size, offset, idx; older files have the step between max_size and offset
        keep = reader.scalar("", 0, "keep")
        max_size = reader.scalar("", 1, "max_size")
        offset, idx = reader.scalar("", -2, "offset"), reader.scalar("", -1, "idx")
    else:
        offset, keep = reader.scalar("2", 0, "offset"), reader.scalar("3", 0, "keep")
        max_size, idx = reader.scalar("4", 0, "max_size"), reader.scalar("5", 0, "idx")
    if offset is None or keep is None or max_size is None or idx is None:
        return
    rows = layer.rows
    if offset == idx == 0:
        return
    problem = ring_problem(rows, offset, keep, max_size, idx)
    if problem:
        reader.wrong(problem)
        return
    if offset <= rows and idx == offset:
        reader.everywhere((Segment(0, 0, offset),), (0, offset), None)
        return
    layer.ring = offset > rows
    oldest = offset - (rows - keep)
    newest = offset - (idx - keep)
    segments = (
        Segment(0, 0, keep),
        Segment(keep, newest, idx - keep),
        Segment(idx, oldest, rows - idx),
    )
    # cut earlier, the ring would need older rows of its window than it still holds
    low = min(oldest + max_size - keep - 1, offset - 1) if oldest > keep else 0
    kept = tuple(segment for segment in segments if segment.n_rows)
    reader.everywhere(kept, (low, offset), (keep, oldest) if keep else None)


def ring_problem(rows: int, offset: int, keep: int, max_size: int, idx: int) -> str:
    """Why a ring's numbers can't be; empty when they can."""
    if offset < 0 or keep < 0 or max_size < 1:
        return f"offset {offset}, keep {keep} and max_size {max_size} can't be"
    if not 0 <= idx <= rows:
        return f"ring index {idx}, but {rows} rows are stored"
    if idx == offset:
        return ""
    if offset < rows:
        return f"ring index {idx}, but only {offset} of {rows} rows were ever used"
    if keep > idx:
        return f"ring index {idx} inside the {keep} rows that are always kept"
    return ""


def chunked_cache(reader: Reader) -> None:
    """Row s is position start + s. Layout 1 lost the offset: only an upper bound is known."""
    layer = reader.layer
    layer.role = "attention-swa"
    if not reader.rows():
        return
    if reader.layout == 1:
        start = reader.scalar("", 1, "start position")
        if start is None:
            return
        if start < 0:
            reader.wrong(f"start position {start}")
            return
        layer.unproved, layer.at_most = True, start + layer.rows
        return
    offset, chunk = reader.scalar("2", 0, "offset"), reader.scalar("3", 0, "chunk size")
    start = reader.scalar("4", 0, "start position")
    if offset is None or chunk is None or start is None:
        return
    count = offset - start
    if start < 0 or not 0 <= count <= layer.rows:
        reader.wrong(f"offset {offset} and start {start}, but {layer.rows} rows are stored")
        return
    if not count:
        return
    layer.ring = start > 0
    low = min(start + max(chunk, 1) - 1, offset - 1) if start else 0
    reader.everywhere((Segment(0, start, count),), (low, offset), None)


def arrays_cache(reader: Reader) -> None:
    """A recurrent summary: no position, no offset, no length."""
    layer, tensors = reader.layer, reader.entry.tensors
    layer.role, layer.unproved = "recurrent", True
    nested = any("." in key for key in tensors)
    states = {key: t for key, t in tensors.items() if not nested or key.startswith("0.")}
    if reader.layout == 2 and not nested:
        # a state of no arrays: what is left are left padding and lengths
        states = {key: t for key, t in tensors.items() if key not in ("1", "2")}
    layer.others = tuple(t for t in states.values() if t.shape != (0,) and t.n_bytes)
    if not tensors:
        reader.wrong("a class name without tensors", Code.MISSING)
    layer.empty = not layer.others
    if layer.others:
        shape = layer.others[0].shape
        layer.batch = shape[0] if shape and 0 < shape[0] <= MAX_BATCH else 1
        layer.held = [Held() for _ in range(layer.batch)]


def batch_cache(reader: Reader) -> None:
    """Row s of sequence b is position offset[b] - idx + s from its left padding on."""
    layer = reader.layer
    if not reader.rows():
        return
    offsets, padding = reader.vector("2", "offset"), reader.vector("3", "left padding")
    idx = layer.rows if reader.layout == 1 else reader.scalar("4", 0, "idx")
    if offsets is None or padding is None or idx is None:
        return
    if not 0 <= idx <= layer.rows:
        reader.wrong(f"index {idx}, but {layer.rows} columns are stored")
        return
    layer.padding = tuple(padding.tolist())
    for b, (offset, pad) in enumerate(zip(offsets.tolist(), padding.tolist(), strict=True)):
        if offset != idx - pad:
            reader.wrong(f"sequence {b}: offset {offset}, expected {idx} - {pad}")
            layer.held = []
            return
        first = min(max(pad, 0), idx)
        place_batch_entry(layer, ((first, offset - idx + first, idx - first),))


def place_batch_entry(layer: Layer, runs: tuple[tuple[int, int, int], ...]) -> None:
    segments = tuple(Segment(*run) for run in runs if run[2] > 0)
    layer.held.append(Held(segments))


def batch_rotating_cache(reader: Reader) -> None:
    """A ring of padded sequences: rows in time order first, then positions by the offset."""
    layer = reader.layer
    layer.role = "attention-swa"
    if not reader.rows():
        return
    offsets, padding = reader.vector("2", "offset"), reader.vector("3", "left padding")
    names = ("max_size", "total", "idx", "rotated")
    max_size, total, idx, rotated = (
        reader.scalar(str(4 + i), i, what) for i, what in enumerate(names)
    )
    if offsets is None or padding is None or max_size is None or total is None:
        return
    if idx is None or rotated is None:
        return
    rows = layer.rows
    if not 0 <= idx <= rows or max_size < 1 or total < 0:
        reader.wrong(f"index {idx} of {rows} columns, max_size {max_size}, total {total}")
        return
    layer.padding = tuple(padding.tolist())
    used = rows if rotated else idx
    layer.ring = bool(rotated) or total > used
    for b, (offset, pad) in enumerate(zip(offsets.tolist(), padding.tolist(), strict=True)):
        start = max(pad, used - max_size, 0)
        first = offset - used + start
        if start < used and first < 0:
            reader.wrong(f"sequence {b}: offset {offset} is less than its {used - start} rows")
            layer.held = []
            return
        runs = ring_runs(start, used, first, idx if rotated else 0, rows)
        place_batch_entry(layer, runs)
        held = layer.held[-1]
        if held.run is not None and first > 0:
            held.reach = (min(first + max_size - 1, offset - 1), offset)


def ring_runs(
    start: int, used: int, first: int, turn: int, rows: int
) -> tuple[tuple[int, int, int], ...]:
    """(row, position, count) of time indices start..used, time t standing at (t + turn) % rows."""
    if start >= used:
        return ()
    border = max(start, min(used, rows - turn))
    early = ((start + turn) % rows, first, border - start)
    late = ((border + turn) % rows, first + border - start, used - border)
    return early, late


def layer_cache(reader: Reader) -> None:
    """deepseek_v41: a window of the newest rows, compressed groups before it, pending rows."""
    layer = reader.layer
    layer.role = "attention-swa"
    window = reader.tensor("0")
    if window is None:
        layer.empty = True
        if not reader.entry.tensors:
            reader.wrong("a class name without tensors", Code.MISSING)
        return
    if len(window.shape) not in (3, 4):
        reader.wrong(f"a window of shape {list(window.shape)}")
        return
    shape = window.shape if len(window.shape) == 4 else (window.shape[0], 1, *window.shape[1:])
    others = (reader.tensor(str(i)) for i in range(1, 5))
    layer.others = tuple(tensor for tensor in others if tensor is not None)
    offset = reader.scalar("5", 0, "offset")
    if not reader.place(shape, 0, (window,), ()) or offset is None:
        return
    if offset < layer.rows:
        reader.wrong(f"offset {offset}, but {layer.rows} rows are stored")
        return
    layer.ring = offset > layer.rows
    segments = (Segment(0, offset - layer.rows, layer.rows),)
    reader.everywhere(segments, (offset - 1, offset), None)


CLASSES: Final[dict[str, Callable[[Reader], None]]] = {
    "KVCache": kv_cache,
    "ConcatenateKVCache": concatenate_cache,
    "QuantizedKVCache": quantized_cache,
    "RotatingKVCache": rotating_cache,
    "ChunkedKVCache": chunked_cache,
    "ArraysCache": arrays_cache,
    "MambaCache": arrays_cache,
    "BatchKVCache": batch_cache,
    "BatchRotatingKVCache": batch_rotating_cache,
    "LayerCache": layer_cache,
}


def read_layer(source: Source, entry: Entry, layout: int) -> Layer:
    """The layer of one cache object; a class that is not known is undecodable."""
    reader = Reader(source, entry, layout)
    build = CLASSES.get(entry.kind)
    if build is None:
        reader.wrong(f"cache class {entry.kind[:60]!r} is not known", Code.UNDECODABLE)
        return reader.layer
    build(reader)
    return reader.layer
