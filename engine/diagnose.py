"""What works on this machine: backends, kernels, exactness; for `bankflip doctor`.

Everything is measured in this very run, nothing is remembered. Knows no Qt.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from typing import Any

OK, ABSENT, FAILED = "ok", "absent", "failed"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the doctor."""

    name: str
    state: str
    """`ok`, `absent` (not on this machine, and not needed) or `failed`."""
    detail: str
    data: tuple[tuple[str, Any], ...] = ()
    """Numbers and words behind the line, for JSON."""


def guarded(name: str, check: Callable[[], Finding]) -> Finding:
    """A check's finding; a check that raises has failed."""
    try:
        return check()
    except Exception as error:
        words = " ".join(str(error).split()) or "no message"
        return Finding(name, FAILED, f"{type(error).__name__}: {words}")


def backends() -> list[Finding]:
    """Metal, CUDA and the CPU."""

    def one(name: str, found: tuple[str, ...]) -> Finding:
        import mlx.core as mx

        version = metadata.version("mlx")
        if name not in found:
            why = {"metal": "needs macOS on Apple silicon", "cuda": "needs an NVIDIA GPU"}
            return Finding(f"backend {name}", ABSENT, why.get(name, "not found"))
        if name == "cpu":
            return Finding("backend cpu", OK, f"MLX {version} on the CPU")
        info = mx.device_info() if hasattr(mx, "device_info") else {}
        words = str(info.get("device_name", "a GPU"))
        return Finding(f"backend {name}", OK, f"MLX {version} on {words}")

    def all_of() -> list[Finding]:
        import metal

        found = metal.available()
        return [one(name, found) for name in ("metal", "cuda", "cpu")]

    try:
        return all_of()
    except Exception as error:
        return [Finding("backend", FAILED, f"{type(error).__name__}: {error}")]


def kernels() -> Finding:
    """Every kernel on every target here against its reference."""
    from metal.check import check_all

    rows = check_all()
    targets = sorted({target for row in rows for target in row.targets})
    bad = [
        f"{row.kernel} on {check.target}: {check.detail}"
        for row in rows
        for check in row.checks
        if not check.ok
    ]
    data = tuple((row.kernel, ",".join(row.targets)) for row in rows)
    if bad:
        return Finding("kernels", FAILED, "; ".join(bad), data)
    if not targets:
        words = f"{len(rows)} kernels, neither an accelerator nor a C++ compiler to run them on"
        return Finding("kernels", ABSENT, f"{words}; the references are used", data)
    where = " and ".join(targets)
    return Finding(
        "kernels", OK, f"{len(rows)} kernels agree with their references on {where}", data
    )


def exactness(backend: str = "auto") -> Finding:
    """Whether cutting rows differently changes any bit on the device that would be used."""
    from engine.graph.selfcheck import proven_backend

    device, rows, exact = proven_backend(backend)
    worst = max((row.max_abs_difference for row in rows if row.required), default=0.0)
    data = tuple((f"{row.call} ({row.dtype})", row.max_abs_difference) for row in rows)
    name = f"exactness {device.name}"
    needed = sum(row.required for row in rows)
    if exact:
        return Finding(name, OK, f"{needed} kinds of calls give the same bits for any cut", data)
    return Finding(name, FAILED, f"unproved: a cut changes values by up to {worst:.2g}", data)


def sample_run(model: str) -> Finding:
    """The built-in model: two chunks, a refused hole, and the audit of every digest."""
    from engine.checks import run_check
    from engine.engine import append
    from engine.opening import open_engine
    from engine.ops import Append

    begun = time.perf_counter()
    engine = open_engine(model)
    first = engine.apply(append(0, 0, range(8, 13)))
    second = engine.apply(append(0, 5, range(13, 18)))
    hole = engine.apply(Append(0, (10, 11, 13), (8, 9, 10)))
    audit = run_check(engine, "audit")
    seconds = time.perf_counter() - begun
    results = (first.result, second.result, hole.result)
    whole = results == ("ok", "ok", "rejected: not-consecutive") and audit.ok
    kept = hole.digests_before == hole.digests_after
    if not whole or not kept:
        words = f"{', '.join(results)}; {audit.sentence}; digests {'kept' if kept else 'changed'}"
        return Finding("sample run", FAILED, words)
    words = f"{model} on {engine.snapshot().backend}: 10 tokens, a hole refused, digests audited"
    return Finding("sample run", OK, f"{words} ({seconds:.2f} s)", (("seconds", seconds),))
