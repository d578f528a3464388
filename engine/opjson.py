"""Ops from and to the plain objects of a scenario file; strict, with one sentence a mistake.

An absent `start`, `stop` is the open end, since TOML has no null.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, NoReturn, TypeAlias, cast

from engine.errors import Malformed
from engine.ops import (
    Append,
    Copy,
    EvictFront,
    Fail,
    Fork,
    Op,
    PlainOp,
    Remove,
    Reset,
    Restore,
    Rewind,
    Save,
    Shift,
    Transaction,
)
from engine.terms import FailKind

MAX_BITS = 4096  # a longer number means nothing and can't be printed
MAX_SEQ = 2**31 - 1
MAX_NAME = 1000

Json: TypeAlias = Any


@dataclass(frozen=True, slots=True)
class Place:
    """Where in which file something stands, for the sentence of a mistake."""

    path: str = "scenario"
    where: str = ""

    def at(self, where: str) -> Place:
        return Place(self.path, f"{self.where} {where}" if self.where else where)

    def wrong(self, what: str, expected: str = "", found: str = "") -> NoReturn:
        """Raises: Malformed."""
        where = f"{self.where}: {what}" if self.where else what
        raise Malformed(self.path, where, expected, found)


def shown(value: object) -> str:
    """A value as it may stand in a sentence: short, whatever it is."""
    if isinstance(value, int) and value.bit_length() > 256:
        return f"a number of {value.bit_length()} bits"
    if isinstance(value, (dict, list)):
        return f"{'an object' if isinstance(value, dict) else 'a list'} of {len(value)}"
    if isinstance(value, str):
        text = ascii(value[:60])
        return text if len(value) <= 60 else f"{text[:-1]}...'"
    if value is None:
        return "null"
    return str(value)[:60]


def integer(place: Place, field: str, value: Json, low: int | None = None) -> int:
    """An integer, at least `low`. Raises: Malformed."""
    expected = "an integer" if low is None else f"an integer of at least {low}"
    if isinstance(value, bool) or not isinstance(value, int):
        place.wrong(f"{field} has the wrong type", expected, shown(value))
    if value.bit_length() > MAX_BITS or (low is not None and value < low):
        place.wrong(f"{field} is out of range", expected, shown(value))
    return value


def text(place: Place, field: str, value: Json, limit: int | None = None) -> str:
    """A string that can be written as UTF-8. Raises: Malformed."""
    if not isinstance(value, str):
        place.wrong(f"{field} has the wrong type", "a string", shown(value))
    try:
        value.encode()
    except UnicodeEncodeError:
        place.wrong(f"{field} is not text", "characters that UTF-8 can write", shown(value))
    if limit is not None and len(value) > limit:
        place.wrong(f"{field} is too long", f"at most {limit} characters", f"{len(value)}")
    return value


def integers(place: Place, field: str, value: Json, low: int | None = None) -> list[int]:
    """A list of integers that is not empty. Raises: Malformed."""
    if not isinstance(value, list):
        place.wrong(f"{field} has the wrong type", "a list of integers", shown(value))
    if not value:
        place.wrong(f"{field} is empty", "at least one integer", "none")
    return [integer(place, f"{field}[{i}]", item, low) for i, item in enumerate(value)]


def _sequence(place: Place, field: str, value: Json) -> int:
    number = integer(place, field, value, 0)
    if number > MAX_SEQ:
        place.wrong(f"{field} is out of range", f"at most {MAX_SEQ}", shown(number))
    return number


def _open_end(place: Place, field: str, value: Json) -> int | None:
    return None if value is None else integer(place, field, value)


def _slot(place: Place, field: str, value: Json) -> str:
    return text(place, field, value, MAX_NAME)


def _chunk(place: Place, field: str, value: Json) -> int:
    return integer(place, field, value, 1)


def _tokens(place: Place, field: str, value: Json) -> list[int]:
    return integers(place, field, value, 0)


def _kind(place: Place, field: str, value: Json) -> FailKind:
    if not isinstance(value, str) or value not in FailKind.__members__.values():
        place.wrong(f"{field} is unknown", f"one of {', '.join(FailKind)}", shown(value))
    return FailKind(value)


def _times(place: Place, field: str, value: Json) -> int | Literal["always"]:
    if isinstance(value, str):
        if value != "always":
            place.wrong(f"{field} is unknown", 'an integer or "always"', shown(value))
        return "always"
    return integer(place, field, value, 1)


def _during(place: Place, field: str, value: Json) -> PlainOp | Transaction:
    if isinstance(value, dict) and value.get("op") == "fail":  # before going any deeper
        place.wrong(f"{field} can't be a fail op", "an op in flight", "fail")
    return cast("PlainOp | Transaction", _op(place.at(field), value))


def _inner(place: Place, field: str, value: Json) -> tuple[PlainOp, ...]:
    if not isinstance(value, list):
        place.wrong(f"{field} has the wrong type", "a list of ops", shown(value))
    return tuple(_inner_op(place.at(f"inner op {i}"), item) for i, item in enumerate(value))


def _inner_op(place: Place, value: Json) -> PlainOp:
    name = value.get("op") if isinstance(value, dict) else None
    if name in ("transaction", "fail"):
        place.wrong(f"a transaction can't hold a {name} op", "any other op", str(name))
    return cast(PlainOp, _op(place, value))


Reader: TypeAlias = Callable[[Place, str, Json], Any]


@dataclass(frozen=True, slots=True)
class _Form:
    """The fields of one op: how each is read, and which may be absent."""

    make: Callable[..., Op]
    fields: Mapping[str, Reader]
    optional: frozenset[str] = frozenset()


_RANGE: dict[str, Reader] = {"start": _open_end, "stop": _open_end}
_ENDS = frozenset(_RANGE)
_SEQ: dict[str, Reader] = {"seq": _sequence}
_PAIR: dict[str, Reader] = {"src": _sequence, "dst": _sequence}

FORMS: Mapping[str, _Form] = MappingProxyType(
    {
        "append": _Form(
            Append,
            {**_SEQ, "positions": integers, "tokens": _tokens, "chunk": _chunk},
            frozenset(("tokens", "chunk")),
        ),
        "remove": _Form(Remove, {**_SEQ, **_RANGE}, _ENDS),
        "evict_front": _Form(EvictFront, {**_SEQ, "count": integer}),
        "rewind": _Form(Rewind, {**_SEQ, "to": integer}),
        "shift": _Form(Shift, {**_SEQ, "delta": integer, **_RANGE}, _ENDS),
        "fork": _Form(Fork, {**_PAIR, "stop": _open_end}, _ENDS),
        "copy": _Form(Copy, {**_PAIR, **_RANGE}, _ENDS),
        "reset": _Form(Reset, _SEQ),
        "save": _Form(Save, {**_SEQ, "slot": _slot}),
        "restore": _Form(Restore, {**_SEQ, "slot": _slot}),
        "transaction": _Form(Transaction, {"ops": _inner}),
        "fail": _Form(
            Fail,
            {"stage": text, "kind": _kind, "during": _during, "times": _times},
            frozenset(("times",)),
        ),
    }
)


def from_json(value: Json, number: int = 0, path: str = "scenario") -> Op:
    """One op from its plain object.

    Args:
        number: the op's number in its scenario, for the sentence of a mistake.
    Raises: Malformed when a field is missing, unknown or of the wrong type.
    """
    return _op(Place(path, f"op {number}"), value)


def _op(place: Place, value: Json) -> Op:
    if not isinstance(value, dict):
        place.wrong("an op has the wrong type", "an object", shown(value))
    name = value.get("op")
    if not isinstance(name, str) or name not in FORMS:
        found = shown(name) if "op" in value else "no field op"
        place.wrong("the op is unknown", f"one of {', '.join(FORMS)}", found)
    form, here = FORMS[name], place.at(f"({name})")
    unknown = [field for field in value if field != "op" and field not in form.fields]
    if unknown:
        here.wrong("a field is unknown", ", ".join(form.fields), shown(unknown[0]))
    missing = [f for f in form.fields if f not in value and f not in form.optional]
    if missing:
        here.wrong(f"the field {missing[0]} is missing", ", ".join(form.fields))
    given = {
        field: read(here, field, value[field])
        for field, read in form.fields.items()
        if field in value
    }
    if "tokens" in given and len(given["tokens"]) != len(given["positions"]):
        n, m = len(given["positions"]), len(given["tokens"])
        here.wrong("tokens and positions differ in number", f"{n} tokens", f"{m}")
    return form.make(**given)


def to_json(op: Op) -> dict[str, Json]:
    """The op's plain object; `from_json` gives the op again."""
    found: dict[str, Json] = {"op": op.name}
    for field in FORMS[op.name].fields:
        value = getattr(op, field)
        if isinstance(op, Transaction):
            value = [to_json(inner) for inner in op.ops]
        elif field == "during":
            value = to_json(value)
        elif field in ("positions", "tokens") and value is not None:
            value = list(value)
        if value is None and field in ("tokens", "chunk"):
            continue
        if field == "times" and value == 1:
            continue
        found[field] = str(value) if field == "kind" else value
    return found
