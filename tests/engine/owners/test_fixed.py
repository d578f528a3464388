"""Values of fixed size: replaced, never written into, so that both banks may hold the same."""

from __future__ import annotations

from typing import Any

import mlx.core as mx
import numpy as np
import pytest

from engine.owner import Changes, Look, Mark, OwnerSpec
from engine.owners.fixed import FixedOwner
from engine.owners.layout import PartLayout
from tests.helpers.digests import xxh128

LAYOUT = {
    "state": (PartLayout(0, "", (2,), mx.float32), PartLayout(2, "", (2,), mx.float32)),
}


def owner() -> FixedOwner:
    return FixedOwner(OwnerSpec("state", FixedOwner, unit="sequence"), LAYOUT)


def look(key: Any, consumed: int) -> Look:
    return Look(key, consumed, consumed, 0, (), 4)


def test_a_copy_shares_and_stays_itself() -> None:
    made = owner()
    made.write(0, 0, mx.array([1.0, 2.0]))
    made.write(0, 2, mx.array([3.0, 4.0]))
    made.mark(0, Mark(5, 9))
    made.copy(0, "slot")
    assert made.get("slot", 0) is made.get(0, 0)
    made.write(0, 0, mx.array([7.0, 7.0]))
    assert made.get("slot", 0).tolist() == [1.0, 2.0]  # type: ignore[union-attr]
    assert made.marks["slot"] == Mark(5, 9)
    made.copy("nothing", 0)
    assert made.get(0, 0) is None
    assert 0 not in made.marks
    made.drop("slot")
    assert made.arrays() == []


@pytest.mark.parametrize("spoiled", [False, True])
def test_becoming_equal_to_the_public_owner(spoiled: bool) -> None:
    public, private = owner(), owner()
    public.write(0, 0, mx.array([1.0, 2.0]))
    public.mark(0, Mark(3, 3))
    private.write(1, 0, mx.array([9.0, 9.0]))
    private.mark(1, Mark(1, 1))
    if spoiled:
        private.remake(public)
    else:
        private.catch_up(public, Changes([], {0: 0, 1: 0}))
    assert private.values.keys() == {0}
    assert private.get(0, 0) is public.get(0, 0)
    assert private.marks == public.marks
    private.write(0, 0, mx.zeros((2,)))
    private.write(3, 0, mx.zeros((2,)))
    assert public.get(0, 0).tolist() == [1.0, 2.0]  # type: ignore[union-attr]
    assert public.get(3, 0) is None


def test_going_back_replaces_everything() -> None:
    made = owner()
    made.write(0, 0, mx.array([1.0, 2.0]))
    kept = {2: mx.array([5.0, 6.0])}
    made.replace(0, kept)
    assert made.get(0, 0) is None
    made.write(0, 0, mx.zeros((2,)))
    assert kept.keys() == {2}
    made.replace(0, {})
    assert made.values == {}


def test_hashes_by_definition() -> None:
    made = owner()
    made.write(4, 2, mx.array([1.0, -2.0]))
    made.write(4, 0, mx.array([np.inf, 0.5]))
    mx.eval(made.prepare({4: look(4, 6)}, Changes([], {4: 0, 5: 0})))
    made.seal()
    expected = [
        ((4, layer, 6), xxh128(np.array(values, "<f4").tobytes()))
        for layer, values in ((0, [np.inf, 0.5]), (2, [1.0, -2.0]))
    ]
    assert made.parts({4: look(4, 6)}) == made.audit({4: look(4, 6)}) == expected
    assert made.parts({4: look(4, 6)}, 2) == expected[1:]
    assert made.parts({"ab": look("ab", 1)}) == []


def test_bytes_for_a_panel_and_as_they_are() -> None:
    made = owner()
    made.write(0, 0, mx.array([1.5, -2.0], mx.bfloat16))
    assert made.host(0, 0).tolist() == [1.5, -2.0]  # type: ignore[union-attr]
    assert made.bits(0, 0).tolist() == [0x3FC0, 0xC000]  # type: ignore[union-attr]
    assert made.host(0, 2) is None
    assert made.bits(1, 0) is None
    assert (made.describe(), made.layers()) == (("float32", (2,)), (0, 2))
    assert made.n_bytes() == 4
