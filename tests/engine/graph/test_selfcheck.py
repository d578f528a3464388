"""The self-check is exact on this machine's CPU and notices a call that is not."""

from __future__ import annotations

import mlx.core as mx
import pytest

from engine.graph.backend import Backend, backend_for
from engine.graph.selfcheck import is_exact, proven_backend, self_check


def test_the_cpu_is_exact() -> None:
    backend, rows, exact = proven_backend("cpu")
    assert exact, [r for r in rows if r.required and not r.exact]
    assert backend.name == "cpu"
    calls = {row.call for row in rows if row.required}
    assert {"rms_norm", "softmax", "attention rows", "index scores"} <= calls
    assert {row.dtype for row in rows} == {"float32", "bfloat16"}


class LastBitOfTheCut(Backend):
    """A device whose product depends on the number of rows, as large products do."""

    __slots__ = ()

    def linear(self, x: mx.array, weight: mx.array) -> mx.array:
        return Backend.linear(self, x, weight) * (1.0 + x.shape[0] * 2.0**-20)


class ForgetfulRecurrence(Backend):
    """A device that drops the state handed on."""

    __slots__ = ()

    def delta_rule(
        self,
        q: mx.array,
        k: mx.array,
        v: mx.array,
        alpha: mx.array,
        beta: mx.array,
        start: mx.array,
    ) -> tuple[mx.array, mx.array]:
        return Backend.delta_rule(self, q, k, v, alpha, beta, mx.zeros_like(start))


@pytest.mark.parametrize(
    ("backend", "call"),
    [(LastBitOfTheCut(), "linear in tiles"), (ForgetfulRecurrence(), "gated delta rule")],
)
def test_a_device_that_depends_on_the_cut_is_found(backend: Backend, call: str) -> None:
    rows = self_check(backend)
    assert not is_exact(rows)
    wrong = {row.call for row in rows if row.required and not row.exact}
    assert wrong
    assert all(call in name for name in wrong)


def test_unknown_backends_are_refused() -> None:
    with pytest.raises(ValueError, match="expected auto, cpu, metal or cuda, given tpu"):
        backend_for("tpu")
