"""`ProtectedSession`: one sequence on a transactional model, step by step, with a journal.

For a command line or a window: tokens go in, plain dicts of ints, strings and lists come out.
Arrays of the array library stay inside; use a session from one thread.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
from mlx_lm.models.cache import save_prompt_cache

from . import faults, views
from .errors import InjectedFault, NotFinite, ProtectError, Refused
from .folder import load
from .model import TransactionalModel, make_prompt_cache

Record = dict[str, Any]
"""`transaction` (number, from 1), `op`, `outcome` (ok, failed, rejected, cancelled), `kind`
(command, nonfinite, structural, cancel; None when ok), `stage` (the layer whose armed fault fired),
`error`, `given`, `expected`, `nearest`, `n_tokens`, `run_before` and `run_after` ([first, last] or
None), `replayed` (tokens that ran again), `total_ns`, and with `digests=True` also
`digests_before` and `digests_after`."""


class ProtectedSession:
    """A model, its caches, the logits of the last token, and what happened.

    Args:
        model: a model of mlx-lm.
        tokenizer: for text; None when only ids are used.
        chunk: tokens of a prompt in one transaction.
        digests: put digests of every layer before and after into each record.
        on_record: called with each record as soon as it exists.
        others: options of `TransactionalModel`.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any | None = None,
        *,
        chunk: int = 512,
        digests: bool = False,
        on_record: Callable[[Record], None] | None = None,
        check_finite: bool = True,
        checkpoint_every: int = 64,
        checkpoint_bytes: int = 1 << 28,
    ) -> None:
        self.model = TransactionalModel(
            model,
            check_finite=check_finite,
            checkpoint_every=checkpoint_every,
            checkpoint_bytes=checkpoint_bytes,
        )
        self.tokenizer = tokenizer
        self.cache = make_prompt_cache(self.model)
        self.tokens: list[int] = []
        self.logits: np.ndarray[Any, np.dtype[np.float32]] | None = None
        """[V] float32, of the last consumed token; None when the sequence is empty."""
        self.journal: list[Record] = []
        self._n_vocabulary = _n_vocabulary(model)
        self._chunk = chunk
        self._with_digests = digests
        self._on_record = on_record
        self._armed: list[tuple[int, str, bool]] = []

    @classmethod
    def open(cls, folder: str | Path, **options: Any) -> ProtectedSession:
        """A session on a model folder. Raises: BadFolder, StateLost for weights cut short."""
        model, tokenizer, _ = load(folder)
        return cls(model, tokenizer, **options)

    @property
    def run(self) -> list[int] | None:
        """[first, last] of the consumed positions."""
        return [0, len(self.tokens) - 1] if self.tokens else None

    @property
    def n_vocabulary(self) -> int | None:
        """Token ids of the model, as its arguments say; None when they don't."""
        return self._n_vocabulary

    @property
    def first_target(self) -> int:
        """The earliest position that `rewind` and `fork` can reach."""
        first = self.model.legal_targets(self.cache)["first"]
        return len(self.tokens) if first is None else int(first)

    @property
    def n_layers(self) -> int:
        """Layers a fault can be armed at."""
        return len(self.model.layers)

    def layers(self) -> list[dict[str, Any]]:
        """One record a layer, see `views.layers`."""
        return views.layers(self.cache)

    def digests(self) -> dict[str, str]:
        """A digest of each layer's visible content, recomputed from its bytes."""
        return views.digests(self.cache)

    def encode(self, text: str) -> list[int]:
        """Ids of a text. Raises: ProtectError without a tokenizer."""
        if self.tokenizer is None:
            raise ProtectError("this model folder has no tokenizer: give token ids instead")
        return [int(token) for token in self.tokenizer.encode(text)]

    def arm(self, layer: int, kind: str, *, persistent: bool = False) -> None:
        """Let the next step (or every step) fail after a layer, see `faults.armed`."""
        with faults.armed(self.model, layer, kind):
            pass  # an unknown layer or kind is refused here, not in the middle of a step
        self._armed.append((layer, kind, persistent))

    def disarm(self) -> None:
        """Take all armed faults away."""
        self._armed.clear()

    def feed(
        self,
        tokens: Sequence[int],
        *,
        chunk: int | None = None,
        cancelled: Callable[[], bool] = lambda: False,
        on_logits: Callable[[Any], None] | None = None,
    ) -> Record:
        """Consume tokens, one transaction a chunk, until one fails.

        `on_logits` gets float32 [n, V] after each chunk that was published.
        Returns: the record of the last chunk; chunks before it stay published.
        """
        size = self._chunk if chunk is None else chunk
        wrong = self._what_is_wrong(tokens, size)
        if wrong is not None:
            return self._write("append", "rejected", kind="structural", error=wrong)
        record: Record = {}
        for start in range(0, len(tokens), size):
            if cancelled():
                return self._write("append", "cancelled", kind="cancel", error="cancelled")
            record = self._append([int(t) for t in tokens[start : start + size]], on_logits)
            if record["outcome"] != "ok":
                break
        return record

    def _what_is_wrong(self, tokens: Sequence[int], size: int) -> str | None:
        if size < 1:
            return f"a chunk has at least 1 token, given {size}"
        if not tokens:
            return "expected at least one token, given none"
        # an id outside would read a row of memory that is not a weight, without an error
        top = self._n_vocabulary
        for token in tokens:
            if token < 0 or (top is not None and token >= top):
                limit = "" if top is None else f" to {top - 1}"
                return f"expected token ids from 0{limit}, given {token}"
        return None

    def _append(self, tokens: list[int], on_logits: Callable[[Any], None] | None) -> Record:
        with self._step("append", len(tokens)) as step, self.model.transaction(self.cache):
            logits = self._call(tokens, step)
            rows = np.array(logits[0].astype(mx.float32))
            if on_logits is not None:
                on_logits(rows)
            self.logits = rows[-1]
            self.tokens.extend(tokens)
        return self.journal[-1]

    def _call(self, tokens: list[int], step: Record) -> Any:
        with contextlib.ExitStack() as stack:
            live = [
                stack.enter_context(faults.armed(self.model, layer, kind, persistent=persistent))
                for layer, kind, persistent in self._armed
            ]
            try:
                return self.model(mx.array([tokens]), cache=self.cache)
            finally:
                fired = [fault for fault in live if fault.fired]
                if fired:
                    step["stage"] = f"layer.{fired[0].layer}"
                self._armed = [
                    (fault.layer, fault.kind, fault.persistent)
                    for fault in live
                    if fault.persistent or not fault.fired
                ]

    def generate(
        self,
        n_tokens: int,
        *,
        sampler: Callable[[Any], Any] | None = None,
        stop: bool = True,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> Iterator[dict[str, Any]]:
        """Yield up to n tokens, greedy or by `sampler` (of log probabilities [1, V]).

        Each item has `token`, `text` (the new piece; empty without a tokenizer), `position` that
        the token will take, and `record` of the step that made it possible (None for the first).
        Ends early after an end-of-sequence token (`stop`), a failure or a cancel; the record of
        such a step is the last item, with `token` None. The last token is not consumed.
        """
        stops = set(getattr(self.tokenizer, "eos_token_ids", None) or ()) if stop else set()
        stream = self.tokenizer.detokenizer if self.tokenizer is not None else None
        record: Record | None = None
        token = -1
        for index in range(n_tokens):
            if index:
                record = self.feed([token], cancelled=cancelled)
                if record["outcome"] != "ok":
                    yield {"token": None, "text": "", "position": None, "record": record}
                    return
            token = self._sample(sampler)
            text = ""
            if stream is not None:
                stream.add_token(token)
                text = stream.last_segment
            yield {"token": token, "text": text, "position": len(self.tokens), "record": record}
            if token in stops:
                return

    def _sample(self, sampler: Callable[[Any], Any] | None) -> int:
        if self.logits is None:
            raise Refused("generate", "no logits", detail="feed at least one token first")
        if sampler is None:
            return int(np.argmax(self.logits))
        row = mx.array(self.logits)[None]
        return int(np.array(sampler(row - mx.logsumexp(row, keepdims=True))).item())

    def rewind(self, position: int) -> Record:
        """Back to the state after `position` tokens."""
        with self._step("rewind", 0, given=position) as step:
            step["replayed"] = self._go_to(position)
        return self.journal[-1]

    def trim(self, n_tokens: int) -> Record:
        """Take back the last n tokens."""
        with self._step("trim", 0, given=n_tokens) as step:
            if not 0 <= n_tokens <= len(self.tokens):
                nearest = max(0, min(n_tokens, len(self.tokens)))
                raise Refused("trim", "out of range", given=n_tokens, nearest=nearest)
            step["replayed"] = self._go_to(len(self.tokens) - n_tokens)
        return self.journal[-1]

    def _go_to(self, position: int) -> int:
        if position == len(self.tokens):
            return 0
        with self.model.transaction(self.cache):
            replayed = self.model.rewind(self.cache, position)
            self.logits = self._logits_at(position)
            self.tokens = self.tokens[:position]
        return replayed

    def _logits_at(self, position: int) -> Any:
        """Logits after `position` tokens, from a fork, so the rows of the sequence stay."""
        if position == 0:
            return None
        side = self.model.fork(self.cache, position - 1)
        last = self.model(mx.array([[self.tokens[position - 1]]]), cache=side)
        return np.array(last[0, -1].astype(mx.float32))

    def fork(self, position: int | None = None) -> ProtectedSession:
        """A second session with the state after `position` tokens (None: now).

        Raises: Refused with the nearest legal target.
        """
        at = len(self.tokens) if position is None else position
        twin = object.__new__(ProtectedSession)
        vars(twin).update(vars(self))
        twin.cache = self.model.fork(self.cache, at)
        twin.tokens = self.tokens[:at]
        twin.journal = []
        twin._armed = []
        same = at == len(self.tokens)
        twin.logits = self.logits if same else twin._logits_at(at)
        return twin

    def save(self, path: str | Path) -> None:
        """Write the caches as mlx-lm does; the tokens go into the metadata."""
        metadata = {"tokens": ",".join(str(token) for token in self.tokens)}
        save_prompt_cache(str(path), self.cache, metadata)

    @contextlib.contextmanager
    def _step(self, op: str, n_tokens: int, **facts: Any) -> Iterator[Record]:
        """Time one request, turn its failure into a record, keep the journal."""
        step: Record = {"n_tokens": n_tokens, "run_before": self.run, **facts}
        if self._with_digests:
            step["digests_before"] = self.digests()
        began = time.perf_counter_ns()
        outcome, kind = "ok", None
        tokens, n_before, logits = self.tokens, len(self.tokens), self.logits
        try:
            yield step
        except KeyboardInterrupt:
            outcome, kind = "cancelled", "cancel"
            step["error"] = "interrupted"
        except Refused as refusal:
            outcome, kind = "rejected", "structural"
            step.update(error=str(refusal), nearest=refusal.nearest, expected=refusal.expected)
        except NotFinite as error:
            outcome, kind = "failed", "nonfinite"
            step["error"] = str(error)
        except InjectedFault as error:
            outcome, kind = "failed", "structural"
            step["error"] = str(error)
        except Exception as error:  # a model may raise anything
            outcome, kind = "failed", "command"
            step["error"] = f"{type(error).__name__}: {error}"
        if outcome != "ok":
            del tokens[n_before:]
            self.tokens, self.logits = tokens, logits
        step["total_ns"] = time.perf_counter_ns() - began
        if self._with_digests:
            step["digests_after"] = self.digests()
        self._write(op, outcome, kind=kind, **step)

    def _write(self, op: str, outcome: str, **facts: Any) -> Record:
        record: Record = {
            "transaction": len(self.journal) + 1,
            "op": op,
            "outcome": outcome,
            "kind": None,
            "stage": None,
            "error": None,
            "given": None,
            "expected": None,
            "nearest": None,
            "n_tokens": 0,
            "run_before": self.run,
            "run_after": self.run,
            "replayed": 0,
            "total_ns": 0,
            **facts,
        }
        self.journal.append(record)
        if self._on_record is not None:
            self._on_record(record)
        return record


def _n_vocabulary(model: Any) -> int | None:
    """Token ids of a model, as its arguments say; None when they don't."""
    arguments = getattr(model, "args", None)
    for holder in (arguments, getattr(arguments, "text_config", None)):
        size = holder.get("vocab_size") if isinstance(holder, dict) else None
        size = getattr(holder, "vocab_size", size)
        if isinstance(size, int):
            return size
    return None
