"""Tensors of a file, read one at a time: values, and files that change under the reader."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import mlx.core as mx
import numpy as np
import pytest
import safetensors.numpy

from engine.errors import Malformed, Unreadable
from engine.tensor_file import STORED, TensorFile

NAMES = {
    "F32": np.float32,
    "F16": np.float16,
    "I64": np.int64,
    "I32": np.int32,
    "I16": np.int16,
    "I8": np.int8,
    "U64": np.uint64,
    "U32": np.uint32,
    "U16": np.uint16,
    "U8": np.uint8,
    "BOOL": np.bool_,
}


@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3), (1,), (3, 5)])
@pytest.mark.parametrize("name", NAMES)
def test_every_type_and_shape_as_the_library_wrote_it(
    name: str, shape: tuple[int, ...], tmp_path: Path
) -> None:
    """The odd tensor in front puts the others at odd bytes."""
    rng = np.random.default_rng(3)
    values = rng.integers(0, 2 if name == "BOOL" else 100, shape).astype(NAMES[name])
    path = tmp_path / "a.safetensors"
    tensors = {"a": np.array([7], np.uint8), "x": np.asarray(values)}
    safetensors.numpy.save_file(tensors, path)
    found = TensorFile(path).read("x")
    assert found.shape == shape
    assert found.dtype == STORED[name][1]
    assert np.array(found).tobytes() == values.tobytes()


def test_bfloat16_keeps_its_bits(tmp_path: Path) -> None:
    bits = mx.arange(65_536, dtype=mx.uint32).astype(mx.uint16)
    path = tmp_path / "a.safetensors"
    mx.save_safetensors(str(path), {"x": bits.view(mx.bfloat16).reshape(256, 256)})
    found = TensorFile(path).read("x")
    assert (found.shape, found.dtype) == ((256, 256), mx.bfloat16)
    assert np.array_equal(np.array(found.view(mx.uint16)).ravel(), np.arange(65_536))


def test_a_type_that_no_array_here_has(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    safetensors.numpy.save_file({"x": np.zeros(3, np.float64)}, path)
    with pytest.raises(Malformed, match=r"dtype of tensor x, expected one of F32.*, found F64"):
        TensorFile(path).read("x")


def test_a_file_that_changes_between_its_header_and_its_tensors(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    mx.save_safetensors(str(path), {"x": mx.zeros((100,)), "y": mx.ones((100,))})
    file = TensorFile(path)
    assert np.array(file.read("x")).sum() == 0
    os.truncate(path, path.stat().st_size - 1)
    with pytest.raises(Unreadable, match="changed before tensor x was read"):
        file.read("x")
    mx.save_safetensors(str(path), {"x": mx.ones((100,)), "y": mx.ones((100,))})
    os.utime(path, ns=(0, 0))
    with pytest.raises(Unreadable, match="changed before tensor y was read"):
        file.read("y")
    path.unlink()
    with pytest.raises(Unreadable, match="tensor y can't be read: No such file"):
        file.read("y")


def test_a_file_that_ends_while_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.safetensors"
    mx.save_safetensors(str(path), {"x": mx.zeros((100,))})
    file = TensorFile(path)
    monkeypatch.setattr("engine.tensor_file.stamp_of", lambda _: file.header.stamp)
    os.truncate(path, path.stat().st_size - 5)
    with pytest.raises(Unreadable, match=r"tensor x is cut at byte \d+, expected 400 bytes, found"):
        file.read("x")


@pytest.mark.parametrize("part", range(32))
def test_a_file_that_ends_anywhere(part: int, tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    mx.save_safetensors(str(path), {"x": mx.zeros((8,)), "y": mx.ones((9,))})
    content = path.read_bytes()
    path.write_bytes(content[: len(content) * part // 32])
    with pytest.raises(Unreadable) as raised:
        TensorFile(path)
    assert "\n" not in str(raised.value)
    assert str(path) in str(raised.value)


def test_failed_reads_do_not_hold_up_what_follows() -> None:
    """With reads of the array library what follows meets late errors, or waits without end."""
    code = """
        import os, tempfile
        import mlx.core as mx
        from engine.errors import Unreadable
        from engine.tensors import TensorFolder

        root = tempfile.mkdtemp()
        path = os.path.join(root, "model.safetensors")
        refused = 0
        for _ in range(300):
            mx.save_safetensors(path, {f"t{n}": mx.ones((64, 4)) for n in range(20)})
            folder = TensorFolder(root)
            folder.floats("t0", (64, 4))
            os.truncate(path, 4000)
            try:
                parts = [folder.floats(f"t{n}", (64, 4)) for n in range(1, 20)]
                mx.eval(mx.concatenate([part.astype(mx.float16) for part in parts]))
            except (Unreadable, RuntimeError):
                refused += 1
            total = mx.zeros((4,))
            for _ in range(1000):
                total = total + 1
            mx.eval(total)
            assert total.tolist() == [1000.0] * 4
        assert refused == 300
    """
    # far above what it takes: it is there to end a wait without end
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], check=False, timeout=240, capture_output=True
    )
    assert run.returncode == 0, run.stderr.decode()


def test_nobody_waits_for_a_pipe(tmp_path: Path) -> None:
    """Before the header, and in the place of the file after it."""
    path = tmp_path / "a.safetensors"
    os.mkfifo(path)
    with pytest.raises(Unreadable, match="no such file"):
        TensorFile(path)
    path.unlink()
    mx.save_safetensors(str(path), {"x": mx.zeros((100,))})
    file = TensorFile(path)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(Unreadable, match="changed before tensor x was read"):
        file.read("x")


def test_another_file_of_the_same_size_and_time_is_not_the_same(tmp_path: Path) -> None:
    paths = [tmp_path / "a.safetensors", tmp_path / "b.safetensors"]
    for path, value in zip(paths, (1.0, 2.0), strict=True):
        mx.save_safetensors(str(path), {"x": mx.full((100,), value)})
        os.utime(path, ns=(5, 5))
    file = TensorFile(paths[0])
    paths[1].replace(paths[0])
    with pytest.raises(Unreadable, match="changed before tensor x was read"):
        file.read("x")


@pytest.mark.parametrize(
    "entry",
    [
        {"shape": [2], "data_offsets": [0, 8]},
        {"dtype": 3, "shape": [2], "data_offsets": [0, 8]},
        {"dtype": "F32", "shape": [2.0], "data_offsets": [0, 8]},
        {"dtype": "F32", "shape": [-2], "data_offsets": [0, 8]},
        {"dtype": "F32", "shape": [True], "data_offsets": [0, 8]},
        {"dtype": "F32", "shape": 2, "data_offsets": [0, 8]},
        {"dtype": "F32", "shape": [2], "data_offsets": [8, 0]},
        {"dtype": "F32", "shape": [2], "data_offsets": [0, 8, 8]},
        {"dtype": "F32", "shape": [2], "data_offsets": None},
        {"dtype": "F32", "shape": [3], "data_offsets": [0, 8]},
        [],
        None,
    ],
)
def test_entries_that_are_none(entry: object, tmp_path: Path) -> None:
    header = json.dumps({"x": entry}).encode()
    path = tmp_path / "a.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header + bytes(8))
    with pytest.raises(Unreadable):
        TensorFile(path)


@pytest.mark.parametrize("shape", [[0, 2**63], [0, 2**40], [0] + [1] * 70])
def test_shapes_that_no_array_has(shape: list[int], tmp_path: Path) -> None:
    header = json.dumps({"x": {"dtype": "F32", "shape": shape, "data_offsets": [0, 0]}}).encode()
    path = tmp_path / "a.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header)
    with pytest.raises((Malformed, Unreadable), match="x"):
        TensorFile(path).read("x")


def test_memory_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fromfile(*_: object) -> None:
        raise MemoryError("Unable to allocate 745 GiB")

    path = tmp_path / "a.safetensors"
    mx.save_safetensors(str(path), {"x": mx.zeros((100,))})
    file = TensorFile(path)
    monkeypatch.setattr(np, "fromfile", fromfile)
    with pytest.raises(Unreadable, match="tensor x does not fit into the memory"):
        file.read("x")
