"""The tensors of a folder of safetensors files, looked at before they are read.

Headers are checked by the safetensors library, names and shapes here; bytes are read when an
array is evaluated. Knows no model.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import mlx.core as mx
import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError, safe_open

from engine.errors import Malformed, Unreadable
from engine.printable import printable

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
        self._info: dict[str, tuple[tuple[int, ...], str]] = {}
        self._arrays: dict[str, dict[str, mx.array]] = {}
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
        try:
            if not file.is_file():
                raise Unreadable(str(file), "no such file")
            with safe_open(str(file), framework="np") as opened:
                present = set(opened.keys())
                for name in sorted(present if names is None else names):
                    if name not in present:
                        raise Malformed(str(file), "tensor", f"{name}, as the index says", "none")
                    if name in self._info:
                        other = self._where[name]
                        raise Malformed(str(file), "tensor", f"{name} only in {other}", "it again")
                    part = opened.get_slice(name)
                    self._info[name] = (tuple(part.get_shape()), str(part.get_dtype()))
                    self._where[name] = str(file)
        except SafetensorError as error:
            raise Unreadable(
                str(file), "not a whole safetensors file", "a valid header", str(error)
            ) from None
        except OSError as error:
            raise Unreadable(str(file), f"can't be read: {error.strerror or error}") from None

    def has(self, name: str) -> bool:
        """Is there a tensor of this name?"""
        return name in self._info

    def path(self, name: str) -> str:
        """The file of a tensor, or the folder."""
        return self._where.get(name, self.folder)

    def shape(self, name: str) -> tuple[int, ...]:
        """The stored shape; Malformed when the tensor is missing."""
        return self._look(name)[0]

    def floats(self, name: str, shape: tuple[int, ...]) -> mx.array:
        """A float tensor that must have this shape, not yet read."""
        return self._array(name, shape, FLOATS)

    def integers(self, name: str, shape: tuple[int, ...]) -> npt.NDArray[np.int64]:
        """An int64 tensor that must have this shape, on the host."""
        array = self._array(name, shape, ("I64",))
        self.evaluate(array)
        return np.array(array)

    def evaluate(self, array: mx.array) -> None:
        """Reads what `array` needs."""
        try:
            mx.eval(array)
        except (RuntimeError, ValueError) as error:
            raise Unreadable(self.folder, f"weights can't be read: {_line(error)}") from None

    def close(self) -> None:
        """Lets go of arrays that were not asked for."""
        self._arrays.clear()

    def _look(self, name: str) -> tuple[tuple[int, ...], str]:
        if name not in self._info:
            raise Malformed(self.folder, "tensor", name, "none")
        return self._info[name]

    def _array(self, name: str, shape: tuple[int, ...], dtypes: tuple[str, ...]) -> mx.array:
        stored, dtype = self._look(name)
        if stored != tuple(shape):
            raise Malformed(self.path(name), name, f"shape {list(shape)}", f"{list(stored)}")
        if dtype not in dtypes:
            raise Malformed(self.path(name), name, f"dtype {' or '.join(dtypes)}", dtype)
        # handed out once and not kept, so that no stored piece outlives the matrix it went into
        return self._file(self._where[name]).pop(name)

    def _file(self, file: str) -> dict[str, mx.array]:
        if file not in self._arrays:
            if printable(file) != file:  # the library says no more than std::bad_cast
                raise Unreadable(file, "can't be read", "a path that is UTF-8")
            try:
                loaded: Any = mx.load(file)
            except (RuntimeError, ValueError) as error:
                raise Unreadable(file, f"can't be read: {_line(error)}") from None
            self._arrays[file] = loaded
        return self._arrays[file]


def _read_index(path: Path) -> dict[str, str]:
    """Tensor names to file names beside the index."""
    try:
        if path.stat().st_size > MAX_INDEX_BYTES:
            raise Unreadable(str(path), "too large", f"at most {MAX_INDEX_BYTES} bytes")
        data = json.loads(path.read_text(encoding="utf-8"))
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
