"""A session on models of mlx-lm: outcomes, proofs from the bytes, going back, its limits."""

from __future__ import annotations

import random

import mlx.core as mx
import numpy as np
import pytest

from engine.commands import ReadArray
from engine.errors import Unreadable
from engine.faults import Fault
from engine.lm_checks import audit, same_as_fresh
from engine.lm_session import LmSession
from engine.lm_views import arrays_of, read_array
from engine.ops import (
    Append,
    Copy,
    EvictFront,
    Fail,
    Fork,
    Op,
    Remove,
    Reset,
    Restore,
    Rewind,
    Save,
    Shift,
    Transaction,
)
from engine.protect import views
from engine.snapshot import CheckResult, Record
from engine.terms import FailKind
from tests.helpers.mlxlm_models import CONFIGS, VOCABULARY, tiny_model

PROMPT = np.random.default_rng(5).integers(1, VOCABULARY - 1, 30).tolist()


def session_of(name: str = "qwen3_next", mode: str = "inspect") -> LmSession:
    return LmSession(tiny_model(name), name=name, mode=mode)


def feed(session: LmSession, tokens: list[int], seq: int = 0) -> Record:
    start = session.history.of(seq).run.n
    return session.apply(Append(seq, range(start, start + len(tokens)), tuple(tokens)))


def end_of(steps: object) -> CheckResult:
    while True:
        try:
            next(steps)  # type: ignore[call-overload]
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]


@pytest.mark.parametrize("name", sorted(CONFIGS))
def test_state_and_logits_are_those_of_the_plain_model(name: str) -> None:
    session, model = session_of(name), tiny_model(name)
    from mlx_lm.models.cache import make_prompt_cache

    cache = make_prompt_cache(model)
    for part in (PROMPT[:11], PROMPT[11:12], PROMPT[12:]):
        assert feed(session, part).outcome == "ok"
        logits = np.array(model(mx.array([part]), cache=cache)[0])
        assert np.allclose(session.new_logits[0], logits, rtol=1e-4, atol=1e-5)
    assert session.digests(layers_only=True) == tuple(views.digests(cache).items())
    view = session.snapshot().sequences[0]
    assert (view.start, view.stop, view.consumed) == (0, 30, 30)
    assert {part.last for part in view.parts} == {29}
    assert {part.owner for part in view.parts} == {o.name for o in session.snapshot().owners}
    assert session.snapshot().exact == "unproved"


@pytest.mark.parametrize("mode", ["inspect", "fast"])
@pytest.mark.parametrize("kind", ["structural", "nonfinite", "command", "cancel"])
def test_a_failure_after_any_layer_changes_no_byte(kind: str, mode: str) -> None:
    session, twin = session_of(mode=mode), session_of(mode=mode)
    for one in (session, twin):
        feed(one, PROMPT[:17])
    before = session.digests()
    for layer in range(4):
        fault = Fault(f"layer.{layer}", FailKind(kind))
        session.faults[:] = [fault]
        record = feed(session, PROMPT[17:20])
        assert fault.fired == 1
        assert record.outcome == ("cancelled" if kind == "cancel" else "failed")
        assert (record.stage, record.kind) == (f"layer.{layer}", kind)
        assert record.digests_before == record.digests_after == before == session.digests()
        states = {view.name: view.state for view in record.stages}
        assert states["load"] == "done"
        assert states[f"layer.{layer}"] == "failed"
        assert states["publish"] == "not reached"
        assert session.history.of(0).run.n == 17
    for one in (session, twin):
        assert feed(one, PROMPT[17:]).outcome == "ok"
    assert session.digests() == twin.digests()


@pytest.mark.parametrize("stage", ["reserve", "load", "verify", "publish"])
def test_a_failure_of_the_transaction_itself_changes_no_byte(stage: str) -> None:
    session = session_of()
    feed(session, PROMPT[:17])
    before = session.digests()
    for kind in (FailKind.STRUCTURAL, FailKind.COMMAND, FailKind.CANCEL):
        during = Append(0, range(17, 20), tuple(PROMPT[17:20]))
        record = session.apply(Fail(stage, kind, during))
        assert (record.op, record.stage, record.kind) == ("fail", stage, str(kind))
        assert record.digests_after == before == session.digests()
        assert session.history.of(0).run.n == len(session.sequences[0].tokens) == 17
    assert feed(session, PROMPT[17:]).outcome == "ok"


def test_a_nan_is_named_with_its_position() -> None:
    session = session_of()
    feed(session, PROMPT[:10])
    session.faults.append(Fault("layer.1", FailKind.NONFINITE))
    record = feed(session, PROMPT[10:14])
    assert record.bad_value == "NaN in layer.1 sequence 0 position 13"


def test_faults_pass_fire_and_stay_as_armed() -> None:
    session = session_of("llama")
    session.faults.append(Fault("layer.2", FailKind.STRUCTURAL, times=2, skip=1))
    outcomes = [feed(session, [1, 2]).outcome for _ in range(4)]
    assert outcomes == ["ok", "failed", "failed", "ok"]


def test_stages_have_times_and_what_they_write() -> None:
    record = feed(session_of("deepseek_v32"), PROMPT)
    assert [view.name for view in record.stages] == [
        *("reserve", "load", "layer.0", "layer.1", "layer.2", "verify", "publish")
    ]
    assert {view.state for view in record.stages} == {"done"}
    assert record.stages[3].writes == ("layer.1.0", "layer.1.1")
    assert 0 < sum(view.time_ns for view in record.stages) <= record.duration_ns


@pytest.mark.parametrize(
    ("op", "reason"),
    [
        (Append(0, (30, 32), (1, 2)), "not-consecutive"),
        (Append(0, (29,), (1,)), "overlap"),
        (Append(0, (31,), (1,)), "gap"),
        (Append(1, (5,), (1,)), "not-derivable"),
        (Append(0, (30,), (VOCABULARY,)), "token"),
        (Rewind(0, 31), "out-of-range"),
        (EvictFront(0, 3), "not-derivable"),
        (Shift(0, 4), "not-derivable"),
        (Remove(0, 0, 3), "not-derivable"),
        (Remove(0, 3, 6), "internal-hole"),
        (Copy(0, 2, 3, 9), "not-derivable"),
        (Restore(0, "nothing"), "unknown-slot"),
        (Transaction((Rewind(0, 9), Append(0, (9,), (1,)))), "not-derivable"),
    ],
)
def test_what_is_refused_changes_no_byte(op: Op, reason: str) -> None:
    session = session_of()
    feed(session, PROMPT)
    before = session.digests()
    record = session.apply(op)
    assert (record.outcome, record.reason) == ("rejected", reason)
    assert record.txn is None
    assert record.digests_before == record.digests_after == before == session.digests()
    assert session.flips == 1


@pytest.mark.parametrize("name", ["llama", "qwen3_next", "gemma3_text"])
def test_back_forks_slots_and_undo_give_the_state_of_then(name: str) -> None:
    session, then = session_of(name), session_of(name)
    feed(session, PROMPT[:12])
    feed(then, PROMPT[:12])
    feed(session, PROMPT[12:20])
    whole = session.digests()
    assert session.apply(Save(0, "kept")).outcome == "ok"
    assert session.apply(Fork(0, 3, 12)).outcome == "ok"
    assert session.sequences[3].digests() == then.sequences[0].digests()
    assert session.apply(Rewind(0, 12)).outcome == "ok"
    assert session.sequences[0].digests() == then.sequences[0].digests()
    undone = session.undo()
    assert isinstance(undone, Record)
    assert session.history.of(0).run.n == 20
    assert session.apply(Reset(0)).outcome == "ok"
    assert session.apply(Restore(0, "kept")).outcome == "ok"
    assert session.apply(Reset(3)).outcome == "ok"
    session.slots.clear()
    assert session.digests() == whole
    assert feed(session, PROMPT[20:]).outcome == "ok"
    assert isinstance(session.undo(), str)
    assert end_of(same_as_fresh(session)).ok
    assert end_of(audit(session)).ok


def test_checks_find_a_changed_byte() -> None:
    session = session_of("llama")
    feed(session, PROMPT)
    assert end_of(audit(session)).ok
    session.sequences[0].cache[2].keys[0, 0, 3, 1] += 1.0
    found = end_of(audit(session))
    assert not found.ok
    assert "layer.2" in found.sentence
    found = end_of(same_as_fresh(session))
    assert not found.ok
    assert "layer.2" in found.sentence


def test_rows_are_read_by_position_oldest_first() -> None:
    session = session_of("gemma3_text")
    for token in PROMPT:
        feed(session, [token])
    for owner, cache in views.owners(session.sequences[0].cache):
        assert (owner, -1, "keys") in arrays_of(session.sequences[0])
        rows = read_array(session.sequences[0], ReadArray(owner, -1, "keys", 0))
        runs = views.runs(cache)
        assert runs is not None
        assert (rows.start, rows.start + len(rows.values)) == (runs[0][0][0], 30)
        part = read_array(session.sequences[0], ReadArray(owner, -1, "keys", 0, "public", 25, 28))
        assert part.start == 25
        assert np.array_equal(part.values, rows.values[25 - rows.start : 28 - rows.start])
    with pytest.raises(Unreadable, match="one set of caches"):
        read_array(session.sequences[0], ReadArray("layer.0", -1, "keys", 0, "private"))
    with pytest.raises(Unreadable, match=r"no layer\.9"):
        read_array(session.sequences[0], ReadArray("layer.9", -1, "keys", 0))


def test_a_window_layer_covers_the_newest_positions() -> None:
    session = session_of("gemma3_text")
    for token in PROMPT:
        feed(session, [token])
    units = {view.name: view.unit for view in session.snapshot().owners}
    parts = {part.owner: part for part in session.views()[0].parts}
    assert units["layer.0"] == "window"
    assert (parts["layer.0"].first, parts["layer.0"].last, parts["layer.0"].count) == (18, 29, 12)
    assert units["layer.1"] == "position"
    assert (parts["layer.1"].first, parts["layer.1"].last, parts["layer.1"].count) == (0, 29, 30)


def test_random_lives_end_as_a_life_without_failures(long_profile: bool) -> None:
    seed = random.randrange(2**32) if long_profile else 20_261_130
    print(f"seed {seed}")
    rng = random.Random(seed)
    for name in ("qwen3_next", "gemma3_text"):
        session, twin = session_of(name), session_of(name)
        for _ in range(60 if long_profile else 15):
            tokens = [rng.randrange(VOCABULARY) for _ in range(rng.randint(1, 9))]
            n = session.history.of(0).run.n
            if rng.random() < 0.5:
                stage = f"layer.{rng.randrange(4)}"
                kind = rng.choice(["structural", "nonfinite", "command", "cancel"])
                during = Append(0, range(n, n + len(tokens)), tuple(tokens))
                assert session.apply(Fail(stage, FailKind(kind), during)).outcome != "ok"
            elif rng.random() < 0.2 and n:
                to = rng.randint(0, n)
                assert session.apply(Rewind(0, to)).outcome == "ok"
                assert twin.apply(Rewind(0, to)).outcome == "ok"
            else:
                assert feed(session, tokens).outcome == feed(twin, tokens).outcome == "ok"
            assert session.digests() == twin.digests()
