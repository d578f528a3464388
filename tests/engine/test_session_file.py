"""Saved sessions: written whole or not at all, and read with suspicion."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine import load_session, read_about, run_check, save_session
from engine.engine import Engine, append
from engine.errors import Malformed, Rejected, Unreadable
from engine.ops import EvictFront, Fork, Rewind, Save, Shift
from tests.helpers import golden
from tests.helpers.engines import good, prompt, public, session

TINY = "qwen4exp-tiny"
FLOATS = {"F32": "<f4", "BF16": "<u2"}


def full(**settings: Any) -> Engine:
    """A session with evicted and moved positions, a checkpoint, a slot and a fork."""
    engine = session(TINY, mode="fast", **settings)
    good(engine, append(0, 3, prompt(TINY, 66)))
    good(engine, Save(0, "slot"))
    good(engine, EvictFront(0, 3))
    good(engine, Shift(0, 5))
    good(engine, Fork(0, 2))
    good(engine, append(2, 74, [1, 2, 3]))
    return engine


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("saved") / "a.safetensors"
    save_session(full(), path)
    return path


class File:
    """A safetensors file taken apart by its definition: length, JSON, bytes."""

    def __init__(self, data: bytes) -> None:
        n = int.from_bytes(data[:8], "little")
        header = json.loads(data[8 : 8 + n])
        self.metadata: dict[str, str] = header.pop("__metadata__")
        self.tensors: dict[str, tuple[str, list[int], bytes]] = {
            name: (e["dtype"], e["shape"], data[8 + n :][slice(*e["data_offsets"])])
            for name, e in header.items()
        }

    @property
    def about(self) -> Any:
        return json.loads(self.metadata["bankflip"])

    @about.setter
    def about(self, value: Any) -> None:
        self.metadata["bankflip"] = json.dumps(value)

    def data(self) -> bytes:
        header: dict[str, Any] = {"__metadata__": self.metadata}
        at, parts = 0, []
        for name, (dtype, shape, part) in self.tensors.items():
            header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(part)]}
            at += len(part)
            parts.append(part)
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        return len(text).to_bytes(8, "little") + text + b"".join(parts)


def refused(engine: Engine, path: Path) -> str:
    """The sentence of a refusal that left the session as it was and usable."""
    before = engine.digests()
    with pytest.raises((Unreadable, Malformed)) as caught:
        load_session(engine, path)
    assert engine.digests() == before
    assert "\n" not in str(caught.value)
    return str(caught.value)


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


# reading


def names(path: Path) -> list[str]:
    return sorted(File(path.read_bytes()).tensors)


def change_each(
    saved: Path, path: Path, change: Callable[[File, str], bool], says: Callable[[str], str]
) -> int:
    """Spoil one tensor after the other: each is refused by name, and the session stays."""
    engine = session(TINY, mode="fast")
    good(engine, append(0, 0, [1, 2, 3]))
    data, n = saved.read_bytes(), 0
    for name in names(saved):
        file = File(data)
        if change(file, name):
            n += 1
            path.write_bytes(file.data())
            sentence = refused(engine, path)
            assert says(name) in sentence, (name, sentence)
    good(engine, append(0, 3, [4]))
    assert run_check(engine, "same-as-fresh").ok
    load_session(engine, saved)
    return n


def test_a_tensor_that_is_renamed(saved: Path, tmp_path: Path) -> None:
    def rename(file: File, name: str) -> bool:
        file.tensors[f"{name}x"] = file.tensors.pop(name)
        return True

    assert change_each(saved, tmp_path / "b", rename, lambda n: f"tensor {n},") > 60


def test_a_tensor_of_the_wrong_shape(saved: Path, tmp_path: Path) -> None:
    def reshape(file: File, name: str) -> bool:
        dtype, shape, part = file.tensors[name]
        file.tensors[name] = (dtype, [*shape, 1], part)
        return True

    assert change_each(saved, tmp_path / "b", reshape, lambda n: f"shape of tensor {n},") > 60


def test_a_tensor_with_a_row_less(saved: Path, tmp_path: Path) -> None:
    def shorten(file: File, name: str) -> bool:
        dtype, shape, part = file.tensors[name]
        if not shape or shape[0] < 2:
            return False
        file.tensors[name] = (dtype, [shape[0] - 1, *shape[1:]], part[: -(len(part) // shape[0])])
        return True

    assert change_each(saved, tmp_path / "b", shorten, lambda n: f"tensor {n},") > 60


def test_a_tensor_of_the_wrong_dtype(saved: Path, tmp_path: Path) -> None:
    other = {"F32": "I32", "I32": "F32", "I64": "U64", "BF16": "I16"}

    def retype(file: File, name: str) -> bool:
        dtype, shape, part = file.tensors[name]
        file.tensors[name] = (other[dtype], shape, part)
        return True

    assert change_each(saved, tmp_path / "b", retype, lambda n: f"dtype of tensor {n},") > 60


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_tensor_that_is_not_finite(saved: Path, tmp_path: Path, value: float) -> None:
    def poison(file: File, name: str) -> bool:
        dtype, shape, part = file.tensors[name]
        if dtype != "F32":
            return False
        values = np.frombuffer(part, "<f4").copy()
        values[len(values) // 2] = value
        file.tensors[name] = (dtype, shape, values.tobytes())
        return True

    assert change_each(saved, tmp_path / "b", poison, lambda n: f"tensor {n},") > 30


def test_a_tensor_whose_numbers_were_changed(saved: Path, tmp_path: Path) -> None:
    """Finite, of the right shape and dtype, and not what was saved: the digests tell."""

    def nudge(file: File, name: str) -> bool:
        dtype, shape, part = file.tensors[name]
        if "checkpoint" in name:
            return False
        file.tensors[name] = (dtype, shape, bytes([part[0] ^ 1]) + part[1:])
        return True

    assert change_each(saved, tmp_path / "b", nudge, lambda _: "expected") > 30


def test_a_file_that_ends_inside_a_tensor(saved: Path, tmp_path: Path) -> None:
    data, engine = saved.read_bytes(), session(TINY)
    n = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + n])
    del header["__metadata__"]
    for name, entry in header.items():
        first, stop = entry["data_offsets"]
        (tmp_path / "b").write_bytes(data[: 8 + n + max(first, stop - 1)])
        assert f"tensor {name} is cut" in refused(engine, tmp_path / "b")
    for size in (0, 7, 8, 9, 8 + n // 2, 8 + n - 1):
        (tmp_path / "b").write_bytes(data[:size])
        refused(engine, tmp_path / "b")
    good(engine, append(0, 0, [1]))


@pytest.mark.parametrize("key", ["0", "1", "2"])
def test_a_hole_in_the_positions(saved: Path, tmp_path: Path, key: str) -> None:
    engine = session(TINY)
    for at in (0, 1, 30, -1):
        file = File(saved.read_bytes())
        name = f"{key}.positions"
        dtype, shape, part = file.tensors[name]
        values = np.frombuffer(part, "<i4").copy()
        values[at:] += 1
        file.tensors[name] = (dtype, shape, values.tobytes())
        (tmp_path / "b").write_bytes(file.data())
        sentence = refused(engine, tmp_path / "b")
        assert "hole in the positions" in sentence
        assert name in sentence


HOSTILE: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    1,
    2**31,
    2**63,
    2**80,
    -(2**70),
    1.5,
    float("nan"),
    "",
    "slot",
    "x" * 9,
    [],
    [[]],
    [0, "evict", 2**70],
    [[0, "start", 2**70]],
    [[0, "evict", -5]],
    [[0, "shift", 2**63]],
    [True],
    {},
    {"key": 1},
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    if not isinstance(value, (dict, list)):
        return found
    for key, part in value.items() if isinstance(value, dict) else enumerate(value):
        found += places(part, (*path, key))
    return found


def put(value: Any, path: tuple[Any, ...], new: Any) -> None:
    for step in path[:-1]:
        value = value[step]
    value[path[-1]] = new


def test_hostile_metadata(saved: Path, tmp_path: Path, long_profile: bool) -> None:
    """Any value anywhere in the metadata: refused in one sentence, or without any effect."""
    seed = 8
    print("seed", seed)
    choice = random.Random(seed)
    data = saved.read_bytes()
    whole = File(data)
    trials = [(path, value) for path in places(whole.about) for value in HOSTILE]
    if not long_profile:
        trials = choice.sample(trials, 250)
    for path, value in trials:
        file, about = File(data), whole.about
        put(about, path, value)
        file.about = about
        assert_safe(data, tmp_path / "b", lambda _, f=file: f.data(), (path, value))


def test_metadata_that_is_no_metadata(saved: Path, tmp_path: Path) -> None:
    for text in (
        "",
        "{",
        "null",
        "[]",
        "3",
        '{"format": "other"}',
        "[" * 5000,
        '"' + "\\ud800" + '"',
    ):
        file = File(saved.read_bytes())
        file.metadata["bankflip"] = text
        (tmp_path / "b").write_bytes(file.data())
        refused(session(TINY), tmp_path / "b")
    file.metadata = {}
    (tmp_path / "b").write_bytes(file.data())
    assert "not a saved session" in refused(session(TINY), tmp_path / "b")
    for other in (b"", b"SQLite format 3\0", b"\xff" * 99, b"\0" * 4096):
        (tmp_path / "b").write_bytes(other)
        refused(session(TINY), tmp_path / "b")
    assert "no such file" in refused(session(TINY), tmp_path / "none")
    refused(session(TINY), tmp_path)


def assert_safe(data: bytes, path: Path, change: Callable[[bytes], bytes], told: Any) -> None:
    """Loading gives a refusal and an unchanged session, or a session with the digests saved."""
    expected = File(data).about["digests"]
    path.write_bytes(change(data))
    engine = session(TINY, mode="fast", prove="failures")
    before = engine.digests()
    try:
        load_session(engine, path)
    except (Unreadable, Malformed):
        assert engine.digests() == before, told
    except BaseException as error:
        raise AssertionError(f"{told}: {type(error).__name__}: {error}") from error
    else:
        assert dict(engine.digests()) == expected, told
        assert run_check(engine, "audit").ok, told
        engine.snapshot()
    good(engine, append(9, 0, [1]))


def test_random_bytes_flipped(tmp_path: Path, long_profile: bool) -> None:
    seed = int(os.environ.get("BANKFLIP_SEED", "17"))
    print("seed", seed)
    choice = random.Random(seed)
    engine = session(TINY, mode="fast")
    good(engine, append(0, 0, prompt(TINY, 18)))
    good(engine, Save(0, "s"))
    save_session(engine, tmp_path / "a")
    data = (tmp_path / "a").read_bytes()
    n_header = 8 + int.from_bytes(data[:8], "little")
    for n in range(5000 if long_profile else 300):
        spoiled = bytearray(data)
        # half of the flips hit the header, where there is more to break
        for _ in range(choice.choice((1, 1, 1, 2, 5))):
            at = choice.randrange(n_header if n % 2 else len(data))
            spoiled[at] ^= 1 << choice.randrange(8)
        flipped = bytes(spoiled)
        assert_safe(data, tmp_path / "b", lambda _, b=flipped: b, (seed, n))
