"""From layers to a report: sequences, and what disagrees between the layers of one cache."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from engine.formats.layers import Held, Layer, merged, scan
from engine.formats.opened import CellMap, RowNorms, no_cells
from engine.formats.options import Options
from engine.formats.positions import expand, spans, survey, usable_prefix
from engine.formats.report import (
    Code,
    Finding,
    Part,
    Sequence,
    Span,
    missing_text,
    span_text,
    spans_text,
)
from engine.formats.rows import packed_norms, row_norms
from engine.formats.source import Source

MAX_SEQUENCES = 1024
MAX_PARTS = 16_384
"""Parts of all sequences together; real caches have a few thousand."""


@dataclass(slots=True)
class Judged:
    """Sequences and findings of a layered cache, and what its window view needs."""

    sequences: list[Sequence] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    unproved: list[str] = field(default_factory=list)
    mains: list[tuple[Layer, int]] = field(default_factory=list)
    """For each sequence the layer whose rows its cell map shows, and its batch entry."""
    draft_from: int | None = None
    """First layer that is taken for a draft model's, where that explains earlier ends."""
    remarks: list[str] = field(default_factory=list)
    torn: tuple[Span, ...] = ()
    """Positions that some layers hold and others lack."""


def judge(source: Source, layers: list[Layer], options: Options) -> Judged:
    """Check a cache; layers keep the order of the file."""
    result = Judged()
    for layer in layers:
        result.findings += layer.problems
        if options.rows and (layer.others or not (layer.problems or layer.empty)):
            result.findings += scan(source, layer)
        if layer.unproved and not layer.empty:
            result.unproved.append(layer.part)
    faulty = {finding.part for finding in result.findings if finding.code is Code.MISSING}
    some_state = any(not layer.empty for layer in layers)
    for layer in layers:
        if layer.empty and some_state and layer.part not in faulty:
            words = f"layer {layer.name} has no state while others have"
            result.findings.append(Finding(Code.MISSING, words, part=layer.part))
    sizes = {layer.batch for layer in layers if layer.held}
    n_sequences = max(sizes, default=0)
    if len(sizes) > 1:
        text = ", ".join(map(str, sorted(sizes)))
        words = f"layers hold different numbers of sequences: {text}"
        result.findings.append(Finding(Code.INCONSISTENT, words))
    check_padding(layers, result)
    shown = min(n_sequences, MAX_SEQUENCES, max(1, MAX_PARTS // max(1, len(layers))))
    if shown < n_sequences:
        result.remarks.append(f"{n_sequences} sequences, the first {shown} are looked at")
    for number in range(shown):
        add_sequence(number, layers, options, result, source)
    return result


def check_padding(layers: list[Layer], result: Judged) -> None:
    """Left padding belongs to the batch, so every layer has the same."""
    padded = [layer for layer in layers if layer.padding and not layer.problems]
    for layer in padded[1:]:
        same_class = layer.kind == padded[0].kind
        if same_class and layer.padding != padded[0].padding:
            words = (
                f"layer {layer.name} has left padding {list(layer.padding[:8])}, "
                f"layer {padded[0].name} has {list(padded[0].padding[:8])}"
            )
            result.findings.append(Finding(Code.INCONSISTENT, words, part=layer.part))


def add_sequence(
    number: int, layers: list[Layer], options: Options, result: Judged, source: Source
) -> None:
    """One batch entry over all layers."""
    own = [(layer, layer.held[number] if number < len(layer.held) else Held()) for layer in layers]
    placed = [(layer, held) for layer, held in own if held.run is not None]
    if not placed:
        return
    target, drafts = split_draft(placed)
    if drafts:
        result.draft_from = int(drafts[0][0].name.split(".")[0])
        for layer, _ in drafts:
            layer.role = "draft"
    row_findings(number, placed, result, source)
    emptied = [layer for layer, held in own if layer.emptied and held.run is None]
    check_ends(number, layers, target, emptied, result)
    mains = [pair for pair in target if not pair[0].ring] or target
    claimed = expand(merged([span for _, held in mains for span in held.claimed()]))
    missing = expand(merged([span for _, held in mains for span in held.holes]))
    live = np.setdiff1d(claimed, missing, assume_unique=True)
    run = outer_run(mains)
    found = survey(live, options.group_size)
    unproved = any(layer.unproved and not layer.empty for layer, _ in own)
    result.sequences.append(
        Sequence(
            id=number,
            run=run,
            usable=None if emptied else usable(run, placed, unproved),
            live=found.live,
            holes=spans(missing),
            complete_groups=found.complete_groups,
            broken=found.broken,
            tail=found.tail,
            forgotten=found.forgotten,
            parts=tuple(part_of(layer, held) for layer, held in own),
        )
    )
    best = max(mains, key=lambda pair: (pair[1].run or (0, 0))[1])
    result.mains.append((best[0], number))


def outer_run(pairs: list[tuple[Layer, Held]]) -> Span:
    runs = [held.run for _, held in pairs if held.run is not None]
    return min(run[0] for run in runs), max(run[1] for run in runs)


def part_of(layer: Layer, held: Held) -> Part:
    return Part(
        name=layer.part,
        role=layer.role,
        kind=layer.kind,
        run=held.run,
        live=held.live,
        holes=held.holes,
        evicted=held.evicted,
        non_finite=held.non_finite,
        stale=held.stale,
    )


def usable(run: Span, placed: list[tuple[Layer, Held]], unproved: bool) -> Span | None:
    """The longest prefix to which every layer can be cut; see `usable_prefix`."""
    reaches = []
    for layer, held in placed:
        reach = held.reach or held.run or (0, 0)
        low, stop = min(reach[0], reach[1]), reach[1]
        bad = [span[0] for span in (*held.holes, *held.non_finite)]
        reaches.append((max(low, run[0]) if low > run[0] else run[0], min([stop, *bad])))
        if layer.at_most is not None:
            reaches.append((run[0], layer.at_most))
    found = usable_prefix(run[0], reaches)
    # a recurrent state can't be cut, and stands where the chunk left it: at the common end
    return None if unproved and found != run else found


def split_draft(
    placed: list[tuple[Layer, Held]],
) -> tuple[list[tuple[Layer, Held]], list[tuple[Layer, Held]]]:
    """Target layers and draft layers, where a border to a draft model explains earlier ends.

    The border must show: from one layer on other head counts or sizes, every later layer alike
    with them and none of the earlier ones, each side with one end, the draft's not later.
    """
    ends = [(held.run or (0, 0))[1] for _, held in placed]
    border = next((i for i, end in enumerate(ends) if end != ends[0]), None)
    if border is None or set(ends[border:]) != {ends[border]} or ends[border] > ends[0]:
        return placed, []
    before, after = ([layer for layer, _ in own] for own in (placed[:border], placed[border:]))
    if before[-1].name.split(".")[0] == after[0].name.split(".")[0]:
        return placed, []  # children of one layer
    shapes = [{layer.signature for layer in own} for own in (before, after)]
    kinds = [{layer.kind for layer in own} for own in (before, after)]
    if () in shapes[0] | shapes[1] or shapes[0] & shapes[1] or not kinds[0] & kinds[1]:
        return placed, []  # one model may give its sliding layers another size, and another class
    return placed[:border], placed[border:]


def check_ends(
    number: int,
    layers: list[Layer],
    target: list[tuple[Layer, Held]],
    emptied: list[Layer],
    result: Judged,
) -> None:
    """Layers of one model end at one position; a bound must not be below that."""
    by_end: dict[int, list[str]] = {-1: [layer.name for layer in emptied]} if emptied else {}
    for layer, held in target:
        by_end.setdefault((held.run or (0, 0))[1] - 1, []).append(layer.name)
    first_short = None
    if len(by_end) > 1:
        low, high = min(by_end), max(by_end)
        result.torn = merged([*result.torn, (low + 1, high + 1)])
        text = ", ".join(
            f"{layers_text(names)} {end_text(end, len(names))}" for end, names in by_end.items()
        )
        short = next(layer for layer in layers if layer.name == by_end[low][0])
        words = (
            f"sequence {number}: {text}: positions {span_text((low + 1, high + 1))} are in some "
            "layers only, as after a chunk that failed between layers (or the later layers "
            "belong to a draft model)"
        )
        first_short = Finding(Code.TORN, words, number, short.part, low + 1)
        result.findings.append(first_short)
    stop = max(by_end, default=-1) + 1
    for layer in layers:
        if layer.at_most is not None and layer.at_most < stop and first_short is None:
            words = (
                f"sequence {number}: layer {layer.name} ends at {layer.at_most - 1} at most, "
                f"others at {stop - 1}"
            )
            result.findings.append(Finding(Code.TORN, words, number, layer.part, layer.at_most))
            break


def end_text(end: int, n_layers: int) -> str:
    s = "s" if n_layers == 1 else ""
    return f"end{s} at {end}" if end >= 0 else f"hold{s} nothing"


def layers_text(names: list[str], shown: int = 6) -> str:
    text = ", ".join(names[:shown]) + (f" and {len(names) - shown} more" if names[shown:] else "")
    return f"layer{'s' if len(names) > 1 else ''} {text}"


def row_findings(
    number: int, placed: list[tuple[Layer, Held]], result: Judged, source: Source
) -> None:
    """One finding for each layer with bad or unwritten rows."""
    for layer, held in placed:
        where = f"sequence {number}, layer {layer.name}"
        if held.non_finite:
            words = f"{where}: rows that are not finite at {spans_text(held.non_finite)}"
            position = held.non_finite[0][0]
            at = byte_of(layer, held, number, position)
            result.findings.append(
                Finding(Code.NON_FINITE, words, number, layer.part, position, at)
            )
        if held.holes:
            words = f"{where}: {missing_text(held.holes)} (rows were never written)"
            position = held.holes[0][0]
            at = byte_of(layer, held, number, position)
            result.findings.append(Finding(Code.HOLE, words, number, layer.part, position, at))


def byte_of(layer: Layer, held: Held, number: int, position: int) -> int | None:
    """Where the key row of a position starts in the file (its first head)."""
    if not layer.keys:
        return None
    tensor = layer.keys[0]
    row_bytes = tensor.n_bytes // max(1, int(np.prod(tensor.shape[:-1], dtype=np.int64)))
    heads = tensor.shape[1] if len(tensor.shape) == 4 else 1
    for segment in held.segments:
        if segment.position <= position < segment.position + segment.n_rows:
            row = number * heads * layer.rows + segment.row + position - segment.position
            return tensor.offset + row * row_bytes
    return None


class Asked:
    """Cell maps and row norms of a layered cache, computed when a window asks."""

    def __init__(self, source: Source, layers: list[Layer], judged: Judged) -> None:
        self.source, self.judged = source, judged
        self.layers = {layer.part: layer for layer in layers}

    def cells(self, index: int) -> CellMap:
        if index >= len(self.judged.mains):
            return no_cells(index)
        layer, entry = self.judged.mains[index]
        positions = np.full(layer.rows, -1, np.int64)
        for segment in layer.held[entry].segments:
            rows = slice(segment.row, segment.row + segment.n_rows)
            positions[rows] = np.arange(segment.position, segment.position + segment.n_rows)
        member = positions >= 0
        return CellMap(positions, member, member.astype(np.int64))

    def norms(self, part: str, index: int) -> RowNorms:
        layer = self.layers[part]
        _, entry = self.judged.mains[index]
        names, lines = [], []
        for name, tensors in (("K", layer.keys[:1]), ("V", layer.values[:1])):
            if tensors and not layer.packed:
                names.append(f"layer {layer.name} {name}")
                lines.append(row_norms(self.source, tensors[0], entry))
        for name, packed in zip(("K", "V"), layer.packed, strict=False):
            names.append(f"layer {layer.name} {name}")
            lines.append(packed_norms(self.source, packed, layer.bits, layer.group_size, entry))
        if not lines:
            return RowNorms((), np.empty((0, layer.rows), np.float32))
        return RowNorms(tuple(names), np.stack(lines))
