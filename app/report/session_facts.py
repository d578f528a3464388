"""Facts of a session of our own: its refusals with their proof, its journal, what was asked for.

Knows neither pictures nor Qt.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from app.report.facts import (
    MOST_HOLES,
    MOST_JOURNAL,
    MOST_REFUSALS,
    DigestLine,
    Facts,
    Hole,
    JournalLine,
    Neighbour,
    Refusal,
    SequenceFacts,
    StageLine,
)
from app.report.words import appends, op_words, parse_op, plural
from engine.snapshot import Record, SequenceView, Snapshot, StageView


def sequence_facts(view: SequenceView) -> SequenceFacts:
    """A sequence of our own; it has no hole."""
    return SequenceFacts(
        seq=str(view.seq),
        run=(view.start, view.stop - 1) if view.n_live else None,
        live=view.n_live,
        complete_groups=view.n_groups,
        tail=view.n_tail,
        padding=view.padding,
        evicted=view.evicted,
        consumed=view.consumed,
        extents=len(view.extents),
    )


def digest_lines(record: Record) -> tuple[DigestLine, ...]:
    """Every owner before and after, in the order of the owners."""
    after = dict(record.digests_after)
    lines = [
        DigestLine(owner, digest, after.get(owner, ""), digest == after.get(owner))
        for owner, digest in record.digests_before
    ]
    before = dict(record.digests_before)
    lines.extend(
        DigestLine(owner, "", digest, False)
        for owner, digest in after.items()
        if owner not in before
    )
    return tuple(lines)


def unchanged(record: Record) -> bool:
    """Whether every public digest is the same before and after."""
    return dict(record.digests_before) == dict(record.digests_after)


def stage_line(stage: StageView) -> StageLine:
    """A stage as a report prints it."""
    detail = ": ".join(text for text in (stage.fail_kind, stage.detail) if text)
    return StageLine(stage.name, stage.state, stage.time_ns, detail)


def refusal(record: Record) -> Refusal:
    """A record that is not `ok`, with its proof."""
    states = [stage.state for stage in record.stages]
    return Refusal(
        number=record.number,
        seq=record.seq,
        op=op_words(parse_op(record.op_json)),
        result=record.result,
        sentence=record.sentence,
        stage=record.stage,
        kind=record.kind,
        reason=record.reason,
        expected=record.expected,
        given=record.given,
        nearest=record.nearest,
        bad_value=record.bad_value,
        txn=record.txn,
        public_bank=record.public_bank,
        flips=record.flips,
        digests=digest_lines(record),
        unchanged=unchanged(record),
        stages=tuple(map(stage_line, record.stages)),
        n_done=states.count("done"),
        n_not_reached=states.count("not reached"),
    )


def journal_line(record: Record, expected: str = "") -> JournalLine:
    """A record as a line of the journal."""
    return JournalLine(
        number=record.number,
        txn=record.txn,
        seq=record.seq,
        op=op_words(parse_op(record.op_json)),
        result=record.result,
        expected=expected,
        outcome=record.outcome,
        stage=record.stage,
        duration_ns=record.duration_ns,
        flips=record.flips,
    )


def _cell_of(view: SequenceView, position: int) -> int | None:
    offset = position - view.start
    for cell, count in view.extents:
        if 0 <= offset < count:
            return cell + offset
        offset -= count
    return None


def neighbour(view: SequenceView | None, position: int) -> Neighbour:
    """A position of a sequence, or one that was only asked for."""
    if view is None or not view.start <= position < view.stop:
        return Neighbour(position, None, None, None, False)
    group, place = divmod(position - view.start, view.group_size)
    whole = group < view.n_groups
    return Neighbour(
        position,
        group if whole else None,
        place if whole else None,
        _cell_of(view, position),
        True,
    )


def attempted_holes(record: Record) -> list[Hole]:
    """The holes that a refused op would have made, each with its neighbours."""
    views = {view.seq: view for view in record.sequences}
    holes = []
    for append in appends(parse_op(record.op_json)):
        seq = append.get("seq", record.seq)
        view = views.get(seq)
        positions = [p for p in append.get("positions") or [] if isinstance(p, int)]
        if view is not None and view.n_live and positions:
            positions = [view.stop - 1, *positions]
        for left, right in itertools.pairwise(positions):
            if right > left + 1:
                where = f"asked for in op {record.number}, refused"
                sides = neighbour(view, left), neighbour(view, right)
                holes.append(Hole(where, str(seq), left + 1, right - 1, *sides, published=False))
    return holes


@dataclass(frozen=True, slots=True)
class Session:
    """What there is to report on: a start, the records since, and what they should have been."""

    start: Snapshot
    records: Sequence[Record]
    """Those that are printed: all of a short session, else the refusals and the newest."""
    last: Record | None
    n_records: int
    n_changed: int
    """Refused or failed ops after which a public digest differs: must be 0."""
    refused: Sequence[Record]
    counts: tuple[tuple[str, int], ...]
    expected: tuple[str, ...] = ()
    mismatches: tuple[str, ...] = ()


def without_times(record: Record) -> Record:
    """The record without anything that a clock said, so that the same run gives the same report."""
    stages = tuple(replace(stage, time_ns=0) for stage in record.stages)
    return replace(record, stages=stages, duration_ns=0, wall_ns=0)


def gather(
    start: Snapshot,
    records: Sequence[Record],
    expected: tuple[str, ...] = (),
    mismatches: tuple[str, ...] = (),
) -> Session:
    """A session from all of its records."""
    refused = [record for record in records if record.outcome != "ok"]
    outcomes = [record.outcome for record in records]
    counts = tuple((word, outcomes.count(word)) for word in dict.fromkeys(outcomes))
    return Session(
        start=start,
        records=records[-MOST_JOURNAL:],
        last=records[-1] if records else None,
        n_records=len(records),
        n_changed=sum(not unchanged(record) for record in refused),
        refused=refused[:MOST_REFUSALS],
        counts=counts,
        expected=expected,
        mismatches=mismatches,
    )


def n_refused(session: Session) -> int:
    """Ops that published nothing."""
    return sum(count for word, count in session.counts if word != "ok")


def session_verdict(session: Session) -> tuple[bool, str]:
    """Whether the session is as it should be, and the one sentence that says so."""
    total = plural(session.n_records, "op")
    refused = n_refused(session)
    if session.start.broken:
        return False, f"Broken: {session.start.broken}."
    if session.n_changed:
        many = plural(session.n_changed, "refused op")
        return False, f"Unsound: {many} of {refused} changed public state."
    proof = (
        "nothing was refused"
        if not refused
        else f"{plural(refused, 'op')} refused or failed, and no public digest changed by "
        + ("it" if refused == 1 else "any of them")
    )
    if session.mismatches:
        many = plural(len(session.mismatches), "expectation")
        return False, f"Not as expected: {many} of the scenario failed in {total}; {proof}."
    if session.expected:
        return True, f"As expected: {total} gave what the scenario says; {proof}."
    return True, f"Sound: {total}; {proof}."


def session_holes(refused: Iterable[Record]) -> list[Hole]:
    """Every hole that was asked for."""
    return [hole for record in refused for hole in attempted_holes(record)]


def session_facts(
    session: Session,
    kind: str,
    title: str,
    note: str,
    source: tuple[tuple[str, str], ...],
    run: tuple[tuple[str, str], ...],
    reproduce: tuple[str, ...],
    scenario: str,
) -> Facts:
    """All facts of a capture, a scenario or a saved session."""
    ok, verdict = session_verdict(session)
    holes = session_holes(session.refused)
    last = session.last
    first = session.n_records - len(session.records)
    expected = dict(enumerate(session.expected))
    sequences = last.sequences if last else session.start.sequences
    digests = (
        last.digests_after
        if last
        else tuple((owner.name, owner.public_digest) for owner in session.start.owners)
    )
    flips = last.flips if last else session.start.flips
    counts = (("ops", session.n_records), *session.counts, ("flips", flips))
    return Facts(
        title=title,
        kind=kind,
        verdict=verdict,
        ok=ok,
        note=note,
        findings=session.mismatches,
        source=source,
        run=run,
        counts=counts,
        sequences=tuple(map(sequence_facts, sequences)),
        refusals=tuple(map(refusal, session.refused)),
        n_refusals=n_refused(session),
        holes=tuple(holes[:MOST_HOLES]),
        n_holes=len(holes),
        parts=(),
        journal=tuple(
            journal_line(record, expected.get(first + i, ""))
            for i, record in enumerate(session.records)
        ),
        n_journal=session.n_records,
        digests=digests,
        reproduce=reproduce,
        scenario=scenario,
    )
