"""The matrix of cases that every kernel has to pass on every target.

Sizes one below, at and above each boundary, odd strides, empty inputs, all data types, holes at
every offset of a group. The pytest modules run it; so does this file as a program, for the
sanitized build and for machines without pytest:

    python tests/metal/matrix.py TARGET        (cpu, host, metal, cuda)
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

import metal
from metal.host import to_numpy
from metal.kernels import KERNELS, ROUNDING
from metal.launch import N_LANES, PART
from metal.reference import dtype_name
from tests.metal import oracle

TOP = 2**31 - 1
SEED = 20260


@dataclass(frozen=True)
class Case:
    """One call and what it must give; `exact` means equal values, else a float64 bound."""

    kernel: str
    label: str
    arrays: tuple[Any, ...]
    params: dict[str, int]
    expected: tuple[Any, ...]
    exact: bool = False


def generator(*words: object) -> np.random.Generator:
    """A generator whose seed follows from the words, so that a case alone gives the same."""
    return np.random.default_rng([SEED, zlib.crc32(repr(words).encode())])


def typed(values: Any, element: str) -> mx.array:
    return mx.array(np.asarray(values, np.float32)).astype(getattr(mx, element))


def wide(array: mx.array) -> np.ndarray:
    """The values as float64 (or integers, unchanged)."""
    if mx.issubdtype(array.dtype, mx.floating):
        with np.errstate(invalid="ignore"):  # a signalling NaN is only made quiet
            return to_numpy(array.astype(mx.float32)).astype(np.float64)
    return to_numpy(array).copy()


def around(*bounds: int) -> list[int]:
    """Sizes one below, at and one above each bound, none below 0."""
    return sorted({n + step for n in bounds for step in (-1, 0, 1) if n + step >= 0})


def angles(rng: np.random.Generator, n: int, pairs: int) -> tuple[mx.array, mx.array]:
    turn = rng.uniform(-np.pi, np.pi, (n, pairs))
    return mx.array(np.cos(turn).astype(np.float32)), mx.array(np.sin(turn).astype(np.float32))


# group_status -----------------------------------------------------------------------------------


def good_plan(first: int, n: int, size: int) -> dict[str, Any]:
    """The right partition of the run first .. first + n - 1."""
    starts = np.arange(n // size) * size
    return {
        "positions": np.arange(first, first + n),
        "starts": starts,
        "anchors": first + starts,
        "tail_start": n // size * size,
        "frontier": first + n - 1 if n else -1,
        "group_size": size,
    }


def status_case(label: str, plan: dict[str, Any]) -> Case:
    expected = oracle.group_status(**plan)
    names = ("positions", "starts", "anchors")
    arrays = tuple(mx.array(np.asarray(plan[name], np.int32)) for name in names)
    params = {name: int(plan[name]) for name in ("tail_start", "frontier", "group_size")}
    return Case("group_status", label, arrays, params, ([expected[0]], [expected[1]]), exact=True)


def broken_plans(first: int, n: int, size: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every way to break a plan: a hole or a repeat before each row, each anchor, each span."""
    good = good_plan(first, n, size)
    positions, starts, anchors = good["positions"], good["starts"], good["anchors"]
    for i in range(1, n):
        up = np.where(np.arange(n) >= i, positions + 1, positions)
        down = np.where(np.arange(n) >= i, positions - 1, positions)
        if int(up[-1]) <= TOP:
            moved = {"positions": up, "anchors": up[starts], "frontier": int(up[-1])}
            yield f"hole before row {i}", {**good, **moved}
        yield f"repeat at row {i}", {**good, "positions": down, "frontier": int(down[-1])}
    for g in range(len(starts)):
        for step in (-1, 1):
            nudge = np.where(np.arange(len(starts)) == g, step, 0)
            yield f"start {g} moved {step}", {**good, "starts": starts + nudge}
            if int((anchors + nudge).max()) <= TOP:
                yield f"anchor {g} moved {step}", {**good, "anchors": anchors + nudge}
        fewer = {"starts": np.delete(starts, g), "anchors": np.delete(anchors, g)}
        yield f"group {g} left out", {**good, **fewer}
        far = np.where(np.arange(len(starts)) == g, TOP, starts)
        yield f"start {g} far outside", {**good, "starts": far}
    for step in (-1, 1):
        if good["tail_start"] + step >= 0:
            yield f"tail moved {step}", {**good, "tail_start": good["tail_start"] + step}
        if -1 <= good["frontier"] + step <= TOP:
            yield f"frontier moved {step}", {**good, "frontier": good["frontier"] + step}
    if n:
        yield "negative first", {**good, "positions": positions - first - 1}


def group_status(_element: str) -> Iterator[Case]:
    for size in (1, 2, 4, 5):
        for n in around(0, size, 2 * size):
            for first in (0, 7, TOP - max(n, 1) + 1):
                yield status_case(f"good {first=} {n=} {size=}", good_plan(first, n, size))
    for size, n, first in ((4, 11, 3), (4, 8, TOP - 7), (1, 3, 0), (3, 7, 0), (4, 0, 0), (4, 3, 9)):
        for label, plan in broken_plans(first, n, size):
            yield status_case(f"{label} {first=} {n=} {size=}", plan)


# copies and sums --------------------------------------------------------------------------------


def pattern(rng: np.random.Generator, shape: tuple[int, ...], element: str) -> mx.array:
    """Any bits of the type, NaN and infinity among them."""
    bits = {"float32": 4, "int32": 4, "uint32": 4, "uint8": 1}.get(element, 2) * 8
    words = rng.integers(0, 2**bits, shape, dtype=np.uint64).astype(f"uint{bits}")
    return mx.array(words).view(getattr(mx, element)) if words.size else typed(words, element)


def append_rows(element: str) -> Iterator[Case]:
    rng = generator("append_rows", element)
    for capacity, width in ((1, 1), (5, 3), (8, 7), (3, 0), (0, 2)):
        for n in {0, 1, capacity - 1, capacity} - {-1}:
            for at in {0, 1, capacity - n} if n <= capacity else ():
                if 0 <= at <= capacity - n:
                    bank = pattern(rng, (capacity, width), element)
                    rows = pattern(rng, (n, width), element)
                    yield append_case(f"{capacity=} {width=} {n=} {at=}", bank, rows, at)
    bank, rows = pattern(rng, (6, 10), element), pattern(rng, (2, 10), element)
    yield append_case("every second column", bank[:, ::2], rows[:, 1::2], 3)
    yield append_case("transposed", bank.T, pattern(rng, (6, 4), element).T, 6)
    yield append_case("every second row", bank[::2], rows[:1], 2)
    yield append_case("three axes", bank.reshape(6, 5, 2), rows.reshape(2, 5, 2), 0)


def append_case(label: str, bank: mx.array, rows: mx.array, at: int) -> Case:
    expected = oracle.append_rows(raw_bits(bank), raw_bits(rows), at)
    return Case("append_rows", label, (bank, rows), {"at": at}, (expected,), exact=True)


def raw_bits(array: mx.array) -> np.ndarray:
    """The bits of any array as unsigned words; the test of a copy compares these."""
    unsigned = {1: mx.uint8, 2: mx.uint16, 4: mx.uint32, 8: mx.uint64}[array.dtype.size]
    return np.array(mx.contiguous(array).view(unsigned)) if array.size else wide(array)


def pool_groups(element: str) -> Iterator[Case]:
    rng = generator("pool_groups", element)

    def case(label: str, raw: mx.array, size: int) -> Case:
        expected = oracle.pool_groups(wide(raw), size)
        return Case("pool_groups", label, (raw,), {"group_size": size}, (expected,))

    for size in (1, 2, 4, 5):
        for n in around(0, size, 2 * size):
            for width in (1, 3, 16):
                raw = typed(rng.normal(size=(n, width)), element)
                yield case(f"{n=} {width=} {size=}", raw, size)
    block = typed(rng.normal(size=(18, 12)), element)
    yield case("every second column", block[:, ::2], 4)
    yield case("every second row", block[1::2], 4)
    yield case("transposed", block.T, 4)
    yield case("group longer than the run", block, TOP)


def linear(element: str) -> Iterator[Case]:
    rng = generator("linear", element)

    def case(label: str, x: mx.array, weight: mx.array) -> Case:
        return Case("linear", label, (x, weight), {}, (oracle.linear(wide(x), wide(weight)),))

    for depth in (*around(0, PART, 2 * PART), 7):
        for rows, width in ((1, 1), (2, 5), (7, 2), (8, 2), (9, 3), (16, 1), (0, 4), (4, 0)):
            x = typed(rng.normal(size=(rows, depth)), element)
            yield case(
                f"{rows=} {width=} {depth=}", x, typed(rng.normal(size=(depth, width)), element)
            )
    x, weight = typed(rng.normal(size=(6, 10)), element), typed(rng.normal(size=(10, 10)), element)
    yield case("every second channel", x[:, ::2], weight[1::2, :7])
    yield case("weight stored by outputs", x, weight.T)
    yield case("x transposed", x.T, weight[:6])


def expert_linear(element: str) -> Iterator[Case]:
    rng = generator("expert_linear", element)

    def case(label: str, x: mx.array, weight: mx.array, experts: Any) -> Case:
        numbers = np.array(experts, np.int32)
        expected = oracle.expert_linear(wide(x), wide(weight), numbers)
        return Case("expert_linear", label, (x, weight, mx.array(numbers)), {}, (expected,))

    for depth in around(0, PART):
        for rows, width, n_experts in ((1, 1, 1), (5, 3, 4), (0, 2, 2), (3, 0, 2)):
            x = typed(rng.normal(size=(rows, depth)), element)
            weight = typed(rng.normal(size=(n_experts, depth, width)), element)
            experts = rng.integers(0, n_experts, rows)
            yield case(f"{rows=} {width=} {n_experts=} {depth=}", x, weight, experts)
    x = typed(rng.normal(size=(4, 14)), element)
    weight = typed(rng.normal(size=(3, 5, 7)), element)
    yield case("stored by outputs", x[:, ::2], weight.swapaxes(1, 2), [2, 0, 1, 2])
    yield case("a row without a matrix", x[:, :5], weight, [-1, 0, 3, 2])


def sum_parts(_element: str) -> Iterator[Case]:
    rng = generator("sum_parts")
    for n_parts in (1, 2, 5):
        for shape in ((), (1,), (3, 7), (0, 4)):
            parts = typed(rng.normal(size=(n_parts, *shape)), "float32")
            yield Case("sum_parts", f"{n_parts=} {shape=}", (parts,), {}, (wide(parts).sum(0),))


# the indexer and attention ----------------------------------------------------------------------

SHAPES = ((1, 1, 2, 0), (4, 1, 6, 3), (4, 2, 16, 4), (2, 2, 5, 2))  # heads, kv heads, dim, pairs


def index_scores(element: str) -> Iterator[Case]:
    rng = generator("index_scores", element)
    for heads, _, dim, pairs in SHAPES:
        for size in (1, 4):
            for n_keys in around(1, size, 3 * size):
                for n_queries in {min(1, n_keys), min(3, n_keys), n_keys}:
                    n_groups = n_keys // size
                    queries = typed(rng.normal(size=(n_queries, heads, dim)), "float32")
                    pooled = typed(rng.normal(size=(n_groups, dim)), element)
                    cosines, sines = angles(rng, n_keys, pairs)
                    params = {"n_keys": n_keys, "group_size": size}
                    expected = oracle.index_scores(
                        wide(queries), wide(pooled), wide(cosines), wide(sines), **params
                    )
                    arrays = (queries, pooled, cosines, sines)
                    label = f"{heads=} {dim=} {pairs=} {size=} {n_keys=} {n_queries=}"
                    yield Case("index_scores", label, arrays, params, (expected,))


def select_groups(_element: str) -> Iterator[Case]:
    rng = generator("select_groups")
    for topk in (0, 1, 4):
        for n_groups in around(0, topk, 9):
            for n_queries in (0, 1, 3):
                scores = rng.integers(0, 3, (n_queries, n_groups)).astype(np.float32)
                spoiled = rng.random(scores.shape)
                scores[spoiled < 0.2] = -np.inf
                scores[spoiled > 0.9] = np.nan
                scores[(spoiled > 0.8) & (spoiled < 0.9)] = -0.0
                yield select_case(f"{topk=} {n_groups=} {n_queries=}", scores, topk)
    yield select_case("nothing to choose", np.full((2, 5), -np.inf, np.float32), 3)
    yield select_case("all equal", np.zeros((2, 6), np.float32), 3)
    yield select_case("infinite score", np.array([[1, np.inf, 2, np.inf]], np.float32), 3)


def select_case(label: str, scores: np.ndarray, topk: int) -> Case:
    expected = oracle.select_groups(scores, topk)
    arrays = (mx.array(scores),)
    return Case("select_groups", label, arrays, {"topk": topk}, (expected,), exact=True)


def attention_sizes(rng: np.random.Generator) -> Iterator[tuple[Any, int, int, int, int]]:
    """(heads, kv heads, dim, pairs), queries, keys, slots, group size."""
    for shape in SHAPES:
        for size in (1, 4):
            for n_keys in around(1, size, 3 * size):
                for n_queries in {min(1, n_keys), min(3, n_keys), n_keys}:
                    yield shape, n_queries, n_keys, int(rng.integers(0, 4)), size


def slots(rng: np.random.Generator, n_queries: int, n_groups: int, topk: int) -> np.ndarray:
    """Distinct numbers, also of groups that a query must not see, and empty slots."""
    names = [rng.permutation(np.arange(-1, n_groups + topk))[:topk] for _ in range(n_queries)]
    return np.array(names, np.int32).reshape(n_queries, topk)


def attention_scores(element: str) -> Iterator[Case]:
    rng = generator("attention_scores", element)
    for shape, n_queries, n_keys, topk, size in attention_sizes(rng):
        heads, kv_heads, dim, pairs = shape
        queries = typed(rng.normal(size=(n_queries, heads, dim)), "float32")
        keys = typed(rng.normal(size=(n_keys, kv_heads, dim)), element)
        floats = (queries, keys, *angles(rng, n_keys, pairs))
        chosen = slots(rng, n_queries, n_keys // size, topk)
        expected = oracle.attention_scores(*(wide(a) for a in floats), chosen, size)
        label = f"{shape=} {n_queries=} {n_keys=} {topk=} {size=}"
        arrays = (*floats, mx.array(chosen))
        yield Case("attention_scores", label, arrays, {"group_size": size}, (expected,))


def indexed_attention(element: str) -> Iterator[Case]:
    rng = generator("indexed_attention", element)
    for shape, n_queries, n_keys, topk, size in attention_sizes(rng):
        heads, kv_heads, dim, _ = shape
        chosen = slots(rng, n_queries, n_keys // size, topk)
        drawn = rng.normal(size=(n_queries, heads, (topk + 1) * size - 1)) * 3
        drawn[rng.random(drawn.shape) < 0.1] = -np.inf  # also among the rows that are seen
        scores = typed(drawn, "float32")
        values = typed(rng.normal(size=(n_keys, kv_heads, dim)), element)
        expected = oracle.indexed_attention(wide(scores), wide(values), chosen, size)
        label = f"{shape=} {n_queries=} {n_keys=} {topk=} {size=}"
        arrays = (scores, values, mx.array(chosen))
        yield Case("indexed_attention", label, arrays, {"group_size": size}, (expected,))


def gdn_step(element: str) -> Iterator[Case]:
    rng = generator("gdn_step", element)
    for k_heads, v_heads, key_dim, value_dim in ((1, 1, 1, 1), (2, 4, 16, 8), (1, 3, 5, 7)):
        for n_tokens in (0, 1, 2, 5):
            queries = typed(rng.normal(size=(n_tokens, k_heads, key_dim)) * 0.3, element)
            keys = rng.normal(size=(n_tokens, k_heads, key_dim))
            keys = typed(keys / np.sqrt((keys**2).sum(-1, keepdims=True) + 1e-6), element)
            values = typed(rng.normal(size=(n_tokens, v_heads, value_dim)), element)
            gates = [typed(rng.random((n_tokens, v_heads)), "float32") for _ in range(2)]
            state = typed(rng.normal(size=(v_heads, key_dim, value_dim)), "float32")
            arrays = (queries, keys, values, *gates, state)
            expected = oracle.gdn_step(*(wide(a) for a in arrays))
            label = f"{k_heads=} {v_heads=} {key_dim=} {value_dim=} {n_tokens=}"
            yield Case("gdn_step", label, arrays, {}, expected)


# judges -----------------------------------------------------------------------------------------


def find_nonfinite(element: str) -> Iterator[Case]:
    rng = generator("find_nonfinite", element)
    for n in (0, 1, 2, 7, *around(N_LANES), 2 * N_LANES + 1):
        base = rng.normal(size=n).astype(np.float32)
        yield find_case(f"{n=} finite", base, element)
        for place in {0, 1, n // 2, n - 1} if n else ():
            for bad in (np.nan, np.inf, -np.inf):
                if place < n:
                    spoiled = base.copy()
                    spoiled[place] = bad
                    yield find_case(f"{n=} {bad} at {place}", spoiled, element)
    spoiled = rng.normal(size=(5, N_LANES)).astype(np.float32)
    spoiled[1, 3], spoiled[2, 3], spoiled[1, 4] = -np.inf, np.nan, np.inf
    yield find_case("several, the first counts", spoiled, element)
    largest = {"float32": 3.4e38, "float16": 65504.0, "bfloat16": 3.38e38}[element]
    yield find_case("largest and least", np.array([largest, -largest, 1e-45, 0, -0.0]), element)
    yield find_case("odd strides", spoiled, element, transposed=True)


def find_case(label: str, values: np.ndarray, element: str, transposed: bool = False) -> Case:
    x = typed(values, element)
    x = x.T if transposed else x
    index, kind = oracle.find_nonfinite(wide(x))
    return Case("find_nonfinite", label, (x,), {}, ([index], [kind]), exact=True)


def digest_rows(element: str) -> Iterator[Case]:
    rng = generator("digest_rows", element)
    for width in (0, 1, 2, 7, 33):
        for n in (0, 1, 3):
            words = rng.integers(0, np.iinfo(element).max + 1, (n, width), dtype=np.uint64)
            array = mx.array(words.astype(element))
            expected = oracle.digest_rows(words)
            yield Case("digest_rows", f"{n=} {width=}", (array,), {}, (expected,), exact=True)


# running ----------------------------------------------------------------------------------------

MAKERS = {
    "group_status": group_status,
    "append_rows": append_rows,
    "pool_groups": pool_groups,
    "index_scores": index_scores,
    "select_groups": select_groups,
    "attention_scores": attention_scores,
    "indexed_attention": indexed_attention,
    "gdn_step": gdn_step,
    "linear": linear,
    "expert_linear": expert_linear,
    "sum_parts": sum_parts,
    "find_nonfinite": find_nonfinite,
    "digest_rows": digest_rows,
}


def pairs() -> list[tuple[str, str]]:
    """Every kernel with every type of its T (or `int32` where it has none)."""
    return [(n, e) for n, kernel in KERNELS.items() for e in kernel.element_types or ("int32",)]


def failures(name: str, element: str, target: str) -> list[str]:
    """Run all cases of a kernel and type; one line for each that does not give what it must."""
    found, count = [], 0
    for case in MAKERS[name](element):
        count += 1
        result = metal.run(case.kernel, *case.arrays, backend=target, **case.params)
        results = result if isinstance(result, tuple) else (result,)
        for got, expected in zip(results, case.expected, strict=True):
            problem = difference(case, got, expected)
            if problem:
                found.append(f"{target} {name} {element}, {case.label}: {problem}")
    if not count:
        found.append(f"{name} {element}: no case")
    return found


def difference(case: Case, got: mx.array, expected: Any) -> str | None:
    """What is wrong with a result, None when nothing is."""
    expected = np.asarray(expected)
    if case.exact:
        given = raw_bits(got) if case.kernel == "append_rows" else np.array(got)
        same = given.shape == expected.shape and given.tolist() == expected.tolist()
        return None if same else f"expected {expected.tolist()}, given {given.tolist()}"
    given = wide(got)
    if given.shape != expected.shape:
        return f"expected shape {expected.shape}, given {given.shape}"
    if not given.size:
        return None
    finite = np.isfinite(expected)
    if not np.array_equal(given[~finite], expected[~finite], equal_nan=True):
        return "other infinities than expected"
    if not np.isfinite(given[finite]).all():
        return "a value that is not finite"
    scale = max(1.0, float(np.abs(expected[finite]).max(initial=0.0)))
    rounding = ROUNDING[dtype_name(got)]
    bound = scale * (KERNELS[case.kernel].tolerance + rounding)
    worst = float(np.abs(given[finite] - expected[finite]).max(initial=0.0))
    return None if worst <= bound else f"off by {worst:.3g}, bound {bound:.3g}"


def main(target: str) -> int:
    """Run the whole matrix on one target; the exit status is 1 when a case fails."""
    found = []
    for name, element in pairs():
        bad = failures(name, element, target)
        print(f"{target} {name} {element}: {len(bad)} failures", flush=True)
        found += bad
    print(*found[:40], f"{len(found)} failures in all, seed {SEED}", sep="\n", flush=True)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
