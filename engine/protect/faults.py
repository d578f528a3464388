"""Make a step fail after a chosen layer, as a model built differently.

Arming swaps the class of one layer for a subclass whose call fails, and disarming swaps it back.
Nothing in the normal forward pass asks about faults.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import mlx.core as mx
import numpy as np

from .errors import InjectedFault

KINDS = ("exception", "evaluation", "nonfinite", "interrupt")


@dataclass(slots=True)
class Fault:
    """A fault that is armed, and how often it has fired."""

    layer: int
    kind: str
    persistent: bool
    fired: int = 0


@contextlib.contextmanager
def armed(model: Any, layer: int, kind: str, *, persistent: bool = False) -> Iterator[Fault]:
    """Let the call of `model.layers[layer]` fail after its work: once, or as long as armed.

    Args:
        kind: `exception` raises in the layer; `interrupt` raises KeyboardInterrupt there;
            `evaluation` hands on an array whose evaluation fails; `nonfinite` writes a NaN
            into the layer's output.
    Raises: ValueError for an unknown kind or a layer that the model does not have.
    """
    layers = model.layers
    if kind not in KINDS:
        raise ValueError(f"unknown kind of fault: expected one of {', '.join(KINDS)}, given {kind}")
    if not 0 <= layer < len(layers):
        raise ValueError(f"no such layer: expected 0 to {len(layers) - 1}, given {layer}")
    fault = Fault(layer, kind, persistent)
    target = layers[layer]
    real = type(target)
    target.__class__ = _failing_class(real, fault, _ACTIONS[kind])
    try:
        yield fault
    finally:
        target.__class__ = real


def _failing_class(real: type[Any], fault: Fault, action: Callable[[Any], Any]) -> type[Any]:
    def call(self: Any, *args: Any, **options: Any) -> Any:
        output = real.__call__(self, *args, **options)
        if fault.fired and not fault.persistent:
            return output
        fault.fired += 1
        return _on_first_array(output, action)

    return type(real.__name__, (real,), {"__call__": call})


def _on_first_array(output: Any, action: Callable[[Any], Any]) -> Any:
    if isinstance(output, tuple):
        return (action(output[0]), *output[1:])
    return action(output)


def _raise(_: Any) -> Any:
    raise InjectedFault("a fault that was armed on purpose")


def _interrupt(_: Any) -> Any:
    raise KeyboardInterrupt


def _with_nan(hidden: Any) -> Any:
    flat = np.zeros(int(hidden[0, -1].size), dtype=np.float32)
    flat[0] = np.nan
    spot = mx.array(flat).reshape(hidden[0, -1].shape).astype(hidden.dtype)
    return hidden + spot


def _not_computable(hidden: Any) -> Any:
    """`hidden` plus an array that MLX can describe but not compute: no float16 in this CPU op.

    The error comes out of the evaluation call itself. A file that was cut short fails in another
    thread, and with MLX 0.32.4 about a hundred of those in one process end in a hang: an error
    met while work is handed over leaves a count of running tasks too high.
    """
    half = mx.zeros((64, 64), dtype=mx.float16)
    mask = mx.ones((1, 1), dtype=mx.bool_)
    lost = mx.block_masked_mm(half, half, 64, mask, stream=mx.cpu)
    return hidden + lost[0, 0].astype(hidden.dtype)


_ACTIONS: dict[str, Callable[[Any], Any]] = {
    "exception": _raise,
    "evaluation": _not_computable,
    "nonfinite": _with_nan,
    "interrupt": _interrupt,
}
