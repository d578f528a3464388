"""Alt text of pictures, from the facts that the report prints beside them."""

from __future__ import annotations

from app.report.facts import Facts, SequenceFacts
from app.report.words import pair_words, pairs_words, plural

MOST = 4
MOST_WORDS = 400


def alt_text(panel: str, title: str, facts: Facts, words: str) -> str:
    """What a picture of a panel shows; `words` is what the panel says of itself."""
    if panel in ("run", "cells", "spans"):
        return f"{title}: {runs_words(facts)}"
    if panel == "pipeline":
        return f"{title}: {stages_words(facts)}"
    if panel == "banks":
        return f"{title}: {banks_words(facts)}"
    if panel in ("faults", "problems", "inspector") and facts.refusals:
        first = facts.refusals[0]
        return f"{title}: op {first.number}, {first.sentence}."
    if panel == "journal":
        counts = ", ".join(f"{n:,} {name}" for name, n in facts.counts)
        return f"{title}: {counts}."
    return f"{title}: {words[:MOST_WORDS].rstrip('.')}."


def sequence_words(sequence: SequenceFacts) -> str:
    """One sequence in words."""
    text = f"sequence {sequence.seq} "
    if sequence.run is None:
        return f"{text}is empty"
    groups = plural(sequence.complete_groups, "complete group")
    text += f"holds {pair_words(sequence.run)} in {groups} and a tail of {sequence.tail}"
    if sequence.holes:
        text += f", holes {pairs_words(sequence.holes, 3)}"
    if sequence.forgotten and (sequence.holes or sequence.duplicates):
        text += f", forgotten {pairs_words(sequence.forgotten, 3)}"
    return text


def runs_words(facts: Facts) -> str:
    """The sequences in words."""
    if not facts.sequences:
        return "no sequence holds a position."
    text = "; ".join(sequence_words(sequence) for sequence in facts.sequences[:MOST])
    more = len(facts.sequences) - MOST
    return f"{text}; and {plural(more, 'more sequence')}." if more > 0 else f"{text}."


def stages_words(facts: Facts) -> str:
    """The failed stage in words."""
    failed = next((r for r in facts.refusals if r.stage), None)
    if failed is None:
        return "no stage failed."
    return (
        f"op {failed.number} failed at {failed.stage} ({failed.kind}); {failed.n_done} stages were "
        f"done before it, {failed.n_not_reached} were not reached."
    )


def banks_words(facts: Facts) -> str:
    """The proof in words."""
    if not facts.refusals:
        return "nothing was refused."
    first = facts.refusals[0]
    same = "are the same before and after it" if first.unchanged else "changed"
    how = "failed" if first.stage else "was refused"
    return f"op {first.number} {how}, and the {len(first.digests)} public digests {same}."
