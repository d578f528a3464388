"""Admission: the estimate is an upper bound of what a piece really keeps."""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import mlx.core as mx
import numpy as np
import pytest

from engine.admission import admit
from engine.engine import Engine, append
from engine.errors import Malformed, StepFailed
from engine.inplace import fill_at_random
from engine.memory import default_budget
from engine.ops import EvictFront, Fork, Op, Reset, Rewind
from engine.random_model import random_model
from engine.terms import FailKind
from tests.helpers import golden
from tests.helpers.engines import batch, good, needed, prompt, session


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


def test_the_default_on_a_gpu_is_a_share_of_its_own_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """A card has other memory than the machine; where both share, the device may use less."""
    machine = default_budget("cpu")
    for info, share in (
        ({"total_memory": 8 << 30, "device_name": "a card"}, 4 << 30),
        ({"memory_size": 64 << 30, "max_recommended_working_set_size": 48 << 30}, 24 << 30),
        ({"device_name": "says nothing"}, machine),
    ):
        monkeypatch.setattr(mx.cuda, "is_available", lambda: True)
        monkeypatch.setattr(mx, "device_info", lambda _device, info=info: info)
        assert (default_budget("cuda"), default_budget("cpu")) == (share, machine)


SLACK = 1 << 18
"""Bytes of small things that are not counted one by one, such as positions and status words."""


def peak_over(act: Callable[[], object]) -> int:
    """Bytes beside what is there now that an action takes at its peak, by the library's account."""
    gc.collect()
    mx.synchronize()
    mx.clear_cache()
    mx.reset_peak_memory()
    active = mx.get_active_memory()
    act()
    return mx.get_peak_memory() - active


def fits(engine: Engine, op: Op, sink: np.ndarray | None = None) -> None:
    """An op takes no more than it asked for."""
    asked = needed(engine, op, sink=sink)
    peak = peak_over(lambda: good(engine, op, sink=sink))
    assert peak <= asked + SLACK, (op.name, asked, peak)


MODES = pytest.mark.parametrize("mode", ["inspect", "fast"])
CONFIGS: dict[str, dict[str, Any]] = {
    "tiny": {},
    "many states": {
        "linear_num_value_heads": 32,
        "linear_key_head_dim": 64,
        "linear_value_head_dim": 64,
        "num_experts": 4,
    },
    "long lists of keys": {"indexer_budget": 256},
    "wide index": {"indexer_n_heads": 16, "indexer_head_dim": 64},
    "many heads": {"num_attention_heads": 16, "num_key_value_heads": 4, "head_dim": 32},
    "wide experts": {"moe_intermediate_size": 512, "hidden_size": 128},
}


@MODES
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("config", CONFIGS)
def test_the_estimate_is_an_upper_bound_of_the_real_peak(
    config: str, dtype: str, mode: str, long_profile: bool
) -> None:
    """For short and for long histories, where scores and tables outweigh the tokens.

    The tables of the long one grow on the way.
    """
    model = random_model("auto", 1, dtype=dtype, **CONFIGS[config])
    for before in (16, 131_000 if long_profile else 12_000):
        engine = Engine(model, name="random", mode=mode, prove="failures")
        fill_at_random(engine, before)
        table = engine.pair.public_bank.owners["qsa.kv"]
        at, n_alloc = before, table.n_alloc
        for n in (4, 4, 1, 64, 1, 1, 64, 200):
            fits(engine, append(0, at, prompt(n=n), n))
            at += n
        assert engine.pair.public_bank.owners["qsa.kv"].n_alloc > n_alloc


@MODES
@pytest.mark.parametrize("name", golden.MODELS)
def test_the_estimate_covers_the_models(name: str, mode: str) -> None:
    engine = session(name, mode=mode, prove="failures")
    tokens = prompt(name, 256)
    at = 0
    for n in (8, 8, 48, 64, 1, 64):
        fits(engine, append(0, at, tokens[at : at + n]))
        at += n


@MODES
@pytest.mark.parametrize("logits", [False, True])
def test_the_estimate_covers_a_chunk_of_many_pieces(mode: str, logits: bool) -> None:
    """In fast mode all pieces up to the fence are one evaluation and are held together."""
    engine = session(mode=mode, prove="failures")
    n, at = 640, 16
    tokens = prompt(n=at + n)
    good(engine, append(0, 0, tokens[:at]))
    vocab = engine.model.config.vocab_size  # type: ignore[union-attr]
    sink = np.zeros((n, vocab), np.float32) if logits else None
    fits(engine, append(0, at, tokens[at:], chunk=n), sink)


@MODES
def test_pieces_do_not_copy_large_tables(mode: str) -> None:
    """A table that one piece reads is not copied because the next one writes it."""
    model = random_model("auto", 1, **CONFIGS["many heads"])
    engine = Engine(model, name="random", mode=mode, prove="failures")
    at = 60_000
    fill_at_random(engine, at)
    for n in (256, 256):  # both banks have room from here on
        good(engine, append(0, at, prompt(n=n)))
        at += n
    tables = engine.pair.private_bank.owners["qsa.kv"].n_bytes()
    one = peak_over(lambda: good(engine, append(0, at, prompt(n=56))))
    many = peak_over(lambda: good(engine, append(0, at + 56, prompt(n=320), 320)))
    assert many - one < tables / 2


@MODES
def test_the_estimate_covers_lifecycle_ops(mode: str) -> None:
    """An eviction makes every group anew, a rewind replays, compaction moves rows."""
    engine = session(mode=mode, prove="failures")
    fill_at_random(engine, 30_000)
    good(engine, append(0, 30_000, prompt(n=8)))
    good(engine, append(0, 30_008, prompt(n=130)))
    for op in (Rewind(0, 30_100), EvictFront(0, 4), EvictFront(0, 1)):
        fits(engine, op)


@MODES
def test_the_estimate_covers_compaction(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All rows that move are read before the first is written."""
    asked: list[int] = []
    monkeypatch.setattr("engine.transaction.admit", lambda needed, *_: asked.append(needed))
    engine = session(mode=mode, prove="failures")
    fill_at_random(engine, 20_000)
    good(engine, append(0, 20_000, prompt(n=8)))
    good(engine, EvictFront(0, 100))
    peak = peak_over(lambda: engine.compact())
    assert peak <= asked[-1] + SLACK
    assert asked[-1] > 20_000


@MODES
def test_compaction_of_few_cells_in_large_tables(
    mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    monkeypatch.setattr("engine.transaction.admit", lambda needed, *_: asked.append(needed))
    engine = session(mode=mode, prove="failures")
    fill_at_random(engine, 30_000)
    good(engine, append(0, 30_000, prompt(n=8)))
    good(engine, EvictFront(0, 29_944))
    peak = peak_over(lambda: engine.compact())
    assert peak <= asked[-1] + SLACK


def test_tables_are_as_large_as_they_once_became() -> None:
    """After a reset and a compaction the history is small, and what could be copied is not."""
    model = random_model("auto", 1, **CONFIGS["many heads"])
    engine = Engine(model, name="random", mode="fast", prove="failures")
    fill_at_random(engine, 30_000)
    good(engine, append(0, 30_000, prompt(n=8)))
    good(engine, Reset(0))
    assert [engine.compact().outcome for _ in range(2)] == ["ok", "ok"]
    at = 0
    for n in (16, 8, 320):
        fits(engine, append(0, at, prompt(n=n), n))
        at += n


@MODES
def test_the_estimate_covers_a_batch_of_new_sequences(mode: str) -> None:
    """Each has states of its own, and they begin at positions far from each other."""
    model = random_model("auto", 1, **CONFIGS["many states"])
    engine = Engine(model, name="random", mode=mode, prove="failures")
    good(engine, append(0, 0, prompt(n=8)))
    starts = {seq: 4095 + 4096 * seq for seq in range(1, 25)}
    fits(engine, batch(*(append(seq, at, prompt(n=1)) for seq, at in starts.items())))
    fits(engine, batch(*(append(seq, at + 1, prompt(n=1)) for seq, at in starts.items())))


@MODES
def test_the_estimate_covers_many_recurrent_layers(mode: str) -> None:
    layers = (["linear_attention"] * 9 + ["indexed_attention"]) * 4
    sizes = {"num_hidden_layers": 40, "layer_types": layers, **CONFIGS["many states"]}
    engine = Engine(random_model("auto", 1, **sizes), name="random", mode=mode, prove="failures")
    at = 0
    for n in (4, 4, 1, 16):
        fits(engine, append(0, at, prompt(n=n)))
        at += n


@MODES
def test_the_estimate_covers_logits_of_small_chunks(mode: str) -> None:
    """Kept rows are views of whole tiles."""
    model = random_model("auto", 1, vocab_size=8192)
    engine = Engine(model, name="random", mode=mode, prove="failures")
    good(engine, append(0, 0, prompt(n=8)))
    for at, chunk in ((8, 1), (40, 3)):
        sink = np.zeros((32, 8192), np.float32)
        fits(engine, append(0, at, prompt(n=32), chunk), sink)


@MODES
def test_copies_of_an_evicted_sequence_are_admitted(mode: str) -> None:
    engine = session(mode=mode, prove="failures")
    fill_at_random(engine, 12_000)
    good(engine, append(0, 12_000, prompt(n=8)))
    good(engine, append(0, 12_008, prompt(n=8)))
    fits(engine, batch(EvictFront(0, 1), *(Fork(0, seq) for seq in range(1, 9))))


@MODES
def test_a_full_window_asks_for_no_wild_amount(mode: str) -> None:
    """Every token evicts one, but the groups are made anew one after the other."""
    engine = session(mode=mode, prove="failures", window=8192)
    fill_at_random(engine, 8192)
    good(engine, append(0, 8192, prompt(n=8)))
    good(engine, append(0, 8200, prompt(n=8)))
    op = append(0, 8208, prompt(n=64))
    asked = needed(engine, op)
    assert peak_over(lambda: good(engine, op)) <= asked + SLACK
    plain = session(mode=mode, prove="failures")
    fill_at_random(plain, 8192)
    good(plain, append(0, 8192, prompt(n=8)))
    good(plain, append(0, 8200, prompt(n=8)))
    assert asked < 2 * needed(plain, op)


@pytest.mark.parametrize("budget", [-1, 2.5, float("nan"), "7", True])
def test_a_budget_is_whole_bytes(budget: Any) -> None:
    with pytest.raises(Malformed, match="budget, expected whole bytes, 0 or more"):
        Engine(None, budget_bytes=budget)


def test_what_needs_nothing_passes_in_an_overfull_session() -> None:
    engine = session(mode="fast")
    fill_at_random(engine, 5_000)
    engine.session = replace(engine.session, budget_bytes=1_000)
    assert engine.apply(append(0, 5_000, [1])).kind == "oom"
    good(engine, Reset(0))


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
