"""From a llama.cpp log to a report: the last state it shows, and its position errors."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np

from engine.formats.llama.log import (
    LISTED,
    Log,
    PositionError,
    Snapshot,
    errors_json,
    is_llama_log,
    owners_of,
    read_log,
)
from engine.formats.opened import CellMap, Opened, no_cells, no_norms
from engine.formats.options import Options
from engine.formats.positions import Survey, survey
from engine.formats.report import (
    Code,
    Finding,
    Part,
    Report,
    Sequence,
    missing_text,
    ordered,
    sentence,
)
from engine.formats.source import Source

__all__ = ["is_llama_log", "read_llama_log"]


def read_llama_log(source: Source, options: Options) -> Opened:
    """Report of a debug log."""
    log = read_log(source)
    findings = [error_finding(error) for error in (*log.errors, *log.others)][:LISTED]
    for snapshot in log.miscounted[:16]:
        shown = sum(cell >= 0 for cell in snapshot.cells)
        words = (
            f"a map at byte {snapshot.offset} shows {shown} cells, its line says {snapshot.used}"
        )
        findings.append(Finding(Code.INCONSISTENT, words, offset=snapshot.offset))
    sequences = sequences_of(log, options.group_size, findings)
    found = ordered(findings)
    last_map = log.last_map
    extra: tuple[tuple[str, Any], ...] = (
        ("errors", errors_json(log)),
        ("last_minmax", minmax_json(log.last_minmax)),
        ("last_map_positions", None if last_map is None else positions_json(last_map)),
    )
    unproved = tuple(f"sequence {own.id}" for own in sequences if own.usable is None)
    report = Report(
        file=str(source.path),
        format="llama.cpp-log",
        findings=found,
        reason=sentence(found) or sound_reason(log),
        unproved=unproved,
        sequences=tuple(sequences),
        facts=facts_of(log),
        extra=extra,
    )
    return Opened(report, source, Cells(log, sequences).cells, no_norms)


def facts_of(log: Log) -> tuple[tuple[str, Any], ...]:
    facts: tuple[tuple[str, Any], ...] = (
        ("snapshots", len(log.snapshots)),
        ("shifts", log.shifts),
    )
    if log.restores:
        lines = [f"a restore was refused: {line}" for line in log.restores[:8]]
        facts = (*facts, ("remarks", lines))
    return facts


def error_finding(error: PositionError) -> Finding:
    if error.words:
        return Finding(Code.INCONSISTENT, error.words, error.seq, offset=error.offset)
    stored, given = error.stored, error.given
    words = f"sequence {error.seq}: the cache ends at {stored}, the batch starts at {given}"
    if stored is not None and given is not None:
        why = "tokens were lost or never decoded" if given > stored + 1 else "old ones remain"
        words = f"{words}: {why}"
    position = stored + 1 if stored is not None else None
    return Finding(Code.INCONSISTENT, words, error.seq, None, position, error.offset)


def minmax_json(snapshot: Snapshot | None) -> dict[str, list[int]] | None:
    if snapshot is None:
        return None
    return {str(seq): list(pair) for seq, pair in sorted(snapshot.minmax.items())}


def positions_json(snapshot: Snapshot) -> list[int]:
    """Positions of the occupied cells, ascending."""
    return sorted(cell for cell in snapshot.cells if cell >= 0)


def sound_reason(log: Log) -> str:
    if log.last_minmax is None:
        return "no position error in the log"
    runs = [
        f"sequence {seq} at {low}..{high}"
        for seq, (low, high) in sorted(log.last_minmax.minmax.items())[:6]
    ]
    return f"no position error; the last snapshot shows {', '.join(runs)}"


def positions_by_sequence(snapshot: Snapshot) -> dict[int, list[int]]:
    """Positions of each sequence where the snapshot's maps prove them."""
    owners = owners_of(snapshot)
    if owners is None and snapshot.mapped and len(snapshot.minmax) == 1:
        # one sequence only: all cells are its own, whatever the columns
        owners = [next(iter(snapshot.minmax)) if cell >= 0 else -1 for cell in snapshot.cells]
    found: dict[int, list[int]] = {}
    for seq, position in zip(owners or (), snapshot.cells, strict=False):
        if seq >= 0:
            found.setdefault(seq, []).append(position)
    return found


def sequences_of(log: Log, group_size: int, findings: list[Finding]) -> list[Sequence]:
    """The sequences of the last snapshot that shows any; cells only where a map proves them."""
    snapshot = log.last_minmax
    if snapshot is None:
        return []
    known = positions_by_sequence(snapshot)
    sequences = []
    for seq, (low, high) in sorted(snapshot.minmax.items()):
        if not 0 <= low <= high:
            continue
        found = Survey(run=(low, high + 1))
        if seq in known:
            found = without_images(survey(np.array(known[seq], np.int64), group_size), known[seq])
        elif len(snapshot.minmax) == 1:
            found = replace(found, live=snapshot.used)
        if found.holes:
            words = f"sequence {seq}: {missing_text(found.holes)} in the last snapshot"
            position, offset = found.holes[0][0], snapshot.offset
            findings.append(Finding(Code.HOLE, words, seq, "cells", position, offset))
        sequences.append(log_sequence(seq, found, snapshot))
    return sequences


def without_images(found: Survey, positions: list[int]) -> Survey:
    """The survey without what M-RoPE images may explain; a map does not show which cells are.

    An image's cells repeat one position, and a gap shorter than their number follows.
    """
    counts = Counter(positions)
    holes = tuple(span for span in found.holes if span[1] - span[0] >= counts[span[0] - 1])
    stop = holes[0][0] if holes else (found.run or (0, 0))[1]
    return replace(found, holes=holes, duplicates=(), clean_stop=stop)


def log_sequence(seq: int, found: Survey, snapshot: Snapshot) -> Sequence:
    role = "attention-swa" if snapshot.n_swa else "attention"
    part = Part("cells", role, None, found.run, found.live, found.holes)
    return found.sequence(seq, found.clean, (part,))


class Cells:
    """The cell map of the last snapshot with a map."""

    def __init__(self, log: Log, sequences: list[Sequence]) -> None:
        self.log, self.sequences = log, sequences

    def cells(self, index: int) -> CellMap:
        snapshot = self.log.last_map
        if snapshot is None:
            return no_cells(index)
        positions = np.array(snapshot.cells, np.int64)
        seq = self.sequences[index].id
        owners = owners_of(snapshot)
        member = positions >= 0 if owners is None else np.array(owners, np.int64) == seq
        return CellMap(positions, member, (positions >= 0).astype(np.int64))
