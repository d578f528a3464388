"""What a llama.cpp reading says about its sequences: runs, drifts between sections, findings."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from engine.formats.llama.container import Container
from engine.formats.llama.images import Block, explain
from engine.formats.llama.readings import Reading
from engine.formats.llama.sections import Section
from engine.formats.positions import Ints, Survey, spans, survey, usable_prefix
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

NO_REACH: Span = (0, 0)


@dataclass(slots=True)
class View:
    """One section as one sequence sees it."""

    role: str
    section: Section
    cells: Ints
    """Numbers of the sequence's cells, in file order."""
    found: Survey
    bad: dict[str, Ints] = field(default_factory=dict)
    """By block, the positions of rows that are not finite, ascending."""

    @property
    def non_finite(self) -> tuple[Span, ...]:
        return spans(np.concatenate(list(self.bad.values()))) if self.bad else ()

    @property
    def positions(self) -> Ints:
        return self.section.cells.positions[self.cells]


@dataclass(slots=True)
class Checked:
    """Result of checking one reading."""

    sequences: list[Sequence] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    mains: list[Section] = field(default_factory=list)
    """For each sequence the section whose cells its map shows."""
    roles: tuple[str, ...] = ()
    blocks: dict[Block, None] = field(default_factory=dict)
    """Image blocks of all sequences, each once, in the order found."""


def second_role(first: Section, second: Section) -> str:
    """Window or index: what the second attention section of a nameless file is.

    Equal cells may be either. An index may lack its V blocks and has rows of its own width; a
    window keeps the newest cells of the first section.
    """
    mine, other = second.cells, first.cells
    if first.values and not second.values and second.n_layer:
        return "index"
    same_size = mine.positions.size == other.positions.size
    if not same_size:
        return "attention-swa"
    if not second.values and not first.values:
        return "index"
    rows = {block.row_bytes for block in first.blocks if block.what == "K"}
    own = {block.row_bytes for block in second.blocks if block.what == "K"}
    return "attention-swa" if rows & own or not rows or not own else "index"


BadCells = dict[str, npt.NDArray[np.bool_]]
"""By block, which cells of a section hold a value that is not finite."""


def check(
    container: Container, reading: Reading, group_size: int, bad: tuple[BadCells, ...] = ()
) -> Checked:
    """Sequences and findings of one reading of a file.

    Args:
        bad: for each section its bad cells, where the payload was looked at.
    """
    sections = reading.sections
    roles = tuple(
        second_role(sections[0], section) if role == "second" else role
        for role, section in zip(reading.roles, sections, strict=True)
    )
    result = Checked(roles=roles)
    single = container.kind in ("sequence", "raw-sequence")
    ids = sequence_ids(container, sections, single, result)
    for seq in ids:
        views = [
            view_of(role, section, seq, single, group_size, result)
            for role, section in zip(roles, sections, strict=True)
        ]
        for view, flags in zip(views, bad, strict=False):
            mark_bad(view, flags)
        add_sequence(seq, views, result)
    check_index_order(roles, sections, result)
    if not single:
        check_streams(roles, sections, result)
    result.sequences.sort(key=lambda sequence: int(sequence.id))
    return result


def sequence_ids(
    container: Container, sections: tuple[Section, ...], single: bool, result: Checked
) -> list[int]:
    """Ids in the file; a sequence file has one, whatever its cells say."""
    found = sorted({seq for section in sections for seq in section.cells.sequences()})
    if not single:
        return found
    if not any(section.cells.positions.size for section in sections):
        return []
    if len(found) > 1:
        text = ", ".join(map(str, found[:8]))
        words = f"a sequence file whose cells name several sequences: {text}"
        result.findings.append(Finding(Code.INCONSISTENT, words, found[0]))
    if container.seq is not None:
        return [container.seq]
    return [main_id(sections)] if found else [0]


def main_id(sections: tuple[Section, ...]) -> int:
    ids = np.concatenate([section.cells.ids for section in sections])
    numbers, counts = np.unique(ids, return_counts=True)
    return int(numbers[counts.argmax()])


def view_of(
    role: str, section: Section, seq: int, single: bool, group_size: int, result: Checked
) -> View:
    cells = section.cells
    chosen = np.arange(cells.positions.size) if single else cells.of(seq)
    positions = cells.positions[chosen]
    found = survey(positions, group_size)
    if cells.ext is not None and role != "recurrent" and found.run is not None:
        found, blocks = explain(found, positions, cells.ext[chosen])
        result.blocks |= dict.fromkeys(blocks)
    return View(role, section, chosen, found)


def mark_bad(view: View, flags: BadCells) -> None:
    """Note the positions of bad rows; what is usable ends before the first."""
    for name, cells in flags.items():
        chosen = np.unique(view.positions[cells[view.cells]])
        if chosen.size:
            view.bad[name] = chosen
            stop = min(view.found.clean_stop, int(chosen[0]))
            view.found = replace(view.found, clean_stop=stop)


def add_sequence(seq: int, views: list[View], result: Checked) -> None:
    """Check one sequence over all its sections and add it to the result."""
    main = views[0]
    for view in views:
        result.findings += bad_findings(seq, view)
        if view.role.startswith("attention"):  # an index must equal attention, cell by cell
            result.findings += run_findings(seq, view)
        elif view.role == "recurrent" and view.found.live > 1:
            words = f"sequence {seq} has {view.found.live} recurrent states, expected one"
            result.findings.append(finding(Code.DUPLICATE, words, seq, view, None, view.cells[1]))
    for view in views[1:]:
        result.findings += drift_findings(seq, main, view)
    shown = (
        main
        if main.found.run is not None
        else next((view for view in views if view.found.run is not None), main)
    )
    found = shown.found
    first = found.run[0] if found.run is not None else 0
    usable = None
    if main.found.run is not None:
        usable = usable_prefix(first, [reach(main, view) for view in views])
    result.sequences.append(found.sequence(seq, usable, tuple(part_of(view) for view in views)))
    result.mains.append(shown.section)


def part_of(view: View) -> Part:
    found = view.found
    run, live, holes = found.run, found.live, found.holes
    return Part(view.role, view.role, None, run, live, holes, non_finite=view.non_finite)


def bad_findings(seq: int, view: View) -> list[Finding]:
    """One finding for each block with rows that are not finite."""
    findings = []
    for name, positions in view.bad.items():
        text = spans_text(spans(positions))
        words = f"sequence {seq}, {view.role}, {name}: rows that are not finite at {text}"
        at = np.flatnonzero(view.positions == positions[0])[0]
        first = int(positions[0])
        findings.append(finding(Code.NON_FINITE, words, seq, view, first, view.cells[at]))
    return findings


def run_findings(seq: int, view: View) -> list[Finding]:
    """Duplicates, stride and holes of one attention section."""
    found, where = view.found, f"sequence {seq}, {view.role}"
    findings = []
    if found.duplicates:
        first = found.duplicates[0]
        spans = spans_text(tuple((p, p + 1) for p in found.duplicates))
        words = f"{where}: repeated positions {spans}"
        at = np.flatnonzero(view.positions == first)[1]
        findings.append(finding(Code.DUPLICATE, words, seq, view, first, view.cells[at]))
    if found.stepped:
        words = f"{where}: no two neighbouring positions differ by one"
        findings.append(finding(Code.STEP, words, seq, view, None, view.cells[0]))
    if found.holes:
        start, stop = found.holes[0]
        words = f"{where}: {missing_text(found.holes)}"
        behind = np.flatnonzero(view.positions >= stop)
        cell = view.cells[behind[view.positions[behind].argmin()]] if behind.size else None
        findings.append(finding(Code.HOLE, words, seq, view, start, cell))
    return findings


def finding(
    code: Code, words: str, seq: int, view: View, position: int | None, cell: int | None
) -> Finding:
    offset = None if cell is None else int(view.section.cells.offsets[cell])
    return Finding(code, words, seq, view.role, position, offset)


def drift_findings(seq: int, main: View, view: View) -> list[Finding]:
    """A secondary section against the main one: window and recurrent state."""
    full, own = main.found.run, view.found.run
    if view.role == "attention-swa":
        problem = window_problem(main, view)
        code = Code.SWA_DRIFT
    elif view.role == "recurrent":
        code, problem = Code.RECURRENT_DRIFT, ""
        if full is None and own is not None:
            problem = f"the recurrent state stands at {own[1] - 1}, attention holds nothing"
        elif full is not None and own is None:
            problem = f"attention ends at {full[1] - 1}, there is no recurrent state"
        elif full is not None and own is not None and full[1] != own[1]:
            problem = f"attention ends at {full[1] - 1}, the recurrent state at {own[1] - 1}"
    else:
        return []
    if not problem:
        return []
    cell = view.cells[view.positions.argmax()] if view.cells.size else None
    position = own[1] - 1 if own is not None else None
    return [finding(code, f"sequence {seq}: {problem}", seq, view, position, cell)]


def window_problem(main: View, view: View) -> str:
    """What is wrong with a window section; empty where it is sound."""
    full, own = main.found.run, view.found.run
    if full is None:
        return "" if own is None else f"the window holds {span_text(own)}, full attention nothing"
    if own is None:
        return f"full attention holds {span_text(full)}, the window nothing"
    if own[1] != full[1]:
        return f"full attention ends at {full[1] - 1}, the window at {own[1] - 1}"
    extra = np.setdiff1d(view.positions, main.positions)
    return (
        f"the window holds position {int(extra[0])} that full attention lacks" if extra.size else ""
    )


def reach(main: View, view: View) -> Span:
    """Last positions at which a part can stand after a cut."""
    full, own = main.found.run, view.found.run
    if full is None or own is None:
        return NO_REACH
    if view.role == "recurrent":
        return (own[1] - 1, own[1]) if view.found.live == 1 and not view.bad else NO_REACH
    if view.role == "attention-swa" and own[0] > full[0]:
        # the window's size is not in the file: it is known to be whole at its end only
        return (own[1] - 1, own[1]) if view.found.clean_stop == own[1] else NO_REACH
    return (full[0], view.found.clean_stop) if own[0] <= full[0] else NO_REACH


def check_index_order(
    roles: tuple[str, ...], sections: tuple[Section, ...], result: Checked
) -> None:
    """The index must list the same cells as attention, in the same order, for each stream."""
    for role, section in zip(roles, sections, strict=True):
        if role != "index":
            continue
        at = first_difference(sections[0], section)
        if at is None:
            continue
        words, seq, position, offset = difference(sections[0], section, at)
        result.findings.append(Finding(Code.INDEX_DRIFT, words, seq, "index", position, offset))
        drifted = set(difference_ids(sections[0], section))
        result.sequences[:] = [
            cut_usable(sequence, sections[0], section) if sequence.id in drifted else sequence
            for sequence in result.sequences
        ]


def first_difference(main: Section, index: Section) -> int | None:
    """Number of the first cell in which two cell lists differ; None where they agree."""
    a, b = main.cells, index.cells
    common = min(a.positions.size, b.positions.size)
    differs = (
        (a.positions[:common] != b.positions[:common])
        | (a.streams[:common] != b.streams[:common])
        | (a.counts[:common] != b.counts[:common])
    )
    at = int(differs.argmax()) if differs.any() else common
    ids_a, ids_b = a.ids[: int(a.counts[:at].sum())], b.ids[: int(b.counts[:at].sum())]
    if not np.array_equal(ids_a, ids_b):
        entry = int((ids_a != ids_b).argmax())
        return int(np.searchsorted(np.cumsum(a.counts), entry, side="right"))
    return at if at < common or a.positions.size != b.positions.size else None


def difference(main: Section, index: Section, at: int) -> tuple[str, int | None, int, int]:
    """Words, sequence, position and byte offset of the first cell that differs."""
    sizes = main.cells.positions.size, index.cells.positions.size
    section = index if at < sizes[1] else main
    seqs = difference_ids(main, index)
    seq = seqs[0] if seqs else None
    position, offset = int(section.cells.positions[at]), int(section.cells.offsets[at])
    if sizes[0] != sizes[1]:
        text = f"attention lists {sizes[0]} cells, the index {sizes[1]}"
    else:
        text = f"attention and index list different cells from cell {at} on"
    where = f"sequence {', '.join(map(str, seqs[:4]))}: "
    return f"{where}{text} (position {position})", seq, position, offset


def difference_ids(main: Section, index: Section) -> list[int]:
    """Sequences whose positions differ between the two sections, else all of them."""
    ids = sorted({*main.cells.sequences(), *index.cells.sequences()})
    own = [seq for seq in ids if not same_positions(main, index, seq)]
    return own or ids


def same_positions(main: Section, index: Section, seq: int) -> bool:
    a, b = main.cells, index.cells
    return np.array_equal(a.positions[a.of(seq)], b.positions[b.of(seq)])


def cut_usable(sequence: Sequence, main: Section, index: Section) -> Sequence:
    """`sequence` with its usable prefix ending before the first position that differs."""
    if sequence.usable is None:
        return sequence
    a = np.sort(main.cells.positions[main.cells.of(int(sequence.id))])
    b = np.sort(index.cells.positions[index.cells.of(int(sequence.id))])
    common = min(a.size, b.size)
    differs = a[:common] != b[:common]
    at = int(differs.argmax()) if differs.any() else common
    stop = int(a[at - 1]) + 1 if at else sequence.usable[0]
    start, end = sequence.usable
    if end > stop and any(part.role == "recurrent" for part in sequence.parts):
        return replace(sequence, usable=None)
    return replace(sequence, usable=(start, min(end, stop)) if stop > start else None)


def check_streams(roles: tuple[str, ...], sections: tuple[Section, ...], result: Checked) -> None:
    """In a whole context with several streams, stream number and sequence id coincide."""
    for role, section in zip(roles, sections, strict=True):
        if section.n_stream < 2:
            continue
        cells = section.cells
        wrong = np.flatnonzero(cells.streams[cells.owner] != cells.ids)
        if wrong.size:
            cell, seq = int(cells.owner[wrong[0]]), int(cells.ids[wrong[0]])
            words = f"stream {int(cells.streams[cell])} holds a cell of sequence {seq}"
            offset = int(cells.offsets[cell])
            position = int(cells.positions[cell])
            result.findings.append(Finding(Code.INCONSISTENT, words, seq, role, position, offset))
