"""The stages of a transaction: left to right, grouped by layer, with state, time and faults.

Owns how a stage is said: glyph, word and time. Owns no order of its own; the plan's order rules.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby

from app.models import definitions, text
from app.models.table import Cell, Column, Jump, Row, Table
from engine.snapshot import Record, StageView

LOOKS = {
    # state: (glyph, colour role, word)
    "done": ("tick", "done", "done"),
    "running": ("triangle", "running", "running"),
    "failed": ("cross", "failed", "failed"),
    "pending": ("dash", "pending", "pending"),
    "not reached": ("dash", "pending", "not reached"),
}
COLUMNS = (
    Column("Stage"),
    Column("State"),
    Column("Time", "right", mono=True),
    Column("Piece", "right", mono=True),
    Column("Reads"),
    Column("Writes"),
    Column("Armed"),
    Column("Detail"),
)


@dataclass(frozen=True, slots=True)
class Chip:
    """One stage as the pipeline draws it."""

    name: str
    label: str
    """Name without its group."""
    second: str
    """Second line: time, or the state in words."""
    glyph: str
    role: str
    dashed: bool
    square: bool
    """Square corners mark a failed stage."""
    armed: tuple[str, ...]
    tip: str


@dataclass(frozen=True, slots=True)
class ChipGroup:
    """Stages of one layer, or of the transaction itself."""

    title: str
    chips: tuple[Chip, ...]
    transaction: bool


@dataclass(frozen=True, slots=True)
class Pipeline:
    """All groups in order, and the sentence about the whole."""

    groups: tuple[ChipGroup, ...]
    banner: str
    banner_role: str
    failed: str = ""
    """Name of the failed stage."""
    running: str = ""
    """Name of the stage in work, or the next one, of an open transaction."""

    @property
    def names(self) -> tuple[str, ...]:
        """Stage names in order."""
        return tuple(chip.name for group in self.groups for chip in group.chips)


def group_title(name: str) -> str:
    """Group of a graph stage: `layer.3` for `layer.3.qsa.select`, else the name itself."""
    parts = name.split(".")
    return ".".join(parts[:2]) if len(parts) > 2 else name


def pipeline(stages: tuple[StageView, ...], flips: int = 0, txn: int | None = None) -> Pipeline:
    """Lay out the stages of the open or the last transaction."""
    groups = []
    for (transaction, piece, title), members in groupby(stages, key=_group_key):
        chips = tuple(_chip(stage, title) for stage in members)
        shown = title if piece == 0 else f"{title} (piece {piece + 1})"
        groups.append(ChipGroup(shown, chips, transaction))
    banner, role, failed = _banner(stages, flips, txn)
    ahead = next((s.name for s in stages if s.state in ("running", "pending")), "")
    return Pipeline(tuple(groups), banner, role, failed, ahead)


def _group_key(stage: StageView) -> tuple[bool, int, str]:
    if stage.kind == "transaction":
        return True, stage.piece, "transaction"
    return False, stage.piece, group_title(stage.name)


def _chip(stage: StageView, title: str) -> Chip:
    glyph, role, word = LOOKS.get(stage.state, ("dash", "pending", stage.state))
    label = stage.name.removeprefix(f"{title}.")
    second = word
    if stage.state == "failed":
        second = f"failed: {stage.fail_kind}" if stage.fail_kind else word
    elif stage.time_ns:
        second = text.duration(stage.time_ns)
    return Chip(
        stage.name,
        label,
        second,
        glyph,
        role,
        dashed=stage.state in ("pending", "not reached"),
        square=stage.state == "failed",
        armed=stage.armed,
        tip=_tip(stage, word),
    )


def _tip(stage: StageView, word: str) -> str:
    out = [f"{stage.name}: {word}"]
    if said := definitions.of_stage(stage.name):
        out.append(said)
    if stage.fail_kind:
        out.append(f"failed with {stage.fail_kind}{': ' + stage.detail if stage.detail else ''}")
    if stage.time_ns:
        out.append(f"took {text.duration(stage.time_ns)}")
    if stage.reads:
        out.append(f"reads {', '.join(stage.reads)}")
    if stage.writes:
        out.append(f"writes {', '.join(stage.writes)}, private bank only")
    out += [f"armed: {fault}" for fault in stage.armed]
    return "\n".join(out)


def _banner(stages: tuple[StageView, ...], flips: int, txn: int | None) -> tuple[str, str, str]:
    name = f"transaction {text.count(txn)}" if txn is not None else "transaction"
    failed = next((stage for stage in stages if stage.state == "failed"), None)
    if failed is not None:
        kind = f" ({failed.fail_kind})" if failed.fail_kind else ""
        return f"{name} failed at {failed.name}{kind}: public bank unchanged", "failed", failed.name
    if not stages:
        return "no transaction yet", "text2", ""
    states = {stage.state for stage in stages}
    if states == {"done"}:
        total = sum(stage.time_ns for stage in stages)
        spent = f" in {text.duration(total)}" if total else ""
        return f"{name} published{spent}, {text.plural(flips, 'flip')} so far", "done", ""
    n_done = sum(stage.state == "done" for stage in stages)
    following = next((s.name for s in stages if s.state in ("pending", "running")), "")
    ahead = f", next {following}" if following else ""
    return (
        f"{name} in flight: {n_done} of {len(stages)} stages done{ahead}; private bank only",
        "running",
        "",
    )


def stage_table(stages: tuple[StageView, ...]) -> Table:
    """The same stages as rows, to copy and for reading by keyboard."""
    rows = []
    for stage in stages:
        glyph, role, word = LOOKS.get(stage.state, ("dash", "pending", stage.state))
        cells = (
            Cell(stage.name),
            Cell(word if not stage.fail_kind else f"failed: {stage.fail_kind}", "", role, glyph),
            Cell(text.duration(stage.time_ns)),
            Cell(str(stage.piece + 1)),
            Cell(", ".join(stage.reads)),
            Cell(", ".join(stage.writes)),
            Cell(", ".join(stage.armed), glyph="bolt" if stage.armed else ""),
            Cell(stage.detail),
        )
        rows.append(Row(cells, Jump(stage=stage.name), f"{stage.piece}/{stage.name}"))
    return Table(COLUMNS, tuple(rows))


def stages_of(record: Record) -> tuple[StageView, ...]:
    """Stages of a past transaction."""
    return record.stages


def with_armed(
    stages: tuple[StageView, ...], faults: tuple[tuple[str, str, int, int], ...]
) -> tuple[StageView, ...]:
    """The stages with the faults that are armed now (a finished plan keeps no newer ones)."""
    out = []
    for stage in stages:
        armed = tuple(
            f"{kind}, {when(times, skip)}"
            for name, kind, times, skip in faults
            if name == stage.name
        )
        out.append(_rearmed(stage, armed))
    return tuple(out)


def _rearmed(stage: StageView, armed: tuple[str, ...]) -> StageView:
    if stage.armed == armed:
        return stage
    return StageView(
        stage.name,
        stage.kind,
        stage.state,
        stage.time_ns,
        stage.piece,
        stage.seq,
        stage.fail_kind,
        stage.detail,
        stage.reads,
        stage.writes,
        armed,
    )


def when(times: int, skip: int) -> str:
    """When an armed fault fires, in words: `next time`, `always`, `on time 3`."""
    if times == 0:
        return "always" if skip == 0 else f"always from time {skip + 1}"
    if times == 1:
        return "next time" if skip == 0 else f"on time {skip + 1}"
    return f"{times} times" if skip == 0 else f"{times} times from time {skip + 1}"
