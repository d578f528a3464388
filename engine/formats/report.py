"""What a reader says about one file or stream: verdict, findings, sequences and their parts.

Everything is frozen and plain: ints, strings, tuples. Ranges are half-open here and inclusive
pairs in JSON. Knows no format.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

Span = tuple[int, int]
"""Half-open range of logical positions (or of rows, where a field says so)."""

BROKEN_LISTED = 65_536
"""At most so many broken groups are listed one by one in JSON; a flipped bit can break 2^29."""


class Code(StrEnum):
    """Kinds of fault, one code over all formats; the order decides the verdict."""

    UNREADABLE = "unreadable"
    TRUNCATED = "truncated"
    UNDECODABLE = "undecodable"
    MISSING = "missing"
    INCONSISTENT = "inconsistent"
    NON_FINITE = "non_finite"
    TORN = "torn"
    INDEX_DRIFT = "index_drift"
    SWA_DRIFT = "swa_drift"
    RECURRENT_DRIFT = "recurrent_drift"
    DUPLICATE = "duplicate"
    STEP = "step"
    HOLE = "hole"
    LOST_EVENTS = "lost_events"
    UNKNOWN_PARENT = "unknown_parent"


CODES = tuple(Code)
RANK = {code: rank for rank, code in enumerate(CODES)}


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault and where it is; `words` is the sentence that a person reads."""

    code: Code
    words: str
    sequence: int | str | None = None
    """`Sequence.id` of the sequence concerned."""
    part: str | None = None
    """`Part.name` of the part concerned."""
    position: int | None = None
    """First logical position concerned."""
    offset: int | None = None
    """Byte in the file where the fault shows."""


@dataclass(frozen=True, slots=True)
class Part:
    """One layer or section of a sequence."""

    name: str
    role: str
    """`attention`, `attention-swa`, `index`, `recurrent`, `draft` or `blocks`."""
    kind: str | None
    """Class name that the file gives; None where the format has none."""
    run: Span | None = None
    live: int = 0
    holes: tuple[Span, ...] = ()
    evicted: tuple[Span, ...] = ()
    """Gaps inside the run that the cache's own policy explains."""
    non_finite: tuple[Span, ...] = ()
    stale: tuple[Span, ...] = ()
    """Written rows (physical, half-open) that no longer count."""

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "role": self.role,
            "class": self.kind,
            "run": pair(self.run),
            "live": self.live,
            "holes": pairs(self.holes),
            "evicted": pairs(self.evicted),
            "non_finite": pairs(self.non_finite),
            "stale": pairs(self.stale),
        }


@dataclass(frozen=True, slots=True)
class Sequence:
    """One sequence: the positions of its main part and the parts that belong to it."""

    id: int | str
    run: Span | None
    usable: Span | None
    live: int
    holes: tuple[Span, ...] = ()
    duplicates: tuple[int, ...] = ()
    complete_groups: int = 0
    broken: tuple[Span, ...] = ()
    """Numbers of groups that are not complete, as half-open ranges of group numbers."""
    tail: int = 0
    forgotten: tuple[Span, ...] = ()
    parts: tuple[Part, ...] = ()
    extra: tuple[tuple[str, Any], ...] = ()
    """Further JSON fields of one format (kv-events: publisher and group)."""

    def to_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            **dict(self.extra),
            "run": pair(self.run),
            "usable": pair(self.usable),
            "live": self.live,
            "holes": pairs(self.holes),
            "duplicates": list(self.duplicates),
            "complete_groups": self.complete_groups,
            "broken": numbers(self.broken, BROKEN_LISTED),
            "tail": self.tail,
            "forgotten": pairs(self.forgotten),
            "parts": [part.to_json() for part in self.parts],
        }


@dataclass(frozen=True, slots=True)
class Report:
    """What was found in one file."""

    file: str
    format: str | None
    """One of the names in the command line's documentation; None when no reader knows the file."""
    findings: tuple[Finding, ...] = ()
    """Ordered as `Code`; within one code as found."""
    reason: str = ""
    detail: str | None = None
    """What makes a file unreadable, in one word: magic, version, structure, trailing…"""
    unproved: tuple[str, ...] = ()
    sequences: tuple[Sequence, ...] = ()
    facts: tuple[tuple[str, Any], ...] = ()
    """Name and value of what else the file tells (architecture, tokens, …), for people."""
    extra: tuple[tuple[str, Any], ...] = ()
    """Further JSON fields of one format (publishers, errors, …)."""

    @property
    def codes(self) -> tuple[Code, ...]:
        """Codes of the findings, each once, in the order of `Code`."""
        return tuple(sorted({finding.code for finding in self.findings}, key=RANK.__getitem__))

    @property
    def verdict(self) -> str:
        return self.codes[0].value if self.findings else "ok"

    @property
    def exit_status(self) -> int:
        """0 sound, 1 unsound, 2 when the file can't be read to its end."""
        if not self.findings:
            return 0
        return 2 if self.codes[0] in (Code.UNREADABLE, Code.TRUNCATED) else 1

    def fact(self, name: str) -> Any:
        """Value of a fact, None where the file does not have it."""
        return dict(self.facts).get(name)

    def to_json(self) -> dict[str, Any]:
        return {
            "file": self.file,
            "format": self.format,
            "verdict": self.verdict,
            "findings": [code.value for code in self.codes],
            "reason": self.reason,
            "detail": self.detail,
            "unproved": list(self.unproved),
            **dict(self.extra),
            "sequences": [sequence.to_json() for sequence in self.sequences],
        }


def ordered(findings: list[Finding]) -> tuple[Finding, ...]:
    """Findings in the order of their codes, otherwise as found."""
    return tuple(sorted(findings, key=lambda finding: RANK[finding.code]))


def sentence(findings: tuple[Finding, ...], shown: int = 3) -> str:
    """The reason line: the words of the first findings, and how many more there are."""
    words = list(dict.fromkeys(finding.words for finding in findings))
    text = "; ".join(words[:shown])
    return text if len(words) <= shown else f"{text}; and {len(words) - shown} more"


def pair(span: Span | None) -> list[int] | None:
    """Inclusive pair of a half-open range; None for none."""
    return None if span is None or span[0] >= span[1] else [span[0], span[1] - 1]


def pairs(spans: tuple[Span, ...]) -> list[list[int]]:
    return [[start, stop - 1] for start, stop in spans]


def numbers(spans: tuple[Span, ...], limit: int) -> list[int]:
    """The numbers of half-open ranges one by one, at most `limit`."""
    listed: list[int] = []
    for start, stop in spans:
        listed.extend(range(start, min(stop, start + limit - len(listed))))
        if len(listed) >= limit:
            break
    return listed


def span_text(span: Span) -> str:
    """`7` or `7..9` for a person."""
    start, stop = span
    return str(start) if stop - start == 1 else f"{start}..{stop - 1}"


def spans_text(spans: tuple[Span, ...], shown: int = 4) -> str:
    text = ", ".join(span_text(span) for span in spans[:shown])
    return text if len(spans) <= shown else f"{text} and {len(spans) - shown} more"


def missing_text(spans: tuple[Span, ...]) -> str:
    """`position 7 is missing` or `positions 4..5, 9 are missing`."""
    if len(spans) == 1 and spans[0][1] - spans[0][0] == 1:
        return f"position {spans[0][0]} is missing"
    return f"positions {spans_text(spans)} are missing"
