"""Every kernel on every target against its definition and its reference; cuts and rejections."""

from __future__ import annotations

import mlx.core as mx
import numpy as np
import pytest

import metal
from metal import status
from metal.kernels import KERNELS, ROUNDING
from metal.status import StatusBit
from tests.metal import matrix, oracle


@pytest.mark.parametrize(("name", "element"), matrix.pairs())
def test_kernel_gives_what_its_definition_says(name, element, target):
    assert matrix.failures(name, element, target) == [], f"seed {matrix.SEED}"


@pytest.mark.parametrize(("name", "element"), matrix.pairs())
def test_host_text_agrees_with_its_reference(name, element, host_target):
    for case in matrix.MAKERS[name](element):
        pair = [
            metal.run(name, *case.arrays, backend=backend, **case.params)
            for backend in (host_target, "cpu")
        ]
        ours, theirs = (p if isinstance(p, tuple) else (p,) for p in pair)
        for got, reference in zip(ours, theirs, strict=True):
            assert got.dtype == reference.dtype, case.label
            assert got.shape == reference.shape, case.label
            expected = matrix.wide(reference)
            if case.exact and case.kernel != "append_rows":
                assert np.array(got).tolist() == np.array(reference).tolist(), case.label
            elif not case.exact and expected.size:
                finite = np.isfinite(expected)
                scale = max(1.0, np.abs(expected[finite]).max(initial=0.0))
                rounding = 2 * ROUNDING[str(got.dtype).rsplit(".", 1)[-1]]
                bound = scale * (KERNELS[name].tolerance + rounding)
                off = np.abs(matrix.wide(got)[finite] - expected[finite]).max(initial=0.0)
                assert off <= bound, case.label


def test_table_and_matrix_name_the_same_kernels():
    assert list(matrix.MAKERS) == list(KERNELS)


# any cut of the rows gives the same bits ---------------------------------------------------------


@pytest.mark.parametrize("element", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("cut", [1, 3, 8])
def test_linear_does_not_show_where_rows_were_cut(element, cut, target):
    if target == "cpu":
        pytest.skip("the reference is a library product; the graph cuts it into tiles of rows")
    rng = matrix.generator("cuts", element)
    x = matrix.typed(rng.normal(size=(20, 600)), element)
    weight = matrix.typed(rng.normal(size=(600, 13)), element)
    whole = metal.run("linear", x, weight, backend=target)
    parts = [metal.run("linear", x[i : i + cut], weight, backend=target) for i in range(0, 20, cut)]
    assert matrix.raw_bits(whole).tolist() == matrix.raw_bits(mx.concatenate(parts)).tolist()


def test_a_row_gives_the_same_bits_alone_among_experts_and_in_any_order(target):
    if target == "cpu":
        pytest.skip("the references are library products, whose sums depend on the shape")
    rng = matrix.generator("experts")
    x = matrix.typed(rng.normal(size=(9, 600)), "float32")
    weight = matrix.typed(rng.normal(size=(4, 600, 13)), "float32")
    numbers = rng.integers(0, 4, 9)
    experts = mx.array(numbers.astype(np.int32))
    together = matrix.raw_bits(metal.run("expert_linear", x, weight, experts, backend=target))
    for row, number in enumerate(numbers.tolist()):
        alone = metal.run("linear", x[row : row + 1], weight[number], backend=target)
        assert matrix.raw_bits(alone)[0].tolist() == together[row].tolist()


@pytest.mark.parametrize("cut", [1, 4, 7])
def test_gdn_step_carries_its_state_over_any_cut(cut, target):
    rng = matrix.generator("gdn cuts")
    rows = [matrix.typed(rng.normal(size=s), "float32") for s in ((11, 2, 6), (11, 2, 6))]
    rows.append(matrix.typed(rng.normal(size=(11, 4, 5)), "float32"))
    rows += [matrix.typed(rng.random((11, 4)), "float32") for _ in range(2)]
    state = matrix.typed(rng.normal(size=(4, 6, 5)), "float32")
    whole, last = metal.run("gdn_step", *rows, state, backend=target)
    outs = []
    for i in range(0, 11, cut):
        part = [row[i : i + cut] for row in rows]
        out, state = metal.run("gdn_step", *part, state, backend=target)
        outs.append(out)
    assert matrix.raw_bits(mx.concatenate(outs)).tolist() == matrix.raw_bits(whole).tolist()
    assert matrix.raw_bits(state).tolist() == matrix.raw_bits(last).tolist()


@pytest.mark.parametrize("cut", [1, 3, 5])
def test_scores_and_attention_do_not_show_the_cut(cut, target):
    if target == "cpu":
        pytest.skip("the reference uses library products, whose sums depend on the shape")
    rng = matrix.generator("attention cuts")
    n, heads, dim, size = 14, 4, 16, 4
    queries = matrix.typed(rng.normal(size=(n, heads, dim)), "float32")
    keys = matrix.typed(rng.normal(size=(n, 2, dim)), "float32")
    values = matrix.typed(rng.normal(size=(n, 2, dim)), "float32")
    pooled = matrix.typed(rng.normal(size=(n // size, dim)), "float32")
    cosines, sines = matrix.angles(rng, n, 4)

    def attend(begin: int, end: int) -> tuple[mx.array, mx.array]:
        tables = (cosines[:end], sines[:end])
        scores = metal.run(
            "index_scores",
            queries[begin:end],
            pooled[: end // size],
            *tables,
            n_keys=end,
            group_size=size,
            backend=target,
        )
        chosen = metal.run("select_groups", scores, topk=2, backend=target)
        arrays = (queries[begin:end], keys[:end], *tables, chosen)
        found = metal.run("attention_scores", *arrays, group_size=size, backend=target)
        arrays = (found, values[:end], chosen)
        out = metal.run("indexed_attention", *arrays, group_size=size, backend=target)
        return chosen, out

    chosen, whole = attend(0, n)
    parts = [attend(i, min(i + cut, n)) for i in range(0, n, cut)]
    assert mx.concatenate([c for c, _ in parts]).tolist() == chosen.tolist()
    joined = mx.concatenate([out for _, out in parts])
    assert matrix.raw_bits(joined).tolist() == matrix.raw_bits(whole).tolist()


# a hole is refused by the kernel, not only by the host -------------------------------------------


@pytest.mark.parametrize("size", [1, 2, 4, 7])
@pytest.mark.parametrize("first", [0, 5, 2**31 - 40])
def test_hole_behind_the_hosts_back_is_refused(size, first, target):
    """The host validated the run; then the private array of positions is edited."""
    n = 3 * size + size - 1
    plan = matrix.good_plan(first, n, size)
    assert oracle.coverage(n, plan["starts"], plan["tail_start"], size).tolist() == [1] * n
    private = np.array(plan["positions"], np.int32)
    for row in range(n):
        # one row loses its position; every offset of every group and of the tail has its turn
        edited = private.copy()
        edited[row] = private[row] - 1 if row == n - 1 and row else private[row] + 1
        arrays = [mx.array(a.astype(np.int32)) for a in (edited, plan["starts"], plan["anchors"])]
        word, part = metal.run(
            "group_status",
            *arrays,
            tail_start=plan["tail_start"],
            frontier=plan["frontier"],
            group_size=size,
            backend=target,
        )
        verdict = status.decode(int(word.item()), int(part.item()), len(plan["starts"]))
        assert verdict, f"row {row}"
        assert verdict.unknown == 0
        assert verdict.part in (row // size, row // size + 1)
        if 0 < row < n - 1:
            assert StatusBit.HOLE in verdict.bits, f"row {row}"


def test_status_reference_stays_in_the_graph():
    """A reference must not read anything back: it has to work on arrays not yet evaluated."""
    plan = matrix.good_plan(3, 10, 4)
    lazy = [mx.array(plan[k].astype(np.int32)) + 0 for k in ("positions", "starts", "anchors")]
    calls = []
    kept = mx.eval
    try:
        mx.eval = lambda *a: calls.append(a)
        word, _ = metal.run(
            "group_status", *lazy, tail_start=8, frontier=12, group_size=4, backend="cpu"
        )
    finally:
        mx.eval = kept
    assert calls == []
    assert word.item() == 0
