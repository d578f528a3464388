"""transformers caches that a program saved as tensors: one key and one value tensor a layer.

There is no cache file format in transformers, so names are matched by their words: a layer number
and `key` or `value` at the end (`layers.3.keys`, `key_cache.3`, `past_key_values.3.0`). The class
and the length fields of a layer may stand in the metadata (`layers.3.class`,
`layers.3.cumulative_length`) or as small tensors. Checked with transformers 5.24.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass, field
from typing import Any

from engine.formats.layer_checks import Asked, Judged, judge
from engine.formats.layers import Held, Layer, Segment
from engine.formats.opened import Opened
from engine.formats.options import Options
from engine.formats.report import Code, Finding, Report, ordered, sentence, span_text
from engine.formats.rows import BITS
from engine.formats.safetensors import Archive, Tensor, integers
from engine.formats.source import Source

WORD = re.compile(r"[._/\-]+")
KEY_WORDS = {"k", "key", "keys"}
VALUE_WORDS = {"v", "value", "values"}
STATE_WORDS = {"conv", "recurrent", "ssm", "state", "states"}
FIELDS = (
    "cumulative_length_int",
    "cumulative_length",
    "max_cache_len",
    "sliding_window",
    "class",
)
MAX_LAYER = 4096
MAX_BATCH = 512
PADDING_REMARK = "left padding is not in a transformers cache: padded rows look like positions"


@dataclass(slots=True)
class Parts:
    """What the file has for one layer."""

    key: Tensor | None = None
    value: Tensor | None = None
    states: list[Tensor] = field(default_factory=list)
    fields: dict[str, int] = field(default_factory=dict)
    kind: str = ""


def index_of(word: str) -> int | None:
    """A layer number in a name; a word of many digits is none, whatever it begins with."""
    if not (word.isascii() and word.isdigit() and len(word) < 10):
        return None
    return int(word) if int(word) < MAX_LAYER else None


def role_of(name: str) -> tuple[int, str] | None:
    """Layer number and `key`, `value` or `state` by the words of a tensor's name."""
    words = [word for word in WORD.split(name.lower()) if word]
    at = next((i for i, word in enumerate(words) if index_of(word) is not None), None)
    if at is None:
        return None
    layer = index_of(words[at])
    behind, before = words[at + 1 :], words[:at]
    assert layer is not None
    if any(word in STATE_WORDS for word in behind) and behind[-1] not in KEY_WORDS | VALUE_WORDS:
        return layer, "state"
    last = behind[-1] if behind else next((w for w in reversed(before) if w != "cache"), "")
    if last in KEY_WORDS or (last == "0" and len(behind) == 1):
        return layer, "key"
    if last in VALUE_WORDS or (last == "1" and len(behind) == 1):
        return layer, "value"
    return None


def field_of(name: str) -> tuple[int, str] | None:
    """Layer number and the name of a length field."""
    found = next((own for own in FIELDS if name.endswith(own)), None)
    if found is None:
        return None
    words = [word for word in WORD.split(name[: -len(found)]) if word]
    layers = [index for word in words if (index := index_of(word)) is not None]
    return (layers[0], found) if layers else None


def row_tensors(archive: Archive) -> dict[int, Parts]:
    """Key, value and state tensors by layer."""
    layers: dict[int, Parts] = {}
    for name, tensor in archive.tensors.items():
        role = role_of(name)
        if role is None or tensor.dtype not in BITS:
            continue
        parts = layers.setdefault(role[0], Parts())
        if role[1] == "state":
            parts.states.append(tensor)
        elif len(tensor.shape) == 4 and role[1] == "key":
            parts.key = tensor
        elif len(tensor.shape) == 4:
            parts.value = tensor
    return layers


def is_transformers_cache(archive: Archive) -> bool:
    """At least one layer with keys and values of four axes."""
    return any(parts.key and parts.value for parts in row_tensors(archive).values())


def read_transformers_cache(source: Source, archive: Archive, options: Options) -> Opened:
    """Report of tensors that make a cache."""
    if archive.cut:
        words = (
            f"the file ends at byte {source.size}, its tensors at byte {archive.stop}: "
            f"{len(archive.cut)} of {len(archive.tensors)} tensors are cut"
        )
        found = (Finding(Code.TRUNCATED, words, offset=source.size),)
        return Opened(
            Report(str(source.path), "hf-transformers", found, reason=words, detail="truncated"),
            source,
        )
    parts = row_tensors(archive)
    add_fields(source, archive, parts)
    layers = [build_layer(number, parts[number]) for number in sorted(parts)]
    windows = unnamed_windows(layers, ordered_parts(parts))
    judged = judge(source, layers, options)
    findings = list(judged.findings)
    stop = max(archive.stop, archive.payload)
    if source.size > stop:
        words = f"at byte {stop} expected the end of the file, found {source.size - stop} bytes"
        findings.append(Finding(Code.UNREADABLE, words, offset=stop))
    ordered_findings = ordered(findings)
    remarks = [PADDING_REMARK, *judged.remarks]
    guessed = [
        layer.name for layer, own in zip(layers, ordered_parts(parts), strict=True) if not own.kind
    ]
    if guessed:
        remarks.append("layers without a class in the file are read by their length fields")
    if windows:
        remarks.append(
            f"layers {', '.join(windows[:12])} hold fewer rows than later ones, as sliding windows "
            "do; without their class and length their positions are not known"
        )
    known: tuple[tuple[str, Any], ...] = (("layers", len(layers)), ("remarks", remarks))
    report = Report(
        file=str(source.path),
        format="hf-transformers",
        findings=ordered_findings,
        reason=sentence(ordered_findings) or sound_reason(judged),
        detail="trailing" if source.size > stop else None,
        unproved=tuple(judged.unproved),
        sequences=tuple(judged.sequences),
        facts=known,
    )
    asked = Asked(source, layers, judged)
    return Opened(report, source, asked.cells, asked.norms)


def ordered_parts(parts: dict[int, Parts]) -> list[Parts]:
    return [parts[number] for number in sorted(parts)]


def sound_reason(judged: Judged) -> str:
    runs = [
        f"sequence {sequence.id} holds {span_text(sequence.run)}"
        for sequence in judged.sequences[:4]
        if sequence.run is not None
    ]
    return "; ".join(runs) or "no layer holds a position"


def add_fields(source: Source, archive: Archive, parts: dict[int, Parts]) -> None:
    """Class names and length fields from metadata and from small tensors."""
    for key, text in archive.metadata.items():
        found = field_of(key)
        if found is None or found[0] not in parts:
            continue
        if found[1] == "class":
            parts[found[0]].kind = text.rpartition(".")[2][:60]
        elif text.isascii() and text.isdigit() and len(text) < 11:
            parts[found[0]].fields[found[1]] = int(text)
    for name, tensor in archive.tensors.items():
        found = field_of(name)
        if found is None or found[0] not in parts or found[1] == "class":
            continue
        values = integers(source, tensor)
        if values is not None and values.size == 1:
            parts[found[0]].fields.setdefault(found[1], int(values[0]))


def build_layer(number: int, parts: Parts) -> Layer:
    """The layer of one pair of tensors."""
    kind = parts.kind or guessed_kind(parts)
    layer = Layer(str(number), kind)
    layer.others = tuple(parts.states)
    if "Quant" in kind:
        layer.problem(Code.UNDECODABLE, f"cache class {kind!r} is not known")
        return layer
    if parts.key is None and parts.value is None:
        layer.role, layer.unproved = "recurrent", True
        layer.empty = not layer.others
        layer.held = [Held()] if layer.others else []
        return layer
    if parts.key is None or parts.value is None:
        lacking = "values" if parts.value is None else "keys"
        layer.problem(Code.MISSING, f"no {lacking}", parts.key or parts.value)
        return layer
    if parts.key.shape[:3] != parts.value.shape[:3]:
        words = f"keys of shape {list(parts.key.shape)}, values of {list(parts.value.shape)}"
        layer.problem(Code.INCONSISTENT, words, parts.key)
        return layer
    batch, heads, rows, width = parts.key.shape
    if batch > MAX_BATCH:
        layer.problem(Code.INCONSISTENT, f"{batch} sequences are more than are read", parts.key)
        return layer
    layer.batch, layer.rows = batch, rows
    layer.keys, layer.values = (parts.key,), (parts.value,)
    layer.signature = (heads, width, parts.value.shape[3])
    layer.empty = not (batch and heads and rows and width)
    if not layer.empty:
        place(layer, kind, parts.fields)
    return layer


def unnamed_windows(layers: list[Layer], parts: list[Parts]) -> list[str]:
    """Names of layers without a class or length that can only be windows; they are unproved.

    A pass that failed leaves the early layers ahead, never behind. So where an earlier layer holds
    fewer rows than a later one, the layers with fewer rows are no torn ones.
    """
    own = [
        layer
        for layer, part in zip(layers, parts, strict=True)
        if not (part.kind or part.fields) and layer.keys and not layer.problems
    ]
    if not any(before.rows < after.rows for before, after in itertools.pairwise(own)):
        return []
    most = max(layer.rows for layer in own)
    windows = [layer for layer in own if layer.rows < most]
    for layer in windows:
        layer.role, layer.unproved, layer.held = "attention-swa", True, []
    return [layer.name for layer in windows]


def guessed_kind(parts: Parts) -> str:
    """The class that the length fields speak for."""
    if parts.key is None:
        return "LinearAttentionLayer" if parts.states else ""
    if "cumulative_length_int" in parts.fields:
        return "StaticSlidingWindowLayer"
    length, rows = parts.fields.get("cumulative_length"), parts.key.shape[2]
    if length is None or length == rows:
        return "DynamicLayer"
    return "DynamicSlidingWindowLayer" if length > rows else "StaticLayer"


def place(layer: Layer, kind: str, fields: dict[str, int]) -> None:
    """Rows to positions, by the class."""
    rows, sliding, static = layer.rows, "Sliding" in kind, "Static" in kind
    layer.role = "attention-swa" if sliding else "attention"
    length = fields.get("cumulative_length")
    if static and sliding:
        exact = fields.get("cumulative_length_int")
        length = exact if exact is not None else length
        if exact is None and (length is None or length >= rows):
            layer.unproved = True  # the tensor stops counting at the window's length
            return
    elif static and length is None:
        layer.unproved, layer.at_most = True, rows
        return
    elif length is None:
        length = rows
    assert length is not None
    if length < 0 or length >= 2**31 or (length > rows and not sliding):
        layer.problem(Code.INCONSISTENT, f"length {length}, but {rows} rows are stored")
        return
    if not static and length < rows:
        layer.problem(Code.INCONSISTENT, f"length {length}, but {rows} rows count")
        return
    if not length:
        return
    count = min(length, rows)
    first = length - count
    layer.ring = first > 0
    reach = (length - 1, length) if first else (0, length)
    layer.held = [Held((Segment(0, first, count),), (), reach) for _ in range(layer.batch)]
