"""Saved sessions: written whole or not at all, and read with suspicion."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from engine import load_session, read_about, run_check, save_session
from engine.engine import Engine, append
from engine.errors import Rejected
from engine.ops import EvictFront, Rewind, Save
from tests.helpers import golden
from tests.helpers.engines import good, public, session
from tests.helpers.session_files import TINY, full, refused


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("saved") / "a.safetensors"
    save_session(full(), path)
    return path


# writing


def test_a_session_comes_back_whole(saved: Path) -> None:
    expected, engine = full(), session(TINY)
    good(engine, append(7, 0, [9]))
    record = load_session(engine, saved)
    assert (record.outcome, record.op) == ("ok", "load")
    assert public(engine) == public(expected)
    assert engine.digests() == expected.digests()
    engine.audit()
    assert run_check(engine, "same-as-fresh").ok
    for both in (engine, expected):
        good(both, append(2, 77, [4, 5, 6, 7]))
        good(both, Rewind(2, 72))  # the checkpoint at 64 tokens
    assert public(engine) == public(expected)
    assert run_check(engine, "same-as-fresh").ok


def test_other_sessions_loaded_one_after_the_other(saved: Path, tmp_path: Path) -> None:
    small, engine = session(TINY, mode="fast"), session(TINY, mode="fast")
    good(small, append(0, 0, [1, 2]))
    save_session(small, tmp_path / "b")
    first, second = (saved, full()), (tmp_path / "b", small)
    # each bank in turn gets the other session
    for path, expected in (first, first, second, second, first):
        load_session(engine, path)
        assert engine.digests(recompute=False) == engine.digests() == expected.digests()


def test_what_a_file_says_of_itself(saved: Path) -> None:
    about = read_about(saved)
    assert (about["model"], about["group_size"], about["format"]) == (
        TINY,
        4,
        "bankflip-session-1",
    )
    runs = {entry["key"]: (entry["start"], entry["stop"]) for entry in about["keys"]}
    assert runs == {0: (11, 74), 2: (11, 77), "slot": (3, 69)}


def test_an_empty_session_and_one_that_evicted_everything(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    for engine in (session(TINY), Engine(None)):
        save_session(engine, path)
        other = Engine(engine.model, name=engine.name)
        good(other, append(0, 0, [1, 2]))
        load_session(other, path)
        assert other.digests() == engine.digests()
    engine = session(TINY)
    good(engine, append(0, 5, [1, 2, 3]))
    good(engine, EvictFront(0, 3))
    save_session(engine, path)
    other = session(TINY)
    load_session(other, path)
    assert other.digests() == engine.digests()
    for both in (engine, other):
        good(both, append(0, 9, [4]))
    assert public(other) == public(engine)
    assert run_check(other, "same-as-fresh").ok


def test_sessions_without_a_model(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    engine = Engine(None, capacity=100)
    good(engine, append(0, 2**31 - 40, [0] * 40))
    good(engine, Save(0, "far"))
    good(engine, EvictFront(0, 7))
    save_session(engine, path)
    other = Engine(None, capacity=100)
    load_session(other, path)
    assert public(other) == public(engine)
    assert other.digests() == engine.digests()
    small = Engine(None, capacity=30)
    assert "legal runs" in refused(small, path)
    assert "group size" in refused(Engine(None, group_size=8), path)
    assert "window" in refused(Engine(None, window=8), path)


def test_any_sequence_that_can_be_made_can_be_saved(tmp_path: Path) -> None:
    engine = session(TINY, mode="fast")
    for seq in (-(2**40), -1, 0, 2**40):
        good(engine, append(seq, 0, [1, 2]))
    good(engine, Save(-1, "\u00e9\0 slot"))
    save_session(engine, tmp_path / "a")
    other = session(TINY, mode="fast")
    load_session(other, tmp_path / "a")
    assert other.digests() == engine.digests()


def test_the_wrong_model_is_refused_and_named(saved: Path) -> None:
    for engine in (session("qwen4exp-mixed"), Engine(None)):
        assert TINY in refused(engine, saved)
        good(engine, append(0, 0, [1]))


def test_a_file_that_cannot_be_written(tmp_path: Path) -> None:
    engine = session(TINY)
    good(engine, append(0, 0, [1]))
    for path in (tmp_path / "none" / "a.safetensors", tmp_path):
        with pytest.raises(OSError, match=str(tmp_path)):
            save_session(engine, path)
    assert list(tmp_path.iterdir()) == []


def test_loading_waits_for_the_open_transaction(saved: Path) -> None:
    engine = session(TINY)
    engine.begin(append(0, 0, [1, 2]))
    engine.step()
    with pytest.raises(Rejected, match="busy"):
        load_session(engine, saved)
    assert engine.finish().outcome == "ok"
    load_session(engine, saved)


def test_saving_while_a_transaction_is_open_writes_the_public_state(tmp_path: Path) -> None:
    engine = session(TINY)
    good(engine, append(0, 0, [1, 2, 3]))
    digests = engine.digests()
    engine.begin(append(0, 3, [4, 5]))
    for _ in range(12):
        engine.step()
    save_session(engine, tmp_path / "a.safetensors")
    engine.finish()
    other = session(TINY)
    load_session(other, tmp_path / "a.safetensors")
    assert other.digests() == digests


CHILD = """
import sys, time
from engine import append, load_session, open_engine, save_session
from engine.ops import EvictFront
engines = []
for seed in (1, 2):
    engine = open_engine("qwen4exp-tiny", backend="cpu", mode="fast")
    engine.apply(append(0, seed, [(seed * 7 + n) % 250 for n in range(40 * seed)]))
    engines.append(engine)
    print(dict(engine.digests())["logits"], flush=True)
save_session(engines[0], sys.argv[1])
print("ready", flush=True)
for n in range(int(sys.argv[2])):
    save_session(engines[n % 2], sys.argv[1])
print("done", flush=True)
time.sleep(60)
"""


def test_a_save_that_is_killed_leaves_the_old_file_or_the_new_one(
    tmp_path: Path, long_profile: bool
) -> None:
    n_kills, n_saves = (25, 200) if long_profile else (4, 50)
    seed = int(os.environ.get("BANKFLIP_SEED", time.time_ns() % 10**6))
    print("seed", seed)
    choice = random.Random(seed)
    path = tmp_path / "a.safetensors"
    engine, found = session(TINY, mode="fast"), set()
    for _ in range(n_kills):
        child = subprocess.Popen(
            [sys.executable, "-c", CHILD, str(path), str(n_saves)],
            stdout=subprocess.PIPE,
            cwd=golden.ROOT,
        )
        assert child.stdout is not None
        legal = {child.stdout.readline().strip().decode() for _ in range(2)}
        assert child.stdout.readline().strip() == b"ready"
        time.sleep(choice.uniform(0, 0.2))
        child.kill()
        child.wait()
        child.stdout.close()
        load_session(engine, path)
        logits = dict(engine.digests())["logits"]
        assert logits in legal
        found.add(logits)
        engine.audit()
    assert len(found) >= 1
