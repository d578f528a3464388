"""Random lives: every op of a session mixed, with failures in between, is the same as fresh."""

from __future__ import annotations

import os
from collections import Counter
from copy import deepcopy

import pytest

from engine.checks import run_check
from engine.engine import append
from engine.ops import EvictFront, Fork, Reset, Restore, Rewind, Save, Shift
from tests.helpers.engines import batch, good, prompt, public, session
from tests.helpers.lives import Ops, World, agrees, told

SEED = int(os.environ.get("BANKFLIP_SEED", "20261129"))
LIVES = (
    # golden model, mode, window, lives of the short and the long profile
    ("qwen4exp-tiny", "fast", None),
    ("qwen4exp-mixed", "fast", 24),
    ("qwen4exp-mixed", "inspect", None),
)
N_OPS = 150 // len(LIVES)


@pytest.mark.parametrize(("name", "mode", "window"), LIVES)
def test_a_random_life_is_the_same_as_fresh(
    name: str, mode: str, window: int | None, long_profile: bool
) -> None:
    for life in range(12 if long_profile else 1):
        seed = SEED + life * 100 + LIVES.index((name, mode, window))
        print("seed", seed)
        live(name, mode, window, seed, N_OPS)


def live(name: str, mode: str, window: int | None, seed: int, n_ops: int) -> Counter[str]:
    """One life; everything is compared after every op, the bytes of a fresh one now and then."""
    engine = session(name, mode=mode, window=window, audit_each=True)
    vocab = engine.model.config.vocab_size if engine.model else 1
    ops, world, earlier = Ops(seed, vocab), World(window), World(window)
    seen: Counter[str] = Counter()
    log: list[str] = []
    for n in range(n_ops):
        choice = ops.random.random()
        if choice < 0.06:
            result = engine.undo()
            if not isinstance(result, str):
                world, earlier = earlier, world
            seen["undo" if not isinstance(result, str) else "no undo"] += 1
            log.append(f"undo: {result if isinstance(result, str) else 'done'}")
        elif choice < 0.1:
            engine.compact()
            earlier = deepcopy(world)
            log.append("compact")
        else:
            op = ops.op(world)
            engine.faults[:] = [ops.fault(engine)] if ops.random.random() < 0.25 else []
            record = engine.apply(op)
            engine.faults.clear()
            seen[f"{op.name} {record.outcome}"] += 1
            log.append(told(record))
            if record.outcome == "ok":
                earlier = deepcopy(world)
                world.do(op)
        wrong = agrees(engine, world)
        assert not wrong, (seed, wrong, log[-6:])
        engine.audit()
        if n % 8 == 7 or n == n_ops - 1:
            result = run_check(engine, "same-as-fresh")
            assert result.ok, (seed, result.sentence, log[-12:])
    return seen


@pytest.mark.parametrize("mode", ["inspect", "fast"])
def test_every_published_op_can_be_undone(mode: str) -> None:
    """The other bank holds the earlier state, whatever kind of op came before."""
    engine = session(mode=mode)
    tokens = prompt(n=80)
    for op in (
        append(0, 0, tokens),
        # as many rows as before, and other ones
        batch(Rewind(0, 60), append(0, 60, list(range(20)))),
        Save(0, "a"),
        EvictFront(0, 4),
        Shift(0, 3),
        Fork(0, 1),
        Reset(1),
        Restore(1, "a"),
        append(0, 83, [1, 2]),
    ):
        before, digests = public(engine), engine.digests()
        good(engine, op)
        engine.audit()
        record = engine.undo()
        assert not isinstance(record, str), (op, record)
        assert (public(engine), engine.digests()) == (before, digests)
        assert isinstance(engine.undo(), str)
        good(engine, op)
    before = public(engine)
    engine.compact()
    assert not isinstance(engine.undo(), str)
    assert public(engine) == before
