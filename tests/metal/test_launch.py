"""What a call must be given, and the sizes that it is planned with."""

from __future__ import annotations

import mlx.core as mx
import pytest

import metal
from metal import launch
from metal.kernels import KERNELS
from metal.launch import MAX_INT32, PART
from tests.metal import matrix


def test_unknown_names_are_refused_with_what_was_expected():
    with pytest.raises(ValueError, match="kernel: expected one of group_status"):
        metal.run("nothing", backend="cpu")
    with pytest.raises(ValueError, match="backend: expected one of"):
        metal.run("linear", mx.zeros((1, 1)), mx.zeros((1, 1)), backend="tpu")


@pytest.mark.parametrize(
    ("name", "arrays", "params", "words"),
    [
        ("linear", ((2, 3), (4, 5)), {}, "depth of weight: expected 3, given 4"),
        ("pool_groups", ((4, 2),), {"group_size": 0}, "group_size: expected 1 to"),
        ("append_rows", ((4, 2), (2, 2)), {"at": 3}, "rows: expected within 0..4"),
        ("append_rows", ((4, 2), (2, 3)), {"at": 0}, "shape of a row"),
        ("select_groups", ((4,),), {"topk": 1}, "axes of scores: expected 2"),
        ("select_groups", ((4, 1),), {"topk": -1}, "topk: expected 0 to"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(name, arrays, params, words):
    made = [mx.zeros(shape) for shape in arrays]
    with pytest.raises(ValueError, match=words):
        metal.run(name, *made, backend="cpu", **params)


def test_wrong_types_are_refused():
    with pytest.raises(ValueError, match="linear: expected one of float32"):
        metal.run("linear", mx.zeros((1, 1), mx.int32), mx.zeros((1, 1), mx.int32), backend="cpu")
    with pytest.raises(ValueError, match="type of weight: expected float32, given float16"):
        metal.run("linear", mx.zeros((1, 1)), mx.zeros((1, 1), mx.float16), backend="cpu")


@pytest.mark.parametrize(("name", "element"), matrix.pairs())
def test_every_plan_fits_its_line_in_the_table(name, element):
    kernel = KERNELS[name]
    for case in matrix.MAKERS[name](element):
        plan = kernel.plan(*case.arrays, **case.params)
        assert len(plan.inputs) == len(kernel.types), case.label
        assert len(plan.shapes) == len(plan.dtypes) == len(kernel.outputs), case.label
        assert plan.dtypes == tuple(kernel.outputs.values()), case.label
        assert all(0 <= n <= MAX_INT32 for n in plan.grid), case.label
        assert all(-1 <= n <= MAX_INT32 for n in plan.params), case.label
        generic = "T" in kernel.types.values()
        assert generic == (plan.element is not None), case.label
        if plan.element is not None:
            assert list(kernel.types.values())[plan.element] == "T", case.label


@pytest.mark.parametrize(
    ("depth", "parts"), [(0, 1), (1, 1), (PART, 1), (PART + 1, 2), (3 * PART, 3)]
)
def test_the_order_of_a_sum_follows_from_its_depth_alone(depth, parts):
    plans = [launch.linear(mx.zeros((n, depth)), mx.zeros((depth, 2))) for n in (1, 8, 9, 64)]
    assert {plan.shapes[0][0] for plan in plans} == {parts}
    assert {plan.params[3] for plan in plans} == {PART}


@pytest.mark.parametrize("frontier", [-2, 2**31])
def test_positions_beyond_int32_are_refused(frontier):
    none = mx.zeros((0,), mx.int32)
    with pytest.raises(ValueError, match="frontier: expected -1 to 2147483647"):
        launch.group_status(none, none, none, tail_start=0, frontier=frontier, group_size=4)
