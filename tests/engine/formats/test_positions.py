"""Surveys of positions: against a plain restatement of the definitions, over random arrays."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

from engine.formats.positions import between, expand, spans, survey, survey_ranges, usable_prefix


def plain(positions: list[int], group_size: int) -> dict[str, object]:
    """The definitions of the sample files, word for word, without NumPy."""
    first, last = min(positions), max(positions)
    count = {position: positions.count(position) for position in positions}
    n_groups = (last - first + 1) // group_size
    groups = [
        range(first + number * group_size, first + (number + 1) * group_size)
        for number in range(n_groups)
    ]
    complete = [all(count.get(own, 0) == 1 for own in group) for group in groups]
    tail_start = first + n_groups * group_size
    covered = {own for group, good in zip(groups, complete, strict=True) if good for own in group}
    return {
        "holes": [own for own in range(first, last) if own not in count],
        "duplicates": sorted(own for own, times in count.items() if times > 1),
        "complete": sum(complete),
        "broken": [number for number, good in enumerate(complete) if not good],
        "tail": sum(times for own, times in count.items() if own >= tail_start),
        "forgotten": sorted(own for own in count if own < tail_start and own not in covered),
    }


@pytest.mark.parametrize("seed", range(60))
def test_a_survey_follows_the_definitions(seed: int) -> None:
    print(f"seed {seed}")
    rng = random.Random(seed)
    top = rng.choice((6, 20, 60))
    positions = [
        own + rng.choice((0, 3)) for own in range(top) if rng.random() < rng.choice((0.5, 0.9, 1))
    ] or [7]
    positions += rng.choices(positions, k=rng.choice((0, 0, 2)))
    rng.shuffle(positions)
    size = rng.choice((1, 2, 4, 5))
    expected = plain(positions, size)
    found = survey(np.array(positions, np.int64), size)
    assert found.run == (min(positions), max(positions) + 1)
    assert found.live == len(positions)
    assert expand(found.holes).tolist() == expected["holes"]
    assert list(found.duplicates) == expected["duplicates"]
    assert found.complete_groups == expected["complete"]
    assert expand(found.broken).tolist() == expected["broken"]
    assert found.tail == expected["tail"]
    assert expand(found.forgotten).tolist() == expected["forgotten"]
    neighbours = sorted(set(positions))
    stepped = all(b - a != 1 for a, b in itertools.pairwise(neighbours))
    assert found.stepped == (stepped and len(neighbours) > 1)


@pytest.mark.parametrize("seed", range(60))
def test_ranges_give_the_same_survey(seed: int) -> None:
    print(f"seed {seed}")
    rng = random.Random(seed)
    positions = np.flatnonzero(np.array([rng.random() < 0.8 for _ in range(rng.choice((3, 80)))]))
    positions = positions.astype(np.int64) + rng.choice((0, 5))
    size = rng.choice((1, 2, 4, 7))
    by_position, by_range = survey(positions, size), survey_ranges(spans(positions), size)
    fields = ("run", "live", "holes", "complete_groups", "broken", "tail")
    for field in fields:
        assert getattr(by_range, field) == getattr(by_position, field), field
    assert expand(by_range.forgotten).tolist() == expand(by_position.forgotten).tolist()


def test_far_positions_cost_nothing() -> None:
    found = survey(np.array([0, 2**31 - 1]), 4)
    assert found.holes == ((1, 2**31 - 1),)
    assert found.broken == ((0, 2**29),)


def test_between_is_what_is_left() -> None:
    assert between([(2, 4), (4, 6), (9, 12)], 0, 12) == ((0, 2), (6, 9))


@pytest.mark.parametrize(
    ("reaches", "expected"),
    [
        ([(0, 32), (0, 16)], (0, 16)),
        ([(0, 32), (31, 32)], (0, 32)),
        ([(0, 20), (31, 32)], None),
        ([(0, 32), (20, 32), (10, 25)], (0, 25)),
        ([(0, 32), (0, 0)], None),
        ([], None),
    ],
)
def test_usable_prefix(reaches: list[tuple[int, int]], expected: tuple[int, int] | None) -> None:
    assert usable_prefix(0, reaches) == expected
