"""A report of a foreign file as lines for a person: verdict first, then sequences, then places."""

from __future__ import annotations

from collections.abc import Iterator

from app.cli.common import sentence
from app.models.text import plural
from engine.formats.report import Finding, Report, Sequence, span_text, spans_text
from engine.printable import plain

FACTS_SHOWN = (
    # fact, how it reads
    ("container", "{}"),
    ("arch", "architecture {}"),
    ("memory", "memory {}"),
    ("layout", "layout {}"),
    ("tokens", "{} tokens in the header"),
    ("media", "{} media"),
    ("n_stream", "streams {}"),
    ("k_type", "keys {}"),
    ("v_type", "values {}"),
    ("shared_cells", "{} cells of several sequences"),
    ("orphan_cells", "{} cells without a sequence"),
    ("mrope_blocks", "image blocks [position, width, height] {}"),
    ("file_order", "cells {}"),
    ("model", "model {}"),
    ("layers", "{} layers"),
)
SEQUENCES_SHOWN = 16
FINDINGS_SHOWN = 24


def report_lines(report: Report) -> Iterator[str]:
    """The verdict sentence, facts, sequences, findings with their places, what is unproved.

    Names in a file may be anything, so every line is made plain.
    """
    return map(plain, _lines(report))


def _lines(report: Report) -> Iterator[str]:
    yield sentence(f"{report.file}: {verdict_words(report)}")
    facts = [text.format(report.fact(name)) for name, text in FACTS_SHOWN if report.fact(name)]
    if report.format is not None:
        yield f"  {report.format}{': ' if facts else ''}{', '.join(facts)}"
    for sequence in report.sequences[:SEQUENCES_SHOWN]:
        yield f"  {sequence_line(sequence)}"
    more = len(report.sequences) - SEQUENCES_SHOWN
    if more > 0:
        yield f"  … and {more} more sequences"
    for finding in report.findings[:FINDINGS_SHOWN]:
        yield f"  {finding_line(finding)}"
    more = len(report.findings) - FINDINGS_SHOWN
    if more > 0:
        yield f"  … and {more} more findings"
    if report.unproved:
        yield f"  unproved, the file can't show it: {', '.join(report.unproved)}"
    for remark in report.fact("remarks") or ():
        yield f"  note: {remark}"


def verdict_words(report: Report) -> str:
    if not report.findings:
        return f"ok, {report.reason}" if report.reason else "ok"
    return f"{report.verdict}, {report.reason}"


def sequence_line(sequence: Sequence) -> str:
    if sequence.run is None:
        return f"sequence {sequence.id}: no known positions"
    text = f"sequence {sequence.id}: positions {span_text(sequence.run)}"
    if not (sequence.complete_groups or sequence.tail or sequence.broken):
        return text  # only the ends are known
    text += f", {sequence.live} live, {plural(sequence.complete_groups, 'group')}"
    text += f" and a tail of {sequence.tail}"
    if sequence.holes:
        text += f", holes {spans_text(sequence.holes)}"
    if sequence.forgotten and (sequence.holes or sequence.duplicates):
        text += f", forgotten {spans_text(sequence.forgotten)}"
    if sequence.usable is None:
        return f"{text}; no usable prefix"
    return (
        text if sequence.usable == sequence.run else f"{text}; usable {span_text(sequence.usable)}"
    )


def finding_line(finding: Finding) -> str:
    places = []
    if finding.part is not None:
        places.append(finding.part)
    if finding.position is not None:
        places.append(f"position {finding.position}")
    if finding.offset is not None:
        places.append(f"byte {finding.offset}")
    place = f" [{', '.join(places)}]" if places else ""
    return f"{finding.code}: {finding.words}{place}"
