"""Layered caches in common: what a layer holds, and the checks between the layers of one cache.

mlx-lm and transformers files become `Layer`s; torn chunks, missing layers, unwritten and
non-finite rows are found here, so one kind of fault has one code and one rule.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from engine.formats.report import Code, Finding, Span
from engine.formats.rows import Flags, RowFlags, any_bad, row_flags
from engine.formats.safetensors import Tensor
from engine.formats.source import Source
from engine.validate import ranges_of


class Segment(NamedTuple):
    """`n_rows` rows from physical row `row` on hold positions from `position` on."""

    row: int
    position: int
    n_rows: int


@dataclass(slots=True)
class Held:
    """What one layer holds for one sequence."""

    segments: tuple[Segment, ...] = ()
    evicted: tuple[Span, ...] = ()
    reach: Span | None = None
    """Last positions at which the layer can stand after a cut, its rows being sound."""
    holes: tuple[Span, ...] = ()
    non_finite: tuple[Span, ...] = ()
    stale: tuple[Span, ...] = ()

    @property
    def run(self) -> Span | None:
        """First to one past the last position that the layer claims."""
        held = [segment for segment in self.segments if segment.n_rows]
        if not held:
            return None
        first = min(segment.position for segment in held)
        return first, max(segment.position + segment.n_rows for segment in held)

    @property
    def live(self) -> int:
        claimed = sum(segment.n_rows for segment in self.segments)
        return claimed - sum(stop - start for start, stop in self.holes)

    def claimed(self) -> list[Span]:
        """Positions that the bookkeeping says are there, as half-open ranges."""
        return [(s.position, s.position + s.n_rows) for s in self.segments if s.n_rows]


@dataclass(slots=True)
class Layer:
    """One layer (or child of a layer) of a cache."""

    name: str
    """Index in the cache list, `3` or `3.1` for a child."""
    kind: str
    """Class name in the file."""
    role: str = "attention"
    batch: int = 1
    rows: int = 0
    """Physical rows."""
    held: list[Held] = field(default_factory=list)
    """One for each sequence of the batch."""
    keys: tuple[Tensor, ...] = ()
    """Tensors whose rows say whether a key was written: plain keys, or scales and biases."""
    values: tuple[Tensor, ...] = ()
    others: tuple[Tensor, ...] = ()
    """State tensors without rows (recurrent layers)."""
    packed: tuple[tuple[Tensor, ...], ...] = ()
    """Quantised keys and values as stored, with their scales and biases."""
    bits: int = 0
    group_size: int = 0
    empty: bool = False
    unproved: bool = False
    """Nothing in the file shows how far this layer came."""
    at_most: int | None = None
    """Upper bound of the end where the file shows only that."""
    ring: bool = False
    keys_only: bool = False
    padding: tuple[int, ...] = ()
    """Left padding of each batch entry, where the class has one."""
    signature: tuple[int, ...] = ()
    """Heads, key width and value width: a change of it may be the border to a draft model."""
    problems: list[Finding] = field(default_factory=list)

    @property
    def part(self) -> str:
        return f"layer.{self.name}"

    @property
    def emptied(self) -> bool:
        """Rows are stored, and the bookkeeping says that none of them counts (a full trim)."""
        return bool(self.keys and self.rows) and not (self.problems or self.unproved or self.empty)

    def problem(self, code: Code, words: str, tensor: Tensor | None = None) -> None:
        """Note a fault of this layer's bookkeeping; its runs are then not to be trusted."""
        offset = None if tensor is None else tensor.offset
        self.problems.append(
            Finding(code, f"layer {self.name}: {words}", part=self.part, offset=offset)
        )


def scan(source: Source, layer: Layer) -> list[Finding]:
    """Look at the rows of a layer; fills in holes, bad and stale rows, returns findings."""
    findings = []
    bad = [tensor.name for tensor in layer.others if any_bad(source, tensor)]
    if bad:
        words = f"layer {layer.name}: values that are not finite in state {', '.join(bad)}"
        findings.append(Finding(Code.NON_FINITE, words, part=layer.part))
    if not any(held.segments for held in layer.held):
        return findings
    keys, values = (combined(source, tensors) for tensors in (layer.keys, layer.values))
    flags = [found for found in (keys, values) if found is not None]
    if not flags:
        return findings
    claimed = np.zeros((layer.batch, layer.rows), np.bool_)
    for b, held in enumerate(layer.held):
        for segment in held.segments:
            claimed[b, segment.row : segment.row + segment.n_rows] = True
    unwritten = unwritten_rows(keys, values, claimed, layer)
    broken = np.logical_or.reduce([found.bad for found in flags]) & claimed
    written = ~np.logical_and.reduce([found.zero for found in flags])
    for b, held in enumerate(layer.held):
        held.holes = positions_of(held, unwritten[b])
        held.non_finite = positions_of(held, broken[b])
        held.stale = ranges_of(np.flatnonzero(written[b] & ~claimed[b]))
    return findings


def combined(source: Source, tensors: tuple[Tensor, ...]) -> RowFlags | None:
    """Flags of tensors that make one row together: zero by the first, bad by any."""
    found = [flags for tensor in tensors if (flags := row_flags(source, tensor)) is not None]
    if not found:
        return None
    return RowFlags(found[0].zero, np.logical_or.reduce([flags.bad for flags in found]))


def unwritten_rows(
    keys: RowFlags | None, values: RowFlags | None, claimed: Flags, layer: Layer
) -> Flags:
    """[B, P] claimed rows that are all zero; values do not count where only keys are kept."""
    empty = np.zeros_like(claimed)
    zero_keys = keys.zero & claimed if keys is not None else empty
    if values is None:
        layer.keys_only = keys is not None
        return zero_keys
    zero_values = values.zero & claimed
    no_values = bool((zero_values == claimed).all())
    no_keys = keys is None or bool((zero_keys == claimed).all())
    if no_values and not no_keys:
        layer.keys_only = True
        return zero_keys
    return zero_keys | zero_values


def positions_of(held: Held, rows: Flags) -> tuple[Span, ...]:
    """Positions of the flagged rows, as ranges."""
    found = []
    for segment in held.segments:
        own = np.flatnonzero(rows[segment.row : segment.row + segment.n_rows])
        found += [
            (segment.position + start, segment.position + stop) for start, stop in ranges_of(own)
        ]
    return merged(found)


def merged(ranges: list[Span]) -> tuple[Span, ...]:
    """Ranges in order, touching ones joined."""
    joined: list[Span] = []
    for start, stop in sorted(ranges):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(stop, joined[-1][1]))
        else:
            joined.append((start, stop))
    return tuple(joined)
