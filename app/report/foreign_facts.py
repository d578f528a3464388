"""Facts of a cache file that another engine wrote, from one object of `check --json`.

Knows neither pictures nor Qt.
"""

from __future__ import annotations

from typing import Any

from app.report.facts import MOST_HOLES, Facts, Hole, Neighbour, PartFacts, SequenceFacts
from app.report.words import Pair, plural


def _pairs(value: Any) -> tuple[Pair, ...]:
    return tuple((int(first), int(last)) for first, last in value or ())


def _pair(value: Any) -> Pair | None:
    return (int(value[0]), int(value[1])) if value else None


def foreign_neighbour(position: int, start: int, group_size: int) -> Neighbour:
    """A live position of foreign state; its group is counted from the first live position."""
    group, place = divmod(position - start, group_size)
    return Neighbour(position, group, place, None, True)


def foreign_holes(sequence: dict[str, Any], group_size: int) -> list[Hole]:
    """The holes of a sequence of a foreign file, those of its main part first."""
    found = []
    main = _pairs(sequence.get("holes"))
    places = [("in the run", sequence.get("run"), main)]
    for part in sequence.get("parts") or ():
        holes = _pairs(part.get("holes"))
        if holes and holes != main:
            places.append((f"in {part['name']}", part.get("run"), holes))
    for where, run, holes in places:
        start = int(run[0]) if run else 0
        for first, last in holes:
            left = foreign_neighbour(first - 1, start, group_size)
            right = foreign_neighbour(last + 1, start, group_size)
            found.append(Hole(where, str(sequence["id"]), first, last, left, right, True))
    return found


def foreign_sequence(sequence: dict[str, Any]) -> SequenceFacts:
    """One sequence of `check --json`."""
    run = _pair(sequence.get("run"))
    return SequenceFacts(
        seq=str(sequence["id"]),
        run=run,
        live=int(sequence.get("live", 0)),
        complete_groups=int(sequence.get("complete_groups", 0)),
        tail=int(sequence.get("tail", 0)),
        padding=run[0] if run else 0,
        evicted=0,
        consumed=None,
        extents=0,
        usable=_pair(sequence.get("usable")),
        holes=_pairs(sequence.get("holes")),
        duplicates=tuple(map(int, sequence.get("duplicates") or ())),
        forgotten=_pairs(sequence.get("forgotten")),
    )


def foreign_parts(sequence: dict[str, Any]) -> list[PartFacts]:
    """The parts of one sequence of `check --json`."""
    found = []
    for part in sequence.get("parts") or ():
        notes = []
        for key, words in (
            ("non_finite", "not finite"),
            ("stale", "stale"),
            ("evicted", "evicted"),
        ):
            if part.get(key):
                notes.append(f"{words}: {part[key]}")
        found.append(
            PartFacts(
                seq=str(sequence["id"]),
                name=str(part["name"]),
                role=str(part["role"]),
                kind=str(part.get("class") or ""),
                run=_pair(part.get("run")),
                live=int(part.get("live", 0)),
                holes=_pairs(part.get("holes")),
                note="; ".join(notes),
            )
        )
    return found


def foreign_verdict(checked: dict[str, Any]) -> tuple[bool, str]:
    """The one sentence on a foreign file."""
    sequences = checked.get("sequences") or []
    if checked["verdict"] == "ok":
        many = plural(len(sequences), "sequence") if sequences else "no sequence"
        return True, f"Sound: this {checked['format']} file holds {many}, each one whole run."
    words = str(checked["verdict"]).replace("_", " ")
    reason = str(checked.get("reason") or "").rstrip(".")
    return False, f"Unsound ({words}): {reason}." if reason else f"Unsound: {words}."


def foreign_facts(
    checked: dict[str, Any],
    title: str,
    source: tuple[tuple[str, str], ...],
    run: tuple[tuple[str, str], ...],
    reproduce: tuple[str, ...],
    group_size: int,
) -> Facts:
    """All facts of a foreign cache file, from one object of `check --json`."""
    ok, verdict = foreign_verdict(checked)
    sequences = checked.get("sequences") or []
    holes = [hole for sequence in sequences for hole in foreign_holes(sequence, group_size)]
    codes = [str(code).replace("_", " ") for code in checked.get("findings") or ()]
    # the verdict names a single one already
    findings = codes if len(codes) > 1 else []
    if checked.get("unproved"):
        names = ", ".join(map(str, checked["unproved"]))
        findings.append(f"the file can't show how far these parts have come: {names}")
    return Facts(
        title=title,
        kind="cache",
        verdict=verdict,
        ok=ok,
        note="",
        findings=tuple(findings),
        source=source,
        run=run,
        counts=(("sequences", len(sequences)), ("holes", len(holes))),
        sequences=tuple(map(foreign_sequence, sequences)),
        refusals=(),
        n_refusals=0,
        holes=tuple(holes[:MOST_HOLES]),
        n_holes=len(holes),
        parts=tuple(part for sequence in sequences for part in foreign_parts(sequence)),
        journal=(),
        n_journal=0,
        digests=(),
        reproduce=reproduce,
        scenario="",
    )
