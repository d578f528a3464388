"""Admission: the estimate is an upper bound of what a piece really keeps."""

from __future__ import annotations

import mlx.core as mx
import numpy as np
import pytest

from engine.admission import admit, default_budget, piece_bytes
from engine.engine import Engine, append
from engine.errors import StepFailed
from engine.random_model import random_model
from engine.terms import FailKind
from tests.helpers import golden
from tests.helpers.engines import good, needed, prompt, session


@pytest.mark.parametrize(("needed", "used", "budget"), [(0, 0, 0), (1, 9, 10), (10, 0, 10)])
def test_what_fits_passes(needed: int, used: int, budget: int) -> None:
    admit(needed, used, budget)


@pytest.mark.parametrize(("needed", "used", "budget"), [(1, 0, 0), (1, 10, 10), (1 << 60, 5, 10)])
def test_one_byte_more_is_refused_with_all_three_numbers(
    needed: int, used: int, budget: int
) -> None:
    with pytest.raises(StepFailed) as caught:
        admit(needed, used, budget)
    assert (caught.value.kind, caught.value.stage) == (FailKind.OOM, "reserve")
    for number in (needed, used, budget):
        assert f"{number:,}" in str(caught.value)


def test_the_default_is_a_share_of_the_machine() -> None:
    assert 1 << 28 < default_budget() < 1 << 50


@pytest.mark.parametrize("name", golden.MODELS)
@pytest.mark.parametrize("mode", ["inspect", "fast"])
def test_the_estimate_is_an_upper_bound_of_the_real_peak(name: str, mode: str) -> None:
    """Measured by the array library's own account, for pieces at the start and further on."""
    engine = session(name, mode=mode, prove="failures")
    model = engine.model
    assert model is not None
    tokens = prompt(name, 256)
    good(engine, append(0, 0, tokens[:8]))
    at = 8
    for n in (8, 48, 64, 1, 64):
        mx.synchronize()
        mx.clear_cache()
        mx.reset_peak_memory()
        active = mx.get_active_memory()
        tables = sum(o.n_bytes() for b in engine.pair.banks for o in b.owners.values())
        good(engine, append(0, at, tokens[at : at + n]))
        grown = sum(o.n_bytes() for b in engine.pair.banks for o in b.owners.values()) - tables
        at += n
        tile = model.backend.tile_rows
        rows = -(-min(n, 64) // tile) * tile + tile
        peak = mx.get_peak_memory() - active
        assert peak <= piece_bytes(model.config, rows, at) + 2 * grown + (1 << 18), (n, at)


@pytest.mark.parametrize("mode", ["inspect", "fast"])
def test_the_estimate_covers_large_recurrent_states(mode: str) -> None:
    """Array operations keep one state a token; with many heads they outweigh everything else."""
    sizes = {"linear_num_value_heads": 32, "linear_key_head_dim": 64, "linear_value_head_dim": 64}
    model = random_model("cpu", 1, num_experts=4, **sizes)
    engine = Engine(model, name="random", mode=mode, prove="failures")
    tokens = prompt(n=200)
    good(engine, append(0, 0, tokens[:8]))
    good(engine, append(0, 8, tokens[8:16]))
    for at, n in ((16, 64), (80, 1), (81, 64)):
        asked = needed(engine, append(0, at, tokens[at : at + n]))
        mx.synchronize()
        mx.clear_cache()
        mx.reset_peak_memory()
        active, used = mx.get_active_memory(), engine.snapshot().used_bytes
        good(engine, append(0, at, tokens[at : at + n]))
        peak = mx.get_peak_memory() - active
        assert peak <= asked + engine.snapshot().used_bytes - used + (1 << 18), (n, at)


@pytest.mark.parametrize("mode", ["inspect", "fast"])
@pytest.mark.parametrize("logits", [False, True])
def test_the_estimate_covers_a_chunk_of_many_pieces(mode: str, logits: bool) -> None:
    """In fast mode all pieces up to the fence are one evaluation and are held together."""
    engine = session(mode=mode, prove="failures")
    n, at = 640, 16
    tokens = prompt(n=at + n)
    good(engine, append(0, 0, tokens[:at]))
    vocab = engine.model.config.vocab_size  # type: ignore[union-attr]
    sink = np.zeros((n, vocab), np.float32) if logits else None
    mx.synchronize()
    mx.clear_cache()
    mx.reset_peak_memory()
    active, used = mx.get_active_memory(), engine.snapshot().used_bytes
    good(engine, append(0, at, tokens[at:], chunk=n), sink=sink)
    peak = mx.get_peak_memory() - active
    grown = engine.snapshot().used_bytes - used
    asked = needed(engine, append(0, at + n, tokens[:n], chunk=n), sink=sink)
    assert peak <= asked + grown + (1 << 18)


def test_checkpoints_are_admitted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A chunk that leaves a checkpoint asks for its bytes, one that does not does not."""
    asked: list[int] = []
    monkeypatch.setattr("engine.transaction.admit", lambda needed, *_: asked.append(needed))
    engine = session(mode="fast", prove="failures")
    good(engine, append(0, 0, prompt(n=50)))
    good(engine, append(0, 50, prompt(n=8)))  # now both banks have their tables
    good(engine, append(0, 58, prompt(n=3)))
    good(engine, append(0, 61, prompt(n=3)))
    (mark,) = engine.pair.public_bank.checkpoints[0]
    layer_rows = asked[3] - asked[2]  # the same rows at three more live positions
    assert mark.n_bytes <= layer_rows < 2 * mark.n_bytes


def test_the_budget_counts_checkpoints_and_both_banks() -> None:
    engine = session(mode="fast")
    good(engine, append(0, 0, prompt(n=130)))
    banks = sum(o.n_bytes() for b in engine.pair.banks for o in b.owners.values())
    marks = sum(
        value.nbytes
        for rings in engine.pair.public_bank.checkpoints.values()
        for mark in rings
        for _, layers in mark.values
        for value in layers.values()
    )
    assert marks > 0
    assert engine.snapshot().used_bytes == banks + marks
