"""The tensors of a folder of safetensors files, looked at before they are read.

Headers are checked by the safetensors library, names and shapes here; bytes are read when an
array is asked for. Knows no model.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import mlx.core as mx
import numpy as np
import numpy.typing as npt

from engine.errors import Malformed, Unreadable
from engine.small_file import content_of
from engine.tensor_file import TensorFile

INDEX: Final = "model.safetensors.index.json"
SINGLE: Final = "model.safetensors"
MAX_INDEX_BYTES: Final = 1 << 28
FLOATS: Final = ("F32", "BF16", "F16")


class TensorFolder:
    """Names, shapes and dtypes of a folder, and its arrays by name.

    Raises in all methods: Unreadable for files, Malformed for what is in them.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = str(folder)
        root = Path(folder)
        self._where: dict[str, str] = {}
        self._files: dict[str, TensorFile] = {}
        index = root / INDEX
        if index.exists():
            self._open_sharded(root, _read_index(index))
        elif (root / SINGLE).exists():
            self._open(root / SINGLE, None)
        else:
            files = sorted(root.glob("*.safetensors"))
            if not files:
                raise Unreadable(self.folder, "no weights", "*.safetensors", "none")
            for file in files:
                self._open(file, None)

    def _open_sharded(self, root: Path, weight_map: dict[str, str]) -> None:
        by_file: dict[str, set[str]] = {}
        for name, file in weight_map.items():
            by_file.setdefault(file, set()).add(name)
        for file, names in sorted(by_file.items()):
            self._open(root / file, names)

    def _open(self, file: Path, names: set[str] | None) -> None:
        """Takes the header of a file in: all its tensors, or those that the index expects."""
        opened = self._files[str(file)] = TensorFile(file)
        present = opened.header.tensors
        for name in sorted(present if names is None else names):
            if name not in present:
                raise Malformed(str(file), "tensor", f"{name}, as the index says", "none")
            if name in self._where:
                other = self._where[name]
                raise Malformed(str(file), "tensor", f"{name} only in {other}", "it again")
            self._where[name] = str(file)

    def has(self, name: str) -> bool:
        """Is there a tensor of this name?"""
        return name in self._where

    def path(self, name: str) -> str:
        """The file of a tensor, or the folder."""
        return self._where.get(name, self.folder)

    def shape(self, name: str) -> tuple[int, ...]:
        """The stored shape; Malformed when the tensor is missing."""
        return self._look(name)[1]

    def bytes_as(self, dtype: mx.Dtype | None) -> int:
        """Bytes of all tensors of the folder, floats as `dtype` (None: as stored)."""
        return sum(self._files[file].bytes_as(name, dtype) for name, file in self._where.items())

    def floats(self, name: str, shape: tuple[int, ...]) -> mx.array:
        """A float tensor that must have this shape."""
        return self._array(name, shape, FLOATS)

    def integers(self, name: str, shape: tuple[int, ...]) -> npt.NDArray[np.int64]:
        """An int64 tensor that must have this shape, on the host."""
        return np.array(self._array(name, shape, ("I64",)))

    def _look(self, name: str) -> tuple[str, tuple[int, ...]]:
        if name not in self._where:
            raise Malformed(self.folder, "tensor", name, "none")
        return self._files[self._where[name]].header.tensors[name]

    def _array(self, name: str, shape: tuple[int, ...], dtypes: tuple[str, ...]) -> mx.array:
        dtype, stored = self._look(name)
        if stored != tuple(shape):
            raise Malformed(self.path(name), name, f"shape {list(shape)}", f"{list(stored)}")
        if dtype not in dtypes:
            raise Malformed(self.path(name), name, f"dtype {' or '.join(dtypes)}", dtype)
        return self._files[self._where[name]].read(name)


def _read_index(path: Path) -> dict[str, str]:
    """Tensor names to file names beside the index."""
    try:
        data = json.loads(content_of(path, MAX_INDEX_BYTES))
    except OSError as error:
        raise Unreadable(str(path), f"can't be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise Unreadable(str(path), "not JSON", "a JSON object", _line(error)) from None
    weight_map = data.get("weight_map") if isinstance(data, dict) else None
    if not isinstance(weight_map, dict) or not weight_map:
        raise Malformed(str(path), "weight_map", "an object of tensor and file names")
    for name, file in weight_map.items():
        if not isinstance(file, str) or Path(file).name != file or "\0" in file:
            raise Malformed(
                str(path), f"weight_map[{name}]", "a file beside the index", json.dumps(file)[:80]
            )
    return weight_map


def _line(error: Exception) -> str:
    return str(error).splitlines()[0][:120] if str(error) else type(error).__name__
