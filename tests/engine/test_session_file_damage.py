"""Saved sessions that were damaged: refused by name, and the session is as before."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine import load_session, memory, run_check, save_session
from engine.engine import append
from engine.errors import Malformed, Unreadable
from engine.ops import Save
from engine.tensor_file import TensorFile
from tests.helpers.engines import good, prompt, session
from tests.helpers.session_files import TINY, File, full, refused

FLOATS = {"F32": "<f4", "BF16": "<u2"}


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("saved") / "a.safetensors"
    save_session(full(), path)
    return path


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


def test_tensors_larger_than_the_memory_are_refused_unread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sparse file says anything about its size."""
    engine, n = full(), 1 << 30
    path = tmp_path / "a.safetensors"
    save_session(engine, path)
    file = File(path.read_bytes())
    entry = {"dtype": "I64", "shape": [n], "data_offsets": [0, 8 * n]}
    text = json.dumps({"__metadata__": file.metadata, "0.tokens": entry}).encode()
    with path.open("wb") as out:
        out.write(len(text).to_bytes(8, "little") + text)
        out.truncate(8 + len(text) + 8 * n)
    monkeypatch.setattr(memory, "device_memory", lambda _: 8 * n - 1)
    monkeypatch.setattr(TensorFile, "read", lambda _, name: pytest.fail(f"{name} was read"))
    before = engine.digests()
    with pytest.raises(Unreadable, match=f"tensors do not fit, .* found {8 * n:,}"):
        load_session(engine, path)
    assert engine.digests() == before


def test_halves_of_a_pair_in_the_metadata(saved: Path, tmp_path: Path) -> None:
    for change in ("model", "slot"):
        file = File(saved.read_bytes())
        about = file.about
        if change == "model":
            about["model"] = "\ud800"
        else:
            about["keys"][-1]["key"] = "\ud800"
        file.about = about
        path = tmp_path / "a.safetensors"
        path.write_bytes(file.data())
        with pytest.raises(Unreadable):
            load_session(full(), path)
