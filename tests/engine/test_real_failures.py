"""Failures that nobody injects: bad weights, holes, small budgets, cut files, exceptions."""

from __future__ import annotations

import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import pytest

from engine import run_check, save_session
from engine.commands import ReadArray
from engine.engine import Engine, append
from engine.errors import InvariantBroken
from engine.ops import Fork
from engine.owner import Mark
from engine.owners.history import ORDINAL
from engine.reading import read_array
from engine.session_file import load_session
from engine.snapshot import Record
from engine.terms import FailKind, TxnStage
from metal.status import SENTENCES, StatusBit
from tests.helpers import golden
from tests.helpers.engines import batch, good, needed, prompt, public, session
from tests.helpers.spoil import raise_at, spoiled, weights

TINY = "qwen4exp-tiny"
MODES = ("inspect", "fast")
VALUES = {"NaN": np.nan, "+Inf": np.inf, "-Inf": -np.inf}


def failed(engine: Engine, record: Record, kind: str) -> Record:
    """The record of a failure that left everything as it was."""
    assert (record.outcome, record.kind) == ("failed", kind), record.sentence
    assert record.digests_before == record.digests_after == engine.digests()
    engine.audit()
    return record


# values that are not finite


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", VALUES)
def test_a_bad_embedding_is_named_with_sequence_and_position(kind: str, mode: str) -> None:
    bad = spoiled(golden.model(TINY), ("embed",), VALUES[kind], (7, 3))
    engine = Engine(bad, name=TINY, mode=mode, audit_each=True)
    good(engine, append(5, 100, [1, 2, 3]))
    before = public(engine)
    tokens = [4, 5, 7, 6, 7]
    record = failed(engine, engine.apply(append(5, 103, tokens)), "nonfinite")
    assert record.stage == "embed"
    assert record.bad_value == f"{kind} in embed sequence 5 position 105"
    two = batch(append(2, 0, [1]), append(5, 103, [4, 4, 4, 7]))
    record = failed(engine, engine.apply(two), "nonfinite")
    assert record.bad_value == f"{kind} in embed sequence 5 position 106"
    assert public(engine) == before
    good(engine, append(5, 103, [4, 5]))
    assert run_check(engine, "same-as-fresh").ok


OWNER_OF = {
    # weight of a layer: the stage that meets it first, and the owner that keeps the bad value as
    # it is, else the stage again
    ("qsa", "k_norm"): ("qsa.project", "qsa.kv"),
    ("qsa", "index_k_norm"): ("qsa.pool", "qsa.groups"),
    ("gdn", "conv"): ("gdn", "layer.0.gdn"),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("part", OWNER_OF)
@pytest.mark.parametrize("kind", VALUES)
def test_a_bad_weight_names_stage_and_owner(kind: str, part: tuple[str, str], mode: str) -> None:
    model = golden.model(TINY)
    layer = next(n for n, w in enumerate(model.layers) if getattr(w, part[0]) is not None)
    bad = spoiled(model, ("layers", layer, *part), VALUES[kind])
    engine = Engine(bad, name=TINY, mode=mode, audit_each=True)
    record = failed(engine, engine.apply(append(3, 50, [9, 8, 7, 6, 5])), "nonfinite")
    stage, owner = OWNER_OF[part]
    assert record.stage == f"layer.{layer}.{stage}"
    assert f"in {owner}" in record.bad_value, record.bad_value
    assert "sequence 3" in record.bad_value
    assert public(engine) == public(Engine(bad, name=TINY))


def test_every_bad_weight_is_refused_in_both_modes(long_profile: bool) -> None:
    """What inspect mode refuses stage by stage, fast mode refuses as well, at the same stage."""
    seed = 5
    print("seed", seed)
    random = np.random.default_rng(seed)
    model = golden.model(TINY)
    paths = [path for path, _ in weights(model)]
    assert len(paths) > 50
    chosen = paths if long_profile else [paths[i] for i in random.permutation(len(paths))[:10]]
    for path in chosen:
        for kind in VALUES if long_profile else [str(random.choice(list(VALUES)))]:
            found = []
            for mode in MODES:
                bad = spoiled(model, path, VALUES[kind])
                engine = Engine(bad, name=TINY, mode=mode, prove="failures")
                record = engine.apply(append(0, 0, prompt(TINY, 9)))
                found.append((record.outcome, record.stage, record.kind, record.bad_value))
                engine.audit()
            assert found[0] == found[1], (path, kind)


# a hole


def hole(engine: Engine, live_index: int) -> None:
    """Move the ordinal of one live position in the private bank's table."""
    private = engine.pair.private_bank
    look = private.look(0)
    held = look.extents or private.history.value.of(0).extents
    cells = [c for first, n in held for c in range(first, first + n)]
    private.history.write(ORDINAL, ((cells[live_index], 1),), mx.array([1000], mx.int32))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("at", "group"),
    [
        (28, "group 7, positions 68 to 71"),
        (29, "group 7, positions 68 to 71"),
        (30, "group 7, positions 68 to 71"),
        (41, "group 10, positions 80 to 83"),
        (59, "group 14, positions 96 to 99"),
    ],
)
def test_the_kernel_finds_a_hole_before_sparse_planning(mode: str, at: int, group: str) -> None:
    tokens = prompt(TINY, 60)
    engine = session(TINY, mode=mode)
    good(engine, append(0, 40, tokens[:30]))
    expected = session(TINY, mode=mode)
    good(expected, append(0, 40, tokens))
    before = public(engine)
    engine.begin(append(0, 70, tokens[30:]))
    engine.step()
    if at >= 30:
        engine.step()  # the positions of the chunk stand in the table once it is embedded
    hole(engine, at)
    record = failed(engine, engine.finish(), "status")
    assert record.stage.endswith("qsa.partition")
    assert SENTENCES[StatusBit.HOLE] in record.sentence
    assert f"first in {group})" in record.sentence
    assert public(engine) == before
    # what a status word contradicted is not used again: the whole private bank is made anew
    good(engine, append(0, 70, tokens[30:]))
    assert public(engine) == public(expected)


@pytest.mark.parametrize("mode", MODES)
def test_the_kernel_finds_a_hole_in_compress(mode: str) -> None:
    """An op without tokens: only `compress` looks at the groups."""
    engine = session(TINY, mode=mode)
    good(engine, append(0, 0, prompt(TINY, 30)))
    before = public(engine)
    engine.begin(batch(Fork(0, 1), append(2, 0, [1])))
    while engine.open is not None and engine.open.next_stage != TxnStage.COMPRESS:
        engine.step()
    hole(engine, 29)
    record = failed(engine, engine.finish(), "status")
    assert record.stage == TxnStage.COMPRESS
    assert public(engine) == before
    good(engine, Fork(0, 1))
    good(engine, append(1, 30, [4, 5, 6]))
    assert run_check(engine, "same-as-fresh").ok


# bytes


@pytest.mark.parametrize("mode", MODES)
def test_a_real_budget_refuses_before_anything_is_allocated(mode: str) -> None:
    tokens = prompt(TINY, 600)
    few, many = append(0, 8, tokens[8:12]), append(0, 8, tokens[8:])
    probe = session(TINY, mode=mode)
    good(probe, append(0, 0, tokens[:8]))
    # exactly what a few tokens need on this device, and less than many do
    room = needed(probe, few)
    assert room < needed(probe, many)
    budget = probe.snapshot().used_bytes + room
    engine = session(TINY, mode=mode)
    good(engine, append(0, 0, tokens[:8]))
    engine.session = replace(engine.session, budget_bytes=budget)
    before, banks = public(engine), [b.owners["qsa.kv"].n_bytes() for b in engine.pair.banks]
    mx.reset_peak_memory()
    active = mx.get_active_memory()
    record = failed(engine, engine.apply(many), "oom")
    assert record.stage == TxnStage.RESERVE
    assert f"the budget is {budget:,}" in record.sentence
    assert mx.get_peak_memory() - active < 1 << 20
    assert [b.owners["qsa.kv"].n_bytes() for b in engine.pair.banks] == banks
    assert public(engine) == before
    engine.session = replace(engine.session, budget_bytes=budget - 1)
    failed(engine, engine.apply(few), "oom")
    engine.session = replace(engine.session, budget_bytes=budget)
    good(engine, few)
    good(probe, many)


def test_room_that_was_made_in_a_failed_reserve_is_not_counted(monkeypatch: Any) -> None:
    """Memory ends while the tables grow: the next chunk finds tables as large as it thinks."""
    tokens = prompt(TINY, 900)
    engine = session(TINY, mode="inspect")
    good(engine, append(0, 0, tokens[:50]))
    good(engine, append(0, 50, tokens[50:100]))
    before = public(engine)
    owner = engine.pair.private_bank.owners["qsa.index"]

    def deny(n_cells: int) -> None:
        raise MemoryError("no room")

    with monkeypatch.context() as patch:
        engine.begin(append(0, 100, tokens[100:]))
        grow = type(owner).ensure
        calls = []

        def ensure(self: Any, n_cells: int) -> None:
            calls.append(n_cells)
            grow(self, n_cells) if self is not owner or n_cells < 900 else deny(n_cells)

        patch.setattr(type(owner), "ensure", ensure)
        record = failed(engine, engine.finish(), "oom")
        assert max(calls) >= 900
    assert record.stage == TxnStage.RESERVE
    assert public(engine) == before
    for owner in engine.pair.private_bank.positional():
        assert all(table.shape[0] == owner.n_alloc for table in owner.tables.values())
    good(engine, append(0, 100, tokens[100:]))
    assert run_check(engine, "same-as-fresh").ok


# evaluation


@pytest.mark.own_process
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("part", ["head", "embed"])
def test_a_weight_whose_file_was_cut(part: str, mode: str, tmp_path: Path) -> None:
    """Nothing depends on the head; every row that the chunk writes depends on the embedding."""
    whole = golden.model(TINY)
    file = tmp_path / "weight.safetensors"
    mx.save_safetensors(str(file), {part: getattr(whole, part)})
    lazy = mx.load(str(file))[part]  # type: ignore[index]
    with open(file, "r+b") as handle:
        handle.truncate(200)
    model = spoiled(whole, ("final", "norm"), float(whole.final.norm.reshape(-1)[0]))
    engine = Engine(model, name=TINY, mode=mode, audit_each=True)
    tokens = prompt(TINY, 20)
    good(engine, append(0, 0, tokens[:5]))
    good(engine, append(0, 5, tokens[5:9]))
    before = public(engine)
    setattr(model, part, lazy)
    record = failed(engine, engine.apply(append(0, 9, tokens[9:])), "command")
    assert record.stage == (part if mode == "inspect" else "write")
    assert public(engine) == before
    assert engine.pair.private_bank.spoiled
    setattr(model, part, getattr(whole, part))
    good(engine, append(0, 9, tokens[9:]))
    expected = session(TINY)
    good(expected, append(0, 0, tokens))
    assert public(engine) == public(expected)


@pytest.mark.own_process
def test_the_first_chunk_that_fails_before_its_evaluation_leaves_nothing(tmp_path: Path) -> None:
    """A graph over a file that was cut must not be evaluated with the next chunk."""
    whole = golden.model(TINY)
    file = tmp_path / "embed.safetensors"
    mx.save_safetensors(str(file), {"embed": whole.embed})
    lazy = mx.load(str(file))["embed"]  # type: ignore[index]
    with open(file, "r+b") as handle:
        handle.truncate(200)
    model = spoiled(whole, ("final", "norm"), float(whole.final.norm.reshape(-1)[0]))
    engine = Engine(model, name=TINY, mode="fast")
    model.embed = lazy
    engine.begin(append(0, 0, [1, 2, 3]))
    raise_at(engine, "head", ValueError("no head today"))
    failed(engine, engine.finish(), "structural")
    model.embed = whole.embed
    good(engine, append(0, 0, [1, 2, 3]))
    expected = session(TINY)
    good(expected, append(0, 0, [1, 2, 3]))
    assert public(engine) == public(expected)


@pytest.mark.own_process
@pytest.mark.parametrize("mode", MODES)
def test_late_errors_of_a_failed_evaluation_do_not_reach_the_next_one(
    mode: str, tmp_path: Path
) -> None:
    """Many reads fail at once; which of their errors come late is a matter of timing.

    Few rounds: each may leave a task counted as running, and two of those can hang the process.
    """
    whole = golden.model(TINY)
    names = [f"part{n}" for n in range(20)]
    file = tmp_path / "embed.safetensors"
    engine = Engine(spoiled(whole, ("embed",), 0.5, (7, 3)), name=TINY, mode=mode)
    model = engine.model
    assert model is not None
    good(engine, append(0, 0, [1, 2, 3]))
    healthy, before = model.embed, public(engine)
    for _ in range(5):
        mx.save_safetensors(str(file), {name: mx.ones_like(healthy) for name in names})
        parts = mx.load(str(file))
        with open(file, "r+b") as handle:
            handle.truncate(3000)
        whole_of = mx.concatenate([parts[name] for name in names])  # type: ignore[index]
        model.embed = whole_of[: len(healthy)]
        failed(engine, engine.apply(append(0, 3, [4, 5])), "command")
        assert (mx.zeros((3,)) + 1).tolist() == [1.0] * 3
        assert public(engine) == before
        model.embed = healthy
        assert run_check(engine, "same-as-fresh").ok


# exceptions of Python


STAGES = ("reserve", "embed", "layer.3.qsa.attend", "head", "write", "compress", "publish")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("stage", STAGES)
def test_exceptions_inside_a_stage(stage: str, mode: str) -> None:
    tokens = prompt(TINY, 70)
    engine = session(TINY, mode=mode, audit_each=True)
    good(engine, append(0, 0, tokens[:60]))
    before, digests = public(engine), engine.digests()
    for error, kind in (
        (ValueError("a bad value"), FailKind.STRUCTURAL),
        (MemoryError("no bytes"), FailKind.OOM),
        (ZeroDivisionError("by nothing"), FailKind.STRUCTURAL),
    ):
        engine.begin(append(0, 60, tokens[60:]))
        raise_at(engine, stage, error)
        record = failed(engine, engine.finish(), kind)
        assert record.stage == stage
        assert str(error) in record.sentence
        assert public(engine) == before
    for ending in (KeyboardInterrupt(), SystemExit(3)):
        engine.begin(append(0, 60, tokens[60:]))
        raise_at(engine, stage, ending, before=True)
        with pytest.raises(type(ending)):
            engine.finish()
        assert engine.open is None
        assert (engine.digests(), public(engine)) == (digests, before)
    good(engine, append(0, 60, tokens[60:]))
    assert run_check(engine, "same-as-fresh").ok


def test_a_real_interrupt_in_the_middle_of_a_chunk() -> None:
    engine = session(TINY, mode="fast")
    good(engine, append(0, 0, [1, 2, 3]))
    before = public(engine)
    engine.begin(append(0, 3, [4, 5]))
    assert engine.open is not None
    worker = engine.open.worker
    whole = worker.finish_write

    def interrupted() -> None:
        whole()
        signal.raise_signal(signal.SIGINT)

    records = engine.open.records
    write = next(r for r in records if r.stage.name == "write")
    object.__setattr__(write.stage, "run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        engine.finish()
    assert public(engine) == before
    good(engine, append(0, 3, [4, 5]))
    assert run_check(engine, "same-as-fresh").ok


# our own bugs


@pytest.mark.parametrize("mode", MODES)
def test_a_broken_invariant_stops_publishing_and_keeps_the_state(mode: str, tmp_path: Path) -> None:
    engine = session(TINY, mode=mode)
    good(engine, append(0, 0, [1, 2, 3, 4, 5]))
    before, digests = public(engine), engine.digests()
    engine.begin(append(0, 5, [6]))
    while engine.open is not None and engine.open.next_stage != TxnStage.VERIFY:
        engine.step()
    engine.pair.private_bank.owners["qsa.kv"].mark(0, Mark(4, 99))
    with pytest.raises(InvariantBroken, match=r"qsa\.kv of sequence 0"):
        engine.finish()
    for again in (
        lambda: engine.apply(append(0, 5, [6])),
        engine.undo,
        engine.compact,
        lambda: load_session(engine, tmp_path / "a.safetensors"),
    ):
        with pytest.raises(InvariantBroken, match="stopped publishing"):
            again()
    assert engine.flips == 1
    assert (engine.digests(), public(engine)) == (digests, before)
    snapshot = engine.snapshot()
    assert snapshot.broken
    assert snapshot.sequences[0].stop == 5
    assert read_array(engine, ReadArray("logits", -1, "", 0)).values.shape == (256,)
    save_session(engine, tmp_path / "a.safetensors")
    other = session(TINY, mode=mode)
    load_session(other, tmp_path / "a.safetensors")
    assert other.digests() == digests


@pytest.mark.parametrize("mode", MODES)
def test_nothing_of_a_bank_whose_evaluation_failed_is_used_again(mode: str) -> None:
    """Undefined content may stand in any row, not only in those that the attempt wrote."""
    tokens = prompt(TINY, 40)
    engine, expected = session(TINY, mode=mode), session(TINY, mode=mode)
    good(expected, append(0, 0, tokens))
    good(engine, append(0, 0, tokens[:20]))
    good(engine, append(0, 20, tokens[20:30]))
    private = engine.pair.private_bank
    for owner in private.positional():
        for place, table in owner.tables.items():
            owner.tables[place] = mx.full(table.shape, 7, table.dtype)
        mx.eval(owner.arrays())
    private.spoiled = True
    good(engine, append(0, 30, tokens[30:]))
    assert public(engine) == public(expected)
    engine.audit()
