"""The filter line of the journal: words and ranges, all of which must match.

`failed` matches any word column, `op:append` one of them, `pos:812` the events that wrote a
position, `event:1200-1300`, `tokens:>4` and `time:>2ms` numbers; a leading `-` turns a term round.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

WORD_KEYS = {
    "op": "op",
    "result": "outcome",
    "outcome": "outcome",
    "stage": "stage",
    "kind": "kind",
    "reason": "reason",
}
NUMBER_KEYS = {
    "event": "event",
    "txn": "txn",
    "seq": "seq",
    "pos": "position",
    "position": "position",
    "tokens": "tokens",
    "time": "time",
    "flips": "flips",
}
UNITS = {"": 1, "ns": 1, "us": 1_000, "µs": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
HIGHEST = 2**62
_NUMBER = re.compile(r"([<>]?)([\d,]+)(?:(?:-|\.\.)([\d,]+))?(ns|us|µs|ms|s)?$")


@dataclass(frozen=True, slots=True)
class Term:
    """One condition."""

    words: tuple[str, ...] = ()
    """Word columns to search; empty for a number."""
    text: str = ""
    number: str = ""
    """Number column, or `position`."""
    low: int = 0
    high: int = 0
    """Half-open."""
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Query:
    """All conditions, and what could not be understood."""

    terms: tuple[Term, ...]
    problem: str = ""


def parse(line: str) -> Query:
    """Read a filter line; a term that makes no sense is named in `problem` and left out."""
    terms, problem = [], ""
    for word in line.split():
        negated = word.startswith("-") and len(word) > 1
        term = _term(word[1:] if negated else word, negated)
        if isinstance(term, str):
            problem = problem or term
        else:
            terms.append(term)
    return Query(tuple(terms), problem)


def _term(word: str, negated: bool) -> Term | str:
    key, colon, value = word.lower().partition(":")
    if not colon:
        return Term(tuple(dict.fromkeys(WORD_KEYS.values())), word.lower(), negated=negated)
    if not value:
        return f"expected something after {key}:, given nothing"
    if key in WORD_KEYS:
        return Term((WORD_KEYS[key],), value, negated=negated)
    if key not in NUMBER_KEYS:
        return f"expected one of {', '.join([*WORD_KEYS, *NUMBER_KEYS])}, given {key}"
    found = _range(value)
    if found is None:
        return f"expected a number or a range after {key}:, given {value}"
    low, high = found
    return Term(number=NUMBER_KEYS[key], low=low, high=high, negated=negated)


def _range(value: str) -> tuple[int, int] | None:
    match = _NUMBER.match(value)
    if match is None:
        return None
    sign, first, last, unit = match.groups()
    scale = UNITS[unit or ""]
    low = int(first.replace(",", "")) * scale
    if sign == ">":
        return low + 1, HIGHEST
    if sign == "<":
        return -HIGHEST, low
    high = int(last.replace(",", "")) * scale if last else low
    return (low, high + 1) if high >= low else None
