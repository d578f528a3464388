"""Folders of safetensors files: what is in them before anything is read."""

from __future__ import annotations

import json
import os
from pathlib import Path

import mlx.core as mx
import numpy as np
import pytest

from engine.errors import Malformed, Unreadable
from engine.tensors import TensorFolder


def save(folder: Path, name: str, **tensors: mx.array) -> Path:
    """One safetensors file."""
    path = folder / name
    mx.save_safetensors(str(path), tensors)
    return path


def test_all_files_of_a_folder_without_an_index(tmp_path: Path) -> None:
    save(tmp_path, "a.safetensors", x=mx.arange(6, dtype=mx.float32).reshape(2, 3))
    save(tmp_path, "b.safetensors", y=mx.array([3, 5], mx.int64))
    folder = TensorFolder(tmp_path)
    assert folder.has("x")
    assert folder.has("y")
    assert not folder.has("z")
    assert folder.shape("x") == (2, 3)
    assert folder.path("y") == str(tmp_path / "b.safetensors")
    assert np.array(folder.floats("x", (2, 3))).tolist() == [[0, 1, 2], [3, 4, 5]]
    assert folder.integers("y", (2,)).tolist() == [3, 5]


@pytest.mark.parametrize(
    ("name", "shape", "sentence"),
    [
        ("x", (3, 2), r"a.safetensors: x, expected shape \[3, 2\], found \[2, 3\]"),
        ("i", (2,), "a.safetensors: i, expected dtype F32 or BF16 or F16, found I32"),
        ("none", (1,), "tensor, expected none, found none"),
    ],
)
def test_what_does_not_fit_is_named(
    tmp_path: Path, name: str, shape: tuple[int, ...], sentence: str
) -> None:
    save(tmp_path, "a.safetensors", x=mx.zeros((2, 3)), i=mx.array([1, 2], mx.int32))
    with pytest.raises(Malformed, match=sentence):
        TensorFolder(tmp_path).floats(name, shape)


@pytest.mark.parametrize(
    ("index", "error", "sentence"),
    [
        ({"weight_map": {"x": "gone.safetensors"}}, Unreadable, "no such file"),
        ({"weight_map": {"y": "a.safetensors"}}, Malformed, "expected y, as the index says"),
        ({"weight_map": {"x": "/etc/passwd"}}, Malformed, "expected a file beside the index"),
        ({"weight_map": {"x": 3}}, Malformed, "expected a file beside the index"),
        ({"weight_map": {}}, Malformed, "weight_map, expected an object"),
        ([], Malformed, "weight_map, expected an object"),
    ],
)
def test_an_index_that_lies(
    tmp_path: Path, index: object, error: type[Unreadable], sentence: str
) -> None:
    save(tmp_path, "a.safetensors", x=mx.zeros((1,)))
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(error, match=sentence):
        TensorFolder(tmp_path)


def test_an_index_that_is_not_json(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors.index.json").write_text("{")
    with pytest.raises(Unreadable, match="not JSON"):
        TensorFolder(tmp_path)


def test_a_folder_instead_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").mkdir()
    with pytest.raises(Unreadable, match=r"model.safetensors: no such file"):
        TensorFolder(tmp_path)


def test_a_tensor_in_two_files(tmp_path: Path) -> None:
    for name in ("a.safetensors", "b.safetensors"):
        save(tmp_path, name, x=mx.zeros((1,)))
    with pytest.raises(Malformed, match=r"b.safetensors: tensor, expected x only in .*a.safeten"):
        TensorFolder(tmp_path)


def test_an_index_that_is_a_pipe_or_has_no_end(tmp_path: Path) -> None:
    index = tmp_path / "model.safetensors.index.json"
    os.mkfifo(index)
    with pytest.raises(Unreadable, match="not JSON"):
        TensorFolder(tmp_path)
    index.unlink()
    index.symlink_to("/dev/zero")
    with pytest.raises(Unreadable, match="too large"):
        TensorFolder(tmp_path)
