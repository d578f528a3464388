"""Random lives: every op of a session mixed, with failures in between, is the same as fresh."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path

import pytest

from engine import load_session, save_session
from engine.checks import run_check
from engine.engine import Engine, append
from engine.faults import Fault
from engine.ops import EvictFront, Fork, Reset, Restore, Rewind, Save, Shift
from engine.terms import FailKind, TxnStage
from tests.helpers import golden
from tests.helpers.engines import batch, good, prompt, public, session
from tests.helpers.lives import Ops, World, agrees, told

SEED = int(os.environ.get("BANKFLIP_SEED", "20261129"))
LIVES = (
    # golden model, dtype, mode, window
    ("qwen4exp-tiny", None, "fast", None),
    ("qwen4exp-mixed", None, "fast", 24),
    ("qwen4exp-mixed", None, "inspect", None),
    ("qwen4exp-mixed", "bfloat16", "fast", None),
)
N_OPS = 160 // len(LIVES)


@pytest.mark.parametrize("number", range(len(LIVES)), ids=[str(life) for life in LIVES])
def test_a_random_life_is_the_same_as_fresh(
    number: int, long_profile: bool, tmp_path: Path
) -> None:
    name, dtype, mode, window = LIVES[number]
    for life in range(12 if long_profile else 1):
        seed = SEED + life * 100 + number
        print("seed", seed)
        settings = {"name": name, "mode": mode, "window": window, "audit_each": True}
        live(lambda s=settings: Engine(golden.model(name, dtype), **s), seed, N_OPS, tmp_path)


def live(make: Callable[[], Engine], seed: int, n_ops: int, folder: Path) -> Counter[str]:
    """One life; everything is compared after every op, the bytes of a fresh one now and then."""
    engine = make()
    window = engine.pair.public_bank.history.value.window
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
        elif choice < 0.13:
            digests = engine.digests()
            save_session(engine, folder / "life")
            engine = make()
            load_session(engine, folder / "life")
            assert engine.digests() == digests, (seed, log[-6:])
            log.append("saved and loaded in a new session")
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


@pytest.mark.parametrize("mode", ["inspect", "fast"])
def test_a_compaction_that_fails_moves_nothing(mode: str) -> None:
    """At every stage in every way; the moves overlap cells that others still hold."""
    engine = session(mode=mode, audit_each=True)
    for seq in (0, 1, 2):
        good(engine, append(seq, 0, prompt(n=30)))
    good(engine, Fork(1, 3, 11))
    good(engine, Save(1, "a"))
    good(engine, Reset(0))
    good(engine, EvictFront(1, 9))
    before, digests = public(engine), engine.digests()
    for kind in FailKind:
        for stage in (s for s in TxnStage if s is not TxnStage.LOAD):
            engine.faults[:] = [Fault(stage, kind)]
            record = engine.compact()
            assert (record.outcome != "ok", record.op) == (True, "compact"), (kind, stage)
            assert (public(engine), engine.digests()) == (before, digests)
    engine.faults.clear()
    n_cells = engine.snapshot().n_cells
    assert engine.compact().outcome == "ok"
    assert engine.snapshot().n_cells < n_cells
    assert (public(engine), engine.digests()) == (before, digests)
    good(engine, append(2, 30, [1, 2, 3]))
    assert run_check(engine, "same-as-fresh").ok


def test_a_compaction_waits_for_the_open_transaction() -> None:
    engine = session(mode="inspect")
    good(engine, append(0, 0, [1, 2]))
    engine.begin(append(0, 2, [3]))
    engine.step()
    record = engine.compact()
    assert record.result == "rejected: busy"
    assert engine.finish().outcome == "ok"
    assert engine.compact().outcome == "ok"
