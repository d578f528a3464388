"""Scenario files: read strictly from JSON or TOML, written as JSON.

Any bytes give a `Scenario` or a `Malformed` with one sentence. Executing one without a model is
in `engine.replay`.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.opjson import Json, Place, from_json, integer, integers, shown, text, to_json
from engine.ops import Op, sequences_named
from engine.printable import printable
from engine.small_file import content_of
from engine.terms import GROUP_SIZE, FailKind, Reason

OK = "ok"
REJECTED = "rejected: "
WORDS = frozenset((*Reason, *FailKind))

TEXTS = ("case", "source", "kind", "symptom", "title", "note", "model")
FIELDS = (*TEXTS, "group_size", "capacity", "window", "chunk", "ops", "expect")


@dataclass(frozen=True, slots=True)
class Final:
    """What a sequence is at the end; `run` is first and last position, both in."""

    run: tuple[int, int] | None
    complete_groups: int
    tail: int
    holes: tuple[tuple[int, int], ...] = ()

    def to_json(self) -> dict[str, Json]:
        return {
            "run": None if self.run is None else list(self.run),
            "complete_groups": self.complete_groups,
            "tail": self.tail,
            "holes": [list(hole) for hole in self.holes],
        }


@dataclass(frozen=True, slots=True)
class Scenario:
    """Ops and what they should give, with the sizes of the history that they work on."""

    case: str
    ops: tuple[Op, ...]
    capacity: int
    group_size: int = GROUP_SIZE
    window: int | None = None
    chunk: int | None = None
    """Tokens a chunk, for appends that say nothing themselves."""
    model: str | None = None
    title: str | None = None
    note: str | None = None
    source: str | None = None
    kind: str | None = None
    symptom: str | None = None
    expect: tuple[str, ...] | None = None
    """One string an op."""
    final: tuple[tuple[int, Final], ...] | None = None
    path: str = "scenario"

    @property
    def sequences(self) -> tuple[int, ...]:
        """Every sequence that the scenario mentions, ascending."""
        named = {seq for op in self.ops for seq in sequences_named(op)}
        return tuple(sorted(named | {seq for seq, _ in self.final or ()}))


def load(path: str | Path) -> Scenario:
    """Read a scenario file; the suffix `.toml` means TOML, any other JSON.

    Raises: Malformed when it doesn't follow the format, OSError when it can't be read.
    """
    file = Path(path)
    return parse(content_of(file), str(path), toml=file.suffix.lower() == ".toml")


def parse(content: bytes, path: str = "scenario", *, toml: bool = False) -> Scenario:
    """A scenario from the bytes of its file. Raises: Malformed."""
    place = Place(path)
    value = _decoded(place, content, toml)
    if not isinstance(value, dict):
        place.wrong("a scenario has the wrong type", "an object", shown(value))
    return _scenario(place, value)


def _decoded(place: Place, content: bytes, toml: bool) -> Json:
    try:
        source = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        place.wrong("the file is not text", "UTF-8", f"byte {error.start} is not")
    try:
        if toml:
            return tomllib.loads(source)
        return json.loads(source, object_pairs_hook=_no_repeats, parse_constant=_no_constant)
    except RecursionError:
        place.wrong("the file is nested too deeply", "a scenario")
    except (ValueError, OverflowError) as error:
        place.wrong(f"the file is not {'TOML' if toml else 'JSON'}: {str(error)[:200]}")


def _no_repeats(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        repeated = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the field {shown(repeated)} stands there twice")
    return found


def _no_constant(word: str) -> Json:
    raise ValueError(f"{word} is not a number")


def _scenario(place: Place, value: dict[str, Json]) -> Scenario:
    unknown = [field for field in value if field not in FIELDS]
    if unknown:
        place.wrong("a field is unknown", ", ".join(FIELDS), shown(unknown[0]))
    for field in ("ops", "capacity"):
        if field not in value:
            place.wrong(f"the field {field} is missing", "at least ops and capacity")
    group_size = integer(place, "group_size", value.get("group_size", GROUP_SIZE), 1)
    ops = _ops(place, value["ops"])
    expect, final = _expect(place, value.get("expect"), len(ops))
    words = {name: text(place, name, value[name]) for name in TEXTS if _given(value, name)}
    if words.get("model") == "":  # an empty path would be the scenario's own folder
        place.wrong("model is empty", "a model folder or a built-in name", "''")
    case = words.pop("case", printable(Path(place.path).stem))
    return Scenario(
        case=case,
        ops=ops,
        capacity=integer(place, "capacity", value["capacity"], 1),
        group_size=group_size,
        window=_window(place, value.get("window"), group_size),
        chunk=integer(place, "chunk", value["chunk"], 1) if _given(value, "chunk") else None,
        expect=expect,
        final=final,
        path=place.path,
        **words,
    )


def _given(value: dict[str, Json], field: str) -> bool:
    return value.get(field) is not None


def _window(place: Place, value: Json, group_size: int) -> int | None:
    if value is None:
        return None
    window = integer(place, "window", value, 1)
    if window % group_size:
        place.wrong("window is out of range", f"a multiple of {group_size}", str(window))
    return window


def _ops(place: Place, value: Json) -> tuple[Op, ...]:
    if not isinstance(value, list):
        place.wrong("ops has the wrong type", "a list of ops", shown(value))
    return tuple(from_json(item, number, place.path) for number, item in enumerate(value))


Expected = tuple[tuple[str, ...] | None, tuple[tuple[int, Final], ...] | None]


def _expect(place: Place, value: Json, n_ops: int) -> Expected:
    if value is None:
        return None, None
    if not isinstance(value, list):
        place.wrong("expect has the wrong type", "a list", shown(value))
    final = None
    if value and isinstance(value[-1], dict):
        final = _final(place.at("expect"), value[-1])
        value = value[:-1]
    results = tuple(_result(place.at(f"expect {i}"), item) for i, item in enumerate(value))
    if len(results) != n_ops:
        place.wrong("expect and ops differ in number", f"{n_ops} results", str(len(results)))
    return results, final


def _result(place: Place, value: Json) -> str:
    word = value.removeprefix(REJECTED) if isinstance(value, str) else None
    if word is None or (value != OK and (word == value or word not in WORDS)):
        words = ", ".join(sorted(WORDS))
        reasons = f'"{OK}" or "{REJECTED}REASON" with a reason of {words}'
        place.wrong("a result is unknown", reasons, shown(value))
    return str(value)


def _final(place: Place, value: dict[str, Json]) -> tuple[tuple[int, Final], ...]:
    named = value.get("final")
    if list(value) != ["final"] or not isinstance(named, dict):
        place.wrong("the last entry is unknown", 'an object with "final" only', shown(value))
    found = []
    for name, entry in named.items():
        if not (name.isascii() and name.isdigit() and len(name) < 11 and str(int(name)) == name):
            place.wrong("a sequence is unknown", "a number of at least 0", shown(name))
        found.append((int(name), _final_entry(place.at(f"final {name}"), entry)))
    return tuple(sorted(found, key=lambda pair: pair[0]))


def _final_entry(place: Place, value: Json) -> Final:
    fields = ("run", "complete_groups", "tail", "holes")
    if not isinstance(value, dict):
        place.wrong("a sequence has the wrong type", "an object", shown(value))
    unknown = [field for field in value if field not in fields]
    missing = [field for field in fields[1:] if field not in value]
    if unknown or missing:
        found = f"{shown(unknown[0])} too" if unknown else f"no {missing[0]}"
        place.wrong("a sequence's fields differ", ", ".join(fields), found)
    holes = value["holes"]
    if not isinstance(holes, list):
        place.wrong("holes has the wrong type", "a list", shown(holes))
    return Final(
        run=None if value.get("run") in (None, []) else _pair(place, "run", value["run"]),
        complete_groups=integer(place, "complete_groups", value["complete_groups"], 0),
        tail=integer(place, "tail", value["tail"], 0),
        holes=tuple(_pair(place, "a hole", hole) for hole in holes),
    )


def _pair(place: Place, field: str, value: Json) -> tuple[int, int]:
    numbers = integers(place, field, value)
    if len(numbers) != 2:
        place.wrong(f"{field} has the wrong length", "first and last position", shown(value))
    return numbers[0], numbers[1]


def dump(scenario: Scenario) -> str:
    """The scenario as JSON text, one op a line; `parse` gives the scenario again."""
    head: dict[str, Any] = {name: getattr(scenario, name) for name in TEXTS}
    for name in ("group_size", "capacity", "window", "chunk"):
        head[name] = getattr(scenario, name)
    lines = [f"  {_json(k)}: {_json(v)}" for k, v in head.items() if v is not None]
    lines.append(f'  "ops": {_lines(to_json(op) for op in scenario.ops)}')
    if scenario.expect is not None:
        entries: list[Json] = list(scenario.expect)
        if scenario.final is not None:
            entries.append({"final": {str(seq): f.to_json() for seq, f in scenario.final}})
        lines.append(f'  "expect": {_lines(entries)}')
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _lines(items: Iterable[Json]) -> str:
    body = ",\n".join(f"    {_json(item)}" for item in items)
    return f"[\n{body}\n  ]" if body else "[]"


def _json(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
