"""Looking at a chunk of an mlx-lm model while it runs: stage by stage, with faults and cancelling.

For the time of a chunk the class of each layer is swapped for a subclass that reports when the
layer is done, as `protect.faults` does it. In inspect mode the layer's output is evaluated and
judged there; in fast mode the whole chunk is one evaluation.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import mlx.core as mx
import numpy as np

from engine.errors import BadValue, StepFailed
from engine.faults import Fault, unfinished
from engine.progress import CancelToken
from engine.snapshot import StageView
from engine.terms import FailKind

BEFORE: Final = ("reserve", "load")
AFTER: Final = ("verify", "publish")
KINDS: Final = (FailKind.STRUCTURAL, FailKind.NONFINITE, FailKind.COMMAND, FailKind.CANCEL)
"""What can be made to happen after a layer of any model; there is no admission and no status."""


def stages_of(n_layers: int) -> tuple[tuple[str, str], ...]:
    """(name, kind) in order: `load` keeps the public state, `verify` is the last evaluation."""
    layers = [(f"layer.{n}", "graph") for n in range(n_layers)]
    before, after = ([(name, "transaction") for name in names] for names in (BEFORE, AFTER))
    return (*before, *layers, *after)


class Passage:
    """One chunk on its way through the stages."""

    def __init__(
        self,
        stages: tuple[tuple[str, str], ...],
        seq: int,
        faults: Sequence[Fault],
        cancel: CancelToken,
        inspect: bool,
        first_position: int,
        writes: Mapping[str, tuple[str, ...]] | None = None,
    ) -> None:
        self._stages, self._seq, self._faults, self._cancel = stages, seq, faults, cancel
        self._inspect, self._first, self._writes = inspect, first_position, writes or {}
        self._ns = {name: 0 for name, _ in stages}
        self._done: set[str] = set()
        self._armed = {
            name: tuple(f"{f.kind}/{f.times or 'always'}" for f in faults if f.stage == name)
            for name, _ in stages
        }
        self._last_ns = time.perf_counter_ns()
        self.failure: StepFailed | None = None
        self.fired = ""
        """Stage whose fault has fired."""

    @property
    def at(self) -> str:
        """The stage in work."""
        return next((name for name, _ in self._stages if name not in self._done), "publish")

    def done(self, stage: str) -> None:
        """A stage of the transaction has ended. Raises: StepFailed, KeyboardInterrupt."""
        if stage in self._done:
            return
        self._note(stage)
        kind = self._due(stage)
        if kind is FailKind.COMMAND:
            self._evaluate(stage, unfinished())
        self._judge(stage, kind)

    def layer_done(self, stage: str, output: Any) -> Any:
        """A layer has ended; its output, or what a fault made of it."""
        kind = self._due(stage)
        if kind is FailKind.NONFINITE:
            output = _on_first(output, _with_nan)
        elif kind is FailKind.COMMAND:
            output = _on_first(output, _without_end)
        if self._inspect:
            self._look(stage, _first_of(output))
        self._note(stage)
        self._judge(stage, kind)
        return output

    def _note(self, stage: str) -> None:
        now = time.perf_counter_ns()
        self._ns[stage] += now - self._last_ns
        self._last_ns = now
        self._done.add(stage)

    def _due(self, stage: str) -> FailKind | None:
        due = [fault for fault in self._faults if fault.stage == stage and fault.due()]
        if due:
            self.fired = stage
        return due[0].kind if due else None

    def _judge(self, stage: str, kind: FailKind | None) -> None:
        if kind is FailKind.STRUCTURAL:
            self._fail(StepFailed(stage, kind, detail="injected", injected=True))
        if kind is FailKind.CANCEL:
            self._cancel.set()
        if self._cancel.is_set():
            self._done.discard(stage)
            raise KeyboardInterrupt

    def _evaluate(self, stage: str, array: Any) -> None:
        try:
            mx.eval(array)
        except (RuntimeError, ValueError) as error:
            detail = " ".join(str(error).split())
            failure = StepFailed(stage, FailKind.COMMAND, detail=detail)
            self._fail(failure, error)

    def _look(self, stage: str, array: Any) -> None:
        if array is None or not mx.issubdtype(array.dtype, mx.floating):
            return
        self._evaluate(stage, array)
        if bool(np.array(mx.all(mx.isfinite(array)))):
            return
        index = np.argwhere(~np.isfinite(np.array(array.astype(mx.float32))))[0]
        value = float(np.array(array.astype(mx.float32))[tuple(index)])
        kind = "NaN" if np.isnan(value) else "+Inf" if value > 0 else "-Inf"
        position = self._first + int(index[1]) if len(index) > 2 else None
        bad = BadValue(kind, stage, self._seq, position, tuple(int(i) for i in index))
        where = f" at position {position}" if position is not None else ""
        detail = f"{kind} in the output of the layer{where}"
        self._fail(StepFailed(stage, FailKind.NONFINITE, detail=detail, bad=bad))

    def _fail(self, failure: StepFailed, cause: Exception | None = None) -> None:
        failure.op, failure.seq = "append", self._seq
        self.failure = failure
        self._done.discard(failure.stage)
        raise failure from cause

    def views(self, failure: StepFailed | None) -> tuple[StageView, ...]:
        """Every stage with what became of it."""
        found, stopped = [], False
        for name, kind in self._stages:
            state = "not reached" if stopped else "done"
            failed = failure is not None and name == failure.stage
            if failed:
                state, stopped = "failed", True
            elif name not in self._done:
                state = "not reached"
            found.append(
                StageView(
                    name,
                    kind,
                    state,
                    self._ns[name],
                    seq=self._seq,
                    fail_kind=str(failure.kind) if failed and failure is not None else "",
                    detail=failure.detail if failed and failure is not None else "",
                    writes=self._writes.get(name, ()),
                    armed=self._armed[name],
                )
            )
        return tuple(found)


class Watch:
    """The layers of a model, which can be watched for the time of one chunk."""

    def __init__(self, layers: Sequence[Any]) -> None:
        self._layers = list(layers)
        self._real = [type(layer) for layer in self._layers]
        self._passage: Passage | None = None
        self._watched = [self._class(n, real) for n, real in enumerate(self._real)]

    def _class(self, number: int, real: type[Any]) -> type[Any]:
        stage = f"layer.{number}"

        def call(layer: Any, *args: Any, **options: Any) -> Any:
            passage = self._passage
            assert passage is not None
            passage.done("load")
            return passage.layer_done(stage, real.__call__(layer, *args, **options))

        return type(real.__name__, (real,), {"__call__": call})

    @contextlib.contextmanager
    def on(self, passage: Passage) -> Iterator[None]:
        """Report the layers of the calls inside to `passage`."""
        self._passage = passage
        try:
            for layer, watched in zip(self._layers, self._watched, strict=True):
                layer.__class__ = watched
            yield
        finally:
            for layer, real in zip(self._layers, self._real, strict=True):
                layer.__class__ = real
            self._passage = None


def _first_of(output: Any) -> Any:
    return output[0] if isinstance(output, tuple) else output


def _on_first(output: Any, action: Callable[[Any], Any]) -> Any:
    if isinstance(output, tuple):
        return (action(output[0]), *output[1:])
    return action(output)


def _with_nan(hidden: Any) -> Any:
    """A NaN at the last token."""
    mask = np.zeros(hidden.shape, np.float32)
    mask[(0, -1, *(0,) * (hidden.ndim - 2))] = np.nan
    return hidden + mx.array(mask).astype(hidden.dtype)


def _without_end(hidden: Any) -> Any:
    """`hidden` plus a value that the array library can't make."""
    return hidden + unfinished()[0, 0].astype(hidden.dtype)
