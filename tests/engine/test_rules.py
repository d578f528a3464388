"""The meaning of each op: edges, the order of reasons, what a refusal says, effects in order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine.effects import (
    Appended,
    Applied,
    Copied,
    Evicted,
    Forked,
    Removed,
    ResetSeq,
    Restored,
    Saved,
    Shifted,
    Truncated,
)
from engine.errors import InvariantBroken, Rejected
from engine.history import History
from engine.ops import (
    Append,
    Copy,
    EvictFront,
    Fail,
    Fork,
    Op,
    Remove,
    Reset,
    Restore,
    Rewind,
    Save,
    Shift,
    Transaction,
)
from engine.rules import apply, judge
from engine.run import Run
from engine.terms import MAX_POSITION, FailKind, Reason


def given(text: str, **sizes: Any) -> History:
    """A history from `seq:first-last` words, like `0:5-12 1:0-3`."""
    history = History.empty(**{"capacity": 12, **sizes})
    for word in text.split():
        seq, run = word.split(":")
        first, last = run.split("-")
        history = apply(history, Append(int(seq), range(int(first), int(last) + 1))).history
    return history


def shown(history: History) -> str:
    runs = ((seq, held.run) for seq, held in sorted(history.sequences.items()))
    return " ".join(f"{seq}:{run.start}-{run.stop - 1}" for seq, run in runs)


def refused(history: History, op: Op) -> Rejected:
    refusal = judge(history, op)
    assert refusal is not None, f"{op} was taken"
    return refusal


def told(refusal: Rejected) -> tuple[str, int | None, int | None, int | None]:
    return str(refusal.reason), refusal.expected, refusal.given, refusal.nearest


OK_EDGES = [
    # before, op, after
    ("", Append(0, (4096,)), "0:4096-4096"),
    ("", Append(0, (MAX_POSITION,)), f"0:{MAX_POSITION}-{MAX_POSITION}"),
    ("0:3-4", Append(0, (5,)), "0:3-5"),
    ("0:3-8", Remove(0, None, 5), "0:5-8"),
    ("0:3-8", Remove(0, -5, 5), "0:5-8"),
    ("0:3-8", Remove(0, 7, None), "0:3-6"),
    ("0:3-8", Remove(0, 7, 99), "0:3-6"),
    ("0:3-8", Remove(0), ""),
    ("0:3-8", EvictFront(0, 6), ""),
    ("0:3-8", Rewind(0, 9), "0:3-8"),
    ("0:3-8", Rewind(0, 3), ""),
    ("0:3-8", Shift(0, 0, 5, 6), "0:3-8"),
    ("0:3-8", Shift(0, -3, 0, 99), "0:0-5"),
    ("0:3-8", Shift(0, 7, 3, 9), "0:10-15"),
    ("0:3-8", Fork(0, 1, 4), "0:3-8 1:3-3"),
    ("0:3-8", Fork(0, 1, 9), "0:3-8 1:3-8"),
    ("0:3-8", Copy(0, 1, 5, 7), "0:3-8 1:5-6"),
    ("0:3-8 1:0-4", Copy(0, 1, 5), "0:3-8 1:0-8"),
    ("0:3-8", Reset(0), ""),
    ("", Reset(0), ""),
    ("", Transaction(()), ""),
]


@pytest.mark.parametrize(("before", "op", "after"), OK_EDGES, ids=str)
def test_what_is_just_legal(before: str, op: Op, after: str) -> None:
    history = given(before)
    assert shown(apply(history, op).history) == after
    assert shown(history) == before


REFUSED_EDGES = [
    # before, op, reason, expected, given, nearest
    ("0:3-8", Append(0, (9, 9)), "duplicate", 10, 9, 10),
    ("0:3-8", Append(0, (-1, -1)), "duplicate", 0, -1, 0),
    ("", Append(0, (100, 101, 103)), "not-consecutive", 102, 103, 102),
    ("", Append(0, (-5, -3)), "not-consecutive", -4, -3, -4),
    ("0:3-8", Append(0, (-1, 0)), "negative", 0, -1, 9),
    ("", Append(0, (-1, 0)), "negative", 0, -1, 0),
    ("", Append(0, (MAX_POSITION, MAX_POSITION + 1)), "too-large", MAX_POSITION,
     MAX_POSITION + 1, MAX_POSITION - 1),
    ("0:3-8", Append(0, (10**30,)), "too-large", MAX_POSITION, 10**30, 9),
    ("0:3-8", Append(0, (8,)), "overlap", 9, 8, 9),
    ("0:3-8", Append(0, (0,)), "overlap", 9, 0, 9),
    ("0:3-8", Append(0, (10,)), "gap", 9, 10, 9),
    ("0:3-8", Append(0, range(9, 16)), "capacity", 12, 13, 14),
    ("0:3-14", Append(0, (15,)), "capacity", 12, 13, None),
    ("0:3-14", Append(0, (14,)), "overlap", 15, 14, 15),
    ("0:3-8", Remove(0, 9, None), "out-of-range", 8, 9, 8),
    ("0:3-8", Remove(0, None, 3), "out-of-range", 3, 3, 3),
    ("0:3-8", Remove(0, 6, 6), "out-of-range", 8, 6, 8),
    ("", Remove(0), "out-of-range", None, 0, None),
    ("0:3-8", Remove(0, 4, 6), "internal-hole", 3, 4, 3),
    ("0:3-8", Remove(0, 6, 8), "internal-hole", 9, 8, 9),
    ("0:3-8", EvictFront(0, 0), "out-of-range", 1, 0, 1),
    ("0:3-8", EvictFront(0, 7), "out-of-range", 6, 7, 6),
    ("", EvictFront(0, 1), "out-of-range", None, 1, None),
    ("0:3-8", Rewind(0, 2), "out-of-range", 3, 2, 3),
    ("0:3-8", Rewind(0, 10), "out-of-range", 9, 10, 9),
    ("", Rewind(0, 0), "out-of-range", None, 0, None),
    ("0:3-8", Shift(0, 1, 9), "out-of-range", None, 9, None),
    ("0:3-8", Shift(0, -4), "negative", 0, -1, -3),
    ("0:3-8", Shift(0, -9, 5), "negative", 5, -4, 0),
    ("0:3-8", Shift(0, MAX_POSITION), "too-large", MAX_POSITION - 5, MAX_POSITION + 3,
     MAX_POSITION - 8),
    ("0:3-8", Shift(0, -1, 5), "overlap", 5, 4, 0),
    ("0:3-8", Shift(0, 1, None, 5), "overlap", 3, 4, 0),
    ("0:3-8", Shift(0, 1, 5), "gap", 5, 6, 0),
    ("0:3-8", Shift(0, -1, None, 5), "gap", 3, 2, 0),
    ("0:3-8", Shift(0, 3, 4, 6), "overlap", 4, 7, 0),
    ("0:3-8", Shift(0, 6, None, 6), "overlap", 3, 9, 0),  # they would change places
    ("0:3-8", Shift(0, 50, None, 6), "gap", 3, 53, 0),
    ("0:3-8 1:0-0", Fork(0, 1), "destination-not-empty", 0, 1, 2),
    ("0:3-8", Fork(0, 0, 99), "destination-not-empty", 0, 6, 1),
    ("0:3-8", Fork(0, 1, 3), "out-of-range", 4, 3, 4),
    ("0:3-8", Fork(0, 1, 10), "out-of-range", 9, 10, 9),
    ("", Fork(0, 1), "out-of-range", None, None, None),
    ("0:3-8", Copy(0, 1, 2, 5), "out-of-range", 3, 2, 3),
    ("0:3-8", Copy(0, 1, 3, 10), "out-of-range", 9, 10, 9),
    ("0:3-8", Copy(0, 1, 5, 5), "out-of-range", 6, 5, 6),
    ("", Copy(0, 1), "out-of-range", None, 0, None),
    ("0:3-8 1:0-4", Copy(0, 1, 4, 9), "overlap", 5, 4, 5),
    ("0:3-8 1:0-4", Copy(0, 1, 6, 9), "gap", 5, 6, 5),
    ("0:8-17 1:0-7", Copy(0, 1), "capacity", 12, 18, 11),
    ("0:3-8", Copy(0, 0, 4, 6), "overlap", 9, 4, None),
    ("", Save(0, "a"), "out-of-range", 1, 0, None),
    ("", Restore(0, "a"), "unknown-slot", None, None, None),
]  # fmt: skip


@pytest.mark.parametrize(
    ("before", "op", "reason", "expected", "value", "nearest"), REFUSED_EDGES, ids=str
)
def test_what_is_just_not_legal(
    before: str, op: Op, reason: str, expected: Any, value: Any, nearest: Any
) -> None:
    history = given(before)
    refusal = refused(history, op)
    assert told(refusal) == (reason, expected, value, nearest)
    assert refusal.op == op.name
    assert shown(history) == before


def test_a_refusal_is_one_sentence_with_the_op_number() -> None:
    with pytest.raises(Rejected) as caught:
        apply(given("0:3-8"), Append(0, (10, 11)), 7)
    sentence = "append on sequence 0: gap, expected 9, given 10, nearest legal target 9"
    assert (str(caught.value), caught.value.op_number) == (sentence, 7)


def test_unknown_slots_name_those_that_are_there() -> None:
    history = apply(given("0:0-3"), Save(0, "prompt")).history
    assert "'prompt'" in str(refused(history, Restore(0, "promt")))


@pytest.mark.parametrize("array", [range(5, 9), (5, 6, 7, 8), [5, 6, 7, 8], np.arange(5, 9)])
def test_positions_may_come_in_any_form(array: Any) -> None:
    op = Append(0, array)
    assert op == Append(0, range(5, 9))
    assert op.positions == range(5, 9)
    assert hash(op) == hash(Append(0, range(5, 9)))


def test_a_stepped_range_is_judged_without_walking_it() -> None:
    assert told(refused(given(""), Append(0, range(0, 10**15, 5)))) == ("not-consecutive", 1, 5, 1)


def test_an_append_without_positions_is_refused() -> None:
    assert refused(given(""), Append(0, ())).reason is Reason.OUT_OF_RANGE


def test_tokens_must_be_as_many_as_positions() -> None:
    with pytest.raises(ValueError, match="as many tokens"):
        Append(0, (1, 2), tokens=(5,))


def test_a_fail_op_is_not_applied() -> None:
    with pytest.raises(TypeError):
        apply(given(""), Fail("write", FailKind.OOM, Reset(0)))


# transactions


def middle(start: int, stop: int, delta: int, seq: int = 0) -> Transaction:
    return Transaction((Remove(seq, start, stop), Shift(seq, delta, stop)))


def test_a_hole_may_be_closed_inside_a_transaction() -> None:
    assert shown(apply(given("0:0-11"), middle(4, 8, -4)).history) == "0:0-7"


@pytest.mark.parametrize(
    ("op", "reason", "expected", "value"),
    [
        (middle(4, 8, -3), "gap", 4, 5),
        (middle(4, 8, -5), "overlap", 4, 3),
        (middle(4, 8, -9), "negative", 4, -1),
        (Transaction((Remove(0, 4, 8),)), "gap", 4, 8),
        (Transaction((Append(0, (14,)),)), "gap", 12, 14),
        (Transaction((Shift(0, 50, 4), Save(0, "a"), Rewind(0, 4))), "gap", 4, 54),
        (Transaction((Shift(0, 12, None, 6), Append(0, (18,)))), "overlap", 18, 6),
        (Transaction((Append(1, (0,)), EvictFront(0, 13))), "out-of-range", 12, 13),
        (Transaction((EvictFront(0, 2), Restore(0, "b"))), "unknown-slot", None, None),
    ],
    ids=str,
)
def test_a_transaction_that_ends_in_no_run_is_refused(
    op: Transaction, reason: str, expected: Any, value: Any
) -> None:
    history = given("0:0-11", capacity=16)
    refusal = refused(history, op)
    assert told(refusal)[:3] == (reason, expected, value)
    assert refusal.op == "transaction"
    assert shown(history) == "0:0-11"
    assert not history.slots


def test_a_refusal_in_a_transaction_says_which_inner_op() -> None:
    refusal = refused(given("0:0-3"), Transaction((Reset(1), Append(0, (2,)))))
    assert refusal.detail == "inner op 1, append"
    refusal = refused(given("0:0-3"), Transaction((Append(0, (9,)), Reset(1))))
    assert refusal.detail == "result of sequence 0"


def test_a_gap_may_be_open_between_two_inner_appends() -> None:
    op = Transaction((Append(0, (4,)), Append(0, (9, 10)), Shift(0, -4, 9)))
    assert shown(apply(given("0:0-3"), op).history) == "0:0-6"


def test_one_append_for_several_sequences_is_all_or_nothing() -> None:
    op = Transaction.append_many([Append(0, (4,)), Append(1, (0, 1)), Append(2, (7,))])
    assert shown(apply(given("0:0-3"), op).history) == "0:0-4 1:0-1 2:7-7"
    history = given("0:0-3 2:7-7")
    assert refused(history, op).reason is Reason.OVERLAP
    assert shown(history) == "0:0-3 2:7-7"


def test_fork_copy_save_and_restore_work_inside_a_transaction() -> None:
    ops = (Fork(0, 1, 2), Save(1, "a"), Copy(0, 1, 2, 4), Restore(2, "a"), Reset(0))
    applied = apply(given("0:0-5"), Transaction(ops))
    assert shown(applied.history) == "1:0-3 2:0-1"
    assert [effect.inner for effect in applied.effects] == [0, 1, 2, 3, 4]


# effects


def kinds(applied: Applied) -> list[str]:
    return [type(effect).__name__ for effect in applied.effects]


def test_each_op_tells_what_it_did() -> None:
    history = given("0:0-9")
    for op, kind in (
        (Append(0, (10,)), Appended),
        (Remove(0, None, 2), Evicted),
        (Remove(0, 8, None), Truncated),
        (Remove(0), Evicted),
        (EvictFront(0, 2), Evicted),
        (Rewind(0, 4), Truncated),
        (Shift(0, 4), Shifted),
        (Fork(0, 1), Forked),
        (Copy(0, 1), Copied),
        (Reset(0), ResetSeq),
        (Save(0, "a"), Saved),
    ):
        applied = apply(history, op)
        assert kinds(applied) == [kind.__name__], op
        assert applied.states == (applied.history,), op
    saved = apply(history, Save(0, "a")).history
    assert kinds(apply(saved, Restore(3, "a"))) == [Restored.__name__]
    assert kinds(apply(history, Rewind(0, 10))) == []
    assert kinds(apply(history, Shift(0, 0))) == []


def test_effects_carry_their_numbers() -> None:
    history = given("0:5-14", capacity=20)
    append = apply(history, Append(0, (15, 16, 17))).effects[0]
    assert isinstance(append, Appended)
    assert (append.start, append.n, append.offset, append.extents) == (15, 3, 0, ((10, 3),))
    truncated = apply(history, Rewind(0, 8)).effects[0]
    assert isinstance(truncated, Truncated)
    assert (truncated.n_left, truncated.after.run) == (3, Run(5, 8))
    shifted = apply(history, Shift(0, -5)).effects[0]
    assert isinstance(shifted, Shifted)
    assert (shifted.delta, shifted.start, shifted.stop, shifted.whole) == (-5, 5, 15, True)
    copied = apply(history, Copy(0, 1, 6, 9)).effects[0]
    assert isinstance(copied, Copied)
    assert (copied.src, copied.dst, copied.extents) == (0, 1, ((1, 3),))
    assert (copied.onto_empty, copied.from_first) == (True, False)
    forked = apply(history, Fork(0, 1, 9)).effects[0]
    assert isinstance(forked, Forked)
    assert (forked.src, forked.dst, forked.n) == (0, 1, 4)


def test_a_middle_range_shows_as_removed_and_leaves_pieces() -> None:
    applied = apply(given("0:0-11"), middle(4, 8, -4))
    removed, shifted = applied.effects
    assert isinstance(removed, Removed)
    assert (removed.start, removed.stop, len(removed.pieces)) == (4, 8, 2)
    assert not removed.is_whole
    with pytest.raises(InvariantBroken):
        _ = removed.after
    assert isinstance(shifted, Shifted)
    assert not shifted.whole
    assert applied.states == (None, applied.history)


# the window


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8, 11, 30])
@pytest.mark.parametrize("live", [0, 1, 5, 7, 8])
def test_a_window_append_is_explicit_evictions_and_single_appends(live: int, n: int) -> None:
    before = f"0:3-{live + 2}" if live else ""
    history = given(before, window=8)
    whole = apply(history, Append(0, range(3 + live, 3 + live + n)))
    explicit = given(before)
    for position in range(3 + live, 3 + live + n):
        if explicit.of(0).n == 8:
            explicit = apply(explicit, EvictFront(0, 4)).history
        explicit = apply(explicit, Append(0, (position,))).history
    assert shown(whole.history) == shown(explicit)
    runs = [Run(3, 3 + live)] if live else []
    for effect, state in zip(whole.effects, whole.states, strict=True):
        assert state is not None
        assert effect.after == state.of(0)
        runs.append(effect.after.run)
        assert effect.after.n <= 8
        state.check()
        if isinstance(effect, Evicted):
            assert effect.n == 4
            assert runs[-2].n == 8
    told_cells = [e.n for e in whole.effects if isinstance(e, Appended)]
    assert sum(told_cells) == n


def test_a_window_above_the_capacity_never_evicts() -> None:
    history = given("0:0-9", window=16)
    assert refused(history, Append(0, range(10, 13))).reason is Reason.CAPACITY
    assert shown(apply(history, Append(0, (10, 11))).history) == "0:0-11"


def test_a_copy_keeps_the_window_too() -> None:
    history = given("0:6-11 1:0-5", window=8)
    applied = apply(history, Copy(0, 1))
    assert shown(applied.history) == "0:6-11 1:4-11"
    assert kinds(applied) == ["Copied", "Evicted", "Copied"]


@pytest.mark.parametrize(
    "sizes", [{"window": 6}, {"window": 0}, {"group_size": 0}, {"capacity": 0}]
)
def test_sizes_without_meaning_are_refused(sizes: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="given"):
        History.empty(**sizes)
