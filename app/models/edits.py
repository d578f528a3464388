"""Edit ops as forms: fields with defaults from the selection, the op they make, and its effect.

Owns how a form becomes an op of the scenario language, how a refusal becomes a corrected op, and
how "what would happen" is said. Decides nothing about what is legal; the engine does.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from app.models import text
from app.models.selection import Selection
from app.models.state import State
from app.models.table import Cell, Column, Jump, Row, Table
from engine.snapshot import Record, SequenceView

Values = dict[str, str]
OpJson = dict[str, Any]
NONE = SequenceView(0, 0, 0, 4, 0, 0, (), 0, 0, 0)

EFFECT_COLUMNS = (
    Column("What"),
    Column("Now", mono=True),
    Column("Then", mono=True),
    Column("Change"),
)


@dataclass(frozen=True, slots=True)
class Field:
    """One input of a form."""

    name: str
    label: str
    kind: str
    """`int`, `optional` (an integer or nothing), `positions`, `tokens` or `slot`."""
    tip: str


@dataclass(frozen=True, slots=True)
class Form:
    """One op: its fields and what it does in a sentence."""

    op: str
    title: str
    sentence: str
    fields: tuple[Field, ...]


SEQ = Field("seq", "Sequence", "int", "Number of the sequence")
SRC = Field("src", "From sequence", "int", "Sequence that is read")
DST = Field("dst", "To sequence", "int", "Sequence that is written")
START = Field("start", "From position", "optional", "First position; empty: the first live one")
STOP = Field("stop", "Before position", "optional", "Position after the last; empty: to the end")
SLOT = Field("slot", "Slot", "slot", "Name of the saved state")
FORMS = (
    Form(
        "append",
        "Append",
        "Write positions at the end; only frontier + 1 is legal on a run that is not empty",
        (
            SEQ,
            Field("positions", "Positions", "positions", "Such as 12-15 or 100, 101, 103"),
            Field("tokens", "Token ids", "tokens", "As many as positions; empty without a model"),
        ),
    ),
    Form(
        "evict_front",
        "Evict front",
        "Drop the oldest positions",
        (SEQ, Field("count", "Positions", "int", "How many of the oldest to drop")),
    ),
    Form(
        "rewind",
        "Rewind",
        "Drop this position and all after it",
        (SEQ, Field("to", "Next position", "int", "The next position to be written")),
    ),
    Form(
        "shift",
        "Shift",
        "Add a number to live positions; cells and values stay",
        (SEQ, Field("delta", "Add", "int", "May be negative"), START, STOP),
    ),
    Form("remove", "Remove", "Drop a range that is a prefix or a suffix", (SEQ, START, STOP)),
    Form("fork", "Fork", "Give an empty sequence the positions below a point", (SRC, DST, STOP)),
    Form("copy", "Copy", "Add a range to the end of another sequence", (SRC, DST, START, STOP)),
    Form("save", "Save", "Keep the sequence under a name", (SEQ, SLOT)),
    Form("restore", "Restore", "Replace the sequence by a saved one", (SEQ, SLOT)),
    Form("reset", "Reset", "Empty the sequence", (SEQ,)),
)
NEAREST = {
    # op: the field that the engine's nearest legal target belongs to
    "append": "positions",
    "evict_front": "count",
    "rewind": "to",
    "shift": "delta",
    "remove": "start",
    "fork": "stop",
    "copy": "start",
}


class FormError(ValueError):
    """A field of a form that makes no op: field, expected and given."""


def form_of(op: str) -> Form:
    """The form of an op by name."""
    return next(form for form in FORMS if form.op == op)


def defaults(op: str, state: State | None, selection: Selection, slot: str = "a") -> Values:
    """Fields filled from the selected range, so that the common case is one key."""
    view = state.sequence(selection.seq) if state else None
    run = view or NONE
    start, stop = selection.start, selection.stop
    chosen = start is not None and stop is not None
    values = {"seq": str(selection.seq), "src": str(selection.seq), "slot": slot}
    values["dst"] = str(_free_sequence(state))
    values["start"] = str(start) if chosen else ""
    values["stop"] = str(stop) if chosen else ""
    values["to"] = str(start if chosen else run.stop)
    values["delta"] = str(-run.evicted if run.evicted else 1)
    values["count"] = str(
        max(1, stop - run.start) if chosen and stop is not None else run.group_size
    )
    values["positions"] = str(run.stop)
    values["tokens"] = ",".join(map(str, suggested_tokens([run.stop]))) if _model(state) else ""
    return {field.name: values[field.name] for field in form_of(op).fields}


def _model(state: State | None) -> bool:
    return state is not None and bool(state.model)


def _free_sequence(state: State | None) -> int:
    used = {view.seq for view in state.sequences if view.n_live} if state else set()
    return next(seq for seq in range(len(used) + 1) if seq not in used)


def suggested_tokens(positions: list[int]) -> list[int]:
    """Token ids to start from, the same for the same positions."""
    return [(7 * position + 3) % 61 for position in positions]


def parse_positions(line: str) -> list[int]:
    """`12-15`, `100, 101, 103` or both mixed; FormError says what was expected."""
    out: list[int] = []
    for part in re.split(r"[,\s]+", line.strip()):
        match = re.fullmatch(r"(-?\d+)(?:-(\d+))?", part)
        if match is None:
            raise FormError(f"positions: expected numbers such as 12-15 or 3, 4, given {line!r}")
        first = int(match[1])
        last = first if match[2] is None else int(match[2])
        if last - first >= 1_000_000:
            raise FormError(f"positions: expected at most 1,000,000, given {last - first + 1:,}")
        out += range(first, last + 1)
    return out


def build(op: str, values: Values) -> OpJson:
    """The op that a filled form makes, in the scenario language; FormError names a bad field."""
    out: OpJson = {"op": op}
    for field in form_of(op).fields:
        given = values.get(field.name, "").strip()
        if field.kind == "positions":
            out["positions"] = parse_positions(given)
        elif field.kind == "tokens":
            if given:
                out["tokens"] = _integers(field, given)
        elif field.kind == "slot":
            if not given:
                raise FormError(f"{field.label}: expected a name, given nothing")
            out["slot"] = given
        elif field.kind == "optional" and not given:
            out[field.name] = None
        else:
            out[field.name] = _integer(field, given)
    if "tokens" in out and len(out["tokens"]) != len(out["positions"]):
        raise FormError(
            f"Token ids: expected {len(out['positions'])} for as many positions, "
            f"given {len(out['tokens'])}"
        )
    return out


def _integer(field: Field, given: str) -> int:
    try:
        return int(given.replace(",", ""))
    except ValueError:
        shown = repr(given) if given else "nothing"
        raise FormError(f"{field.label}: expected a whole number, given {shown}") from None


def _integers(field: Field, given: str) -> list[int]:
    return [_integer(field, part) for part in re.split(r"[,\s]+", given) if part]


def corrected(op: OpJson, record: Record) -> tuple[Values, str] | None:
    """Fields to change so that a refused op becomes legal, and the words for the button."""
    field = NEAREST.get(str(op.get("op")))
    if record.outcome == "ok" or record.nearest is None or field is None:
        return None
    nearest = record.nearest
    if field == "positions":
        n_positions = max(1, len(op.get("positions", ())))
        stop = nearest + n_positions - 1
        line = str(nearest) if n_positions == 1 else f"{nearest}-{stop}"
        return {"positions": line}, f"Use {text.span(nearest, stop + 1)}"
    labels = {item.name: item.label for item in form_of(str(op["op"])).fields}
    return {field: str(nearest)}, f"Use {labels[field].lower()} {text.count(nearest)}"


def effect_table(state: State | None, record: Record) -> Table:
    """What an op would change: runs, groups and owners, now and then."""
    rows: list[Row] = []
    then = {view.seq: view for view in record.sequences}
    now = {view.seq: view for view in state.sequences} if state else {}
    for seq in sorted({*now, *then}):
        one, two = now.get(seq), then.get(seq)
        for name, old, new in zip(_NAMES, _facts(one), _facts(two), strict=True):
            if old != new or (name == "run" and seq == record.seq):
                rows.append(_effect_row(f"sequence {seq}: {name}", old, new, Jump(seq=seq)))
    before, after = dict(record.digests_before), dict(record.digests_after)
    for name in after:
        if before.get(name, "") != after[name]:
            old, new = text.digest(before.get(name, "")), text.digest(after[name])
            rows.append(_effect_row(name, old, new, Jump(owner=name)))
    return Table(EFFECT_COLUMNS, tuple(rows))


_NAMES = ("run", "complete groups", "tail", "evicted")


def _facts(view: SequenceView | None) -> tuple[str, ...]:
    if view is None or view.n_live == 0:
        return "empty", "0", "0", "0"
    return (
        text.span(view.start, view.stop),
        text.count(view.n_groups),
        str(view.n_tail),
        text.count(view.evicted),
    )


def _effect_row(name: str, old: str, new: str, jump: Jump) -> Row:
    change = Cell("unchanged", role="text2") if old == new else Cell("changes", glyph="triangle")
    return Row((Cell(name), Cell(old), Cell(new), change), jump, name)


def op_words(op: OpJson) -> str:
    """An op in one line for a list: `append seq 0, 12 – 15`."""
    name = str(op.get("op"))
    if name == "fail":
        during = op.get("during")
        inner = op_words(during) if isinstance(during, dict) else ""
        return f"fail {op.get('stage')} {op.get('kind')} during {inner}"
    if name == "transaction":
        return f"transaction of {text.plural(len(op.get('ops', ())), 'op')}"
    parts = []
    for key, value in op.items():
        if key == "op" or value is None:
            continue
        if key == "positions":
            parts.append(_positions_words(value))
        elif key == "tokens":
            parts.append(text.plural(len(value), "token"))
        else:
            parts.append(f"{key} {value}")
    return f"{name} {', '.join(parts)}"


def _positions_words(value: object) -> str:
    """Positions as a range where they are one, else the first few."""
    if isinstance(value, dict):
        return text.span(int(value.get("start", 0)), int(value.get("stop", 0)))
    if not isinstance(value, (list, tuple)) or not value:
        return "no positions"
    first, last = value[0], value[-1]
    if list(value) == list(range(first, last + 1)):
        return f"positions {text.span(first, last + 1)}"
    shown = ", ".join(map(str, value[:6]))
    return f"positions {shown}{', …' if len(value) > 6 else ''}"
