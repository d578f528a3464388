"""The state of a cache object as a value that can be put back or copied.

Everything is kept by handle: an array is immutable, and a second handle on it makes the array
library copy before it writes in place. `pinned` attributes are the exception. For them the Python
object itself is kept, which adds no handle: a write in place then stays in place, and whoever
pins has to know which rows of the buffer are still good (see `guards`).
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import mlx.core as mx
import mlx.nn as nn
import numpy as np

_PLAIN = (int, float, complex, bool, str, bytes, type(None), type, range, frozenset)

Node = tuple[Any, ...]
"""("value", v) | ("array", handle) | ("pin", array) | ("copy", ndarray)
| ("seq", list or tuple, [Node]) | ("map", dict, {key: Node}) | ("object", obj, {name: Node})
| ("state", obj, Node)"""


def is_stateful(value: object) -> bool:
    """True for an object that is a cache itself, such as a child in a list of caches."""
    return not isinstance(value, type | nn.Module) and (
        hasattr(value, "update_and_fetch") or hasattr(type(value), "state")
    )


def freeze(value: Any, pins: Callable[[Any], tuple[str, ...]] = lambda _: ()) -> Node:
    """The state of `value` now. `pins(obj)` names the attributes that are pinned, not held."""
    if isinstance(value, mx.array):
        return ("array", copy.copy(value))
    if isinstance(value, (*_PLAIN, nn.Module)):
        return ("value", value)  # a module is a dict, too, and no part of a cache's state
    if isinstance(value, list | tuple):
        return ("seq", value, [freeze(item, pins) for item in value])
    if isinstance(value, dict):
        return ("map", value, {key: freeze(item, pins) for key, item in value.items()})
    if isinstance(value, np.ndarray):
        return ("copy", value.copy())
    if is_stateful(value):
        return _freeze_object(value, pins)
    return ("value", value)


def _freeze_object(obj: Any, pins: Callable[[Any], tuple[str, ...]]) -> Node:
    attributes = getattr(obj, "__dict__", None)
    if attributes is None:
        return ("state", obj, freeze(obj.state, pins))
    pinned = pins(obj)
    nodes = {
        name: _pin(item) if name in pinned else freeze(item, pins)
        for name, item in attributes.items()
    }
    return ("object", obj, nodes)


def _pin(value: Any) -> Node:
    if isinstance(value, list | tuple):
        return ("seq", value, [_pin(item) for item in value])
    return ("pin", value)


def restore(node: Node) -> Any:
    """Put the state back into the very objects it was taken from; safe to call again."""
    tag = node[0]
    if tag == "array":
        return copy.copy(node[1])
    if tag == "copy":
        return node[1].copy()
    if tag == "seq":
        items = [restore(item) for item in node[2]]
        if isinstance(node[1], list):
            node[1][:] = items
            return node[1]
        same = all(new is old for new, old in zip(items, node[1], strict=True))
        return node[1] if same else _like(node[1], items)
    if tag == "map":
        items_by_key = {key: restore(item) for key, item in node[2].items()}
        node[1].clear()
        node[1].update(items_by_key)
        return node[1]
    if tag == "object":
        attributes = {name: restore(item) for name, item in node[2].items()}
        own: dict[str, Any] = node[1].__dict__
        for name in [name for name in own if name not in attributes]:
            del own[name]
        own.update(attributes)
        return node[1]
    if tag == "state":
        node[1].state = restore(node[2])
        return node[1]
    return node[1]


def clone(node: Node) -> Any:
    """New objects with the same state, arrays shared by handle."""
    tag = node[0]
    if tag in ("array", "pin"):
        return copy.copy(node[1])
    if tag == "copy":
        return node[1].copy()
    if tag == "seq":
        return _like(node[1], [clone(item) for item in node[2]])
    if tag == "map":
        return {key: clone(item) for key, item in node[2].items()}
    if tag == "object":
        made: Any = object.__new__(type(node[1]))
        made.__dict__.update({name: clone(item) for name, item in node[2].items()})
        return made
    if tag == "state":
        made = copy.copy(node[1])
        made.state = clone(node[2])
        return made
    return node[1]


def nbytes(node: Node) -> int:
    """Bytes of the arrays that the node keeps alive."""
    return sum(int(array.nbytes) for array in _arrays(node))


def _arrays(node: Node) -> Iterator[Any]:
    tag = node[0]
    if tag in ("array", "pin") and isinstance(node[1], mx.array):
        yield node[1]
    elif tag == "seq":
        for item in node[2]:
            yield from _arrays(item)
    elif tag in ("map", "object"):
        for item in node[2].values():
            yield from _arrays(item)
    elif tag == "state":
        yield from _arrays(node[2])


def arrays_of(value: Any) -> Iterator[Any]:
    """Every array in a cache object, a container of them, or an output of a model."""
    if isinstance(value, mx.array):
        yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from arrays_of(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from arrays_of(item)
    elif isinstance(value, _PLAIN):
        pass
    elif is_stateful(value):
        own = getattr(value, "__dict__", None)
        yield from arrays_of(value.state if own is None else own)


def leaves(caches: Any) -> Iterator[Any]:
    """The cache objects of a list, those inside a `CacheList` one by one."""
    for cache in caches:
        if cache is None:
            continue
        children = getattr(cache, "caches", None)
        if isinstance(children, list | tuple):
            yield from leaves(children)
        else:
            yield cache


def _like(model: Any, items: list[Any]) -> Any:
    if isinstance(model, list):
        return items
    if hasattr(model, "_fields"):
        return type(model)(*items)
    return type(model)(items)
