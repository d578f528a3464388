"""The most likely next tokens of a sequence, from its published logits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from app.models import text
from app.models.table import Cell, Column, Row, Table

COLUMNS = (
    Column("Rank", "right", mono=True),
    Column("Token id", "right", mono=True),
    Column("Logit", "right", mono=True),
    Column("Probability", "right", mono=True),
    Column("Against top", tip="Length of the bar: probability against the first token's"),
)


@dataclass(frozen=True, slots=True)
class TopTokens:
    """The most likely tokens, most likely first."""

    ids: tuple[int, ...]
    logits: tuple[float, ...]
    probabilities: tuple[float, ...]
    n_vocabulary: int
    n_not_finite: int
    entropy: float
    """In nats."""


def top_tokens(values: npt.NDArray[np.generic], n_top: int = 20) -> TopTokens:
    """Choose the `n_top` largest of [..., V] logits (the last row); ties: the lower id first."""
    last = np.asarray(values, dtype=np.float64).reshape(-1, np.shape(values)[-1])[-1]
    finite = np.isfinite(last)
    shown = np.where(finite, last, -np.inf)
    order = np.argsort(-shown, kind="stable")[:n_top]
    order = order[finite[order]]
    weights = np.exp(shown - shown.max()) if finite.any() else np.zeros_like(shown)
    total = weights.sum() or 1.0
    shares = weights / total
    positive = shares[shares > 0]
    return TopTokens(
        tuple(int(i) for i in order),
        tuple(float(last[i]) for i in order),
        tuple(float(shares[i]) for i in order),
        len(last),
        int(len(last) - finite.sum()),
        float(-(positive * np.log(positive)).sum()),
    )


def token_table(top: TopTokens) -> Table:
    """One row a token."""
    first = top.probabilities[0] if top.probabilities else 1.0
    rows = []
    columns = zip(top.ids, top.logits, top.probabilities, strict=True)
    for rank, (token, logit, probability) in enumerate(columns, start=1):
        cells = (
            Cell(str(rank)),
            Cell(text.count(token), copy=str(token)),
            Cell(f"{logit:.4f}", tip=repr(logit), copy=repr(logit)),
            Cell(f"{100 * probability:.2f} %", copy=repr(probability)),
            Cell("", copy=f"{probability / first:.4f}"),
        )
        rows.append(Row(cells, key=str(token)))
    return Table(COLUMNS, tuple(rows))


def summary(top: TopTokens, seq: int, position: int | None) -> str:
    """One line over the table."""
    where = "" if position is None else f" after position {text.count(position)}"
    out = (
        f"sequence {seq}{where}: {text.count(top.n_vocabulary)} ids, entropy {top.entropy:.3f} nats"
    )
    if top.n_not_finite:
        out += f", {text.count(top.n_not_finite)} not finite"
    return out
