"""Banks and owners: public over private, and every part of a sequence against its main run.

Owns what the panel says about drift, forgotten positions and how far a sequence is `usable`:
the longest prefix to which every part can be cut. Positional parts must reach it, a recurrent
part must end exactly there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from app.models import text
from app.models.definitions import of_owner
from app.models.state import State
from app.models.table import Cell, Column, Jump, Row, Table
from engine.snapshot import OwnerView, PartView, SequenceView

STATE_TIPS = {
    "same": "both banks hold the same",
    "stale": "the private bank lacks what the last transaction wrote; the next one copies it first",
    "in flight": "a transaction is writing into the private bank",
    "sealed": "written to the end and checked, ready for the flip",
    "single": "there is no second bank",
}
UNSEALED = "No digest yet: an owner gets one when it is sealed, just before the flip"
OWNER_COLUMNS = (
    Column("Owner"),
    Column("Public", mono=True, tip="Digest of the visible content, first 8 of 32 hex digits"),
    Column(
        "Private",
        mono=True,
        tip="Digest in the private bank; unsealed while it is behind or still being written",
    ),
    Column("State", tip="\n".join(f"{state}: {tip}" for state, tip in STATE_TIPS.items())),
    Column("Bytes", "right", mono=True, tip="Storage of one bank"),
    Column("Stale rows", "right", mono=True, tip="Rows that the next catch-up copies"),
    Column("Per", tip="What the owner keeps one row for"),
)
PART_COLUMNS = (
    Column("Part", tip="Owner, and its layer where it has several"),
    Column("First", "right", mono=True),
    Column("Last", "right", mono=True),
    Column("Count", "right", mono=True),
    Column("Verdict", tip="How the part stands against the main run"),
)
STATE_GLYPHS = {
    "same": "tick",
    "single": "tick",
    "sealed": "tick",
    "stale": "dash",
    "in flight": "triangle",
}
STATE_ROLES = {
    "same": "done",
    "single": "done",
    "sealed": "done",
    "stale": "pending",
    "in flight": "running",
}
FIXED_UNITS = ("sequence",)
"""Units of owners of fixed size: their count is of consumed tokens."""


@dataclass(frozen=True, slots=True)
class BankCard:
    """One bank in words."""

    title: str
    detail: str
    role: str
    """`public` or `private`: the colour, and solid or dashed border."""
    digests: tuple[tuple[str, str], ...] = ()
    """(owner, digest or empty) of the owners shown on the card."""


@dataclass(frozen=True, slots=True)
class Usable:
    """How far a sequence can be used, and why not further."""

    run: tuple[int, int] | None
    """Half-open, or None where no prefix serves every part."""
    sentence: str
    sound: bool


def bank_cards(state: State) -> tuple[BankCard, BankCard]:
    """The public bank and the private one."""
    public = BankCard(
        f"Public bank: bank {state.public_bank}",
        f"visible, {_after(state)}, {text.plural(state.flips, 'flip')}",
        "public",
        state.digests,
    )
    return public, BankCard(
        f"Private bank: bank {1 - state.public_bank}",
        _private_detail(state),
        "private",
        tuple((view.name, view.private_digest) for view in state.owners),
    )


def _after(state: State) -> str:
    return f"after event {text.count(state.event)}" if state.event is not None else "at the start"


def _private_detail(state: State) -> str:
    if not state.live:
        return "not kept for past events"
    if state.open is not None:
        where = text.span(state.open.start, state.open.stop)
        writes = f" of {where}" if state.open.stop > state.open.start else ""
        following = f", next {state.open.next_stage}" if state.open.next_stage else ""
        return f"in flight: {state.open.op}{writes}{following}"
    if _stands_alone(state):
        return "none: this model has one set of caches; a failed chunk is taken back in place"
    n_stale = sum(view.state == "stale" for view in state.owners)
    if n_stale:
        return f"idle, catch-up due for {text.plural(n_stale, 'owner')}"
    return "idle, same as public"


def _stands_alone(state: State) -> bool:
    """True for a session without a second bank."""
    return bool(state.owners) and all(view.state == "single" for view in state.owners)


def owner_table(state: State) -> Table:
    """One row an owner, in publish order."""
    if state.owners:
        return Table(OWNER_COLUMNS, tuple(_owner_row(view) for view in state.owners))
    rows = []
    for name, value in state.digests:
        cells = (Cell(name), digest_cell(value), Cell("not kept", role="text2"))
        rest = tuple(Cell(text.NOTHING, role="text2") for _ in range(4))
        rows.append(Row(cells + rest, Jump(owner=name), name))
    return Table(OWNER_COLUMNS, tuple(rows))


def _owner_row(view: OwnerView) -> Row:
    state = Cell(
        view.state,
        role=STATE_ROLES.get(view.state, ""),
        glyph=STATE_GLYPHS.get(view.state, ""),
        tip=STATE_TIPS.get(view.state, ""),
    )
    layers = "\n".join(f"layer {layer}: {value}" for layer, value in view.layers)
    cells = (
        Cell(view.name, tip="\n".join(filter(None, (of_owner(view.name), layers)))),
        digest_cell(view.public_digest),
        _private_cell(view),
        state,
        _bytes_cell(view.n_bytes),
        Cell(text.count(view.n_stale_rows) if view.n_stale_rows else text.NOTHING),
        Cell(view.unit, role="text2"),
    )
    return Row(cells, Jump(owner=view.name), view.name)


def _bytes_cell(n_bytes: int) -> Cell:
    """Bytes a bank; a capture does not know them."""
    if not n_bytes:
        return Cell(text.NOTHING, tip="not recorded, or nothing yet")
    return Cell(text.size(n_bytes), tip=f"{text.count(n_bytes)} bytes a bank")


def _private_cell(view: OwnerView) -> Cell:
    """The digest in the private bank, or why there is none."""
    if view.private_digest or view.state == "single":
        return digest_cell(view.private_digest)
    why = f"{UNSEALED}; {STATE_TIPS[view.state]}" if view.state in STATE_TIPS else UNSEALED
    return Cell("unsealed", role="text2", tip=why)


def digest_cell(value: str, absent: str = "none") -> Cell:
    """A digest as the table shows it: short, the full one in the tooltip and on copy."""
    if not value:
        return Cell(absent, role="text2")
    return Cell(text.digest(value), tip=value, copy=value)


def total_bytes(state: State) -> int:
    """Bytes of both banks, or of the only one."""
    return (1 if _stands_alone(state) else 2) * sum(view.n_bytes for view in state.owners)


def summary(state: State) -> str:
    """One line over the owners: how many, their bytes, and the saved slots."""
    out = text.plural(len(state.owners) or len(state.digests), "owner")
    if total_bytes(state):
        where = "" if _stands_alone(state) else " in both banks"
        out += f", {text.size(total_bytes(state))}{where}"
    if state.slots:
        saved = ", ".join(
            f"{slot.name} ({text.span(slot.start, slot.stop)})" for slot in state.slots
        )
        out += f"; saved: {saved}"
    return out


def part_table(view: SequenceView, units: Mapping[str, str]) -> Table:
    """Main run, groups, tail, index and recurrent state side by side.

    Args:
        view: one sequence with its parts.
        units: unit of each owner by name (`position`, `group`, `sequence`, ...).
    """
    rows = [_main_row(view), _group_row(view), _tail_row(view)]
    rows += [_part_row(view, part, units.get(part.owner, "position")) for part in view.parts]
    return Table(PART_COLUMNS, tuple(rows))


def _main_row(view: SequenceView) -> Row:
    empty = view.n_live == 0
    first, last = (None, None) if empty else (view.start, view.stop - 1)
    mark = Cell("live" if not empty else "empty", role="text2")
    return _row("main run", None, first, last, view.n_live, mark, _jump(view, "history"))


def _group_row(view: SequenceView) -> Row:
    covered = view.start + view.n_groups * view.group_size
    mark = Cell(f"g0 – g{view.n_groups - 1:,}" if view.n_groups else "none yet", role="text2")
    first, last = (view.start, covered - 1) if view.n_groups else (None, None)
    jump = Jump(seq=view.seq, positions=(view.start, covered)) if view.n_groups else None
    return _row("complete groups", None, first, last, view.n_groups, mark, jump)


def _tail_row(view: SequenceView) -> Row:
    first, last = (view.stop - view.n_tail, view.stop - 1) if view.n_tail else (None, None)
    jump = Jump(seq=view.seq, positions=(view.stop - view.n_tail, view.stop))
    mark = Cell("raw, not pooled yet" if view.n_tail else "none", role="text2")
    return _row("raw tail", None, first, last, view.n_tail, mark, jump if view.n_tail else None)


def _part_row(view: SequenceView, part: PartView, unit: str) -> Row:
    return _row(
        part.owner,
        part.layer,
        part.first,
        part.last,
        part.count,
        _mark(view, part, unit),
        Jump(seq=view.seq, owner=part.owner),
    )


def _row(
    name: str,
    layer: int | None,
    first: int | None,
    last: int | None,
    n: int,
    mark: Cell,
    jump: Jump | None,
) -> Row:
    shown = name if layer is None or layer < 0 else f"{name} · {layer}"
    cells = (
        Cell(shown, tip=name if layer is None or layer < 0 else f"{name}, layer {layer}"),
        Cell(text.optional(first), tip=text.position_tip(first)),
        Cell(text.optional(last), tip=text.position_tip(last)),
        Cell(text.count(n)),
        mark,
    )
    return Row(cells, jump, shown)


def _jump(view: SequenceView, owner: str) -> Jump:
    return Jump(seq=view.seq, owner=owner)


def _mark(view: SequenceView, part: PartView, unit: str) -> Cell:
    """How one part stands against the main run."""
    if unit == "group":
        lost = forgotten(view, part)
        if lost is not None:
            return Cell(f"forgets {text.span(*lost)}", role="hole", glyph="cross", bold=True)
        extra = part.count - view.n_groups
        return _agrees() if extra == 0 else _drift(f"{text.plural(extra, 'group')} too many")
    behind = _end_of(view, part, unit)
    if behind is None:
        return _agrees() if view.n_live == 0 or unit == "slot" else _drift("absent")
    whole = _is_fixed(part, unit) or unit == "window" or part.first in (None, view.start)
    if behind == view.stop and whole:
        return _agrees()
    if behind < view.stop:
        return _drift(f"behind by {text.count(view.stop - behind)}")
    if behind > view.stop:
        return _drift(f"ahead by {text.count(behind - view.stop)}")
    return _drift(f"starts at {text.optional(part.first)}, the run at {text.count(view.start)}")


def _agrees() -> Cell:
    return Cell("agrees", role="done", glyph="tick")


def _drift(words: str) -> Cell:
    return Cell(f"drift: {words}", role="failed", glyph="cross", bold=True)


def _is_fixed(part: PartView, unit: str) -> bool:
    """True where a part's count is of consumed tokens, not of the positions that it names."""
    names_one = part.first is not None and part.first == part.last
    return unit in FIXED_UNITS or (names_one and part.count > 1)


def _end_of(view: SequenceView, part: PartView, unit: str) -> int | None:
    """Position after the last one that a part covers; None when the part is absent."""
    if _is_fixed(part, unit):
        return view.stop - (view.consumed - part.count) if part.count else None
    return None if part.last is None else part.last + 1


def forgotten(view: SequenceView, part: PartView) -> tuple[int, int] | None:
    """Half-open live range that lies in no complete group and not in the final tail."""
    missing = view.n_groups - part.count
    if missing <= 0:
        return None
    return (
        view.start + part.count * view.group_size,
        view.start + view.n_groups * view.group_size,
    )


def usable(view: SequenceView, units: Mapping[str, str]) -> Usable:
    """The longest prefix to which every part can be cut."""
    if view.n_live == 0:
        return Usable(None, "empty", True)
    reach, exact, blamed = view.stop, set[int](), ""
    for part in view.parts:
        unit = units.get(part.owner, "position")
        if unit == "group":
            lost = forgotten(view, part)
            end: int | None = view.stop if lost is None else lost[0]
        else:
            end = _end_of(view, part, unit)
        if unit == "slot":
            continue
        if _is_fixed(part, unit):
            exact.add(-1 if end is None else end)
        if end is not None and end < reach:
            reach, blamed = end, part.owner
        elif end is None:
            return Usable(None, f"none: {part.owner} is absent", False)
    if len(exact) > 1 or (exact and max(exact) > reach):
        return Usable(None, "none: recurrent state ends elsewhere and can't be cut", False)
    if exact:
        reach = min(reach, exact.pop())
    if reach >= view.stop:
        return Usable((view.start, view.stop), "all of the run", True)
    if reach <= view.start:
        return Usable(None, f"none: {blamed} reaches no live position", False)
    return Usable((view.start, reach), f"cut short by {blamed}", False)
