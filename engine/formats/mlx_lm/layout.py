"""The two layouts of an mlx-lm prompt cache, brought to one form.

Layout 1 keeps scalars as strings in the metadata, layout 2 as tensors. Both become `Entry`s: a
class name, state tensors by their key, and the text fields of layout 1. Knows no class.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from engine.formats.safetensors import Archive, Tensor, integers
from engine.formats.source import Source

MAX_LAYERS = 4096
MAX_DEPTH = 4
MAX_CHILDREN = 64


@dataclass(slots=True)
class Entry:
    """One cache object of the file."""

    name: str
    """`3`, or `3.1` for a child of a CacheList."""
    kind: str
    tensors: dict[str, Tensor] = field(default_factory=dict)
    """State by key below the layer, such as `0` or `0.1`."""
    infos: tuple[str, ...] = ()
    """Layout 1: the scalars, as text."""


@dataclass(slots=True)
class Cache:
    """A whole file: which layout, its cache objects, user metadata, keys that fit no class."""

    layout: int
    entries: list[Entry]
    user: dict[str, str]
    strays: list[str]


def layout_of(metadata: dict[str, str]) -> int | None:
    """1 or 2; None where the metadata are not those of a prompt cache."""
    if metadata.get("2.0") == "" and has_classes(metadata, "1."):
        return 2
    if has_classes(metadata, "2.") and metadata.get("2.0") != "":
        return 1
    return None


def has_classes(metadata: dict[str, str], prefix: str) -> bool:
    return any(key.startswith(prefix) and number(key[2:]) is not None for key in metadata)


def number(text: str) -> int | None:
    """A list index below the limit; None for anything else."""
    if not (text.isascii() and text.isdigit() and len(text) <= 6):
        return None
    value = int(text)
    return value if value < MAX_LAYERS else None


def read_cache(source: Source, archive: Archive, layout: int) -> Cache:
    """Cache objects of a file whose layout is known, CacheLists replaced by their children."""
    prefix, user_prefix = ("1.", "0.") if layout == 2 else ("2.", "1.")
    metadata = archive.metadata
    classes: dict[int, str] = {}
    for key, value in metadata.items():
        index = number(key[2:]) if key.startswith(prefix) else None
        if index is not None:
            classes[index] = value
    by_layer: dict[int, dict[str, Tensor]] = {}
    strays = []
    for name, tensor in archive.tensors.items():
        head, _, rest = name.partition(".")
        index = number(head)
        if index is None or index not in classes or not rest:
            strays.append(name)
            continue
        by_layer.setdefault(index, {})[rest] = tensor
    entries: list[Entry] = []
    infos = layer_infos(metadata) if layout == 1 else {}
    for index in sorted(classes):
        own = by_layer.get(index, {})
        entry = Entry(str(index), classes[index], own, flat_infos(infos.get(index, {})))
        if entry.kind == "CacheList":
            entries += children(source, entry, infos.get(index, {}), layout, 0)
        else:
            entries.append(entry)
    user = {
        key[2:]: value for key, value in metadata.items() if key.startswith(user_prefix) and key[2:]
    }
    return Cache(layout, entries, user, strays)


def layer_infos(metadata: dict[str, str]) -> dict[int, dict[str, str]]:
    """Layout 1: the info strings of each layer by their key below `0.<layer>`."""
    infos: dict[int, dict[str, str]] = {}
    for key, value in metadata.items():
        head, _, rest = key[2:].partition(".")
        index = number(head) if key.startswith("0.") else None
        if index is not None:
            infos.setdefault(index, {})[rest] = value
    return infos


def flat_infos(infos: dict[str, str]) -> tuple[str, ...]:
    """Info strings `0`, `1`, … in order; an object without scalars has one empty string."""
    numbered = sorted(
        (index, value) for key, value in infos.items() if (index := number(key)) is not None
    )
    return tuple(value for _, value in numbered)


def below(items: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {key[len(prefix) :]: value for key, value in items.items() if key.startswith(prefix)}


def children(
    source: Source, entry: Entry, infos: dict[str, str], layout: int, depth: int
) -> list[Entry]:
    """The objects inside a CacheList, nested ones flattened."""
    if layout == 2:
        indices = {head for key in entry.tensors if (head := key.partition(".")[0])}
    else:
        indices = {key[2:] for key in infos if key.startswith("0.")}
        indices |= {key.partition(".")[0] for key in entry.tensors}
    found: list[Entry] = []
    numbered = sorted((at, text) for text in indices if (at := number(text)) is not None)
    for _, index in numbered[:MAX_CHILDREN]:
        name = f"{entry.name}.{index}"
        if layout == 2:
            kind = text_of(source, entry.tensors.get(f"{index}.1"))
            own = below(entry.tensors, f"{index}.0.")
            child = Entry(name, kind, own)
        else:
            below_infos = {
                key[len(f"1.{index}.") :]: value
                for key, value in infos.items()
                if key.startswith(f"1.{index}.")
            }
            kind = infos.get(f"0.{index}", "")
            child = Entry(name, kind, below(entry.tensors, f"{index}."), flat_infos(below_infos))
        if child.kind == "CacheList" and depth < MAX_DEPTH:
            found += children(source, child, below_infos if layout == 1 else {}, layout, depth + 1)
        else:
            found.append(child)
    return sorted(found, key=lambda own: [int(part) for part in own.name.split(".")]) or [entry]


def text_of(source: Source, tensor: Tensor | None) -> str:
    """A string stored as character codes; empty where there is none."""
    codes = integers(source, tensor, limit=256) if tensor is not None else None
    if codes is None or not ((codes > 31) & (codes < 0x110000)).all():
        return ""
    return "".join(map(chr, codes.tolist()))
