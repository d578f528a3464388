"""Ways back: usable checkpoints and nearest targets against a search over everything."""

from __future__ import annotations

import random

import numpy as np
import pytest

from engine.checks import run_check
from engine.derive import (
    CHECKPOINT_TOKENS,
    Arrive,
    GoBack,
    Piece,
    first_position,
    nearest_count,
    tokens_for,
    usable_origin,
)
from engine.engine import Engine, append
from engine.errors import Rejected
from engine.lineage import Lineage
from engine.ops import EvictFront, Fork, Rewind, Shift
from engine.terms import Reason
from tests.engine.test_lineage import random_line
from tests.helpers.engines import batch, good, prompt, session
from tests.helpers.lives import Line


def seen_and_here(line: Line, moves: list[int], origin: int, count: int) -> bool:
    """True when everything that tokens origin to count saw is still live and unmoved.

    Straight from the definition: a token sees all positions live when it came; each of these
    must still be live, and no eviction or shift may have come after the checkpoint.
    """
    if origin == count:
        return True
    evicted = len(line.ids) - line.n_live
    first_seen = min(i - line.before[i] for i in range(origin, count))
    return first_seen >= evicted and all(m <= origin for m in moves)


def moves_of(lineage: Lineage) -> list[int]:
    return [e.count for e in lineage.events if e.kind != "start"]


def test_usable_checkpoints_against_their_definition() -> None:
    seed = 21
    print("seed", seed)
    choice = random.Random(seed)
    found = {"some": 0, "none": 0, "start": 0}
    for _ in range(600):
        lineage, line = random_line(choice, choice.randint(1, 20))
        n = lineage.consumed
        counts = frozenset(c for c in range(1, n + 1) if choice.random() < 0.3)
        for count in range(lineage.evicted, n + 1):
            origin = usable_origin(lineage, counts, count)
            legal = [c for c in counts if c <= count]
            legal = [c for c in legal if seen_and_here(line, moves_of(lineage), c, count)]
            if count == 0:
                assert origin == 0
            elif legal:
                assert origin == max(legal)
                found["some"] += 1
            elif lineage.evicted:
                assert origin is None
                found["none"] += 1
            else:
                # nothing was evicted: from the start, piece by piece over every shift
                assert origin == 0
                found["start"] += 1
    assert min(found.values()) > 100, found


def test_nearest_targets_against_a_search() -> None:
    seed = 22
    print("seed", seed)
    choice = random.Random(seed)
    n_asked = 0
    for _ in range(600):
        lineage, _ = random_line(choice, choice.randint(1, 20))
        n = lineage.consumed
        counts = frozenset(c for c in range(1, n + 1) if choice.random() < 0.2)
        for count in range(lineage.evicted, n):
            if usable_origin(lineage, counts, count) is not None:
                continue
            n_asked += 1
            legal = [
                c
                for c in range(lineage.evicted, n + 1)
                if c == n or usable_origin(lineage, counts, c) is not None
            ]
            best = min(legal, key=lambda c: (abs(c - count), c))
            assert nearest_count(lineage, counts, count) == best
    assert n_asked > 200


def test_the_first_position_is_that_of_the_run() -> None:
    seed = 23
    print("seed", seed)
    choice = random.Random(seed)
    for _ in range(400):
        lineage, line = random_line(choice, choice.randint(1, 20))
        if line.n_live:
            assert first_position(lineage) == line.start


def pieces(engine: Engine, op: object) -> list[object]:
    return engine.judge(op)[1]  # type: ignore[arg-type]


@pytest.mark.parametrize("chunk", [None, 1, 5, 64, 100])
def test_tokens_are_cut_at_the_chunk_and_at_checkpoints(chunk: int | None) -> None:
    engine = session(mode="fast")
    good(engine, append(0, 0, prompt(n=50)))
    work = pieces(engine, append(0, 50, prompt(n=150), chunk))
    assert all(isinstance(w, Piece) for w in work)
    cuts = {50 + c for c in range(0, 150, chunk or 150)} | {64, 128, 192} | {200}
    assert [w.at for w in work] == sorted(cuts - {200})  # type: ignore[attr-defined]
    assert sum(len(w.tokens) for w in work) == 150  # type: ignore[attr-defined]
    fences = {w.at + len(w.tokens) for w in work if w.fence}  # type: ignore[attr-defined]
    ends = {50 + min(c + chunk, 150) for c in range(0, 150, chunk)} if chunk else {64, 128, 192}
    assert fences == ends | {200}


def test_a_way_back_starts_at_the_nearest_checkpoint() -> None:
    engine = session(mode="fast")
    good(engine, append(0, 10, prompt(n=150)))
    for to, origin in ((140, 128), (138, 128), (137, 64), (74, 64), (73, 0), (11, 0)):
        work = pieces(engine, Rewind(0, to))
        assert isinstance(work[0], GoBack)
        assert (work[0].origin, work[0].count) == (origin, to - 10)
        assert isinstance(work[-1], Arrive)
        replayed = [w for w in work if isinstance(w, Piece)]
        assert all(w.replay for w in replayed)
        assert sum(len(w.tokens) for w in replayed) == to - 10 - origin


def test_the_ring_forgets_the_oldest() -> None:
    one = session(mode="fast", checkpoint_bytes=1)
    good(one, append(0, 0, prompt(n=200)))
    assert [c.count for c in one.pair.public_bank.checkpoints[0]] == [192]
    many = session(mode="fast")
    good(many, append(0, 0, prompt(n=200)))
    assert [c.count for c in many.pair.public_bank.checkpoints[0]] == [64, 128, 192]
    for engine in (one, many):
        good(engine, Rewind(0, 70))
        assert run_check(engine, "same-as-fresh").ok


@pytest.mark.parametrize("name", ["qwen4exp-tiny", "qwen4exp-mixed"])
def test_every_target_is_legal_or_its_nearest_one_is(name: str) -> None:
    """After an eviction and a shift: each refusal names a target that works, and no nearer one."""
    engine = session(name, mode="fast")
    good(engine, append(0, 0, prompt(name, 140)))
    good(engine, batch(EvictFront(0, 30), Shift(0, 5)))
    good(engine, append(0, 145, prompt(name, 60)))
    run = engine.pair.public_bank.history.value.of(0).run
    legal, reasons = {}, set()
    for to in range(run.start, run.stop + 1):
        try:
            engine.judge(Rewind(0, to))
        except Rejected as refusal:
            reasons.add(refusal.reason)
            legal[to] = refusal.nearest
        else:
            legal[to] = to
    assert reasons == {Reason.NO_CHECKPOINT}
    good_targets = [to for to, nearest in legal.items() if nearest == to]
    assert {69, run.stop} <= set(good_targets)  # the checkpoint at 64 tokens, and the end
    assert len(good_targets) < len(legal)
    for to, nearest in legal.items():
        assert nearest == min(good_targets, key=lambda t: (abs(t - to), t)), to
    for to in sorted(good_targets)[:2]:
        good(engine, Fork(0, 1 + to, None if to == run.start else to))
    result = run_check(engine, "same-as-fresh")
    assert result.ok, result.sentence


def test_a_fork_is_never_sent_to_take_nothing() -> None:
    """The checkpoint at 64 tokens is the first live position: a rewind may go there, not a fork."""
    engine = session(mode="fast")
    good(engine, append(0, 0, prompt(n=90)))
    good(engine, EvictFront(0, 64))
    rewind, fork = (engine.apply(op) for op in (Rewind(0, 70), Fork(0, 1, 70)))
    assert (rewind.result, rewind.nearest) == ("rejected: no-checkpoint", 64)
    assert (fork.result, fork.nearest) == ("rejected: no-checkpoint", 90)
    good(engine, Fork(0, 1, 90))
    good(engine, Rewind(0, 64))
    assert run_check(engine, "same-as-fresh").ok


@pytest.mark.parametrize("token", [-1, 256, 2**31, 2**63, 2**70, -(2**70), 1.5, None])
def test_a_token_that_the_model_does_not_have_is_refused(token: object) -> None:
    engine = session(mode="fast")
    good(engine, append(0, 0, [1, 2]))
    before = engine.digests()
    record = engine.apply(append(0, 2, [255, token, 3]))  # type: ignore[list-item]
    assert record.result == "rejected: token"
    assert "token at position 3 must be from 0 to 255" in record.sentence
    assert engine.digests() == before
    good(engine, append(0, 2, np.array([255, 0, 3])))  # type: ignore[arg-type]


def test_tokens_for_positions_are_fixed_and_in_the_vocabulary() -> None:
    ids = tokens_for(range(5000), 256)
    assert ids.min() >= 0
    assert ids.max() < 256
    assert len(np.unique(ids)) > 200
    assert np.array_equal(tokens_for(range(100, 200), 256), ids[100:200])
    far = 2**31 - 1
    assert tokens_for([far], 256)[0] == (far * 2654435761 + 40503 >> 7) % 256
    assert CHECKPOINT_TOKENS == 64
