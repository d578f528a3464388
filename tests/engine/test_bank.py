"""Two banks: a catch-up forgets nothing, and an append really copies nothing but its rows."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import mlx.core as mx
import numpy as np
import pytest

from engine.bank import Bank, BankPair, _merged
from engine.engine import Engine, append
from engine.errors import InvariantBroken
from engine.ops import EvictFront, Fork, Op, Reset, Restore, Rewind, Save, Shift
from tests.helpers.engines import batch, content, good, prompt, session

TOKENS = prompt(n=300)
LIFE: tuple[Op, ...] = (
    append(0, 3, TOKENS[:70]),
    append(1, 0, TOKENS[5:22]),
    append(0, 73, TOKENS[70:75]),
    Save(0, "slot"),
    batch(Fork(0, 2, 40), append(2, 40, [5, 6, 7]), append(1, 17, [1])),
    EvictFront(2, 3),
    EvictFront(1, 4),
    Rewind(0, 70),
    append(0, 70, TOKENS[100:250]),
    Shift(2, 50),
    Restore(1, "slot"),
    Reset(0),
    append(0, 9, TOKENS[:20]),
)


def caught_up(engine: Engine) -> Bank:
    """The private bank after a catch-up and nothing else."""
    private = engine.pair.private_bank
    private.catch_up(engine.pair.public_bank)
    private.evaluate()
    return private


@pytest.mark.parametrize("mode", ["inspect", "fast"])
def test_a_catch_up_forgets_nothing(mode: str) -> None:
    """From the bytes, cell by cell, after every kind of op; also when it is done twice."""
    engine = session(mode=mode)
    for op in (*LIFE, None):
        engine.compact() if op is None else good(engine, op)
        public = content(engine.pair.public_bank)
        assert content(engine.pair.private_bank) != public or op is None
        private = caught_up(engine)
        assert content(private) == public, op
        assert private.digests(recompute=True) == engine.digests()
        assert {k: [c.count for c in v] for k, v in private.checkpoints.items()} == {
            k: [c.count for c in v] for k, v in engine.pair.public_bank.checkpoints.items()
        }
        assert content(caught_up(engine)) == public
        engine.pair.compare()


def test_a_catch_up_copies_only_what_changed() -> None:
    """Rows that the last transaction did not touch are left as they are, good or bad."""
    engine = session(mode="fast")
    good(engine, append(0, 0, TOKENS[:40]))
    caught_up(engine)
    good(engine, append(0, 40, TOKENS[40:44]))
    private = engine.pair.private_bank
    for owner in private.positional():
        for place, table in owner.tables.items():
            if owner.name == "qsa.kv":
                table[3] = mx.full(table.shape[1:], 5.0, table.dtype)
                owner.tables[place] = table
    private.evaluate()
    caught_up(engine)
    kv: Any = private.owners["qsa.kv"]
    public: Any = engine.pair.public_bank.owners["qsa.kv"]
    for place in kv.tables:
        mine, theirs = np.array(kv.tables[place]), np.array(public.tables[place])
        different = np.flatnonzero((mine != theirs).any(axis=(1, 2)))
        assert different.tolist() == [3]
    with pytest.raises(InvariantBroken, match=r"qsa\.kv"):
        engine.pair.compare()


@pytest.mark.parametrize("mode", ["inspect", "fast"])
def test_an_append_does_not_copy_the_bank(mode: str) -> None:
    """Peak memory of a chunk is far below one table when the tables are large."""
    engine = session(mode=mode, capacity=1 << 20, prove="failures")
    good(engine, append(0, 0, TOKENS[:8]))
    good(engine, append(0, 8, TOKENS[8:12]))
    for bank in engine.pair.banks:
        for owner in bank.positional():
            owner.ensure(400_000)
        bank.evaluate()
    tables = engine.pair.public_bank.owners["qsa.kv"]
    assert isinstance(tables.n_bytes(), int)
    one = min(t.nbytes for t in tables.tables.values())  # type: ignore[attr-defined]
    assert one > 40 << 20
    for at in (12, 16, 20):
        mx.synchronize()
        mx.clear_cache()
        mx.reset_peak_memory()
        active = mx.get_active_memory()
        good(engine, append(0, at, TOKENS[at : at + 4]))
        assert mx.get_peak_memory() - active < one // 4


def test_a_failed_attempt_keeps_the_tables_in_place() -> None:
    """After a failure before an evaluation nothing is made anew either."""
    engine = session(mode="fast", prove="failures")
    good(engine, append(0, 0, TOKENS[:8]))
    good(engine, append(0, 8, TOKENS[8:12]))
    engine.begin(append(0, 12, [1, 2]))
    for _ in range(9):
        engine.step()
    engine.discard()
    private = engine.pair.private_bank
    assert not private.spoiled
    assert private.touched.cells
    good(engine, append(0, 12, [1, 2]))
    assert not engine.pair.public_bank.touched.cells


def test_extents_are_merged() -> None:
    seed = 2
    print("seed", seed)
    random = np.random.default_rng(seed)
    for _ in range(200):
        extents = [
            (int(a), int(n))
            for a, n in zip(random.integers(0, 40, 9), random.integers(1, 8, 9), strict=True)
        ]
        merged = _merged(extents)
        cells = sorted({c for a, n in extents for c in range(a, a + n)})
        assert [c for a, n in merged for c in range(a, a + n)] == cells
        assert all(a + n < b for (a, n), (b, _) in pairwise(merged))


def test_one_integer_chooses_the_bank() -> None:
    engine = session()
    pair = engine.pair
    first, second = pair.banks
    assert (pair.public_bank, pair.private_bank) == (first, second)
    pair.flip()
    assert pair.public == 1
    assert pair.public_bank is second
    assert pair.private_bank is first
    assert BankPair.__slots__ == ("banks", "public")
