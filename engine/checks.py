"""Checks of a whole session: same as fresh, and the sweep around the group boundaries.

Same as fresh executes every lineage in a new session and compares the bytes of every owner; it
names the first owner and position that differ. Both are generators, so that a caller can show
progress and stop between steps.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, Final

from engine.bank import Bank
from engine.derive import tokens_for
from engine.engine import Engine, append
from engine.errors import InvariantBroken
from engine.lineage import Lineage
from engine.ops import EvictFront, Op, Shift
from engine.owner import Key, Look
from engine.progress import Progress
from engine.run import Run
from engine.snapshot import CheckResult

SWEEP_CHUNKS: Final = (1, 2, 3, 4, 5, 8, 17)
Steps = Generator[Progress, None, CheckResult]


@dataclass(frozen=True, slots=True)
class Difference:
    """The first place where two states of one key differ."""

    owner: str
    key: Key
    layer: int
    position: int | None

    def __str__(self) -> str:
        where = f" at position {self.position}" if self.position is not None else ""
        layer = f", layer {self.layer}" if self.layer >= 0 else ""
        return f"{self.owner} of sequence {self.key}{layer} differs{where}"


def lineage_ops(lineage: Lineage, seq: int) -> list[Op]:
    """The ops that make a sequence again: appends, evictions and shifts as they took effect."""
    ops: list[Op] = []
    at = 0
    for event in lineage.events:
        if event.count > at:
            ops.append(_append(lineage, seq, at, event.count))
            at = event.count
        if event.kind == "evict":
            ops.append(EvictFront(seq, event.value))
        elif event.kind == "shift":
            ops.append(Shift(seq, event.value))
    if at < lineage.consumed:
        ops.append(_append(lineage, seq, at, lineage.consumed))
    return ops


def _append(lineage: Lineage, seq: int, start: int, stop: int) -> Op:
    first = int(lineage.positions(start, start + 1)[0])
    return append(seq, first, lineage.log.slice(start, stop).tolist())


def same_as_fresh(engine: Engine) -> Steps:
    """Execute every lineage anew and compare. Yields progress in sequences and slots."""
    name = "same-as-fresh"
    public = engine.pair.public_bank
    looks = public.looks()
    if engine.model is None:
        return _whole(engine, looks)
    n_tokens = sum(look.consumed for look in looks.values())
    for done, (key, look) in enumerate(looks.items()):
        yield Progress(done, len(looks), "sequences", f"sequence {key}")
        fresh = Engine(
            engine.model,
            name=engine.name,
            mode="fast",
            prove="failures",
            capacity=public.history.value.capacity,
            budget_bytes=engine.session.budget_bytes,
        )
        for op in lineage_ops(public.tokens.of(key), 0):
            record = fresh.apply(op)
            if record.outcome != "ok":
                return CheckResult(name, False, f"sequence {key} cannot be made: {record.sentence}")
        found = first_difference(public, look, fresh.pair.public_bank)
        if found is not None:
            return CheckResult(name, False, str(found))
    yield Progress(len(looks), len(looks), "sequences")
    told = f"{len(looks)} sequences and slots, {n_tokens:,} tokens: every owner has the same bytes"
    return CheckResult(name, True, told)


def _whole(engine: Engine, looks: dict[Key, Look]) -> CheckResult:
    """Without a model: runs and cells agree, groups and tail partition every run."""
    name, history = "same-as-fresh", engine.pair.public_bank.history.value
    try:
        history.check()
    except InvariantBroken as error:
        return CheckResult(name, False, str(error))
    for key, look in looks.items():
        run = (history.of(key) if isinstance(key, int) else history.slots[key]).run
        fresh = Run(run.start, run.stop)
        covered = fresh.n_groups(look.group_size) * look.group_size + fresh.n_tail(look.group_size)
        if covered != look.n_live:
            return CheckResult(name, False, f"groups and tail of sequence {key} miss positions")
    return CheckResult(name, True, f"{len(looks)} runs are whole (no model, nothing to compute)")


def first_difference(bank: Bank, look: Look, fresh: Bank) -> Difference | None:
    """Compare one key with sequence 0 of a fresh bank, owner by owner, from the bytes."""
    other = fresh.look(0)
    if (look.n_live, look.consumed, look.id_hash) != (other.n_live, other.consumed, other.id_hash):
        return Difference("tokens", look.key, -1, None)
    history = bank.history.value
    run = (history.of(look.key) if isinstance(look.key, int) else history.slots[look.key]).run
    if look.n_live and run != fresh.history.value.of(0).run:
        return Difference("history", look.key, -1, run.start)
    for owner in bank.owners.values():
        found = owner.compare(fresh.owners[owner.name], look, other)
        if found is not None:
            layer, index = found
            position = None if index is None else run.start + index
            return Difference(owner.name, look.key, layer, position)
    return None


def boundary_sweep(engine: Engine) -> Steps:
    """Every length around the boundaries in every chunk size gives the bytes of one pass."""
    size = engine.pair.public_bank.history.value.group_size
    edges = (size, 2 * size, 4 * size, 64)
    lengths = sorted({n for edge in edges for n in (edge - 1, edge, edge + 1) if n > 0})
    vocab = engine.model.config.vocab_size if engine.model else 1
    rows: list[tuple[str, ...]] = []
    bad = 0
    for done, n in enumerate(lengths):
        yield Progress(done, len(lengths), "lengths", f"{n} tokens")
        ids = tokens_for(range(n), vocab).tolist()
        whole = _digests_of(engine, n, ids, None)
        row = [str(n)]
        for chunk in SWEEP_CHUNKS:
            same = _digests_of(engine, n, ids, chunk) == whole
            bad += not same
            row.append("pass" if same else "fail")
        rows.append(tuple(row))
    yield Progress(len(lengths), len(lengths), "lengths")
    n_runs = len(lengths) * len(SWEEP_CHUNKS)
    told = f"{n_runs - bad} of {n_runs} ways of cutting give the bytes of one pass"
    columns = ("tokens", *(f"chunk {chunk}" for chunk in SWEEP_CHUNKS))
    return CheckResult("boundary-sweep", not bad, told, tuple(rows), columns)


def _digests_of(engine: Engine, n: int, ids: list[int], chunk: int | None) -> Any:
    fresh = Engine(
        engine.model,
        name=engine.name,
        group_size=engine.pair.public_bank.history.value.group_size,
        mode="fast",
        prove="failures",
    )
    for at in range(0, n, chunk or n):
        part = ids[at : at + (chunk or n)]
        fresh.apply(append(0, at, part))
    return fresh.digests()


def audit(engine: Engine) -> Steps:
    """Recompute every digest from the bytes and compare it with the sealed one."""
    yield Progress(0, 1, "audits")
    try:
        engine.audit()
    except InvariantBroken as error:
        return CheckResult("audit", False, str(error))
    rows = tuple((name, value) for name, value in engine.digests())
    yield Progress(1, 1, "audits")
    told = f"{len(rows)} digests recomputed from the bytes are the sealed ones"
    return CheckResult("audit", True, told, rows, ("owner", "digest"))


CHECKS: Final = {"same-as-fresh": same_as_fresh, "boundary-sweep": boundary_sweep, "audit": audit}


def run_check(engine: Engine, name: str) -> CheckResult:
    """Run a check to its end."""
    steps = CHECKS[name](engine)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
