"""Models with one bad weight, and stages that raise: real failures for tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

import mlx.core as mx
import numpy as np

from engine.engine import Engine
from engine.graph.model import Model
from engine.plan import PlanStage

Path = tuple[Any, ...]


def weights(part: Any, path: Path = ()) -> Iterator[tuple[Path, mx.array]]:
    """(path of field names and layer numbers, array) of every float weight."""
    if isinstance(part, mx.array):
        if mx.issubdtype(part.dtype, mx.floating):
            yield path, part
    elif isinstance(part, tuple):
        for number, inner in enumerate(part):
            yield from weights(inner, (*path, number))
    elif is_dataclass(part) and not isinstance(part, type) and path[-1:] != ("rotary",):
        for field in fields(part):
            if field.name not in ("config", "backend", "rotary"):
                yield from weights(getattr(part, field.name), (*path, field.name))


def with_weight(part: Any, path: Path, change: Callable[[mx.array], mx.array]) -> Any:
    """A copy of a model (or a part of one) with one array changed."""
    if not path:
        return change(part)
    first, rest = path[0], path[1:]
    if isinstance(part, tuple):
        inner = with_weight(part[first], rest, change)
        return (*part[:first], inner, *part[first + 1 :])
    return replace(part, **{first: with_weight(getattr(part, first), rest, change)})


def spoiled(model: Model, path: Path, value: float, index: tuple[int, ...] | None = None) -> Model:
    """The model with one element (the first, or `index`) of one weight replaced."""

    def change(array: mx.array) -> mx.array:
        host = np.array(array.astype(mx.float32))
        host[index if index is not None else (0,) * host.ndim] = value
        changed = mx.array(host).astype(array.dtype)
        mx.eval(changed)
        return changed

    return with_weight(model, path, change)  # type: ignore[no-any-return]


def raise_at(engine: Engine, stage: str, error: BaseException, before: bool = False) -> None:
    """Make a stage of the open transaction raise after (or before) its work."""

    def wrap(planned: PlanStage) -> PlanStage:
        if planned.name != stage:
            return planned

        def run() -> None:
            if not before:
                planned.run()
            raise error

        return replace(planned, run=run)

    assert engine.open is not None
    engine.open.rewrap(wrap)
