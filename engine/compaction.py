"""Moves the used cells together, so that the high-water mark is the number of live cells."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import replace
from types import MappingProxyType

from engine.cells import Extents, SequenceCells, Space, ascending, join, without
from engine.effects import Applied, Moved
from engine.history import History


def compact(history: History) -> Applied:
    """Every cell in use moved down, sequence by sequence in logical order, shared cells once.

    Reserved and free cells are given up. Nothing logical changes.
    """
    moves = _plan(history)
    table = sorted(moves)
    sequences = {seq: _moved(held, table) for seq, held in history.sequences.items()}
    slots = {slot: _moved(held, table) for slot, held in history.slots.items()}
    old = history.space
    end = sum(count for _, _, count in moves)
    after = replace(
        history,
        sequences=MappingProxyType(sequences),
        slots=MappingProxyType(slots),
        space=Space((), end, old.max_cells, old.policy, old.block),
    )
    return Applied(history, after, (Moved(0, 0, (), tuple(moves)),), (after.space,))


def _plan(history: History) -> list[tuple[int, int, int]]:
    """(old first cell, new first cell, count), new cells ascending from 0 without a gap."""
    moves: list[tuple[int, int, int]] = []
    placed: Extents = ()
    end = 0
    for held in history.holders():
        for first, count in held.extents:
            for start, length in without(((first, count),), placed):
                moves.append((start, end, length))
                end += length
            placed = ascending((*placed, (first, count)))
    return moves


def _moved(held: SequenceCells, table: list[tuple[int, int, int]]) -> SequenceCells:
    found: Extents = ()
    for first, count in held.extents:
        at, left = first, count
        while left:
            old, new, length = table[bisect_right(table, (at, 1 << 63, 0)) - 1]
            step = min(left, old + length - at)
            found = join(found, ((new + at - old, step),))
            at, left = at + step, left - step
    return SequenceCells(held.run, found)
