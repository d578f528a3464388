"""Judging arrays of positions from outside, against sets and counters in plain Python."""

from __future__ import annotations

import json
import tracemalloc
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.terms import MAX_POSITION, Reason
from engine.validate import Partition, Validation, partition, validate

SAMPLES = json.loads((Path(__file__).parent.parent / "data" / "partitions.json").read_text())


def flat(ranges: tuple[tuple[int, int], ...]) -> list[int]:
    return [p for start, stop in ranges for p in range(start, stop)]


def check_against_sets(values: list[int], found: Validation, groups: Partition) -> None:
    """Every field from its definition."""
    size = groups.group_size
    legal = [v for v in values if 0 <= v <= MAX_POSITION]
    times = Counter(legal)
    assert found.n == len(values)
    assert (found.first, found.last) == (min(legal, default=None), max(legal, default=None))
    assert found.is_run == (
        values == list(range(values[0], values[0] + len(values))) and values == legal
        if values
        else True
    )
    span = range(min(legal), max(legal) + 1) if legal else range(0)
    assert flat(found.holes) == [p for p in span if p not in times]
    assert found.n_missing == len(span) - len(times)
    assert flat(found.duplicates) == [p for p in span if times[p] > 1]
    assert found.n_repeated == len(legal) - len(times)
    descents = [i for i in range(1, len(values)) if values[i] < values[i - 1]]
    assert found.n_descents == len(descents)
    assert found.first_descent == (descents[0] if descents else None)
    assert found.n_negative == sum(v < 0 for v in values)
    assert found.n_too_large == sum(v > MAX_POSITION for v in values)
    assert (found.lowest, found.highest) == (min(values, default=None), max(values, default=None))
    apart = {b - a for a, b in zip(sorted(times), sorted(times)[1:], strict=False)}
    one_step = len(times) > 2 and len(apart) == 1 and apart != {1}
    assert found.step == (apart.pop() if one_step else None)
    cut = [span[i : i + size] for i in range(0, len(span) - len(span) % size, size)]
    complete = [all(times[p] == 1 for p in group) for group in cut]
    rest = span[len(cut) * size :]
    assert groups.anchor == found.first
    assert groups.n_groups == len(cut)
    assert groups.n_complete == sum(complete)
    assert flat(groups.broken) == [i for i, good in enumerate(complete) if not good]
    assert groups.n_broken == len(cut) - sum(complete)
    assert groups.n_tail == sum(times[p] for p in rest)
    assert groups.tail == ((rest[0], rest[-1] + 1) if rest else None)
    forgotten = [p for group, ok in zip(cut, complete, strict=True) if not ok for p in group]
    assert flat(groups.forgotten) == [p for p in forgotten if times[p]]
    assert groups.n_forgotten == len(flat(groups.forgotten))


runs = st.builds(lambda a, n: list(range(a, a + n)), st.integers(-3, 12), st.integers(0, 40))
near_runs = st.builds(
    lambda run, cut, more: [p for i, p in enumerate(run) if i not in cut] + more,
    runs,
    st.sets(st.integers(0, 40), max_size=6),
    st.lists(st.integers(-4, 50), max_size=3),
)
anything = st.lists(st.integers(-5, 30), max_size=40)
edges = st.lists(st.integers(MAX_POSITION - 5, MAX_POSITION + 3), max_size=12)


@settings(max_examples=600, deadline=None, derandomize=True)
@given(st.one_of(runs, near_runs, anything, edges, anything.map(sorted)), st.integers(1, 6))
def test_every_field_is_what_its_definition_says(values: list[int], group_size: int) -> None:
    array = np.array(values, dtype=np.int64)
    found = validate(array)
    check_against_sets(values, found, partition(array, group_size, found))
    assert partition(values, group_size) == partition(array, group_size, found)
    assert validate(values) == found
    objects = np.empty(len(values), dtype=object)
    objects[:] = values
    assert validate(objects) == found
    assert partition(objects, group_size) == partition(array, group_size)


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda s: f"{s['file']}-{s['count']}-{s['first']}")
@pytest.mark.parametrize("backwards", [False, True])
def test_partition_agrees_with_the_llama_samples(sample: dict[str, Any], backwards: bool) -> None:
    missing = {p for first, last in sample["holes"] for p in range(first, last + 1)}
    live = [p for p in range(sample["first"], sample["last"] + 1) if p not in missing]
    values = np.array(live + sample["duplicates"], dtype=np.int32)
    assert values.size == sample["count"]
    found = validate(values[::-1] if backwards else values)
    groups = partition(values, 4)
    assert [[a, b - 1] for a, b in found.holes] == sample["holes"]
    assert flat(found.duplicates) == sample["duplicates"]
    assert groups.n_complete == sample["groups"]["complete"]
    assert flat(groups.broken) == sample["groups"]["broken"]
    assert groups.n_tail == sample["groups"]["tail"]
    assert (found.step is not None) == ("step" in sample["reason"])
    assert found.is_whole == (sample["reason"] == "")


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int16, np.int32, np.uint32, np.uint64])
def test_differences_that_wrap_around_are_no_run(kind: Any) -> None:
    """The largest value, then the smallest: a difference of one in the type's own arithmetic."""
    info = np.iinfo(kind)
    values = np.array([info.max - 1, info.max, info.min, info.min + 1], dtype=kind)
    assert not validate(values).is_run
    full = np.arange(600).astype(np.int8) if kind is np.int8 else values
    assert not validate(full).is_run


@pytest.mark.parametrize("kind", [np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64])
def test_every_integer_type_can_hold_a_run(kind: Any) -> None:
    found = validate(np.arange(5, 205).astype(kind))
    assert (found.is_run, found.first, found.last, found.reasons) == (True, 5, 204, ())


@pytest.mark.parametrize("far", [2**31, 2**63 - 1, 2**63, 2**64 - 1, 2**64, 10**40])
def test_values_far_too_large_are_counted_and_shown_exactly(far: int) -> None:
    values = [0, 1, 2, far]
    found = validate(values)
    assert (found.n_too_large, found.highest, found.first, found.last) == (1, far, 0, 2)
    assert (found.holes, found.reasons) == ((), (Reason.TOO_LARGE,))
    assert partition(values, 4).n_tail == 3
    if far < 2**64:
        assert validate(np.array(values, dtype=np.uint64)) == found
    assert validate([far - 1, far]).first is None or far == 2**31


@pytest.mark.parametrize("far", [-1, -(2**63), -(2**63) - 1, -(10**40)])
def test_negative_values_are_counted_and_shown_exactly(far: int) -> None:
    found = validate([far, 0, 1])
    assert (found.n_negative, found.lowest, found.first) == (1, far, 0)
    assert found.reasons == (Reason.NEGATIVE,)


def test_reasons_stand_in_the_order_in_which_they_are_checked() -> None:
    found = validate([5, 3, 3, 9, -1, MAX_POSITION + 1])
    expected = (Reason.DUPLICATE, Reason.NOT_CONSECUTIVE, Reason.NEGATIVE, Reason.TOO_LARGE)
    assert found.reasons == expected


def test_order_of_cells_is_no_fault_of_the_positions() -> None:
    found = validate([4, 5, 6, 7, 0, 1, 2, 3])
    assert (found.is_run, found.is_whole, found.n_descents, found.first_descent) == (
        False,
        True,
        1,
        4,
    )
    assert partition([4, 5, 6, 7, 0, 1, 2, 3], 4).n_complete == 2


def test_a_hole_as_wide_as_the_timeline_costs_nothing() -> None:
    tracemalloc.start()
    groups = partition([0, MAX_POSITION], 4)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert groups.broken == ((0, 2**29),)
    assert groups.forgotten == ((0, 1), (MAX_POSITION, MAX_POSITION + 1))
    assert (groups.n_complete, groups.tail) == (0, None)
    assert peak < 1_000_000


def test_forgotten_is_what_neither_a_group_nor_the_tail_holds() -> None:
    values = [p for p in range(10, 33) if p not in (15, 16)]
    groups = partition(values, 4)
    assert groups.broken == ((1, 2),)
    assert groups.forgotten == ((14, 15), (17, 18))
    assert groups.tail == (30, 33)


@pytest.mark.parametrize("wrong", [[1.0, 2.0], [True, False], ["1"], [None], np.zeros(3), [1, 2.5]])
def test_what_is_no_integer_is_refused(wrong: Any) -> None:
    with pytest.raises(TypeError, match="integers"):
        validate(wrong)


def test_ranges_are_taken_as_they_are() -> None:
    assert validate(range(3, 9)).is_run
    assert validate(range(0, 20, 4)).step == 4
    assert validate(range(2**63 - 1, 2**63 + 2)).highest == 2**63 + 1
    with pytest.raises(ValueError, match="at least 1"):
        partition([1], 0)
