"""Ids and lineages: shared as values, hashed by definition."""

from __future__ import annotations

import numpy as np
import pytest

from engine.digest import BLOCK_TOKENS
from engine.lineage import Lineage
from engine.owner import Changes, Look, Mark, OwnerSpec
from engine.owners.tokens import TokenOwner
from tests.helpers.digests import blocks
from tests.helpers.engines import told


def owner() -> TokenOwner:
    return TokenOwner(OwnerSpec("tokens", TokenOwner, unit="position"), {})


def look(consumed: int, evicted: int = 0) -> Look:
    return Look(0, consumed - evicted, consumed, 0, (), 4)


def packed(ids: list[int]) -> bytes:
    return blocks(0, BLOCK_TOKENS, [np.array([i], "<i8").tobytes() for i in ids])


def test_an_unknown_key_has_consumed_nothing() -> None:
    made = owner()
    assert told(made.of(3)) == ((), ())
    assert made.n_bytes() == 0


def test_hashes_follow_appends_evictions_and_ways_back() -> None:
    made, ids = owner(), list(range(100, 170))
    line = Lineage.empty().appended(5, ids)
    for dirty, new in (
        (0, line),
        (70, line.appended(75, [1, 2, 3])),
        (73, line.appended(75, [1, 2, 3]).with_event("evict", 9)),
        (10, line.clipped(10)),
    ):
        made.write(0, new)
        at = {0: look(new.consumed, new.evicted)}
        assert made.prepare(at, Changes([], {0: dirty})) == []
        made.seal()
        expected = [((0, *new.numbers()), packed(new.log.slice(0, new.consumed).tolist()))]
        assert made.parts(at) == made.audit(at) == expected
        assert made.marks[0] == Mark(new.consumed, new.log.hash)
        assert made.n_bytes() == 8 * new.consumed


@pytest.mark.parametrize("spoiled", [False, True])
def test_becoming_equal_to_the_public_owner(spoiled: bool) -> None:
    public, private = owner(), owner()
    public.write(0, Lineage.empty().appended(0, [1, 2]))
    private.write(1, Lineage.empty().appended(0, [3]))
    if spoiled:
        private.remake(public)
    else:
        private.catch_up(public, Changes([], {0: 0, 1: 0}))
    assert private.lineages == public.lineages
    assert private.marks == public.marks
    private.write(0, Lineage.empty())
    assert told(public.of(0))[0] == (1, 2)


def test_copies_and_what_is_gone() -> None:
    made = owner()
    made.write(0, Lineage.empty().appended(0, [1, 2]))
    made.copy(0, "slot")
    made.write(0, made.of(0).appended(2, [3]))
    assert told(made.of("slot"))[0] == (1, 2)
    made.copy(9, 0)
    assert told(made.of(0)) == ((), ())
    made.drop("slot")
    assert (made.lineages, made.marks) == ({}, {})
