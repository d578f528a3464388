"""Owners of an mlx-lm session as frozen values: the cache of each layer, the tokens, the logits.

Every number is read from the cache objects and every digest from the bytes; there is one set of
caches and no second bank.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any, Final

import mlx.core as mx
import numpy as np
import numpy.typing as npt

from engine.commands import ReadArray
from engine.errors import Unreadable
from engine.protect import ProtectedSession, views
from engine.protect.guards import kind_of
from engine.reading import MAX_ROWS
from engine.snapshot import ArraySlice, Digests, OwnerView, PartView

Key = int | str
"""A sequence's number or a slot's name."""
Held = Mapping[Key, ProtectedSession]

ALONE: Final = "single"
"""State of an owner that stands once: what a failed chunk did to it was taken back."""


def unit_of(cache: Any) -> str:
    """`position`, `window` (the newest positions only) or `sequence` (state of a fixed size)."""
    if views.runs(cache) is None:
        return "sequence"
    limited = hasattr(cache, "max_size") or hasattr(cache, "chunk_size")
    return "window" if limited else "position"


def units(session: ProtectedSession) -> tuple[tuple[str, str], ...]:
    """(owner, unit) of every owner."""
    layers = tuple((name, unit_of(cache)) for name, cache in views.owners(session.cache))
    return (*layers, ("tokens", "position"), ("logits", "sequence"))


def written_by(session: ProtectedSession) -> dict[str, tuple[str, ...]]:
    """Owners that each layer's stage writes; nothing where caches and layers differ in number."""
    if len(session.cache) != session.n_layers:
        return {}
    found: dict[str, tuple[str, ...]] = {}
    for name, _ in views.owners(session.cache):
        stage = ".".join(name.split(".")[:2])
        found[stage] = (*found.get(stage, ()), name)
    return found


def digests(held: Held, *, layers_only: bool = False) -> Digests:
    """A digest of every owner over every sequence and slot, from the bytes.

    With sequence 0 alone a layer's digest is that of its cache.
    """
    found: dict[str, list[tuple[Key, str]]] = {}
    for key, session in held.items():
        for name, value in session.digests().items():
            found.setdefault(name, []).append((key, value))
        if not layers_only:
            tokens = np.array(session.tokens, np.int64).tobytes()
            found.setdefault("tokens", []).append((key, _hash(tokens)))
            logits = b"" if session.logits is None else session.logits.tobytes()
            found.setdefault("logits", []).append((key, _hash(logits)))
    return tuple((name, _joined(parts)) for name, parts in found.items())


def _joined(parts: list[tuple[Key, str]]) -> str:
    if len(parts) == 1 and parts[0][0] == 0:
        return parts[0][1]
    return _hash("|".join(f"{key!r}={value}" for key, value in parts).encode())


def _hash(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def owner_views(held: Held, sealed: Digests) -> tuple[OwnerView, ...]:
    """Every owner with its bytes; the digests are those after the last op."""
    first = next(iter(held.values()))
    known = dict(sealed)
    sizes = dict.fromkeys((name for name, _ in units(first)), 0)
    for session in held.values():
        for layer in session.layers():
            sizes[layer["owner"]] += int(layer["n_bytes"])
        sizes["tokens"] += 8 * len(session.tokens)
        sizes["logits"] += 0 if session.logits is None else session.logits.nbytes
    return tuple(
        OwnerView(name, unit, sizes[name], known.get(name, ""), "", ALONE, 0)
        for name, unit in units(first)
    )


def part_views(session: ProtectedSession) -> tuple[PartView, ...]:
    """How far every owner reaches for one sequence; `layer` is in the owner's name already."""
    n = len(session.tokens)
    last = n - 1 if n else None
    found = []
    for name, cache in views.owners(session.cache):
        runs = views.runs(cache)
        if runs is None:
            found.append(PartView(name, -1, last, last, n))
        elif not runs[0]:
            found.append(PartView(name, -1, None, None, 0))
        else:
            count = sum(stop - start + 1 for start, stop in runs[0])
            found.append(PartView(name, -1, runs[0][0][0], runs[0][-1][1], count))
    found.append(PartView("tokens", -1, 0 if n else None, last, n))
    found.append(PartView("logits", -1, last, last, n))
    return tuple(found)


# arrays ---------------------------------------------------------------------------------------


def arrays_of(session: ProtectedSession) -> tuple[tuple[str, int, str], ...]:
    """(owner, -1, part) of everything that `read_array` can copy out."""
    found = [
        (name, -1, part) for name, cache in views.owners(session.cache) for part in _parts(cache)
    ]
    return (*found, ("tokens", -1, ""), ("logits", -1, ""))


def _parts(cache: Any) -> tuple[str, ...]:
    if kind_of(cache) is not None or hasattr(cache, "keys"):
        return ("keys", "values")
    states = getattr(cache, "cache", None)
    n = len(states) if isinstance(states, list | tuple) else len(list(views.visible(cache)))
    return tuple(f"state.{index}" for index in range(n))


def read_array(session: ProtectedSession, wanted: ReadArray) -> ArraySlice:
    """Rows of a layer's keys or values ([n, heads, size], oldest first), a state, or the logits.

    Raises: Unreadable naming what does not exist.
    """
    if wanted.bank != "public":
        raise Unreadable(
            "array", "a model of mlx-lm has one set of caches", "the public bank", wanted.bank
        )
    if (wanted.owner, -1, wanted.part) not in arrays_of(session):
        raise Unreadable("array", f"there is no {wanted.owner} {wanted.part}".strip())
    start, values = _values(session, wanted)
    values.setflags(write=False)
    return ArraySlice(
        wanted.owner, wanted.layer, wanted.part, wanted.seq, wanted.bank, start, values
    )


def _values(session: ProtectedSession, wanted: ReadArray) -> tuple[int, npt.NDArray[np.generic]]:
    if wanted.owner == "tokens":
        return _rows(np.array(session.tokens, np.int64), 0, wanted)
    if wanted.owner == "logits":
        if session.logits is None:
            raise _absent(wanted)
        return 0, session.logits.copy()
    cache = dict(views.owners(session.cache))[wanted.owner]
    if wanted.part in ("keys", "values"):
        return _rows(*_lines(cache, wanted), wanted)
    states = getattr(cache, "cache", None)
    found = list(states) if isinstance(states, list | tuple) else list(views.visible(cache))
    value = found[int(wanted.part.removeprefix("state."))]
    if value is None:
        raise _absent(wanted)
    return 0, _host(value)[0]


def _lines(cache: Any, wanted: ReadArray) -> tuple[npt.NDArray[np.generic], int]:
    """[n, heads, size] visible rows in order, and the position of the first."""
    index = 0 if wanted.part == "keys" else 1
    if cache.keys is None:
        raise _absent(wanted)
    if isinstance(cache.keys, list | tuple):
        index *= len(cache.keys)  # of quantised rows the packed words
    rows = _host(list(views.visible(cache))[index])[0].swapaxes(0, 1)
    runs = views.runs(cache)
    last = runs[0][-1][1] if runs and runs[0] else len(rows) - 1
    return rows, last + 1 - len(rows)


def _rows(
    values: npt.NDArray[np.generic], first: int, wanted: ReadArray
) -> tuple[int, npt.NDArray[np.generic]]:
    """The asked range of rows that begin at position `first`."""
    end = first + len(values)
    start = first if wanted.start is None else min(max(first, wanted.start), end)
    stop = end if wanted.stop is None else min(end, wanted.stop)
    stop = max(start, min(stop, start + MAX_ROWS))
    return start, values[start - first : stop - first].copy()


def _host(array: Any) -> npt.NDArray[np.generic]:
    wide = array.astype(mx.float32) if array.dtype == mx.bfloat16 else array
    return np.array(wide)


def _absent(wanted: ReadArray) -> Unreadable:
    return Unreadable("array", f"{wanted.owner} of sequence {wanted.seq} is absent")


def held_in_order(
    sequences: Mapping[int, ProtectedSession], slots: Mapping[str, ProtectedSession]
) -> dict[Key, ProtectedSession]:
    """Sequences by number, then slots by name."""

    def pairs() -> Iterator[tuple[Key, ProtectedSession]]:
        for seq in sorted(sequences):
            yield seq, sequences[seq]
        for name in sorted(slots):
            yield name, slots[name]

    return dict(pairs())
