"""Variants of a scenario around its boundaries, and every early cut of its prompt.

Pure: makes scenarios and says what must come of the varied op by definition; executes nothing.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from engine.cases import OK, REJECTED, Scenario
from engine.ops import Append, Copy, Fail, Fork, Op, Remove, Restore, Rewind, Save, Shift
from engine.replay import replay
from engine.terms import MAX_POSITION, Reason


@dataclass(frozen=True, slots=True)
class Boundary:
    """A size at which something changes."""

    name: str
    at: int


@dataclass(frozen=True, slots=True)
class Variant:
    """One cell of a grid: a scenario and what its varied op must give."""

    row: str
    column: str
    scenario: Scenario
    op_number: int
    """The varied op; -1 where the last op is meant."""
    must: str
    """`ok` or `rejected: REASON`, from the definition and not from any engine."""


@dataclass(frozen=True, slots=True)
class Grid:
    """Variants by row and column; a pair without a variant makes no sense for the scenario."""

    name: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    variants: tuple[Variant, ...]
    left_out: tuple[str, ...] = ()
    """Sentences on what was not tried, and why."""


def boundaries(scenario: Scenario) -> tuple[Boundary, ...]:
    """Where groups close, the window turns, cells are used again, and capacity ends."""
    size = scenario.group_size
    found = [Boundary("one group", size), Boundary("two groups", 2 * size)]
    if scenario.window is not None:
        found.append(Boundary("window", scenario.window))
        # the first token that finds every cell used once is one window and one group on
        found.append(Boundary("wrap", scenario.window + size))
    found.append(Boundary("capacity", scenario.capacity))
    return tuple(found)


def sizes(scenario: Scenario, most: int) -> tuple[tuple[tuple[str, int], ...], tuple[str, ...]]:
    """(column, positions) for each boundary less one, itself and plus one; and what is left out."""
    columns: dict[int, str] = {}
    left_out = []
    for boundary in boundaries(scenario):
        if boundary.at + 1 > most:
            left_out.append(f"{boundary.name} at {boundary.at} is beyond the limit of {most}")
            continue
        for size in (boundary.at - 1, boundary.at, boundary.at + 1):
            if size > 0:
                columns.setdefault(size, _column(boundary, size))
    return tuple((columns[size], size) for size in sorted(columns)), tuple(left_out)


def _column(boundary: Boundary, size: int) -> str:
    offset = size - boundary.at
    return f"{size} ({boundary.name}{f' {offset:+d}' if offset else ''})"


def resized(scenario: Scenario, op_number: int, n_positions: int) -> Scenario:
    """The scenario with one append longer or shorter, and what follows moved along.

    Tokens are repeated from the append's start where it becomes longer.
    """
    append = scenario.ops[op_number]
    assert isinstance(append, Append)
    first = append.positions[0]
    tokens = append.tokens
    if tokens is not None:
        tokens = tuple(tokens[i % len(tokens)] for i in range(n_positions))
    ops = list(scenario.ops)
    ops[op_number] = replace_append(append, range(first, first + n_positions), tokens)
    delta = n_positions - len(append.positions)
    moved, slots = {append.seq}, set[str]()
    for number in range(op_number + 1, len(ops)):
        ops[number] = _moved(ops[number], delta, moved, slots)
    return replace(scenario, ops=tuple(ops), expect=None, final=None)


def replace_append(
    append: Append, positions: Sequence[int] | range, tokens: Sequence[int] | None
) -> Append:
    """The append with other positions and tokens."""
    return Append(append.seq, positions, tokens, append.chunk)


def _moved(op: Op, delta: int, moved: set[int], slots: set[str]) -> Op:
    """The op as it must be when the sequences in `moved` are `delta` positions longer."""
    if isinstance(op, Fail):
        during: Any = _moved(op.during, delta, moved, slots)
        return replace(op, during=during)
    if isinstance(op, (Fork, Copy)):
        if op.src in moved:
            moved.add(op.dst)
            return _add(op, delta, ("stop",))
        return op
    if isinstance(op, Restore) and op.slot in slots:
        moved.add(op.seq)
    if op.seq not in moved:
        return op
    if isinstance(op, Save):
        slots.add(op.slot)
    if isinstance(op, Append):
        return replace_append(op, [p + delta for p in op.positions], op.tokens)
    if isinstance(op, Rewind):
        return _add(op, delta, ("to",))
    return _add(op, delta, ("start", "stop")) if isinstance(op, (Remove, Shift)) else op


def _add(op: Op, delta: int, fields: tuple[str, ...]) -> Op:
    values = {name: getattr(op, name) for name in fields}
    moved: Any = {n: None if v is None else v + delta for n, v in values.items()}
    return replace(op, **moved)


def boundary_grid(scenario: Scenario, most: int = 65_536) -> Grid:
    """Each legal append made to end at each boundary less one, at it, and one beyond.

    Args:
        most: live positions that a variant may ask for; what needs more is left out and said.
    """
    columns, left_out = sizes(scenario, most)
    done = replay(replace(scenario, expect=None, final=None, ops=_without_fails(scenario)))
    rows, variants = [], []
    for number, op in enumerate(scenario.ops):
        if not isinstance(op, Append) or done.results[number] != OK:
            continue
        before = done.histories[number - 1].of(op.seq).run.n if number else 0
        row = f"op {number}, sequence {op.seq}"
        found = [
            Variant(row, name, resized(scenario, number, size - before), number, must)
            for name, size in columns
            if size > before and (must := must_give(scenario, op, size, size - before))
        ]
        if found:
            rows.append(row)
            variants.extend(found)
    names = tuple(name for name, _ in columns)
    return Grid("boundaries", tuple(rows), names, tuple(variants), left_out)


def must_give(scenario: Scenario, op: Append, n_live: int, n_new: int) -> str:
    """What an append that ends with `n_live` live positions gives, by definition."""
    if op.positions[0] + n_new - 1 > MAX_POSITION:
        return f"{REJECTED}{Reason.TOO_LARGE}"
    if scenario.window is not None:
        n_live = min(n_live, scenario.window)
    return OK if n_live <= scenario.capacity else f"{REJECTED}{Reason.CAPACITY}"


def _without_fails(scenario: Scenario) -> tuple[Op, ...]:
    """Ops in which a fail changes nothing, as it does, whatever graph stage it names."""
    return tuple(
        replace(op, stage="reserve") if isinstance(op, Fail) else op for op in scenario.ops
    )


def prompt(scenario: Scenario) -> Append | None:
    """The first append; None where there is none."""
    return next((op for op in scenario.ops if isinstance(op, Append)), None)


def cut_grid(scenario: Scenario, bound: int = 8) -> Grid:
    """The first append in one, two and three pieces: every pair of cuts within `bound` tokens.

    The pair (i, i) is the single cut after i tokens. Every cell must end as the uncut append.
    """
    append = prompt(scenario)
    if append is None:
        return Grid("cuts", (), (), (), ("the scenario has no append to cut",))
    n = len(append.positions)
    last = min(bound, n - 1)
    rows = tuple(f"cut after {i}" for i in range(1, last + 1))
    columns = tuple(f"and after {j}" for j in range(1, last + 1))
    must = must_give(scenario, append, n, n)
    variants = [
        Variant(rows[i - 1], columns[j - 1], cut(scenario, append, (i, j)), -1, must)
        for i in range(1, last + 1)
        for j in range(i, last + 1)
    ]
    left_out = (f"cuts after more than {bound} of {n} tokens",) if n - 1 > bound else ()
    return Grid("cuts", rows, columns, tuple(variants), left_out)


def cut(scenario: Scenario, append: Append, places: Sequence[int]) -> Scenario:
    """A scenario of the append alone, cut after these numbers of tokens."""
    n = len(append.positions)
    edges = [0, *sorted(set(places) - {0, n}), n]
    ops = []
    for start, stop in itertools.pairwise(edges):
        tokens = None if append.tokens is None else append.tokens[start:stop]
        ops.append(replace_append(append, append.positions[start:stop], tokens))
    return replace(scenario, ops=tuple(ops), expect=None, final=None)
