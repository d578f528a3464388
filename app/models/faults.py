"""Fault injection: what can be armed, what is armed, and the proof that nothing was published."""

from __future__ import annotations

from dataclasses import dataclass

from app.models import text
from app.models.banks import digest_cell
from app.models.stages import when
from app.models.table import Cell, Column, Jump, Row, Table
from engine.snapshot import Record
from engine.terms import FailKind

KIND_WORDS = {
    FailKind.STRUCTURAL: "the plan does not fit the state",
    FailKind.NONFINITE: "a NaN is written into an intermediate",
    FailKind.OOM: "an allocation is denied",
    FailKind.COMMAND: "the accelerator does not finish",
    FailKind.STATUS: "a kernel returns a nonzero status word",
    FailKind.CANCEL: "somebody cancels",
}
ARMED_COLUMNS = (Column("Stage"), Column("Kind"), Column("Fires"))
PROOF_COLUMNS = (
    Column("Owner"),
    Column("Before", mono=True),
    Column("After", mono=True),
    Column("Verdict"),
)


@dataclass(frozen=True, slots=True)
class Arming:
    """How often a fault fires: arguments of the engine's command."""

    times: int
    skip: int

    @staticmethod
    def of(choice: str, nth: int = 1) -> Arming:
        """From the panel's choice: `once`, `always` or `nth` (counted from 1)."""
        if choice == "always":
            return Arming(0, 0)
        return Arming(1, nth - 1 if choice == "nth" else 0)


@dataclass(frozen=True, slots=True)
class Proof:
    """Digests before and after one op, and what they show."""

    sentence: str
    holds: bool
    """True when a refusal or failure changed no owner, or an op that succeeded was published."""
    table: Table


def armed_table(faults: tuple[tuple[str, str, int, int], ...]) -> Table:
    """One row an armed fault."""
    rows = tuple(
        Row(
            (Cell(stage, glyph="bolt", role="failed"), Cell(kind), Cell(when(times, skip))),
            Jump(stage=stage),
            f"{stage}/{kind}/{times}/{skip}",
        )
        for stage, kind, times, skip in faults
    )
    return Table(ARMED_COLUMNS, rows)


def proof(record: Record) -> Proof:
    """Compare the digests of every owner before and after an op."""
    before, after = dict(record.digests_before), dict(record.digests_after)
    names = list(dict.fromkeys([*before, *after]))
    changed = [name for name in names if before.get(name) != after.get(name)]
    keeps = record.outcome != "ok"
    rows = []
    for name in names:
        same = name not in changed
        if same:
            verdict = Cell("unchanged", role="done", glyph="tick")
        elif keeps:
            verdict = Cell("changed", role="failed", glyph="cross", bold=True)
        else:
            verdict = Cell("published", role="public", glyph="disc")
        cells = (
            Cell(name),
            digest_cell(before.get(name, "")),
            digest_cell(after.get(name, "")),
            verdict,
        )
        rows.append(Row(cells, Jump(owner=name), name))
    return Proof(
        _verdict(record, names, changed), not (keeps and changed), Table(PROOF_COLUMNS, tuple(rows))
    )


def _verdict(record: Record, names: list[str], changed: list[str]) -> str:
    if not names:
        return "no digests were kept for this event"
    if record.outcome == "ok":
        return f"published: {len(changed)} of {text.plural(len(names), 'owner')} changed, one flip"
    what = {"rejected": "refused", "cancelled": "cancelled"}.get(record.outcome, "failed")
    if changed:
        return f"{what}, but {', '.join(changed)} changed: this is a bug"
    return f"{what}: all {text.plural(len(names), 'owner')} unchanged, byte for byte"


def result_line(record: Record) -> str:
    """What became of the op, with expected and given."""
    out = record.sentence or record.result
    if record.expected is not None and "expected" not in out:
        out += f", expected {text.count(record.expected)}"
    if record.given is not None and "given" not in out:
        out += f", given {text.count(record.given)}"
    if record.bad_value and record.bad_value.split(" ")[0] not in out:
        out += f" ({record.bad_value})"
    return out
