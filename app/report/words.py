"""Ops, ranges and digests in words, the same in every form of a report."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

Pair: TypeAlias = tuple[int, int]
"""First and last, both in."""


def number(value: int) -> str:
    """With thousands separators."""
    return f"{value:,}"


def plural(count: int, word: str, many: str = "") -> str:
    """`1 group`, `2 groups`."""
    return f"{number(count)} {word if count == 1 else many or word + 's'}"


def pair_words(pair: Sequence[int] | None) -> str:
    """A range with both ends in: `0 to 31`, `7`, `empty`."""
    if pair is None:
        return "empty"
    first, last = pair
    return number(first) if first == last else f"{number(first)} to {number(last)}"


def pairs_words(pairs: Sequence[Sequence[int]], most: int = 8) -> str:
    """Several ranges, the first `most` of them."""
    if not pairs:
        return "none"
    text = ", ".join(pair_words(pair) for pair in pairs[:most])
    return text if len(pairs) <= most else f"{text} and {number(len(pairs) - most)} more"


def short_digest(digest: str) -> str:
    """The first sixteen hex digits in groups of four."""
    return " ".join(digest[i : i + 4] for i in range(0, min(16, len(digest)), 4)) or "absent"


def time_words(time_ns: int) -> str:
    """A duration with a fitting unit; empty where none was measured."""
    if time_ns <= 0:
        return ""
    if time_ns < 1_000_000:
        return f"{time_ns / 1e3:.1f} µs"
    return f"{time_ns / 1e6:.2f} ms" if time_ns < 1_000_000_000 else f"{time_ns / 1e9:.2f} s"


def parse_op(op_json: str) -> dict[str, Any]:
    """The op as JSON; an empty object when it is none."""
    try:
        value = json.loads(op_json)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def appends(op: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Every append in an op, also in flight or inside a transaction."""
    if op.get("op") == "append":
        yield op
    during = op.get("during")
    for inner in [during, *(op.get("ops") or [])] if during or op.get("ops") else []:
        if isinstance(inner, dict):
            yield from appends(inner)


def positions_words(positions: Sequence[int]) -> str:
    """The positions that an append asked for: a range where they follow each other."""
    if not positions:
        return "no positions"
    if list(positions) == list(range(positions[0], positions[0] + len(positions))):
        return pair_words((positions[0], positions[-1]))
    text = ", ".join(map(number, positions[:8]))
    return f"[{text}{', …' if len(positions) > 8 else ''}]"


def op_words(op: dict[str, Any]) -> str:
    """One line for an op, such as `append 3 positions 100 to 102`."""
    name = str(op.get("op", "op"))
    if name == "append":
        positions = op.get("positions") or []
        text = f"append {plural(len(positions), 'position')} {positions_words(positions)}"
        return f"{text} in chunks of {op['chunk']}" if op.get("chunk") else text
    if name == "fail":
        inner = op_words(op.get("during") or {})
        return f"{inner}, made to fail after {op.get('stage')} ({op.get('kind')})"
    if name == "transaction":
        return "together: " + "; ".join(
            f"{op_words(inner)} on {inner.get('seq', inner.get('dst'))}"
            for inner in op.get("ops") or []
        )
    if name in ("fork", "copy"):
        return f"{name} sequence {op.get('src')} to {op.get('dst')}{_bounds(op)}"
    rest = {
        "rewind": f"rewind to {op.get('to')}",
        "evict_front": f"evict the {op.get('count')} oldest",
        "shift": f"shift by {op.get('delta')}{_bounds(op)}",
        "remove": f"remove{_bounds(op) or ' everything'}",
        "save": f"save as {op.get('slot')!r}",
        "restore": f"restore {op.get('slot')!r}",
        "reset": "reset",
    }
    return rest.get(name, name)


def _bounds(op: dict[str, Any]) -> str:
    start, stop = op.get("start"), op.get("stop")
    if start is None and stop is None:
        return ""
    if start is None or stop is None:
        return f" below {number(stop or 0)}" if start is None else f" from {number(start)}"
    return f" {pair_words((start, stop - 1))}"
