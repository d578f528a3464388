"""The weights of a wrapped model: read before a step, and refused for good once that failed.

MLX counts an array whose evaluation failed as evaluated, with undefined content: the next step
would compute with it and say nothing. So every array of a model is evaluated before a step, also
those that were changed in place, and one that failed is remembered as long as it lives, whichever
wrapper meets it.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any

import mlx.core as mx

from .errors import StateLost
from .freeze import arrays_of
from .late_errors import drain, note_streams

_LOST: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
"""Arrays of any model that can't be trusted, by identity."""
_READ: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
"""Arrays of any model that were evaluated well once."""
_SIMPLE = frozenset({bool, int, float, complex, str, bytes, type(None), mx.Dtype})


class Weights:
    """Every array that a model holds, also those that are no parameters (`_freqs` of a layer)."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._holders: list[Any] = []
        self._odd: list[Any] = []
        self._known: dict[int, Any] = {}

    def check(self) -> None:
        """Evaluate every array, new or changed. Raises: StateLost, naming one that can't be."""
        note_streams()
        arrays = self._arrays()
        new = _unread(arrays)
        if new or _LOST:
            # what the model has let go of since the last look doesn't count
            arrays = self._anew()
            new = _unread(arrays)
        if lost := [array for array in arrays if _LOST and _LOST.get(id(array)) is array]:
            names = self._names(lost)
            raise StateLost(f"weights failed to load earlier: load them again ({names})")
        failed = _failing(arrays, new)
        if failed:
            names = self._names([array for array, _ in failed])
            error = failed[0][1]
            raise StateLost(f"the weights of the model can't be read ({names}): {error}") from error
        _READ.update((id(array), array) for array in new)

    def _anew(self) -> list[Any]:
        """All arrays, without those that the model has let go of since the last look."""
        self._holders, self._odd, self._known = [], [], {}
        return self._arrays()

    def _arrays(self) -> list[Any]:
        """All arrays; a walk over what held some at the last look finds whatever is new in it."""
        if not self._holders:
            self._look(self._model)
        found, known = [], self._known
        for holder in self._holders:
            for value in holder.values() if isinstance(holder, dict) else holder:
                kind = type(value)
                if kind is mx.array:
                    found.append(value)
                elif kind not in _SIMPLE and known.get(id(value)) is not value:
                    return self._anew()
        return found + [array for value in self._odd for array in arrays_of(value)]

    def _look(self, value: Any) -> None:
        """Note every holder below a value, a module being a dict, and what else is there."""
        if type(value) in (*_SIMPLE, mx.array) or self._known.get(id(value)) is value:
            return
        self._known[id(value)] = value
        if isinstance(value, dict | list | tuple):
            self._holders.append(value)
            for item in list(value.values() if isinstance(value, dict) else value):
                self._look(item)
        elif next(arrays_of(value), None) is not None:
            self._odd.append(value)

    def _names(self, arrays: list[Any]) -> str:
        """A few names for a sentence."""
        wanted = {id(array) for array in arrays}
        names = [name for name, array in named_arrays(self._model) if id(array) in wanted]
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        return f"{names[0]}{more}" if names else "an array of the model"


def _unread(arrays: list[Any]) -> list[Any]:
    return [array for array in arrays if _READ.get(id(array)) is not array]


def _failing(arrays: list[Any], new: list[Any]) -> list[tuple[Any, Exception]]:
    """Those whose evaluation fails, with the error; noted as lost, and all new ones with them.

    One by one: a file that can't be read is then all that its evaluation waits for. A new array
    may have been part of what failed, and would count as evaluated now.
    """
    found = []
    for array in arrays:
        try:
            mx.eval(array)
        except Exception as error:  # the library raises more than one kind
            # noted at once: an interrupt may come while late errors are waited for
            _LOST.update((id(lost), lost) for lost in [*new, array])
            drain()
            found.append((array, error))
    return found


def named_arrays(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Every array below a module with the names that lead to it."""
    if isinstance(value, mx.array):
        yield name, value
    elif isinstance(value, dict | list | tuple):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, item in items:
            yield from named_arrays(item, f"{name}.{key}" if name else str(key))
    else:
        yield from ((name, array) for array in arrays_of(value))
