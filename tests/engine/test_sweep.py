"""The grids hold what they promise, and the model-free history agrees with the definitions."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path

import pytest

from engine import cases
from engine.ops import Append, Fail, Fork, Restore, Rewind, Save, Shift
from engine.replay import replay
from engine.sweep import boundaries, boundary_grid, cut_grid, resized
from engine.terms import FailKind

CASES = sorted((Path(__file__).parents[1] / "data" / "cases").glob("*.json"))


def scenario(**changes: object) -> cases.Scenario:
    base = cases.Scenario("s", (Append(0, range(6)), Append(0, range(6, 9))), capacity=12)
    return replace(base, **changes)  # type: ignore[arg-type]


def test_every_boundary_is_tried_below_at_and_above() -> None:
    grid = boundary_grid(scenario())
    ends = {
        (v.row, v.scenario.ops[v.op_number].positions[-1] + 1)  # type: ignore[union-attr]
        for v in grid.variants
    }
    sizes = [3, 4, 5, 7, 8, 9, 11, 12, 13]
    assert ends == {("op 0, sequence 0", n) for n in sizes} | {
        ("op 1, sequence 0", n) for n in sizes if n > 6
    }
    assert [v.must for v in grid.variants if v.column.startswith("13 ")] == [
        "rejected: capacity"
    ] * 2
    assert not grid.left_out


def test_the_window_and_its_wrap_are_boundaries() -> None:
    named = {b.name: b.at for b in boundaries(scenario(window=8))}
    assert named == {"one group": 4, "two groups": 8, "window": 8, "wrap": 12, "capacity": 12}
    grid = boundary_grid(scenario(window=8))
    assert {v.must for v in grid.variants} == {"ok"}


def test_what_is_too_long_is_left_out_and_said() -> None:
    grid = boundary_grid(scenario(capacity=4096), most=100)
    assert grid.left_out == ("capacity at 4096 is beyond the limit of 100",)
    assert max(len(v.scenario.ops[v.op_number].positions) for v in grid.variants) == 9  # type: ignore[union-attr]


def test_what_follows_moves_along() -> None:
    ops = (
        Append(0, range(4), (1, 2, 3, 4)),
        Append(0, range(4, 6)),
        Append(1, range(9)),
        Fail("write", FailKind.OOM, Append(0, [6])),
        Fork(0, 2, 5),
        Append(2, [5]),
        Save(0, "a"),
        Rewind(0, 5),
        Shift(0, 3, 5, None),
        Restore(3, "a"),
        Append(3, [6]),
    )
    moved = resized(scenario(ops=ops), 0, 6).ops
    assert moved == (
        Append(0, range(6), (1, 2, 3, 4, 1, 2)),
        Append(0, range(6, 8)),
        Append(1, range(9)),
        Fail("write", FailKind.OOM, Append(0, [8])),
        Fork(0, 2, 7),
        Append(2, [7]),
        Save(0, "a"),
        Rewind(0, 7),
        Shift(0, 3, 7, None),
        Restore(3, "a"),
        Append(3, [8]),
    )


def test_cuts_are_all_cuts_within_the_bound() -> None:
    grid = cut_grid(scenario(ops=(Append(0, range(10, 16), range(6)),)), bound=4)
    seen = set()
    for variant in grid.variants:
        pieces = [list(op.positions) for op in variant.scenario.ops]  # type: ignore[union-attr]
        assert [p for piece in pieces for p in piece] == list(range(10, 16))
        tokens = [t for op in variant.scenario.ops for t in op.tokens]  # type: ignore[union-attr]
        assert tokens == list(range(6))
        seen.add(tuple(len(piece) for piece in pieces[:-1]))
    wanted = {(i,) for i in range(1, 5)} | {
        (i, j - i) for i, j in itertools.combinations(range(1, 5), 2)
    }
    assert seen == wanted
    assert grid.left_out == ("cuts after more than 4 of 6 tokens",)


def test_nothing_to_cut() -> None:
    assert cut_grid(scenario(ops=(Append(0, [3]),))).variants == ()
    assert cut_grid(scenario(ops=())).left_out == ("the scenario has no append to cut",)


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_the_history_gives_what_the_definition_says(path: Path) -> None:
    case = cases.load(path)
    for grid in (boundary_grid(case), cut_grid(case)):
        for variant in grid.variants:
            done = replay(variant.scenario)
            assert done.results[variant.op_number] == variant.must, (variant.row, variant.column)
