"""Bit for bit: every owner is the same for any cutting, interleaving and way back."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from engine.checks import run_check
from engine.derive import CHECKPOINT_TOKENS
from engine.engine import Engine, append
from engine.ops import Copy, EvictFront, Fork, Remove, Reset, Restore, Rewind, Save, Shift
from engine.session_file import save_session
from tests.helpers import golden
from tests.helpers.engines import Bytes, batch, feed, good, prompt, public, session
from tests.helpers.engines import raw as raw_bytes

pytestmark = pytest.mark.parametrize("name", golden.MODELS)
N = 150
"""Tokens: two checkpoints, a partial block, a tail."""


def one_pass(name: str, tokens: list[int], start: int = 0, seq: int = 0) -> Bytes:
    engine = session(name, mode="fast")
    good(engine, append(seq, start, tokens))
    return public(engine)


def test_every_chunk_size_and_both_modes(name: str) -> None:
    tokens = prompt(name, N)
    expected = one_pass(name, tokens)
    for mode in ("inspect", "fast"):
        for chunk in (1, 3, 5, 64):
            if mode == "inspect" and chunk == 1:
                continue
            engine = session(name, mode=mode, prove="failures")
            feed(engine, 0, 0, tokens, chunk)
            assert public(engine) == expected, (mode, chunk)
            engine.audit()


def test_random_chunkings(name: str, long_profile: bool) -> None:
    seed = 20_261_129
    print("seed", seed)
    random = np.random.default_rng(seed)
    tokens = prompt(name, 90)
    expected = one_pass(name, tokens)
    for _ in range(200 if long_profile else 6):
        engine = session(name, mode="fast", prove="failures")
        at = 0
        while at < len(tokens):
            n = int(random.integers(1, random.choice([3, 9, 40])))
            part = tokens[at : at + n]
            good(engine, append(0, at, part, int(random.integers(1, 9))))
            at += len(part)
        assert public(engine) == expected


def test_four_sequences_in_turn_and_together(name: str) -> None:
    seed = 7
    print("seed", seed)
    random = np.random.default_rng(seed)
    lines = {seq: prompt(name, 70)[seq * 3 :] for seq in range(4)}
    expected: Bytes = {}
    for seq, tokens in lines.items():
        expected.update(
            {k: v for k, v in one_pass(name, tokens, 0, seq).items() if "marks" not in k}
        )
    engine = session(name, mode="fast", audit_each=True)
    at = dict.fromkeys(lines, 0)
    while any(at[s] < len(t) for s, t in lines.items()):
        waiting = [s for s, t in lines.items() if at[s] < len(t)]
        chosen = random.permutation(waiting)[: int(random.integers(1, 3))]
        ops = []
        for seq in map(int, chosen):
            part = lines[seq][at[seq] : at[seq] + int(random.integers(1, 12))]
            ops.append(append(seq, at[seq], part))
            at[seq] += len(part)
        good(engine, batch(*ops))
    found = {k: v for k, v in public(engine).items() if "marks" not in k}
    assert found == expected


@pytest.mark.parametrize("to", [0, 1, 63, 64, 65, 70, 128, 149, 150])
def test_rewind_and_replay_equals_fresh(name: str, to: int) -> None:
    tokens = prompt(name, N)
    engine = session(name, mode="fast", audit_each=True)
    good(engine, append(0, 10, tokens))
    good(engine, Rewind(0, 10 + to))
    assert public(engine) == (one_pass(name, tokens[:to], 10) if to else session_bytes(name))
    if to < N:
        good(engine, append(0, 10 + to, tokens[to:]))
    assert public(engine) == one_pass(name, tokens, 10)


def session_bytes(name: str) -> Bytes:
    return public(session(name))


def test_suffix_removal_is_a_rewind(name: str) -> None:
    tokens = prompt(name, N)
    engine = session(name)
    good(engine, append(0, 0, tokens))
    good(engine, Remove(0, 100, None))
    assert public(engine) == one_pass(name, tokens[:100])


@pytest.mark.parametrize("evict_first", [False, True])
def test_removing_everything_leaves_no_memory(name: str, evict_first: bool) -> None:
    engine = session(name, audit_each=True)
    good(engine, append(0, 0, prompt(name, 70)))
    if evict_first:
        good(engine, EvictFront(0, 9))
    good(engine, Remove(0, None, None))
    assert public(engine) == session_bytes(name)
    good(engine, append(0, 33, prompt(name, 5)))
    assert public(engine) == one_pass(name, prompt(name, 5), 33)


@pytest.mark.parametrize("stop", [1, 66, 127, None])
def test_fork_and_diverge_equals_separate_runs(name: str, stop: int | None) -> None:
    tokens, other = prompt(name, N), list(reversed(prompt(name, 40)))
    engine = session(name, mode="fast", audit_each=True)
    good(engine, append(0, 0, tokens))
    good(engine, Copy(0, 1, 0, stop) if stop == 127 else Fork(0, 1, stop))
    cut = N if stop is None else stop
    good(engine, batch(append(1, cut, other), append(0, N, other[:7])))
    expected = {**one_pass(name, tokens + other[:7], 0, 0)}
    twin = one_pass(name, tokens[:cut] + other, 0, 1)
    for key, value in public(engine).items():
        if key.startswith("marks"):
            continue
        assert value == (twin if key.endswith(" 1") else expected)[key], key


def test_restore_brings_every_owner_back(name: str) -> None:
    tokens = prompt(name, N)
    engine = session(name, audit_each=True)
    good(engine, append(0, 5, tokens[:70]))
    before = {k: v for k, v in public(engine).items() if k.endswith(" 0")}
    good(engine, Save(0, "mark"))
    good(engine, append(0, 75, tokens[70:]))
    good(engine, EvictFront(0, 30))
    good(engine, Restore(0, "mark"))
    assert {k: v for k, v in public(engine).items() if k.endswith(" 0")} == before
    good(engine, Restore(9, "mark"))
    nine = {k.removesuffix("9") + "0": v for k, v in public(engine).items() if k.endswith(" 9")}
    assert nine == before
    good(engine, Reset(0))
    good(engine, append(9, 75, tokens[70:]))
    nine = {k.removesuffix("9") + "0": v for k, v in public(engine).items() if k.endswith(" 9")}
    assert nine == {k: v for k, v in one_pass(name, tokens, 5).items() if k.endswith(" 0")}


@pytest.mark.parametrize("count", [1, 3, 4, 6, 61])
def test_evict_front_by_its_definition(name: str, count: int) -> None:
    """Rows go, fixed-size owners stay, groups are those of the rows that are left."""
    tokens = prompt(name, 61)
    engine = session(name, audit_each=True)
    good(engine, append(0, 0, tokens))
    before = public(engine)
    good(engine, EvictFront(0, count))
    after = public(engine)
    for key, value in before.items():
        if key.startswith(("gdn", "ple", "residual", "routes", "logits")):
            assert after[key] == value, key
        elif key.startswith(("qsa.kv", "qsa.index", "history")) and count < 61:
            assert after[key] == value[len(value) * count // 61 :], key
    if count < 61:
        fresh = session(name)
        good(fresh, append(0, 0, tokens))
        regroup = groups_of_rows(engine)
        for key, value in regroup.items():
            assert after[key] == value, key
    result = run_check(engine, "same-as-fresh")
    assert result.ok, result.sentence


def groups_of_rows(engine: Engine) -> Bytes:
    """Pooled keys by their definition, from the raw rows that stand in the bank."""
    import mlx.core as mx

    from engine.graph.numeric import rms
    from engine.owners.positional import PositionalOwner

    model, bank = engine.model, engine.pair.public_bank
    assert model is not None
    raw, look = bank.owners["qsa.index"], bank.look(0)
    assert isinstance(raw, PositionalOwner)
    found: Bytes = {}
    for p in raw.places:
        rows = raw.host(p.place, look, look.evicted, look.consumed)
        rows4 = mx.array(rows[: look.n_groups * 4].reshape(-1, 4, rows.shape[-1]))
        weights = model.layers[p.layer].qsa
        assert weights is not None
        mean = (((rows4[:, 0] + rows4[:, 1]) + rows4[:, 2]) + rows4[:, 3]) / 4
        pooled = rms(mean, weights.index_k_norm, model.config.rms_norm_eps)
        found[f"qsa.groups {(p.layer, '')} 0"] = raw_bytes(pooled.astype(model.dtype))
    return found


def test_shift_changes_positions_only(name: str) -> None:
    tokens = prompt(name, 61)
    engine = session(name, audit_each=True)
    good(engine, append(0, 0, tokens))
    before = public(engine)
    for delta in (1000, -999, 2**31 - 70, -(2**31 - 71)):
        good(engine, Shift(0, delta))
    after = public(engine)
    changed = {k for k in before if before[k] != after[k]}
    assert changed <= {"run 0", "tokens 0"}
    assert after["run 0"] == (2, 63)
    result = run_check(engine, "same-as-fresh")
    assert result.ok, result.sentence


def test_a_long_life_is_the_same_as_fresh(name: str) -> None:
    tokens = prompt(name, 400)
    engine = session(name, mode="fast", audit_each=True, window=40)
    good(engine, append(0, 3, tokens[:100]))
    assert engine.snapshot().sequences[0].n_live <= 40
    good(engine, Fork(0, 1))
    good(engine, Shift(1, 500))
    good(engine, append(1, engine.snapshot().sequences[1].stop, tokens[100:150]))
    good(engine, Save(1, "s"))
    good(engine, EvictFront(0, 5))
    good(engine, append(0, 103, tokens[100:131], 7))
    engine.compact()
    good(engine, Restore(4, "s"))
    good(engine, append(4, engine.snapshot().sequences[2].stop, tokens[:9]))
    result = run_check(engine, "same-as-fresh")
    assert result.ok, result.sentence
    engine.audit()


def test_window_append_equals_explicit_evictions(name: str) -> None:
    tokens = prompt(name, 61)
    windowed, explicit = session(name, mode="fast", window=16), session(name, mode="fast")
    good(windowed, append(0, 0, tokens))
    for at, token in enumerate(tokens):
        if explicit.pair.public_bank.look(0).n_live == 16:
            good(explicit, EvictFront(0, 4))
        good(explicit, append(0, at, [token]))
    assert public(windowed) == public(explicit)


def test_no_checkpoint_names_a_target_that_works(name: str) -> None:
    tokens = prompt(name, 3 * CHECKPOINT_TOKENS + 9)
    engine = session(name, mode="fast")
    good(engine, append(0, 0, tokens))
    good(engine, EvictFront(0, 70))
    before = engine.digests()
    refused = engine.apply(Rewind(0, 150))
    assert refused.result == "rejected: no-checkpoint"
    assert engine.digests() == before
    assert refused.nearest is not None
    good(engine, Rewind(0, refused.nearest))
    assert run_check(engine, "same-as-fresh").ok


def test_what_is_legal_does_not_depend_on_the_cut(name: str) -> None:
    tokens = prompt(name, 150)
    answers = set()
    for chunk in (7, 64, 150):
        engine = session(name, mode="fast", prove="failures")
        feed(engine, 0, 0, tokens, chunk)
        good(engine, EvictFront(0, 9))
        feed(engine, 0, 150, tokens[:60], chunk)
        results = []
        for to in range(9, 211, 13):
            refused = engine.begin(Rewind(0, to))
            results.append((to, refused and (refused.result, refused.nearest)))
            if refused is None:
                engine.discard()
        answers.add(tuple(results))
    assert len(answers) == 1


def test_middle_ranges_have_no_meaning_with_a_model(name: str) -> None:
    engine = session(name)
    good(engine, append(0, 0, prompt(name, 20)))
    good(engine, append(1, 0, prompt(name, 5)))
    before = engine.digests()
    for op in (
        batch(Remove(0, 4, 8), Shift(0, -4, 8, None)),
        Copy(0, 5, 3, 9),
        Copy(0, 1, 5, 9),
    ):
        assert engine.apply(op).result == "rejected: not-derivable"
    assert engine.digests() == before


def test_save_and_restore_in_a_new_process(name: str, tmp_path: Path) -> None:
    tokens = prompt(name, 100)
    engine = session(name, mode="fast")
    good(engine, append(0, 5, tokens[:70]))
    good(engine, Save(0, "slot"))
    good(engine, EvictFront(0, 3))
    file = tmp_path / "a.safetensors"
    save_session(engine, file)
    good(engine, append(0, 75, tokens[70:]))
    script = (
        "import json, sys\n"
        "from engine import append, load_session, open_engine\n"
        "e = open_engine(sys.argv[1], mode='fast', dtype=sys.argv[4] or None)\n"
        "load_session(e, sys.argv[2])\n"
        "e.apply(append(0, 75, json.loads(sys.argv[3])))\n"
        "print(json.dumps(e.digests()))\n"
    )
    arguments = [str(golden.MODELS[name]), str(file), json.dumps(tokens[70:])]
    arguments.append(os.environ.get("BANKFLIP_TEST_DTYPE", ""))
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        capture_output=True,
        text=True,
        cwd=golden.ROOT,
        check=True,
    )
    assert [tuple(pair) for pair in json.loads(done.stdout)] == list(engine.digests())
