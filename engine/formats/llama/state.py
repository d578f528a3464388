"""The reader of llama.cpp state files: container, reading, checks, report."""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.formats.llama.checks import Checked, check
from engine.formats.llama.container import (
    RAW_SEQUENCE_MAGIC,
    SEQUENCE_MAGIC,
    SESSION_MAGIC,
    Container,
    first_word,
    is_llama_state,
    read_container,
)
from engine.formats.llama.norms import bad_cells, section_norms
from engine.formats.llama.readings import Reading
from engine.formats.llama.sections import TYPES, Section
from engine.formats.opened import CellMap, Opened, RowNorms
from engine.formats.options import Options
from engine.formats.report import Code, Finding, Report, ordered, sentence, span_text
from engine.formats.source import Damaged, Source

__all__ = ["is_llama_state", "read_llama_state"]

FORMATS = {
    SESSION_MAGIC: "llama.cpp-session",
    SEQUENCE_MAGIC: "llama.cpp-seq",
    RAW_SEQUENCE_MAGIC: "llama.cpp-raw",
}


def read_llama_state(source: Source, options: Options) -> Opened:
    """Report of a session, sequence, slot or raw state file."""
    name = FORMATS.get(first_word(source), "llama.cpp-raw")
    try:
        container = read_container(source, options.architecture)
    except Damaged as failure:
        return Opened(damaged_report(source, name, failure), source)
    findings = [Finding(Code.INCONSISTENT, remark) for remark in container.remarks]
    if not container.readings:
        report = Report(str(source.path), name, facts=header_facts(container))
        return Opened(report, source)
    reading = container.readings[0]
    bad = (
        tuple(bad_cells(source, section) for section in reading.sections) if options.payload else ()
    )
    checked = check(container, reading, options.group_size, bad)
    findings += checked.findings
    report = Report(
        file=str(source.path),
        format=name,
        findings=ordered(findings),
        reason=sentence(ordered(findings)) or sound_reason(container, checked),
        sequences=tuple(checked.sequences),
        facts=(*header_facts(container), *reading_facts(container, reading, checked)),
    )
    asked = Asked(source, container, reading, checked)
    return Opened(report, source, asked.cells, asked.norms)


def damaged_report(source: Source, name: str, failure: Damaged) -> Report:
    code = Code.TRUNCATED if failure.word == "truncated" else Code.UNREADABLE
    found = Finding(code, failure.sentence(), offset=failure.offset)
    return Report(str(source.path), name, (found,), reason=failure.sentence(), detail=failure.word)


def sound_reason(container: Container, checked: Checked) -> str:
    if not checked.sequences:
        return "empty: no cell holds a position"
    runs = [
        f"sequence {sequence.id} holds {span_text(sequence.run)}"
        for sequence in checked.sequences[:4]
        if sequence.run is not None
    ]
    more = len(checked.sequences) - len(runs)
    return "; ".join(runs) + (f"; and {more} more" if more else "")


def header_facts(container: Container) -> tuple[tuple[str, Any], ...]:
    facts: list[tuple[str, Any]] = [("container", container.kind)]
    if container.version is not None:
        facts.append(("version", container.version))
    if container.architecture is not None:
        facts.append(("arch", container.architecture))
    if container.n_tokens is not None:
        facts.append(("tokens", container.n_tokens))
    if container.n_media:
        facts.append(("media", container.n_media))
    return tuple(facts)


def reading_facts(
    container: Container, reading: Reading, checked: Checked
) -> tuple[tuple[str, Any], ...]:
    """What the sections tell beyond their runs."""
    sections = reading.sections
    first = sections[0].cells
    facts: list[tuple[str, Any]] = [("memory", memory_name(reading, checked))]
    if not sections[0].recurrent:
        facts.append(("n_stream", sections[0].n_stream))
        facts.append(("cell_ext", sections[0].ext_bytes > 0))
        facts.append(("k_type", type_name(sections[0], "K")))
        facts.append(("v_type", type_name(sections[0], "V")))
        facts.append(("orphan_cells", int((first.counts == 0).sum())))
        facts.append(("shared_cells", int((first.counts > 1).sum())))
    if any(unsorted(container, sections[0], int(own.id)) for own in checked.sequences):
        facts.append(("file_order", "unsorted"))
    if "index" in checked.roles:
        drift = any(finding.code is Code.INDEX_DRIFT for finding in checked.findings)
        facts.append(("index_agrees", not drift))
    if checked.blocks:
        facts.append(("mrope_blocks", [list(block) for block in checked.blocks]))
    remarks = [remark for section in sections for remark in section.remarks]
    if len(container.readings) > 1 and checked.sequences:
        names = ", ".join(other.memory.name for other in container.readings[1:4])
        remarks.append(f"the file can be read in other ways, too ({names}): name the architecture")
    if container.architecture is None and checked.sequences:
        remarks.append(
            "the file does not name its architecture: read as "
            f"{memory_name(reading, checked)}, and a last section that was cut away whole "
            "would not show (--arch NAME tells)"
        )
    if reading.old:
        remarks.append("body of an older version")
    if remarks:
        facts.append(("remarks", remarks))
    return tuple(facts)


def unsorted(container: Container, section: Section, seq: int) -> bool:
    """Whether a sequence's cells do not stand in the order of its positions."""
    positions = section.cells.positions
    if container.kind in ("session", "raw-context"):
        positions = positions[section.cells.of(seq)]
    return bool((np.diff(positions) < 0).any())


def memory_name(reading: Reading, checked: Checked) -> str:
    if "second" not in reading.roles:
        return reading.memory.name
    return "kv+index" if "index" in checked.roles else "kv+swa"


def type_name(section: Section, what: str) -> str | None:
    """Name of the ggml type of a section's K or V rows; its number where it has no name."""
    block = next((block for block in section.blocks if block.what == what), None)
    if block is None:
        return None
    return TYPES[block.type][0] if block.type in TYPES else f"type {block.type}"


class Asked:
    """Cell maps and row norms of a reading, computed when a window asks."""

    def __init__(
        self, source: Source, container: Container, reading: Reading, checked: Checked
    ) -> None:
        self.source, self.reading, self.checked = source, reading, checked
        self.single = container.kind in ("sequence", "raw-sequence")

    def cells(self, index: int) -> CellMap:
        section = self.checked.mains[index]
        cells = section.cells
        member = np.full(cells.positions.size, self.single)
        if not self.single:
            member[cells.of(int(self.checked.sequences[index].id))] = True
        owners = np.ones_like(cells.counts) if self.single else cells.counts
        return CellMap(cells.positions, member, owners)

    def norms(self, part: str, index: int) -> RowNorms:
        section = self.reading.sections[self.checked.roles.index(part)]
        every = np.arange(section.cells.positions.size, dtype=np.int64)
        return section_norms(self.source, section, every)
