"""The history as an owner: runs in the digest, ordinals for the device, origins for padding."""

from __future__ import annotations

import mlx.core as mx
import numpy as np

from engine.engine import Engine, append
from engine.ops import EvictFront, Fork, Reset, Save, Shift
from engine.owners.history import ORDINAL
from tests.helpers.engines import good, prompt, session


def ordinals(engine: Engine, key: int) -> list[int]:
    bank = engine.pair.public_bank
    cells = [c for first, n in bank.look(key).extents for c in range(first, first + n)]
    return np.array(mx.take(bank.history.tables[ORDINAL], mx.array(cells))).tolist()


def test_ordinals_are_consumed_indexes_whatever_the_positions() -> None:
    engine = session(mode="fast")
    good(engine, append(0, 1000, prompt(n=20)))
    assert ordinals(engine, 0) == list(range(20))
    good(engine, EvictFront(0, 3))
    good(engine, Shift(0, 500))
    good(engine, Fork(0, 1))
    good(engine, append(0, 1520, [1, 2]))
    good(engine, append(1, 1520, [3]))
    assert ordinals(engine, 0) == list(range(3, 22))
    assert ordinals(engine, 1) == list(range(3, 21))
    good(engine, EvictFront(1, 2))
    engine.compact()
    assert ordinals(engine, 0) == list(range(3, 22))
    assert ordinals(engine, 1) == list(range(5, 21))


def test_padding_and_evicted_are_told_apart() -> None:
    for engine in (session(mode="fast"), Engine(None)):
        good(engine, append(0, 7, [1] * 20))
        good(engine, EvictFront(0, 4))
        view = engine.snapshot().sequences[0]
        assert (view.start, view.evicted, view.padding) == (11, 4, 7)
        good(engine, Save(0, "slot"))
        good(engine, Fork(0, 1))
        twin = engine.snapshot().sequences[1]
        assert (twin.start, twin.evicted, twin.padding) == (11, 4, 7)
        good(engine, Reset(0))
        good(engine, append(0, 2, [1]))
        view = engine.snapshot().sequences[0]
        assert (view.start, view.evicted, view.padding) == (2, 0, 2)


def test_a_run_is_in_the_digest() -> None:
    seen = set()
    for start in (0, 1, 5):
        engine = Engine(None)
        good(engine, append(0, start, [0] * 9))
        seen.add(dict(engine.digests())["history"])
    assert len(seen) == 3
    with_model = session()
    good(with_model, append(0, 0, [1, 2]))
    before = dict(with_model.digests())
    good(with_model, Shift(0, 1))
    after = dict(with_model.digests())
    assert {k for k in before if before[k] != after[k]} == {"history", "tokens"}
