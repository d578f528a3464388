"""What a report says, as frozen values; HTML, PDF and JSON are made from these and nothing else.

`session_facts` makes them from records, `foreign_facts` from a verdict on a foreign file. Ranges
of positions are pairs with both ends in.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from app.report.words import Pair

MOST_REFUSALS: Final = 40
"""Refusals shown in full; all of them are counted and proved."""
MOST_JOURNAL: Final = 400
"""Lines of the journal that a report prints."""
MOST_HOLES: Final = 100


@dataclass(frozen=True, slots=True)
class DigestLine:
    """One owner before and after a refusal."""

    owner: str
    before: str
    after: str
    same: bool


@dataclass(frozen=True, slots=True)
class StageLine:
    """One stage of a refused op."""

    name: str
    state: str
    time_ns: int
    detail: str


@dataclass(frozen=True, slots=True)
class Refusal:
    """An op that published nothing, and the proof."""

    number: int
    seq: int
    op: str
    result: str
    sentence: str
    stage: str
    kind: str
    reason: str
    expected: int | None
    given: int | None
    nearest: int | None
    bad_value: str
    txn: int | None
    public_bank: int
    flips: int
    digests: tuple[DigestLine, ...]
    unchanged: bool
    stages: tuple[StageLine, ...]
    n_done: int
    """Stages that had succeeded before."""
    n_not_reached: int


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A position beside a hole."""

    position: int
    group: int | None
    """Number of its group, counted from the first live position; None in the raw tail."""
    place: int | None
    """Which member of the group it is, from 0."""
    cell: int | None
    live: bool
    """False when the position was only asked for, by the op that was refused."""


@dataclass(frozen=True, slots=True)
class Hole:
    """Missing positions between two others."""

    where: str
    seq: str
    first: int
    last: int
    left: Neighbour
    right: Neighbour
    published: bool
    """True in foreign state; in our own a hole exists only in what was asked for and refused."""


@dataclass(frozen=True, slots=True)
class SequenceFacts:
    """One sequence at the end."""

    seq: str
    run: Pair | None
    live: int
    complete_groups: int
    tail: int
    padding: int
    evicted: int
    consumed: int | None
    extents: int
    usable: Pair | None = None
    holes: tuple[Pair, ...] = ()
    duplicates: tuple[int, ...] = ()
    forgotten: tuple[Pair, ...] = ()


@dataclass(frozen=True, slots=True)
class PartFacts:
    """One layer or section of a foreign file."""

    seq: str
    name: str
    role: str
    kind: str
    run: Pair | None
    live: int
    holes: tuple[Pair, ...]
    note: str


@dataclass(frozen=True, slots=True)
class JournalLine:
    """One op."""

    number: int
    txn: int | None
    seq: int
    op: str
    result: str
    expected: str
    """What the scenario expects; empty where it says nothing."""
    outcome: str
    stage: str
    duration_ns: int
    flips: int


@dataclass(frozen=True, slots=True)
class CheckFacts:
    """One of the window's checks, made on the end of the session."""

    name: str
    ok: bool
    sentence: str


@dataclass(frozen=True, slots=True)
class MarkFacts:
    """A bookmark or a note."""

    number: int
    """Of the bookmark; 0 for a note alone."""
    name: str
    place: str
    there: bool
    """Whether the place is there at the end."""
    now: str
    """What it is at the end, or why it is not there."""
    note: str


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture of a panel."""

    id: str
    title: str
    file: str
    alt: str
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything that a report says."""

    title: str
    kind: str
    """`capture`, `scenario`, `session` or `cache`."""
    verdict: str
    ok: bool
    note: str
    findings: tuple[str, ...]
    """Sentences: what broke, or where it differs from what was expected."""
    source: tuple[tuple[str, str], ...]
    run: tuple[tuple[str, str], ...]
    """What was run: versions, backend, model, seed, command line."""
    counts: tuple[tuple[str, int], ...]
    sequences: tuple[SequenceFacts, ...]
    refusals: tuple[Refusal, ...]
    n_refusals: int
    holes: tuple[Hole, ...]
    n_holes: int
    parts: tuple[PartFacts, ...]
    journal: tuple[JournalLine, ...]
    n_journal: int
    digests: tuple[tuple[str, str], ...]
    """Public digests at the end, by owner."""
    reproduce: tuple[str, ...]
    scenario: str
    """A scenario that does the same, as JSON text; empty where there is none."""
    checks: tuple[CheckFacts, ...] = ()
    pictures: tuple[Picture, ...] = ()
    marks: tuple[MarkFacts, ...] = ()
