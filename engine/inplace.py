"""The peers of the benchmarks: the same graph in place without a transaction, and long histories.

Nothing in the product uses this module; it exists so that what a transaction costs is measured
against the very same stages, tables and evaluation without one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import mlx.core as mx
import numpy as np

from engine.bank import Bank
from engine.engine import Engine, append, model_layout
from engine.graph import graph_stages
from engine.history import History
from engine.owner import Changes, to_numpy
from engine.owners.groups import GroupOwner
from engine.owners.history import ORDINAL
from engine.private import PrivateState
from engine.rules import apply
from engine.stage import Step

if TYPE_CHECKING:
    from engine.graph.model import Model


class InPlace:
    """One bank that is written in place: no catch-up, no checks, no digests, no way back."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.bank = Bank.empty(History.empty(model.config.group_size), model_layout(model), True)
        self.stages = graph_stages(model)
        self.n = 0

    def feed(self, tokens: list[int]) -> None:
        """Run a chunk: one evaluation."""
        bank, n = self.bank, len(tokens)
        applied = apply(bank.history.value, append(0, self.n, tokens))
        bank.history.set_value(applied.history)
        for owner in bank.positional():
            owner.ensure(applied.history.n_cells)
        bank.tokens.write(0, bank.tokens.of(0).appended(self.n, tokens))
        state = PrivateState(bank, bank.look(0), applied.effects[0].extents, n, 0, False)  # type: ignore[union-attr]
        positions = np.arange(self.n, self.n + n, dtype=np.int64)
        ids = np.array(tokens, np.int64)
        step = Step(self.model, ids, positions, self.n, 0, self.n, state)
        for stage in self.stages:
            stage.run(step)
        for owner in bank.positional():
            owner.release()
        mx.eval([a for owner in bank.owners.values() for a in owner.arrays()])
        self.n += n


def fill_at_random(engine: Engine, n: int, seed: int = 0) -> None:
    """Publish a session with one sequence of `n` positions whose rows are random numbers.

    A stand-in for a long prompt: everything is as after one, but for the values.
    """
    assert engine.model is not None
    random = np.random.default_rng(seed)
    private, vocab = engine.pair.private_bank, engine.model.config.vocab_size
    applied = apply(engine.pair.public_bank.history.value, append(0, 0, [0] * n))
    private.adopt(Bank.empty(applied.history, engine.layout, True).owners)
    private.history.set_value(applied.history)
    private.tokens.write(0, private.tokens.of(0).appended(0, random.integers(0, vocab, n)))
    look = private.look(0)
    for owner in private.positional():
        owner.ensure(applied.history.n_cells)
        for p in owner.places:
            units = look.n_groups if isinstance(owner, GroupOwner) else n
            rows = mx.array(random.standard_normal((units, *p.shape)).astype(np.float32))
            if p.place == ORDINAL:
                owner.write(p.place, look.extents, mx.arange(n, dtype=mx.int32))
            elif isinstance(owner, GroupOwner):
                owner.put(p.place, look, 0, rows.astype(p.dtype))
            else:
                owner.write(p.place, look.extents, rows.astype(p.dtype))
    for fixed in private.fixed():
        for layer, p in fixed.places.items():
            fixed.write(0, layer, mx.zeros(p.shape, p.dtype))
    private.mark(0)
    private.changes = Changes()
    private.changes.touch(0, 0)
    private.changes.regrouped.add(0)
    private.evaluate(*private.prepare())
    private.seal()
    engine.publish_loaded()


def copy_everything(engine: Engine) -> int:
    """Copy every array of the public bank, as a snapshot by copying would; returns the bytes."""
    bank = engine.pair.public_bank
    copies = [
        mx.contiguous(a + mx.zeros((), a.dtype)) for o in bank.owners.values() for a in o.arrays()
    ]
    mx.eval(copies)
    return sum(c.nbytes for c in copies)


def host_copy(engine: Engine) -> int:
    """The same through the host, which is what saving by hand does."""
    bank = engine.pair.public_bank
    return sum(to_numpy(a).nbytes for o in bank.owners.values() for a in o.arrays())
