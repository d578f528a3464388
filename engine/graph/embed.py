"""Tokens to residual streams: n plain copies of the embedding."""

from __future__ import annotations

import mlx.core as mx

from engine.errors import StepFailed
from engine.stage import Step
from engine.terms import FailKind


def embed(step: Step) -> None:
    """tokens to "streams" [R, n, H]. Raises: StepFailed for an id outside of the vocabulary."""
    c = step.model.config
    if step.tokens.min() < 0 or step.tokens.max() >= c.vocab_size:
        wrong = next(int(t) for t in step.tokens if not 0 <= t < c.vocab_size)
        raise StepFailed(
            "embed",
            FailKind.STRUCTURAL,
            detail=f"expected token ids from 0 to {c.vocab_size - 1}, given {wrong}",
        )
    rows = step.pad(mx.take(step.model.embed, mx.array(step.tokens), axis=0))
    step.values["streams"] = mx.broadcast_to(
        rows[:, None], (step.n_rows, c.hc_count, c.hidden_size)
    )
