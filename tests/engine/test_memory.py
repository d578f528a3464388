"""Weights that can never be in memory at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import pytest
import safetensors.numpy

from engine import memory
from engine.errors import Unreadable
from engine.lm_folder import open_lm
from engine.tensor_file import TensorFile
from engine.tensors import TensorFolder
from engine.weights import load_model
from tests.helpers.golden import MODELS
from tests.helpers.mlxlm_models import model_folder

TINY = MODELS["qwen4exp-tiny"]


def stored_bytes(path: Path) -> int:
    """Of all tensors of a file, by another reader."""
    return sum(array.nbytes for array in safetensors.numpy.load_file(path).values())


@pytest.mark.parametrize("device", ["cpu", "auto"])
def test_the_last_byte_decides(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "device_memory", lambda name: 1000 if name == device else 0)
    memory.admit_bytes("m", "weights", 1000, device)
    with pytest.raises(Unreadable) as raised:
        memory.admit_bytes("m", "weights", 1001, device)
    told = "m: weights do not fit, expected at most the 1,000 bytes of memory, found 1,001"
    assert str(raised.value) == told


def test_where_the_system_does_not_say_nothing_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "device_memory", lambda _: 0)
    memory.admit_bytes("m", "weights", 1 << 60, "cpu")


def refuse_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    def read(_: Any, name: str) -> mx.array:
        raise AssertionError(f"{name} was read")

    monkeypatch.setattr(TensorFile, "read", read)


@pytest.mark.parametrize(("dtype", "parts"), [(None, 1), ("float32", 1), ("bfloat16", 2)])
def test_a_model_is_refused_before_its_weights_are_read(
    dtype: str | None, parts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the tiny model everything is float32 but a few integers, which stay as they are."""
    arrays = safetensors.numpy.load_file(TINY / "model.safetensors").values()
    floats = sum(a.nbytes for a in arrays if a.dtype == np.float32)
    needed = floats // parts + sum(a.nbytes for a in arrays if a.dtype != np.float32)
    monkeypatch.setattr(memory, "device_memory", lambda _: needed)
    load_model(TINY, dtype)
    refuse_reads(monkeypatch)
    monkeypatch.setattr(memory, "device_memory", lambda _: needed - 1)
    with pytest.raises(Unreadable, match=f"expected at most .* of memory, found {needed:,}"):
        load_model(TINY, dtype)


def test_a_folder_for_mlx_lm_is_refused_before_mlx_lm_sees_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = model_folder(tmp_path / "m")
    needed = stored_bytes(folder / "model.safetensors")
    monkeypatch.setattr(memory, "device_memory", lambda _: needed - 1)
    monkeypatch.setattr("engine.protect.folder.load", lambda _: pytest.fail("was opened"))
    with pytest.raises(Unreadable, match=f"expected at most .* of memory, found {needed:,}"):
        open_lm(folder)


def test_bytes_of_a_folder_as_they_will_be(tmp_path: Path) -> None:
    file = {"a": np.zeros((3, 5), np.float32), "b": np.zeros(7, np.int64), "c": np.zeros((), "f2")}
    safetensors.numpy.save_file(file, tmp_path / "model.safetensors")
    folder = TensorFolder(tmp_path)
    assert folder.bytes_as(None) == 60 + 56 + 2
    assert folder.bytes_as(mx.float32) == 60 + 56 + 4
    assert folder.bytes_as(mx.bfloat16) == 30 + 56 + 2
