"""Arithmetic of a run."""

from __future__ import annotations

import pytest

from engine.run import EMPTY, Run


def test_the_empty_run_is_always_the_same() -> None:
    assert Run(7, 7) == Run(0, 0) == Run() == EMPTY
    assert hash(Run(7, 7)) == hash(EMPTY)
    assert not EMPTY
    assert (EMPTY.n, EMPTY.first, EMPTY.frontier, EMPTY.as_pair()) == (0, None, None, None)


def test_a_run_knows_its_ends() -> None:
    run = Run(5, 16)
    assert (run.n, run.first, run.frontier, run.as_pair()) == (11, 5, 15, (5, 15))
    assert 5 in run
    assert 15 in run
    assert 16 not in run
    assert 4 not in run
    assert "5" not in run


def test_a_run_can_not_end_before_it_starts() -> None:
    with pytest.raises(ValueError, match="stop at 3, before its start 4"):
        Run(4, 3)


@pytest.mark.parametrize("group_size", [1, 3, 4])
@pytest.mark.parametrize("n", range(14))
@pytest.mark.parametrize("start", [0, 2, 5, 8])
def test_groups_and_tail_partition_the_run(start: int, n: int, group_size: int) -> None:
    """Against the definition: deal the positions out one by one, from the first live one."""
    positions = list(range(start, start + n))
    dealt = [positions[i : i + group_size] for i in range(0, n, group_size)]
    whole = [group for group in dealt if len(group) == group_size]
    rest = [p for group in dealt if len(group) < group_size for p in group]
    run = Run(start, start + n)
    assert [list(range(g.start, g.stop)) for g in run.groups(group_size)] == whole
    assert run.n_groups(group_size) == len(whole)
    assert list(range(run.tail(group_size).start, run.tail(group_size).stop)) == rest
    assert run.n_tail(group_size) == len(rest)
    complete = run.complete(group_size)
    assert list(range(complete.start, complete.stop)) == [p for group in whole for p in group]
    with pytest.raises(IndexError):
        run.group(len(whole), group_size)
    with pytest.raises(IndexError):
        run.group(-1, group_size)


@pytest.mark.parametrize("start", [None, -1, 0, 3, 4, 6, 8, 9, 12])
@pytest.mark.parametrize("stop", [None, -1, 0, 3, 4, 6, 8, 9, 12])
def test_clip_gives_the_live_part(start: int | None, stop: int | None) -> None:
    live = [p for p in range(4, 9) if (start is None or p >= start) and (stop is None or p < stop)]
    expected = Run(live[0], live[-1] + 1) if live else EMPTY
    assert Run(4, 9).clip(start, stop) == expected


def test_moving_a_run() -> None:
    run = Run(4, 9)
    assert run.shifted(-4) == Run(0, 5)
    assert EMPTY.shifted(3) == EMPTY
    assert run.drop_front(2) == Run(6, 9)
    assert run.drop_front(5) == EMPTY
    assert run.truncated(6) == Run(4, 6)
    assert run.truncated(4) == EMPTY
