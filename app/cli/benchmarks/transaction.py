"""What a transaction costs: flat in the history, and little beside the graph itself."""

from __future__ import annotations

import copy
import time
from collections.abc import Iterator
from statistics import median
from typing import Any

import numpy as np

from engine import Engine, append, open_engine
from engine.inplace import InPlace, copy_everything, fill_at_random
from engine.random_model import random_model

SHORT, LONG = 1_024, 262_144
CHUNK = 8
ROUNDS = 25
MODEL = "qwen4exp-tiny"
WIDE: dict[str, Any] = {
    "hidden_size": 1024,
    "hc_lowrank": 64,
    "head_dim": 64,
    "indexer_head_dim": 32,
    "linear_key_head_dim": 64,
    "linear_value_head_dim": 64,
    "moe_intermediate_size": 256,
    "shared_expert_intermediate_size": 256,
}


def _session(n: int) -> Engine:
    engine = open_engine(MODEL, backend="cpu", prove="failures")
    fill_at_random(engine, n)
    return engine


def _transaction_ns(engine: Engine, at: int, tokens: list[int]) -> int:
    """Time of the transaction's own stages: catch-up, checks, digests, seal; not the graph's."""
    record = engine.apply(append(0, at, tokens))
    if record.outcome != "ok":
        raise AssertionError(record.sentence)
    return sum(s.time_ns for s in record.stages if s.kind == "transaction")


def bench_flatness() -> Iterator[dict[str, Any]]:
    """Reserve, catch-up and publish at 262,144 positions against 1,024, chunk by chunk in turn."""
    random = np.random.default_rng(1)
    sizes = {SHORT: _session(SHORT), LONG: _session(LONG)}
    times: dict[int, list[int]] = {SHORT: [], LONG: []}
    for turn in range(ROUNDS + 2):
        tokens = random.integers(0, 256, CHUNK).tolist()
        for n, engine in sizes.items():
            spent = _transaction_ns(engine, n + turn * CHUNK, tokens)
            if turn >= 2:  # the first two make the second bank whole
                times[n].append(spent)
    short, long = (median(times[n]) / 1e9 for n in (SHORT, LONG))
    yield _result("publish.flatness", long / short, "ratio", 1.3, "lower", long, short, "1,024")
    copied = _best(lambda: copy_everything(sizes[LONG]))
    yield _result(
        "publish.against-copy", copied / long, "times", None, "higher", long, copied, "full copy"
    )
    deep = _deepcopy_seconds()
    yield _result(
        "publish.against-deepcopy",
        deep / long,
        "times",
        None,
        "higher",
        long,
        deep,
        "copy.deepcopy of an mlx-lm cache with as many positions",
    )


def _best(step: Any, rounds: int = 5) -> float:
    best = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        step()
        best = min(best, time.perf_counter() - start)
    return best


def _deepcopy_seconds() -> float:
    """An mlx-lm cache of one attention layer with the tiny model's heads at 262,144 positions."""
    import mlx.core as mx
    from mlx_lm.models.cache import KVCache

    cache = KVCache()
    rows = mx.zeros((1, 2, LONG, 16))
    cache.update_and_fetch(rows, rows)
    mx.eval(cache.state)

    def copied() -> None:
        # a deep copy shares the buffer until one of the two is written to
        twin = copy.deepcopy(cache)
        twin.update_and_fetch(rows[:, :, :CHUNK], rows[:, :, :CHUNK])
        mx.eval(twin.keys, twin.values)

    return _best(copied)


def bench_throughput() -> Iterator[dict[str, Any]]:
    """Fast mode against the same graph in place, by the time of the process.

    Both sides compute every layer and all logits. The order changes from turn to turn, and the
    ratio is the median over the turns, so a noisy neighbour hits both alike. The wide model is the
    tiny one with `WIDE` entries and random weights: its graph is arithmetic. Chunks have a goal
    from the size at which a user who wants throughput would feed them.
    """
    tiny = open_engine(MODEL, backend="cpu").model
    assert tiny is not None
    for chunk, rounds in ((1, 102), (64, 42), (256, 22)):
        yield _throughput(tiny, "", chunk, rounds, 0.95 if chunk == 256 else None)
    wide = random_model("cpu", seed=3, **WIDE)
    for chunk, rounds in ((1, 42), (64, 22)):
        yield _throughput(wide, "wide.", chunk, rounds, 0.95 if chunk > 1 else None)


def _throughput(
    model: Any, kind: str, chunk: int, rounds: int, goal: float | None
) -> dict[str, Any]:
    ours, peer = _times(model, chunk, rounds)
    ratio = median(b / a for a, b in zip(ours, peer, strict=True))
    name = f"transaction.throughput.{kind}chunk-{chunk}"
    return _result(name, ratio, "ratio", goal, "higher", median(ours), median(peer), "in place")


def _times(model: Any, chunk: int, rounds: int) -> tuple[list[float], list[float]]:
    """Seconds of the process for each chunk, as a transaction and in place; without the first."""
    random = np.random.default_rng(2)
    engine = Engine(model, name=MODEL, mode="fast", prove="failures")
    plain = InPlace(model)
    spent: dict[str, list[float]] = {"ours": [], "peer": []}
    for turn in range(rounds):
        tokens = random.integers(0, 256, chunk).tolist()
        for side in ("ours", "peer") if turn % 2 else ("peer", "ours"):
            start = time.process_time()
            if side == "ours":
                engine.apply(append(0, turn * chunk, tokens, chunk))
            else:
                for at in range(0, chunk, 64):
                    plain.feed(tokens[at : at + 64])
            spent[side].append(time.process_time() - start)
    return spent["ours"][2:], spent["peer"][2:]


def _result(
    name: str,
    value: float,
    unit: str,
    goal: float | None,
    better: str,
    ours: float,
    peer: float,
    peer_name: str,
) -> dict[str, Any]:
    return {
        "name": name,
        "value": value,
        "unit": unit,
        "goal": goal,
        "better": better,
        "ours": ours,
        "peer": peer,
        "peer_name": peer_name,
    }


BENCHMARKS = (
    ("publish.flatness", bench_flatness),
    ("transaction.throughput", bench_throughput),
)
