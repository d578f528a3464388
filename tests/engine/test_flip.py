"""One integer: everything that can be reached is photographed before and after the flip."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import pytest

from engine.bank import BankPair
from engine.engine import Engine, append
from engine.faults import Fault
from engine.graph.model import Model
from engine.ops import EvictFront, Fork, Op, Reset, Restore, Rewind, Save, Shift
from engine.terms import FailKind
from tests.helpers.engines import batch, good, prompt, session
from tests.helpers.walk import arrays, changed, photograph

LEAVE = (Model, threading.Event)
MODES = ("inspect", "fast")
TOKENS = prompt(n=160)
LIFE: tuple[Op, ...] = (
    append(0, 3, TOKENS[:70]),
    Save(0, "slot"),
    append(0, 73, TOKENS[70:90]),
    batch(Fork(0, 1), append(1, 93, [5, 6, 7]), append(2, 0, [1])),
    EvictFront(1, 3),
    Rewind(0, 80),
    Shift(1, 50),
    Restore(4, "slot"),
    Reset(0),
)


@pytest.mark.parametrize("mode", MODES)
def test_a_flip_changes_one_integer_and_nothing_else(
    mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = session(mode=mode)
    seen = []
    flip = BankPair.flip

    def watched(pair: BankPair) -> None:
        before = photograph(engine, LEAVE)
        flip(pair)
        seen.append((before, photograph(engine, LEAVE)))

    monkeypatch.setattr(BankPair, "flip", watched)
    for op in LIFE:
        good(engine, op)
    engine.compact()
    assert not isinstance(engine.undo(), str)
    assert len(seen) == len(LIFE) + 2
    for before, after in seen:
        assert changed(before, after) == {".pair.public"}
        assert {before[".pair.public"][1], after[".pair.public"][1]} == {0, 1}
    paths = [path for before, _ in seen for path, value in before.items() if value[0] == "array"]
    for part in (".tables[", ".values[", "._held[", ".checkpoints["):
        for bank in (0, 1):
            assert any(path.startswith(f".pair.banks[{bank}]") and part in path for path in paths)


def test_a_photograph_sees_everything_that_it_should() -> None:
    """The walk itself: each kind of thing that a bank holds is looked into."""
    engine = session()
    good(engine, append(0, 0, TOKENS[:70]))
    before = photograph(engine, LEAVE)
    bank = engine.pair.public_bank
    at = f".pair.banks[{engine.pair.public}]"
    edits: list[Any] = [
        lambda: bank.tokens.marks.__setitem__(0, bank.tokens.marks[0].__class__(1, 2)),
        lambda: bank.history.origins.__setitem__(0, 9),
        lambda: bank.owners["logits"].values[0].__setitem__(-1, mx.zeros((256,))),  # type: ignore[attr-defined]
        lambda: bank.checkpoints.pop(0),
        lambda: bank.changes.cells.append((1, 1)),
        lambda: bank.tokens.of(0).log._hasher.update(b"x"),
    ]
    for edit in edits:
        edit()
        after = photograph(engine, LEAVE)
        found = changed(before, after)
        assert found
        assert all(path.startswith((at, ".session.pair")) for path in found), found
        before = after
    table = bank.owners["qsa.kv"].tables[3, "k"]  # type: ignore[attr-defined]
    table[5] = table[5] + 1
    assert any("qsa.kv" in path for path in changed(before, photograph(engine, LEAVE)))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", list(FailKind))
def test_nothing_public_changes_in_a_failed_chunk(kind: FailKind, mode: str) -> None:
    engine = session(mode=mode)
    for op in LIFE[:5]:
        good(engine, op)
    chunk = append(1, 96, TOKENS[:9])
    many = batch(Rewind(0, 90), append(0, 90, [1, 2]), Save(1, "slot"), EvictFront(0, 2))
    before = photograph(engine.pair.public_bank)
    for op in (chunk, many):
        for nth in range(0, n_stages(engine, op), 3):
            engine.faults[:] = [Fault("*", kind, 0, nth=nth)]
            record = engine.apply(op)
            assert record.outcome in ("failed", "cancelled"), record.sentence
            assert changed(before, photograph(engine.pair.public_bank)) == set(), (op, nth)
    engine.faults.clear()
    good(engine, chunk)


def n_stages(engine: Engine, op: Op) -> int:
    engine.begin(op)
    assert engine.open is not None
    n = len(engine.open.records)
    engine.discard()
    return n


@pytest.mark.parametrize("mode", MODES)
def test_the_two_banks_share_no_table(mode: str) -> None:
    """A row written into one bank must never show in the other one."""
    engine = session(mode=mode)
    for op in LIFE[:4]:
        good(engine, op)
    engine.faults[:] = [Fault("head", FailKind.COMMAND)]
    assert engine.apply(append(1, 96, [1])).outcome == "failed"
    good(engine, append(1, 96, [1]))
    public = photograph(engine.pair.public_bank)
    for owner in engine.pair.private_bank.positional():
        for table in owner.tables.values():
            table[:] = mx.zeros_like(table) + 7
            mx.eval(table)
    assert changed(public, photograph(engine.pair.public_bank)) == set()


@pytest.mark.parametrize("mode", MODES)
def test_no_public_array_is_an_unevaluated_one(mode: str, tmp_path: Path) -> None:
    """An evaluated array has no graph behind it: the library's own drawing of it shows none."""
    lazy = mx.zeros((4,)) + 1
    assert drawn(tmp_path, lazy)
    mx.eval(lazy)
    assert not drawn(tmp_path, lazy)
    engine = session(mode=mode)
    for op in LIFE:
        good(engine, op)
        for path, array in arrays(engine.pair.public_bank).items():
            assert not drawn(tmp_path, array), (op, path)


def drawn(folder: Path, array: mx.array) -> bool:
    """True when the library draws an operation that makes the array."""
    file = folder / "graph.dot"
    mx.export_to_dot(str(file), array)
    return "rect" in file.read_text() and "label" in file.read_text()


def test_the_sentinel_of_the_caller_is_written_after_the_flip(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engine = session(mode="fast")
    sink = np.full((3, 256), -7.5, np.float32)
    flip, seen = BankPair.flip, []

    def watched(pair: BankPair) -> None:
        seen.append(bool((sink == -7.5).all()))
        flip(pair)
        seen.append(bool((sink == -7.5).all()))

    monkeypatch.setattr(BankPair, "flip", watched)
    good(engine, append(0, 0, [1, 2, 3]), sink=sink)
    assert seen == [True, True]
    assert np.isfinite(sink).all()
    assert not (sink == -7.5).any()


@pytest.mark.parametrize(
    "sink",
    [
        np.zeros((1, 256), np.float32),
        np.zeros((2, 255), np.float32),
        np.zeros((2, 256), np.float64),
        np.zeros(512, np.float32),
        np.broadcast_to(np.float32(0), (2, 256)),
    ],
    ids=["too few rows", "too narrow", "float64", "flat", "read-only"],
)
def test_a_buffer_that_cannot_take_the_logits_is_refused_before_anything(sink: Any) -> None:
    engine = session(mode="fast")
    good(engine, append(0, 0, [1]))
    before = photograph(engine.pair)
    with pytest.raises(ValueError, match="at least 2 x 256"):
        engine.apply(append(0, 1, [1, 2]), sink=sink)
    assert changed(before, photograph(engine.pair)) == set()
    assert engine.open is None
    good(engine, append(0, 1, [1, 2]), sink=np.zeros((2, 256), np.float32))
