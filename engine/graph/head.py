"""Read-out: the final mix (it is the final norm) and the head, for every token.

Owners: "residual", the streams of the last token, and "logits", those of the last token.
"""

from __future__ import annotations

import mlx.core as mx

from engine.graph.hyper import mix
from engine.stage import Step


def head(step: Step) -> None:
    """ "streams" to "final" [R, H] and "logits" [T, V] float32."""
    model = step.model
    final, _ = mix(step, model.final)
    logits = step.live(model.backend.linear(final, model.head)).astype(mx.float32)
    step.values |= {"final": final, "logits": logits}
    last = step.lead + step.n_tokens - 1
    step.state.set_fixed("residual", -1, step.values["streams"][last])
    step.state.set_fixed("logits", -1, logits[-1])
