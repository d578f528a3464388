"""Nothing unevaluated becomes public: what the library could still refuse is refused before."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import mlx.core as mx
import pytest

from engine.engine import Engine, append
from engine.faults import unfinished
from engine.ops import EvictFront, Fork, Remove, Reset, Restore, Rewind, Save, Shift
from engine.owners.positional import PositionalOwner
from engine.snapshot import Record
from engine.work import Worker
from tests.helpers.engines import batch, good, prompt, public, session

Act = Callable[[Engine], Record]
ACTS: dict[str, Act] = {
    "append": lambda e: e.apply(append(0, 200, [1, 2, 3])),
    "prompt": lambda e: e.apply(append(0, 200, prompt(n=200), 200)),
    "evict": lambda e: e.apply(EvictFront(0, 3)),
    "remove": lambda e: e.apply(Remove(0, 190, 200)),
    "rewind": lambda e: e.apply(Rewind(0, 150)),
    "shift": lambda e: e.apply(Shift(0, 7)),
    "fork": lambda e: e.apply(Fork(0, 3)),
    "save": lambda e: e.apply(Save(0, "b")),
    "restore": lambda e: e.apply(Restore(2, "a")),
    "reset": lambda e: e.apply(Reset(0)),
    "batch": lambda e: e.apply(batch(EvictFront(0, 1), Fork(0, 3), append(3, 200, [5]))),
    "compact": lambda e: e.compact(),
    "undo": lambda e: undone(e),
}


def undone(engine: Engine) -> Record:
    good(engine, append(0, 200, [1, 2, 3]))
    record = engine.undo()
    assert not isinstance(record, str)
    return record


def ready(mode: str, spoiled: bool) -> Engine:
    """Two sequences and a slot, and free cells before the first one's."""
    engine = session(mode=mode, prove="failures")
    good(engine, append(1, 0, prompt(n=100)))
    good(engine, append(0, 0, prompt(n=200)))
    good(engine, append(2, 0, prompt(n=9)))
    good(engine, Save(2, "a"))
    good(engine, Reset(2))
    good(engine, Reset(1))
    engine.pair.private_bank.spoiled = spoiled
    return engine


@pytest.mark.parametrize("spoiled", [False, True])
@pytest.mark.parametrize("mode", ["inspect", "fast"])
@pytest.mark.parametrize("act", ACTS)
def test_published_arrays_need_no_evaluation(act: str, mode: str, spoiled: bool) -> None:
    """By the library's own account: evaluating all of them again allocates nothing."""
    engine = ready(mode, spoiled)
    record = ACTS[act](engine)
    assert record.outcome == "ok", record.sentence
    gc.collect()
    mx.synchronize()
    mx.clear_cache()
    mx.reset_peak_memory()
    active = mx.get_active_memory()
    mx.eval([a for owner in engine.pair.public_bank.owners.values() for a in owner.arrays()])
    assert mx.get_peak_memory() <= active


@pytest.mark.parametrize("spoiled", [False, True])
@pytest.mark.parametrize("mode", ["inspect", "fast"])
def test_compaction_that_cannot_be_evaluated_is_refused(
    mode: str, spoiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = ready(mode, spoiled)
    before = public(engine)
    move, write = Worker._move, PositionalOwner.write

    def bad(owner: Any, place: Any, extents: Any, rows: mx.array) -> None:
        if owner.name == "qsa.kv":
            rows = rows + unfinished()[0, 0].astype(rows.dtype)
        write(owner, place, extents, rows)

    def moved(worker: Worker, effect: Any) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(PositionalOwner, "write", bad)
            move(worker, effect)

    with monkeypatch.context() as patch:
        patch.setattr(Worker, "_move", moved)
        record = engine.compact()
    assert (record.outcome, record.kind) == ("failed", "command"), record.sentence
    assert public(engine) == before
    assert engine.compact().outcome == "ok"
    assert public(engine) == before
    engine.audit()
