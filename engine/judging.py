"""Judging what a transaction made: finite values, and what a status word says.

Probes are sums: cheap, and not finite when a value is not. They only lead to the values; the
values decide, stage by stage, so an overflow of a sum refuses nothing, and a sum at the end names
the stage in the middle.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, cast

import mlx.core as mx
import numpy as np
import numpy.typing as npt

from engine.bank import Bank
from engine.errors import BadValue, StepFailed
from engine.owner import Key
from engine.owners.fixed import FixedOwner
from engine.stage import GroupCheck, Stage, Step
from engine.terms import FailKind
from metal.status import SENTENCES


@dataclass(slots=True)
class Flag:
    """Values of a stage that must be finite, and the sums that tell whether to look.

    A probe that overflowed although every value is finite is no fault: the values decide.
    """

    stage: Stage
    probes: tuple[mx.array, ...]
    values: tuple[tuple[str, mx.array], ...]
    """What to look through, in order, when a probe is not finite; later stages replace some."""
    step: Step
    key: int


def judge_values(flag: Flag) -> None:
    """Look for the first value that is not finite. Raises: StepFailed naming it."""
    step, stage = flag.step, flag.stage
    owners = dict(stage.keeps)
    for name, array in flag.values:
        value = array.astype(mx.float32)
        by_token = name not in stage.whole
        if by_token and value.shape[0] == step.n_rows != step.n_tokens:
            value = step.live(value)
        host = np.array(value)
        if np.isfinite(host).all():
            continue
        first = int(step.positions[0]) if by_token and len(host) == step.n_tokens else None
        found = first_bad(host, owners.get(name), flag.key, first)
        where = f" at position {found.position}" if found.position is not None else ""
        detail = f"{found.kind} in {name}{where}, index {list(found.index)}"
        raise StepFailed(stage.name, FailKind.NONFINITE, seq=flag.key, detail=detail, bad=found)


def check_finite_owners(bank: Bank, stage: str, skip: Collection[Key] = ()) -> None:
    """Rows that lifecycle work made without a graph stage are finite, too.

    Raises: StepFailed of kind nonfinite naming owner, sequence and position.
    """
    looks = bank.looks()
    suspects: list[tuple[FixedOwner, Key, int, mx.array]] = []
    for key in bank.changes.dirty:
        if key not in looks or key in skip:
            continue
        for owner in bank.fixed():
            for layer, value in owner.values.get(key, {}).items():
                if mx.issubdtype(value.dtype, mx.floating):
                    suspects.append((owner, key, layer, value))
    if not suspects:
        return
    probes = [probe_of(value) for *_, value in suspects]
    mx.eval(probes)
    for (owner, key, layer, value), probe in zip(suspects, probes, strict=True):
        if is_finite(probe):
            continue
        host = np.array(value.astype(mx.float32))
        if np.isfinite(host).all():
            continue
        found = first_bad(host, owner.name, _seq(key), None)
        raise StepFailed(
            stage,
            FailKind.NONFINITE,
            seq=_seq(key),
            detail=f"{found.kind} in {owner.name} of layer {layer}, index {list(found.index)}",
            bad=found,
        )


def probe_of(value: mx.array) -> mx.array:
    """A float32 scalar that is finite if every value is, but for overflow of the sum."""
    return mx.sum(value if value.dtype == mx.float32 else value.astype(mx.float32))


def is_finite(probe: mx.array) -> bool:
    """Read an evaluated scalar."""
    return math.isfinite(cast(float, probe.item()))


def first_bad(values: npt.NDArray[Any], owner: str | None, seq: int, first: int | None) -> BadValue:
    """Kind and place of the first value that is not finite, row-major.

    Args:
        first: position of row 0 when rows are positions, else None.
    """
    flat = np.flatnonzero(~np.isfinite(values))
    index = tuple(int(i) for i in np.unravel_index(int(flat[0]), values.shape))
    value = float(values[index])
    kind = "NaN" if np.isnan(value) else "+Inf" if value > 0 else "-Inf"
    position = None if first is None or not index else first + index[0]
    return BadValue(kind, owner, seq, position, index)


def sentence_of(word: int, check: GroupCheck) -> str:
    """What a person reads for an evaluated status word: what is wrong, and where first."""
    found = "; ".join(text for bit, text in SENTENCES.items() if word & bit) or f"bits {word:#x}"
    part, size = check.part(), check.group_size
    if part < 0:
        return found
    n_groups = check.n_live // size
    name = "the tail" if part >= n_groups else f"group {check.first_group + part}"
    first = check.first_position + min(part, n_groups) * size
    last = check.first_position + check.n_live - 1 if part >= n_groups else first + size - 1
    if last < first:
        return f"{found}; first in {name}, which is empty"
    return f"{found}; first in {name}, positions {first} to {last}"


def _seq(key: Key) -> int:
    return key if isinstance(key, int) else -1
