"""Random states of several sequences, written by an independent writer and judged by definitions.

Cells stand in any order; some are shared. Faults are put in on purpose, and what they must give
follows from the positions by the plain rules of the format page.
"""

from __future__ import annotations

import itertools
import random
from pathlib import Path

import pytest

from engine.formats import Options, read_source
from engine.formats.source import Source
from tests.helpers.llama_files import Cell, attention, recurrent, session_file

WINDOW = 8


def positions_of(rng: random.Random) -> list[int]:
    """A run; sometimes with a hole, a repeat, or an evicted front."""
    first = rng.choice((0, 0, rng.randrange(50)))
    found = list(range(first, first + rng.randrange(3, 40)))
    if rng.random() < 0.3:
        del found[rng.randrange(1, len(found) - 1)]
    if rng.random() < 0.2:
        found.append(rng.choice(found))
    return found


def faults(positions: list[int]) -> set[str]:
    distinct = sorted(set(positions))
    found = set()
    if len(distinct) < len(positions):
        found.add("duplicate")
    if distinct[-1] - distinct[0] + 1 > len(distinct):
        found.add("hole")
        if all(b - a > 1 for a, b in itertools.pairwise(distinct)):
            found.add("step")
    return found


def cells_of(states: dict[int, list[int]], rng: random.Random, share: bool) -> list[Cell]:
    """Cells of every sequence, in any order; equal positions sometimes in one shared cell."""
    cells: list[Cell] = []
    for seq, positions in states.items():
        for position in positions:
            other = next(
                (
                    own
                    for own in cells
                    if share and own.pos == position and seq not in own.seqs and rng.random() < 0.5
                ),
                None,
            )
            if other is None:
                cells.append(Cell(position, (seq,)))
            else:
                other.seqs = tuple(sorted((*other.seqs, seq)))
    rng.shuffle(cells)
    return cells


@pytest.mark.parametrize("seed", range(80))
def test_random_states_are_judged_by_the_rules(seed: int) -> None:
    print(f"seed {seed}")
    rng = random.Random(seed)
    kind = rng.choice(("llama", "gemma3", "lfm2", "minimax-m3", "qwen4exp"))
    ids = sorted(rng.sample(range(12), rng.randrange(1, 5)))
    states = {seq: positions_of(rng) for seq in ids}
    expected = set().union(*(faults(own) for own in states.values()))
    ext = rng.choice((0, 12)) if kind != "gemma3" else 0
    full = cells_of(states, rng, share=rng.random() < 0.5)
    trans, value = rng.random() < 0.5, None if kind == "qwen4exp" else 1
    sections = [attention([full], ext=ext, trans=trans, value=value)]
    if kind == "gemma3":
        windows = {
            seq: [own for own in sorted(set(positions)) if own > max(positions) - WINDOW]
            for seq, positions in states.items()
        }
        drifted = rng.choice([None, None, *ids])
        if drifted is not None:
            windows[drifted] = windows[drifted][:-1]
            expected.add("swa_drift")
        for seq, own in windows.items():
            expected |= faults(own) if own else set()
            del seq
        sections.append(attention([cells_of(windows, rng, share=False)]))
    if kind in ("lfm2", "qwen4exp"):
        ends = {seq: max(positions) for seq, positions in states.items()}
        drifted = rng.choice([None, None, *ids])
        if drifted is not None:
            ends[drifted] += rng.choice((-1, 1, 30))
            expected.add("recurrent_drift")
        sections.append(
            recurrent([Cell(end, (seq,)) for seq, end in ends.items()], m=rng.randrange(1, 5))
        )
    if kind in ("minimax-m3", "qwen4exp"):
        index = list(full)
        if rng.random() < 0.3 and len(index) > 1:
            a, b = rng.sample(range(len(index)), 2)
            if (index[a].pos, index[a].seqs) != (index[b].pos, index[b].seqs):
                expected.add("index_drift")
            index[a], index[b] = index[b], index[a]
        sections.append(attention([index], value=None if kind == "qwen4exp" else 1, width=32))
    data = session_file(kind, *sections)
    opened = read_source(Source(Path("made"), data, len(data)), Options())
    report = opened.report
    assert {code.value for code in report.codes} == expected, report.reason
    assert [own.id for own in report.sequences] == ids
    for own in report.sequences:
        positions = states[int(own.id)]
        assert own.run == (min(positions), max(positions) + 1)
        assert own.live == len(positions)
        missing = set(range(min(positions), max(positions))) - set(positions)
        assert {p for start, stop in own.holes for p in range(start, stop)} == missing
        assert list(own.duplicates) == sorted({p for p in positions if positions.count(p) > 1})
        cells = opened.cell_map(ids.index(int(own.id)))
        assert sorted(cells.positions[cells.member].tolist()) == sorted(positions)
        clean = next((p for p in sorted(positions) if p + 1 in missing), max(positions)) + 1
        for repeated in own.duplicates:
            clean = min(clean, repeated)
        if expected <= {"hole", "duplicate", "step"} and kind in ("llama", "minimax-m3"):
            assert own.usable == ((min(positions), clean) if clean > min(positions) else None)
