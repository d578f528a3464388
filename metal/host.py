"""The host target: the shipped kernel texts, compiled by the system's C++ compiler.

So the very text that Metal gets is executed on any machine. All kernels are compiled once into one
shared object in the user's cache folder, named by a hash of everything that went in; it appears by
an atomic rename, so processes that build at the same time do no harm. Called through ctypes over
NumPy arrays. Meant for tests and for `bankflip doctor`; the engine's CPU path is `reference`.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import mlx.core as mx
import numpy as np

from metal import source
from metal.kernels import Kernel
from metal.launch import Launch
from metal.reference import dtype_name

FLAGS: Final = (
    "-std=c++17",
    "-O2",
    "-ffp-contract=off",
    "-fPIC",
    "-shared",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-Wshadow",
    "-Wdouble-promotion",
)
SANITIZE: Final = ("-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
SANITIZE_VARIABLE: Final = "BANKFLIP_HOST_SANITIZE"
"""Set to 1, the host target runs the sanitized build; its process must preload `sanitizer()`."""

OVERRUN: Final = 3
"""Extra threads along each axis: CUDA rounds a grid up to whole blocks, and a text must bear it."""


class NoCompiler(RuntimeError):
    """There is no C++ compiler on this machine, or it refused a kernel text."""


@functools.cache
def compiler() -> str | None:
    """Path of the C++ compiler (`CXX`, g++, clang++, c++), None where there is none."""
    names = [os.environ.get("CXX", ""), "g++", "clang++", "c++"]
    return next((found for name in names if name and (found := shutil.which(name))), None)


def available() -> bool:
    """Whether kernels can be executed on the host target here."""
    return compiler() is not None


def sanitizer() -> str:
    """What a process of the sanitized build must preload: paths, colon between.

    The C++ library is among them, because the sanitizer looks for its `throw` at the start.
    """
    names = ("libasan.so", "libstdc++.so.6")
    asked = [[_need_compiler(), f"-print-file-name={name}"] for name in names]
    found = [subprocess.run(a, check=True, capture_output=True, text=True) for a in asked]
    return ":".join(done.stdout.strip() for done in found)


def cache_folder() -> Path:
    """Folder for compiled kernels; a private temporary one where the cache cannot be written."""
    import platformdirs

    folder = Path(platformdirs.user_cache_dir("bankflip")) / "kernels"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return Path(tempfile.mkdtemp(prefix="bankflip-kernels-"))
    return folder if os.access(folder, os.W_OK) else Path(tempfile.mkdtemp(prefix="bankflip-"))


def build(unit: str, folder: Path, *, sanitize: bool = False) -> Path:
    """Compile a C++ file into a shared object, unless the folder holds it already.

    Raises: NoCompiler with the compiler's own words when it refuses the text.
    """
    cxx = _need_compiler()
    flags = FLAGS + SANITIZE if sanitize else FLAGS
    stamp = "\n".join([unit, *flags, cxx, _version(cxx), platform.machine(), platform.system()])
    target = folder / f"{hashlib.sha256(stamp.encode()).hexdigest()[:32]}.so"
    if target.exists():
        return target
    with tempfile.TemporaryDirectory(dir=folder, prefix="build-") as work:
        text, fresh = Path(work) / "kernels.cpp", Path(work) / "kernels.so"
        text.write_text(unit, encoding="utf-8")
        done = subprocess.run(
            [cxx, *flags, "-o", str(fresh), str(text)], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise NoCompiler(f"{cxx} refused the kernel texts: {done.stderr.strip()}")
        os.replace(fresh, target)
    return target


def run(kernel: Kernel, plan: Launch) -> tuple[np.ndarray[Any, Any], ...]:
    """Execute one planned call, with some threads beyond the grid, and give its raw outputs.

    Inputs are MLX or NumPy arrays; bfloat16 is carried as the bits in uint16.
    """
    element = None if plan.element is None else dtype_name(plan.inputs[plan.element])
    function = getattr(_library(), source.symbol(kernel, element))
    function.restype = None
    arrays = [to_numpy(array) for array in plan.inputs]
    if not kernel.strided:
        arrays = [np.ascontiguousarray(array) for array in arrays]
    names = [element if name == "T" and element else name for name in plan.dtypes]
    outs = [np.empty(shape, carrier(name)) for shape, name in zip(plan.shapes, names, strict=True)]
    grid = tuple(n + OVERRUN if n else 0 for n in plan.grid)
    if all(grid):
        _call(function, arrays, plan.params, outs, grid)
    return tuple(outs)


def _call(
    function: Any,
    arrays: list[np.ndarray[Any, Any]],
    params: tuple[int, ...],
    outs: list[np.ndarray[Any, Any]],
    grid: tuple[int, ...],
) -> None:
    shapes = [np.array(array.shape, np.int32) for array in arrays]
    strides = [np.array(array.strides, np.int64) // array.itemsize for array in arrays]
    integers = np.array(params, np.int32)
    threads = np.array(grid, np.uint32)
    function(
        _addresses(arrays),
        _addresses(shapes),
        _addresses(strides),
        ctypes.c_void_p(integers.ctypes.data),
        _addresses(outs),
        ctypes.c_void_p(threads.ctypes.data),
    )


def _addresses(arrays: list[np.ndarray[Any, Any]]) -> Any:
    return (ctypes.c_void_p * max(1, len(arrays)))(*[array.ctypes.data for array in arrays])


def carrier(name: str) -> str:
    """The NumPy type that carries a data type (NumPy has no bfloat16)."""
    return "uint16" if name == "bfloat16" else name


def to_numpy(array: Any) -> np.ndarray[Any, Any]:
    """A NumPy view or copy with the same strides; bfloat16 as its bits."""
    if not isinstance(array, mx.array):
        return np.asarray(array)
    if array.size == 0:  # on CUDA some empty arrays have no memory, and looking at it is fatal
        return np.empty(array.shape, carrier(dtype_name(array)))
    if array.dtype == mx.bfloat16:
        array = array.view(mx.uint16)
    mx.eval(array)
    return np.array(array, copy=False)


def from_numpy(array: np.ndarray[Any, Any], name: str) -> mx.array:
    """The MLX array of a carried result."""
    made = mx.array(array)
    return made.view(mx.bfloat16) if name == "bfloat16" else made


@dataclass(frozen=True, slots=True)
class _Loaded:
    path: Path
    library: ctypes.CDLL


@functools.cache
def _load(sanitize: bool) -> _Loaded:
    path = build(source.host_unit(), cache_folder(), sanitize=sanitize)
    return _Loaded(path, ctypes.CDLL(str(path)))


def _library() -> ctypes.CDLL:
    return _load(os.environ.get(SANITIZE_VARIABLE) == "1").library


@functools.cache
def _version(cxx: str) -> str:
    return subprocess.run([cxx, "--version"], check=True, capture_output=True, text=True).stdout


def _need_compiler() -> str:
    cxx = compiler()
    if cxx is None:
        raise NoCompiler("no C++ compiler: g++, clang++ or c++ was expected on the PATH")
    return cxx
