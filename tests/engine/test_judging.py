"""Probes lead to values, and the values decide."""

from __future__ import annotations

from types import SimpleNamespace

import mlx.core as mx
import numpy as np
import pytest

from engine.errors import StepFailed
from engine.judging import Flag, first_bad, is_finite, judge_values, probe_of, sentence_of
from engine.stage import GroupCheck, Stage
from engine.terms import FailKind
from metal.status import SENTENCES, StatusBit


@pytest.mark.parametrize(("value", "kind"), [(np.nan, "NaN"), (np.inf, "+Inf"), (-np.inf, "-Inf")])
@pytest.mark.parametrize("dtype", [mx.float32, mx.float16, mx.bfloat16])
def test_a_probe_is_finite_exactly_when_the_values_are(
    value: float, kind: str, dtype: mx.Dtype
) -> None:
    rows = np.ones((5, 3), np.float32)
    assert is_finite(probe_of(mx.array(rows).astype(dtype)))
    rows[3, 1], rows[4, 0] = value, np.nan
    assert not is_finite(probe_of(mx.array(rows).astype(dtype)))
    found = first_bad(rows, "qsa.kv", 2, 100)
    assert (found.kind, found.owner, found.seq) == (kind, "qsa.kv", 2)
    assert (found.position, found.index) == (103, (3, 1))


def test_infinities_of_both_signs_do_not_cancel() -> None:
    assert not is_finite(probe_of(mx.array([np.inf, -np.inf, 0.0])))


def flag(
    values: np.ndarray, n_rows: int, n_tokens: int, lead: int, whole: tuple[str, ...] = ()
) -> Flag:
    step = SimpleNamespace(
        n_rows=n_rows,
        n_tokens=n_tokens,
        positions=np.arange(50, 50 + n_tokens),
        live=lambda padded: padded[lead : lead + n_tokens],
    )
    array = mx.array(values)
    floats, keeps = ("streams",), (("streams", "gdn.recurrent"),)
    stage = Stage("layer.1.gdn", print, (), (), floats, "", whole=whole, keeps=keeps)
    return Flag(stage, (probe_of(array),), (("streams", array),), step, 7)  # type: ignore[arg-type]


def test_a_sum_that_overflows_refuses_nothing() -> None:
    high = flag(np.full((4, 8), 3e38, np.float32), 4, 4, 0)
    assert not is_finite(high.probes[0])
    judge_values(high)


def test_positions_leave_the_padding_out() -> None:
    rows = np.zeros((8, 2), np.float32)
    rows[3, 1] = np.nan
    with pytest.raises(StepFailed) as failure:
        judge_values(flag(rows, n_rows=8, n_tokens=4, lead=2))
    error = failure.value
    assert (error.stage, error.kind, error.seq) == ("layer.1.gdn", FailKind.NONFINITE, 7)
    assert error.bad is not None
    assert (error.bad.position, error.bad.owner) == (51, "gdn.recurrent")


@pytest.mark.parametrize(("n_rows", "n_tokens"), [(8, 4), (8, 8), (16, 8)])
def test_a_state_is_looked_at_whole_whatever_its_first_axis_is(n_rows: int, n_tokens: int) -> None:
    """As many heads as rows, or as tokens: a head is no row of a token and has no position."""
    heads = np.zeros((8, 2), np.float32)
    heads[7, 1] = np.nan
    with pytest.raises(StepFailed) as failure:
        judge_values(flag(heads, n_rows, n_tokens, lead=0, whole=("streams",)))
    assert failure.value.bad is not None
    assert (failure.value.bad.position, failure.value.bad.index) == (None, (7, 1))
    assert "at position" not in failure.value.detail


def check(word: int, part: int, first_position: int = 0, n: int = 8, group: int = 0) -> GroupCheck:
    return GroupCheck(mx.array(word, mx.uint32), lambda: part, first_position, n, 4, group)


def test_every_bit_of_a_status_word_has_its_sentence() -> None:
    word = int(StatusBit.HOLE | StatusBit.FRONTIER)
    both = f"{SENTENCES[StatusBit.HOLE]}; {SENTENCES[StatusBit.FRONTIER]}"
    assert sentence_of(word, check(word, -1)) == both
    assert sentence_of(1 << 30, check(1 << 30, -1)) == "bits 0x40000000"


@pytest.mark.parametrize(
    ("part", "n", "where"),
    [
        (0, 11, "group 6, positions 109 to 112"),
        (1, 11, "group 7, positions 113 to 116"),
        (2, 11, "the tail, positions 117 to 119"),
        (2, 8, "the tail, which is empty"),
    ],
)
def test_a_verdict_names_the_first_group_in_the_numbers_of_the_run(
    part: int, n: int, where: str
) -> None:
    found = sentence_of(1, check(1, part, 109, n, 6))
    assert found == f"{SENTENCES[StatusBit.HOLE]}; first in {where}"
