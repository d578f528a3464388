"""Every value that can be reached from an object, by path: a photograph to compare with."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import mlx.core as mx
import numpy as np

PLAIN = (int, float, complex, str, bytes, bool, type(None), range, Enum, mx.Dtype)
BY_IDENTITY = (type, FunctionType, BuiltinFunctionType, MethodType, ModuleType)
Photograph = dict[str, Any]


def photograph(root: Any, leave: tuple[type, ...] = ()) -> Photograph:
    """Path to plain value, to the bytes of an array, or to the identity of what has no content.

    Args:
        leave: types of which only the identity counts (a model, a lock).
    """
    found: Photograph = {}
    seen: dict[int, str] = {}
    kept: list[Any] = []
    todo: list[tuple[str, Any]] = [("", root)]
    while todo:
        path, value = todo.pop()
        if isinstance(value, PLAIN):
            found[path] = (type(value), value)
            continue
        if isinstance(value, (*BY_IDENTITY, *leave)):
            found[path] = ("is", id(value))
            continue
        if id(value) in seen:
            found[path] = ("same as", seen[id(value)])
            continue
        seen[id(value)] = path
        kept.append(value)  # an id is a name only while its object lives
        inner = parts(value)
        if inner is None:
            found[path] = content(value)
        else:
            found[path] = (type(value), len(inner))
            todo += [(f"{path}{name}", part) for name, part in reversed(inner)]
    return found


def content(value: Any) -> Any:
    """What stands for a leaf. Raises: TypeError for one that nobody thought of."""
    if isinstance(value, mx.array):
        bits = value.view(mx.uint16) if value.dtype == mx.bfloat16 else value
        return ("array", str(value.dtype), tuple(value.shape), np.array(bits).tobytes())
    if isinstance(value, np.ndarray):
        return ("numpy", str(value.dtype), value.shape, value.tobytes())
    if isinstance(value, np.generic):
        return (type(value), value.tobytes())
    if hasattr(value, "intdigest"):
        return ("hasher", value.intdigest())
    raise TypeError(f"no content known for {type(value)}")


def parts(value: Any) -> list[tuple[str, Any]] | None:
    """(name, inner value) of a container or an object; None for a leaf."""
    if isinstance(value, (mx.array, np.ndarray, np.generic)) or hasattr(value, "intdigest"):
        return None
    if isinstance(value, Mapping):
        return [(f"[{key!r}]", part) for key, part in value.items()]
    if isinstance(value, (tuple, list)):
        return [(f"[{number}]", part) for number, part in enumerate(value)]
    if isinstance(value, (set, frozenset)):
        return [(f"{{{part!r}}}", part) for part in sorted(value, key=repr)]
    names = [n for cls in type(value).__mro__ for n in getattr(cls, "__slots__", ())]
    names = [n for n in names if n not in ("__weakref__", "__dict__")]
    held = {n: getattr(value, n) for n in names if hasattr(value, n)}
    held |= getattr(value, "__dict__", {})
    return [(f".{name}", part) for name, part in held.items()]


def changed(before: Photograph, after: Photograph) -> set[str]:
    """Paths that came, went, or show something else."""
    return {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}


def arrays(root: Any, leave: tuple[type, ...] = ()) -> dict[str, mx.array]:
    """Every array of the library that can be reached, by path."""
    found: dict[str, mx.array] = {}
    seen: set[int] = set()
    todo: list[tuple[str, Any]] = [("", root)]
    while todo:
        path, value = todo.pop()
        if isinstance(value, (*PLAIN, *BY_IDENTITY, *leave)) or id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, mx.array):
            found[path] = value
        todo += [(f"{path}{name}", part) for name, part in parts(value) or []]
    return found
