"""The kernel table: one line a kernel.

Owns names and what belongs to them: the text in `src/NAME.metal`, its inputs and outputs, the
function that plans a call, the reference in array operations, the data types of `T`, and the
tolerance between the two. Loading and running are in `loader` and `host`.
"""

# ruff: noqa: E501 - the table has one line a kernel

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Final

import mlx.core as mx

from metal import launch, reference

FLOATS: Final = ("float32", "float16", "bfloat16")
WORDS: Final = ("uint8", "uint16", "uint32")
BITS: Final = (*FLOATS, *WORDS, "int32")

ROUNDING: Final = {"float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8}
"""Half a unit in the last place of 1.0: what one rounding to the type may cost, relatively."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """One kernel and everything that belongs to it.

    `types`: input name to data type, `T` for the generic one; `element_types`: what `T` may be.
    `tolerance`: largest difference from the reference in float32, relative to the largest
    magnitude in the result; 0 means equal bits.
    `strided`: inputs reach the text with their strides; MLX makes no contiguous copy first.
    """

    name: str
    types: dict[str, str]
    outputs: dict[str, str]
    plan: launch.Planner
    reference: Callable[..., Any]
    tolerance: float
    element_types: tuple[str, ...] = FLOATS
    strided: bool = False
    finish: Callable[..., Any] | None = None
    """Makes the results of plan, target and raw outputs."""

    @property
    def text(self) -> str:
        """The kernel's body, as it ships."""
        return files("metal").joinpath("src", f"{self.name}.metal").read_text(encoding="utf-8")


def _fold_places(plan: launch.Launch, _target: str, places: mx.array, kinds: mx.array) -> Any:
    return reference.fold_places(places, kinds, plan.params[0])


def _fold_words(_plan: launch.Launch, _target: str, words: mx.array) -> Any:
    return reference.fold_words(words)


def _fold_parts(plan: launch.Launch, target: str, parts: mx.array) -> Any:
    from metal import run

    total = parts[0] if parts.shape[0] == 1 else run("sum_parts", parts, backend=target)
    return total.astype(getattr(mx, reference.dtype_name(plan.inputs[0])))


I32 = "int32"
F32 = "float32"
STATUS_IN = {"positions": I32, "starts": I32, "anchors": I32}
SCORES_IN = {"queries": F32, "pooled": "T", "cosines": F32, "sines": F32}
ATTEND_IN = {"queries": F32, "keys": "T", "cosines": F32, "sines": F32, "chosen": I32}
MIX_IN = {"scores": F32, "values": "T", "chosen": I32}
GDN_IN = {"queries": "T", "keys": "T", "values": "T", "betas": F32, "decays": F32, "state": F32}
GDN_OUT = {"out": F32, "next": F32}
EXPERT_IN = {"x": "T", "weight": "T", "experts": I32}
PARTS = {"parts": F32}
FIND_OUT = {"places": I32, "kinds": I32}
L, R = launch, reference

# fmt: off
KERNELS: Final[dict[str, Kernel]] = {kernel.name: kernel for kernel in (
    # name, inputs, outputs, plan, reference, tolerance, types of T, by strides, last step
    Kernel("group_status", STATUS_IN, {"words": "uint32"}, L.group_status, R.group_status, 0.0, (), finish=_fold_words),
    Kernel("append_rows", {"bank": "T", "rows": "T"}, {"out": "T"}, L.append_rows, R.append_rows, 0.0, BITS, strided=True),
    Kernel("pool_groups", {"raw": "T"}, {"out": F32}, L.pool_groups, R.pool_groups, 1e-6, strided=True),
    Kernel("index_scores", SCORES_IN, {"out": F32}, L.index_scores, R.index_scores, 4e-6),
    Kernel("select_groups", {"scores": F32}, {"out": I32}, L.select_groups, R.select_groups, 0.0, ()),
    Kernel("attention_scores", ATTEND_IN, {"out": F32}, L.attention_scores, R.attention_scores, 4e-6),
    Kernel("indexed_attention", MIX_IN, {"out": F32}, L.indexed_attention, R.indexed_attention, 4e-6),
    Kernel("gdn_step", GDN_IN, GDN_OUT, L.gdn_step, R.gdn_step, 4e-6),
    Kernel("linear", {"x": "T", "weight": "T"}, PARTS, L.linear, R.linear, 2e-5, finish=_fold_parts),
    Kernel("expert_linear", EXPERT_IN, PARTS, L.expert_linear, R.expert_linear, 2e-5, finish=_fold_parts),
    Kernel("sum_parts", {"parts": F32}, {"out": F32}, L.sum_parts, R.sum_parts, 1e-6, ()),
    Kernel("find_nonfinite", {"x": "T"}, FIND_OUT, L.find_nonfinite, R.find_nonfinite, 0.0, finish=_fold_places),
    Kernel("digest_rows", {"words": "T"}, {"out": "uint64"}, L.digest_rows, R.digest_rows, 0.0, WORDS),
)}
# fmt: on
