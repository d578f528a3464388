"""Sessions for tests: models by golden name, and bytes of every owner without the digest code."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import mlx.core as mx
import numpy as np

from engine.bank import Bank
from engine.engine import Engine, append
from engine.lineage import Lineage
from engine.ops import Op, Transaction
from engine.owners.fixed import FixedOwner
from engine.owners.positional import PositionalOwner
from engine.snapshot import Record
from tests.helpers import golden

Bytes = dict[str, Any]


def session(name: str = "qwen4exp-tiny", **settings: Any) -> Engine:
    """An empty session with a golden model."""
    return Engine(golden.model(name), name=name, **settings)


def prompt(name: str = "qwen4exp-tiny", n: int | None = None) -> list[int]:
    """Tokens of the golden's main sequence, repeated as often as `n` needs."""
    tokens = [int(t) for t in golden.arrays(name, "full")["tokens"]]
    if n is None:
        return tokens
    return (tokens * (n // len(tokens) + 1))[:n]


def good(engine: Engine, op: Op, **more: Any) -> Record:
    """Apply an op that must be published."""
    record = engine.apply(op, **more)
    assert record.outcome == "ok", record.sentence
    return record


def needed(engine: Engine, op: Op, **more: Any) -> int:
    """Bytes that an op asks for: what a budget without any room says that it needs."""
    session = engine.session
    engine.session = replace(session, budget_bytes=engine.snapshot().used_bytes)
    try:
        record = engine.apply(op, **more)
    finally:
        engine.session = session
    assert record.kind == "oom", record.sentence
    found = re.search(r"needs ([\d,]+) bytes", record.sentence)
    assert found is not None
    return int(found[1].replace(",", ""))


def feed(engine: Engine, seq: int, start: int, tokens: Sequence[int], chunk: int) -> None:
    """Tokens in chunks, a transaction each."""
    for at in range(0, len(tokens), chunk):
        good(engine, append(seq, start + at, tokens[at : at + chunk]))


def batch(*ops: Op) -> Transaction:
    """Several ops in one transaction."""
    return Transaction(tuple(ops))  # type: ignore[arg-type]


def raw(array: mx.array) -> bytes:
    """Bytes of an array as it is."""
    mx.eval(array)
    return np.array(array.view(mx.uint16) if array.dtype == mx.bfloat16 else array).tobytes()


def content(bank: Bank) -> Bytes:
    """Visible content of every owner, read cell by cell: no digest, no block, no cache."""
    found: Bytes = {}
    history = bank.history.value
    held = {**history.sequences, **history.slots}
    for key, cells in held.items():
        found[f"run {key}"] = (cells.run.start, cells.run.stop)
        order = [c for first, n in cells.extents for c in range(first, first + n)]
        size = history.group_size
        for owner in bank.owners.values():
            if isinstance(owner, PositionalOwner):
                for p in owner.places:
                    rows = order[size - 1 :: size] if owner.unit == "group" else order
                    index = mx.array(np.array(rows, np.int32))
                    table = owner.tables[p.place]
                    value = raw(mx.take(table, index, axis=0)) if rows else b""
                    found[f"{owner.name} {p.place} {key}"] = value
    for owner in bank.owners.values():
        if isinstance(owner, FixedOwner):
            for key, values in owner.values.items():
                for layer, value in values.items():
                    found[f"{owner.name} {layer} {key}"] = raw(value)
        marks = {k: (m.consumed, m.id_hash) for k, m in owner.marks.items() if m.consumed}
        found[f"marks {owner.name}"] = marks
    if bank.with_model:
        for key, lineage in bank.tokens.lineages.items():
            found[f"tokens {key}"] = told(lineage)
    return found


def told(lineage: Lineage) -> tuple[Any, ...]:
    """A lineage as plain values."""
    events = tuple((e.count, e.kind, e.value) for e in lineage.events)
    return (tuple(lineage.log.slice(0, lineage.consumed).tolist()), events)


def public(engine: Engine) -> Bytes:
    """Content of the public bank."""
    return content(engine.pair.public_bank)
