"""Lineages against plain lists: ids, positions and sight of the past, and ways back."""

from __future__ import annotations

import random

import numpy as np
import pytest
import xxhash

from engine.checks import lineage_ops, run_check
from engine.engine import append
from engine.lineage import LEAF, Event, Lineage, TokenLog
from engine.ops import EvictFront, Rewind, Shift
from tests.helpers.engines import good, prompt, session, told
from tests.helpers.lives import Line


def log_of(ids: list[int]) -> TokenLog:
    return TokenLog().extended(ids)


@pytest.mark.parametrize("n", [0, 1, LEAF - 1, LEAF, LEAF + 1, 3 * LEAF + 5])
def test_a_log_is_a_list(n: int) -> None:
    ids = list(range(7, 7 + n))
    log = log_of(ids)
    assert log.n == n
    for start, stop in ((0, n), (0, n + 9), (n // 3, n // 2), (n - 1, n), (n, n), (5, 2)):
        if start >= 0:
            assert log.slice(start, stop).tolist() == ids[start:stop]
    for count in {0, 1, n // 2, max(0, n - 1), n}:
        if count <= n:
            assert log.cut(count).slice(0, n).tolist() == ids[:count]


def test_the_hash_is_of_the_ids_and_of_nothing_else() -> None:
    seed = 3
    print("seed", seed)
    choice = random.Random(seed)
    ids = [choice.randrange(1 << 40) for _ in range(2 * LEAF + 77)]
    log, at = TokenLog(), 0
    while at < len(ids):
        n = choice.choice((1, 2, 63, 1000, LEAF, LEAF + 1))
        log = log.extended(ids[at : at + n])
        at += n
        data = b"".join(i.to_bytes(8, "little") for i in ids[:at])
        assert log.hash == xxhash.xxh3_64_intdigest(data)
    assert log.cut(1000).hash == log_of(ids[:1000]).hash


def test_a_log_is_a_value() -> None:
    log = log_of([1, 2, 3])
    left, right = log.extended([4]), log.extended([5])
    assert (log.n, left.slice(0, 9).tolist(), right.slice(0, 9).tolist()) == (
        3,
        [1, 2, 3, 4],
        [1, 2, 3, 5],
    )
    log.slice(0, 3)[:] = 0
    assert log.slice(0, 3).tolist() == [1, 2, 3]


def random_line(choice: random.Random, n: int) -> tuple[Lineage, Line]:
    """The same random life as a lineage and as plain lists."""
    lineage, line = Lineage.empty(), Line()
    for _ in range(n):
        what = choice.choice(("append", "append", "evict", "shift", "back"))
        if what == "append":
            ids = [choice.randrange(99) for _ in range(choice.randint(1, 6))]
            start = line.stop if line.n_live else choice.randrange(50)
            lineage = lineage.appended(start, ids)
            line.append(start, ids, None)
        elif line.n_live and what == "evict":
            count = choice.randint(1, line.n_live)
            lineage = lineage.with_event("evict", count)
            line.evict(count)
        elif line.n_live and what == "shift":
            delta = choice.randint(-line.start, 9)
            lineage = lineage.with_event("shift", delta)
            line.start += delta
        elif line.n_live and what == "back":
            left = choice.randint(0, line.n_live)
            lineage = lineage.clipped(lineage.evicted + left)
            line.keep(left)
    return lineage, line


def test_random_lives_against_plain_lists() -> None:
    seed = 11
    print("seed", seed)
    choice = random.Random(seed)
    for _ in range(400):
        lineage, line = random_line(choice, choice.randint(1, 25))
        n = len(line.ids)
        assert lineage.consumed == n
        assert lineage.n_live == line.n_live
        assert lineage.log.slice(0, n).tolist() == line.ids
        assert lineage.positions(0, n).tolist() == line.positions
        if n:
            low = choice.randrange(n)
            high = choice.randint(low, n)
            assert lineage.positions(low, high).tolist() == line.positions[low:high]
        assert [lineage.live_before(i) for i in range(n)] == line.before


def test_a_lineage_executed_anew_is_the_same_lineage() -> None:
    """Model-free: the ops of a lineage, on plain lists, give its own integers again."""
    seed = 12
    print("seed", seed)
    choice = random.Random(seed)
    for _ in range(400):
        lineage, line = random_line(choice, choice.randint(1, 25))
        anew, run = Lineage.empty(), Line()
        for op in lineage_ops(lineage, 0):
            if isinstance(op, EvictFront):
                assert 0 < op.count <= run.n_live
                anew, _ = anew.with_event("evict", op.count), run.evict(op.count)
            elif isinstance(op, Shift):
                assert run.n_live, lineage.events
                anew = anew.with_event("shift", op.delta)
                run.start += op.delta
            else:
                assert not run.n_live or op.positions[0] == run.stop  # type: ignore[union-attr]
                start, ids = op.positions[0], list(op.tokens)  # type: ignore[union-attr]
                anew, _ = anew.appended(start, ids), run.append(start, ids, None)
        assert told(anew) == told(lineage)
        assert (run.ids, run.n_live) == (line.ids, line.n_live)
        if run.n_live:
            assert run.start == line.start


def test_events_that_change_nothing_leave_no_trace() -> None:
    lineage = Lineage.empty().appended(5, [1, 2, 3])
    assert lineage.with_event("shift", 0) is lineage
    assert lineage.clipped(3) is lineage
    assert told(lineage.clipped(0)) == told(Lineage.empty()) == ((), ())
    assert lineage.events == (Event(0, "start", 5),)
    assert lineage.last_move() == -1
    assert lineage.with_event("evict", 2).last_move() == 3


def test_numbers_tell_lineages_apart() -> None:
    base = Lineage.empty().appended(5, [1, 2, 3])
    others = [
        base.with_event("evict", 1),
        base.with_event("shift", 1),
        base.with_event("shift", 2),
        base.with_event("evict", 1).with_event("shift", 1),
        base.with_event("shift", 1).with_event("evict", 1),
    ]
    assert len({tuple(x.numbers()) for x in [base, *others]}) == 6


@pytest.mark.parametrize("name", ["qwen4exp-tiny", "qwen4exp-mixed"])
def test_a_way_back_over_a_shift_replays_at_the_old_positions(name: str) -> None:
    tokens = prompt(name, 41)
    engine = session(name, mode="fast", audit_each=True)
    good(engine, append(0, 0, tokens[:21]))
    good(engine, Shift(0, 100))
    good(engine, append(0, 121, tokens[21:]))
    good(engine, Rewind(0, 135))
    result = run_check(engine, "same-as-fresh")
    assert result.ok, result.sentence
    line = engine.pair.public_bank.tokens.of(0)
    assert line.positions(0, 35).tolist() == [*range(21), *range(121, 135)]


def test_a_way_back_to_nothing_forgets_later_starts_and_shifts() -> None:
    engine = session(mode="fast")
    good(engine, append(0, 0, prompt(n=64)))
    good(engine, EvictFront(0, 64))
    good(engine, append(0, 5, [1, 2, 3]))
    good(engine, Shift(0, 7))
    good(engine, Rewind(0, 12))
    assert told(engine.pair.public_bank.tokens.of(0))[1] == ((0, "start", 0), (64, "evict", 64))
    result = run_check(engine, "same-as-fresh")
    assert result.ok, result.sentence
    good(engine, append(0, 9, [4]))
    assert np.array_equal(engine.pair.public_bank.tokens.of(0).positions(64, 65), [9])
    assert run_check(engine, "same-as-fresh").ok
