"""Checks of a session on a model of mlx-lm: sealed digests against the bytes, and same as fresh.

Same as fresh runs the tokens of every sequence in new caches. The kernels of the library may round
differently when rows are cut into other chunks, so equal bytes are not promised after a rewind;
then the largest difference is told, and the check holds while it is that of rounding.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Final

import mlx.core as mx
import numpy as np

from engine.lm_session import LmSession
from engine.progress import Progress
from engine.protect import ProtectedSession, views
from engine.protect.lineage import lineage_of
from engine.snapshot import CheckResult

Steps = Generator[Progress, None, CheckResult]
ROUNDING: Final = {mx.float32: 1e-3, mx.float16: 3e-2, mx.bfloat16: 1e-1}
"""Largest difference, against the largest value of an array, that other chunks may make."""


def audit(session: LmSession) -> Steps:
    """Recompute every digest from the bytes and compare it with the one after the last op."""
    yield Progress(0, 1, "audits")
    found = session.digests()
    yield Progress(1, 1, "audits")
    for (name, left), (_, right) in zip(session.sealed, found, strict=True):
        if left != right:
            return CheckResult("audit", False, f"{name}: expected {left}, found {right}")
    told = f"{len(found)} digests recomputed from the bytes are those after the last op"
    return CheckResult("audit", True, told, found, ("owner", "digest"))


def same_as_fresh(session: LmSession) -> Steps:
    """Run every sequence and slot anew, cut as it was, and compare all caches."""
    name = "same-as-fresh"
    held = session.held
    rows: list[tuple[str, ...]] = []
    sound, same = True, True
    for done, (key, ours) in enumerate(held.items()):
        yield Progress(done, len(held), "sequences", f"sequence {key}")
        fresh, left = session.blank, list(ours.tokens)
        for end in [*lineage_of(ours.cache).cuts, len(left)]:
            part = left[len(fresh.tokens) : end]
            if part and fresh.feed(part, chunk=len(part))["outcome"] != "ok":
                return CheckResult(name, False, f"sequence {key} cannot be made again")
        for owner, verdict, fits in _compare(ours, fresh):
            rows.append((str(key), owner, verdict))
            sound = sound and fits
            same = same and verdict == "same bytes"
    yield Progress(len(held), len(held), "sequences")
    n_tokens = sum(len(ours.tokens) for ours in held.values())
    if same:
        told = "every layer has the same bytes"
    elif sound:
        told = "layers differ by rounding, since their rows were made in other chunks (unproved)"
    else:
        told = f"{next(f'{owner}: {words}' for _, owner, words in rows if 'beyond' in words)}"
    sentence = f"{len(held)} sequences and slots, {n_tokens:,} tokens: {told}"
    return CheckResult(name, sound, sentence, tuple(rows), ("sequence", "owner", "result"))


def _compare(ours: ProtectedSession, fresh: ProtectedSession) -> list[tuple[str, str, bool]]:
    """(owner, result, whether it holds) of every layer."""
    left, right = ours.digests(), fresh.digests()
    pairs = zip(views.owners(ours.cache), views.owners(fresh.cache), strict=True)
    found = []
    for (owner, cache), (_, twin) in pairs:
        if left[owner] == right[owner]:
            found.append((owner, "same bytes", True))
            continue
        difference, limit = _difference(cache, twin)
        words = f"largest difference {difference:.2g} of the largest value"
        fits = difference <= limit
        found.append((owner, words if fits else f"{words}, beyond rounding", fits))
    return found


def _difference(cache: Any, twin: Any) -> tuple[float, float]:
    """Largest relative difference of two caches, and what rounding explains."""
    worst, limit = 0.0, 0.0
    ours, theirs = list(views.visible(cache)), list(views.visible(twin))
    if [a.shape for a in ours] != [b.shape for b in theirs]:
        return float("inf"), 0.0
    for one, other in zip(ours, theirs, strict=True):
        a, b = (np.array(x.astype(mx.float32)) for x in (one, other))
        if a.size:
            scale = max(float(np.abs(b).max()), 1e-30)
            worst = max(worst, float(np.abs(a - b).max()) / scale)
            limit = max(limit, ROUNDING.get(one.dtype, 0.0))
    return worst, limit


CHECKS: Final = {"same-as-fresh": same_as_fresh, "audit": audit}
