"""`TransactionalModel`: an mlx-lm model whose forward pass happens whole or not at all."""

from __future__ import annotations

import contextlib
import inspect
import traceback
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import mlx.core as mx
import numpy as np

from .errors import NotFinite, StateLost
from .freeze import arrays_of
from .lineage import Checkpoints, lineage_of, remember
from .transaction import Transaction
from .travel import TimeTravel
from .weights import Weights

_FEW_ROWS = 32


class TransactionalModel(TimeTravel):
    """Wraps a model and keeps its call shape; hand it to mlx-lm in place of the model.

    Args:
        model: a model of mlx-lm. Its weights are evaluated now, and what was set or changed
            since before each step: a weight that fails to load in the middle of a step would
            count as loaded afterwards.
        check_finite: also take a step back when a logit is NaN or infinite.
        checkpoint_every: tokens between checkpoints of state that can't be cut (recurrent
            layers, rings); 0 keeps none.
        checkpoint_bytes: the oldest checkpoints beyond this many bytes are dropped.
    Raises: StateLost when a weight can't be read.

    A call with up to 32 tokens evaluates its logits before the commit. For longer chunks only
    the caches are evaluated, as mlx-lm does it in a prefill, where nobody reads the logits;
    `check_finite` evaluates them always.
    """

    def __init__(
        self,
        model: Any,
        *,
        check_finite: bool = False,
        checkpoint_every: int = 256,
        checkpoint_bytes: int = 1 << 28,
    ) -> None:
        self._model = model
        self._check_finite = check_finite
        self._checkpoints = Checkpoints(checkpoint_every, checkpoint_bytes)
        self._unfinished: Transaction | None = None
        self._weights = Weights(model)
        self._weights.check()
        vars(self)["__call__"] = _with_signature(self.__call__, model)

    def __getattr__(self, name: str) -> Any:
        if name == "_model":
            raise AttributeError(name)
        return getattr(self._model, name)

    def __call__(self, inputs: Any, cache: Sequence[Any] | None = None, **options: Any) -> Any:
        """One forward pass over `inputs` [B, S], as a transaction over `cache`.

        Raises: whatever the model or the evaluation raised, NotFinite, StateLost. In each case
            all cache objects are as they were before the call.
        """
        self._weights.check()
        if not cache:
            return self._model(inputs, cache=cache, **options)
        self.recover()
        rows = _n_tokens(inputs, options)
        lineage = lineage_of(cache)
        mark = lineage.mark()
        transaction = Transaction(cache, rows)
        self._unfinished = transaction
        try:
            transaction.begin()
            logits = self._forward(transaction, inputs, cache, options)
            lineage.take(lineage.prepare(inputs, rows, cache, self._checkpoints), self._checkpoints)
            transaction.release()
            # the commit: no call after this store, so no interrupt can fall between it and the
            # return; what was kept dies with the frame
            self._unfinished = None
            return logits
        except BaseException as error:
            lineage.reset(mark)
            self._take_back(transaction, error)
            raise

    def _forward(
        self, transaction: Transaction, inputs: Any, cache: Sequence[Any], options: dict[str, Any]
    ) -> Any:
        with transaction.guarded():
            logits = self._model(inputs, cache=cache, **options)
        outputs = list(arrays_of(logits))
        few = _n_tokens(inputs, options) <= _FEW_ROWS
        if self._check_finite:
            bad = [mx.logical_not(mx.isfinite(array)) for array in outputs]
            counts = [array.sum() for array in bad]
            transaction.fence(outputs, counts)
            _refuse_bad(bad, counts)
        else:
            transaction.fence(outputs if few else [])
        return logits

    def _take_back(self, transaction: Transaction, error: BaseException) -> None:
        """Roll back; the first error stays on top and frees what its frames hold."""
        try:
            transaction.rollback()
        except KeyboardInterrupt:
            error.add_note("interrupted once more while the caches were put back")
        except StateLost as lost:
            error.add_note(str(lost))
        if transaction.is_open:
            transaction.rollback()
        self._unfinished = None
        if error.__traceback__ is not None and error.__traceback__.tb_next is not None:
            # arrays of the failed step are of no use, and as second handles they cost copies
            traceback.clear_frames(error.__traceback__.tb_next)

    def accept_weights(self) -> None:
        """Evaluate weights that were set after the wrapping now instead of before the next step.

        Raises: StateLost.
        """
        self._weights.check()

    def recover(self) -> None:
        """Finish a rollback that was cut short; every call does this first."""
        if self._unfinished is not None:
            if self._unfinished.is_open:
                self._unfinished.rollback()
            self._unfinished = None

    @contextlib.contextmanager
    def transaction(self, *caches: Sequence[Any]) -> Iterator[Transaction]:
        """Several calls, also of several models, as one: an exception takes all of them back."""
        known = [(group, lineage_of(group), lineage_of(group).copy()) for group in caches]
        outer = Transaction([cache for group in caches for cache in group])
        try:
            outer.begin()
            yield outer
            outer.fence()
            outer.release()
        except BaseException:
            outer.rollback()
            for group, lineage, before in known:
                lineage.assign(before)
                remember(group, lineage)
            raise


def make_prompt_cache(model: Any, max_kv_size: int | None = None) -> list[Any]:
    """Fresh caches for a model, wrapped or not; the same as mlx-lm makes."""
    from mlx_lm.models.cache import make_prompt_cache as make

    inner = model._model if isinstance(model, TransactionalModel) else model
    made: list[Any] = make(inner, max_kv_size)
    return made


def _with_signature(call: Callable[..., Any], model: Any) -> Callable[..., Any]:
    """`call` under the signature of the model: mlx-lm asks it whether embeddings are taken."""

    def forward(*args: Any, **options: Any) -> Any:
        return call(*args, **options)

    forward.__signature__ = inspect.signature(model.__call__)  # type: ignore[attr-defined]
    return forward


def _n_tokens(inputs: Any, options: dict[str, Any]) -> int:
    embeddings = options.get("input_embeddings")
    shape = inputs.shape if embeddings is None else embeddings.shape
    return int(shape[1])


def _refuse_bad(bad: list[Any], counts: list[Any]) -> None:
    for flags, count in zip(bad, counts, strict=True):
        n_bad = int(np.array(count))
        if n_bad:
            rows = mx.any(flags, axis=tuple(i for i in range(flags.ndim) if i != flags.ndim - 2))
            raise NotFinite(int(np.argmax(np.array(rows))), n_bad)
