"""What one call of each kernel needs: integer parameters, output shapes, grid, data type.

One function a kernel, with the signature of its reference. Checks the arguments (`ValueError` with
expected and given), flattens trailing axes, and knows no target. Arrays may be MLX or NumPy
arrays: only `shape`, `dtype` and `reshape` are used here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

MAX_INT32: Final = 2**31 - 1
N_LANES: Final = 1 << 16
"""Threads that `find_nonfinite` uses at most."""

PART: Final = 128
"""Terms of a product that one thread adds; part of the order of summation, so never tuned."""

Array = Any
"""An MLX or a NumPy array."""


@dataclass(frozen=True, slots=True)
class Launch:
    """One call: what goes in, what comes out, how many threads.

    `element` is the index of the input whose data type is the text's `T`, None without one.
    An output's data type is a name, or `T`..
    """

    inputs: tuple[Array, ...]
    params: tuple[int, ...]
    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[str, ...]
    grid: tuple[int, int, int]
    element: int | None = None
    result_shapes: tuple[tuple[int, ...], ...] | None = None
    """Shapes that the caller sees, where they are not those of the raw outputs."""


def _need(right: bool, what: str, expected: object, given: object) -> None:
    if not right:
        raise ValueError(f"{what}: expected {expected}, given {given}")


def _ndim(array: Array, ndim: int, name: str) -> None:
    _need(len(array.shape) == ndim, f"axes of {name}", ndim, tuple(array.shape))


def _same(name: str, given: object, expected: object) -> None:
    _need(given == expected, name, expected, given)


def _parameter(name: str, value: int, least: int) -> None:
    _need(least <= value <= MAX_INT32, name, f"{least} to {MAX_INT32}", value)


def _rotation(cosines: Array, sines: Array, n_keys: int, dim: int) -> int:
    _ndim(cosines, 2, "cosines")
    _same("shape of sines", tuple(sines.shape), tuple(cosines.shape))
    pairs = int(cosines.shape[1])
    _same("rows of cosines", int(cosines.shape[0]), n_keys)
    _need(2 * pairs <= dim, "rotated channels", f"at most {dim}", 2 * pairs)
    return pairs


def group_status(
    positions: Array,
    starts: Array,
    anchors: Array,
    *,
    tail_start: int,
    frontier: int,
    group_size: int,
) -> Launch:
    """One thread a group and one for the tail."""
    for array, name in ((positions, "positions"), (starts, "starts"), (anchors, "anchors")):
        _ndim(array, 1, name)
    n_groups = int(starts.shape[0])
    _same("number of anchors", int(anchors.shape[0]), n_groups)
    _parameter("group_size", group_size, 1)
    _parameter("tail_start", tail_start, 0)
    _parameter("frontier", frontier, -1)
    params = (int(positions.shape[0]), n_groups, group_size, tail_start, frontier)
    shapes = ((n_groups + 1,),)
    return Launch((positions, starts, anchors), params, shapes, ("uint32",), (n_groups + 1, 1, 1))


def append_rows(bank: Array, rows: Array, *, at: int) -> Launch:
    """One thread an element of the new bank."""
    shape = tuple(bank.shape)
    _need(len(shape) >= 1, "axes of bank", "at least 1", len(shape))
    _same("shape of a row", tuple(rows.shape[1:]), shape[1:])
    capacity, n_rows = int(shape[0]), int(rows.shape[0])
    _need(at >= 0 and at + n_rows <= capacity, "rows", f"within 0..{capacity}", (at, at + n_rows))
    width = _product(shape[1:])
    flat = (_flatten(bank, capacity, width), _flatten(rows, n_rows, width))
    params = (capacity, width, n_rows, at)
    grid = (width, capacity, 1)
    return Launch(flat, params, ((capacity, width),), ("T",), grid, 0, (shape,))


def pool_groups(raw: Array, *, group_size: int) -> Launch:
    """One thread a channel of a complete group."""
    _ndim(raw, 2, "raw")
    _parameter("group_size", group_size, 1)
    n_groups, width = int(raw.shape[0]) // group_size, int(raw.shape[1])
    params = (n_groups, width, group_size)
    return Launch((raw,), params, ((n_groups, width),), ("float32",), (width, n_groups, 1), 0)


def index_scores(
    queries: Array, pooled: Array, cosines: Array, sines: Array, *, n_keys: int, group_size: int
) -> Launch:
    """One thread a group and 4 queries."""
    _ndim(queries, 3, "queries")
    _ndim(pooled, 2, "pooled")
    n_queries, heads, dim = (int(n) for n in queries.shape)
    n_groups = int(pooled.shape[0])
    _same("channels of pooled", int(pooled.shape[1]), dim)
    _parameter("group_size", group_size, 1)
    _need(n_queries <= n_keys <= MAX_INT32, "n_keys", f"at least {n_queries}", n_keys)
    _need(n_groups <= n_keys // group_size, "groups", f"at most {n_keys // group_size}", n_groups)
    pairs = _rotation(cosines, sines, n_keys, dim)
    params = (n_queries, heads, dim, n_groups, n_keys, pairs, group_size)
    grid = (n_groups, -(-n_queries // 4), 1)
    inputs = (queries, pooled, cosines, sines)
    return Launch(inputs, params, ((n_queries, n_groups),), ("float32",), grid, 1)


def select_groups(scores: Array, *, topk: int) -> Launch:
    """One thread a query and group (or slot, where there are more of these)."""
    _ndim(scores, 2, "scores")
    _parameter("topk", topk, 0)
    n_queries, n_groups = (int(n) for n in scores.shape)
    params = (n_queries, n_groups, topk)
    grid = (max(n_groups, topk), n_queries, 1)
    return Launch((scores,), params, ((n_queries, topk),), ("int32",), grid)


def attention_scores(
    queries: Array,
    keys: Array,
    cosines: Array,
    sines: Array,
    chosen: Array,
    *,
    group_size: int,
) -> Launch:
    """One thread a query head and place."""
    _ndim(queries, 3, "queries")
    _ndim(keys, 3, "keys")
    n_queries, heads, dim = (int(n) for n in queries.shape)
    n_keys, kv_heads, _ = (int(n) for n in keys.shape)
    _same("channels of keys", int(keys.shape[2]), dim)
    places = _places(n_queries, heads, kv_heads, n_keys, chosen, group_size)
    pairs = _rotation(cosines, sines, n_keys, dim)
    topk = int(chosen.shape[1])
    params = (n_queries, heads, kv_heads, dim, n_keys, pairs, topk, group_size)
    inputs = (queries, keys, cosines, sines, chosen)
    shapes = ((n_queries, heads, places),)
    return Launch(inputs, params, shapes, ("float32",), (heads, places, n_queries), 1)


def indexed_attention(scores: Array, values: Array, chosen: Array, *, group_size: int) -> Launch:
    """One thread a channel of a query head."""
    _ndim(scores, 3, "scores")
    _ndim(values, 3, "values")
    n_queries, heads, _ = (int(n) for n in scores.shape)
    n_keys, kv_heads, dim = (int(n) for n in values.shape)
    places = _places(n_queries, heads, kv_heads, n_keys, chosen, group_size)
    _same("places of scores", int(scores.shape[2]), places)
    params = (n_queries, heads, kv_heads, dim, n_keys, int(chosen.shape[1]), group_size)
    inputs = (scores, values, chosen)
    shapes = ((n_queries, heads, dim),)
    return Launch(inputs, params, shapes, ("float32",), (dim, heads, n_queries), 1)


def _places(
    n_queries: int, heads: int, kv_heads: int, n_keys: int, chosen: Array, group_size: int
) -> int:
    """Scores of a query head: the rows of its slots and the longest tail."""
    _ndim(chosen, 2, "chosen")
    _same("rows of chosen", int(chosen.shape[0]), n_queries)
    _need(kv_heads >= 1 and heads % kv_heads == 0, "heads", f"a multiple of {kv_heads}", heads)
    _need(n_queries <= n_keys <= MAX_INT32, "keys", f"at least {n_queries}", n_keys)
    _parameter("group_size", group_size, 1)
    places = (int(chosen.shape[1]) + 1) * group_size - 1
    _need(places <= MAX_INT32, "scores of a query", f"at most {MAX_INT32}", places)
    return places


def gdn_step(
    queries: Array, keys: Array, values: Array, betas: Array, decays: Array, state: Array
) -> Launch:
    """One thread a column of a head's state."""
    _ndim(queries, 3, "queries")
    _ndim(values, 3, "values")
    _ndim(state, 3, "state")
    n_tokens, k_heads, key_dim = (int(n) for n in queries.shape)
    v_heads, value_dim = int(values.shape[1]), int(values.shape[2])
    _same("shape of keys", tuple(keys.shape), tuple(queries.shape))
    _same("tokens of values", int(values.shape[0]), n_tokens)
    _same("shape of betas", tuple(betas.shape), (n_tokens, v_heads))
    _same("shape of decays", tuple(decays.shape), (n_tokens, v_heads))
    _same("shape of state", tuple(state.shape), (v_heads, key_dim, value_dim))
    _need(k_heads >= 1 and v_heads % k_heads == 0, "heads", f"a multiple of {k_heads}", v_heads)
    params = (n_tokens, k_heads, v_heads, key_dim, value_dim)
    shapes = ((n_tokens, v_heads, value_dim), (v_heads, key_dim, value_dim))
    inputs = (queries, keys, values, betas, decays, state)
    return Launch(inputs, params, shapes, ("float32", "float32"), (value_dim, v_heads, 1), 0)


def linear(x: Array, weight: Array) -> Launch:
    """One thread a column, part of the depth and 8 rows."""
    _ndim(x, 2, "x")
    _ndim(weight, 2, "weight")
    n_rows, depth = (int(n) for n in x.shape)
    width = int(weight.shape[1])
    _same("depth of weight", int(weight.shape[0]), depth)
    n_parts = _parts(depth)
    params = (n_rows, width, depth, PART, n_parts)
    grid = (width, -(-n_rows // 8), n_parts)
    return Launch((x, weight), params, ((n_parts, n_rows, width),), ("float32",), grid, 0)


def expert_linear(x: Array, weight: Array, experts: Array) -> Launch:
    """One thread an output and part of the depth."""
    _ndim(x, 2, "x")
    _ndim(weight, 3, "weight")
    _ndim(experts, 1, "experts")
    n_rows, depth = (int(n) for n in x.shape)
    n_experts, width = int(weight.shape[0]), int(weight.shape[2])
    _same("depth of weight", int(weight.shape[1]), depth)
    _same("rows of experts", int(experts.shape[0]), n_rows)
    n_parts = _parts(depth)
    params = (n_rows, width, depth, PART, n_parts, n_experts)
    shapes = ((n_parts, n_rows, width),)
    grid = (width, n_rows, n_parts)
    return Launch((x, weight, experts), params, shapes, ("float32",), grid, 0)


def _parts(depth: int) -> int:
    """Parts that a depth is summed in; at least one, so that a depth of 0 gives zeros."""
    return max(1, -(-depth // PART))


def sum_parts(parts: Array) -> Launch:
    """One thread an output."""
    _need(len(parts.shape) >= 1, "axes of parts", "at least 1", len(parts.shape))
    shape = tuple(int(n) for n in parts.shape[1:])
    n_parts, n = int(parts.shape[0]), _product(shape)
    _need(n_parts >= 1, "parts", "at least 1", n_parts)
    _need(n <= MAX_INT32, "values", f"at most {MAX_INT32}", n)
    flat = parts.reshape(n_parts, n)
    return Launch((flat,), (n_parts, n), ((n,),), ("float32",), (n, 1, 1), None, (shape,))


def find_nonfinite(x: Array) -> Launch:
    """One thread a lane; every lane looks at each `lanes`-th value."""
    n = _product(tuple(x.shape))
    _need(n <= MAX_INT32, "values", f"at most {MAX_INT32}", n)
    lanes = max(1, min(N_LANES, n))
    shapes = ((lanes,), (lanes,))
    return Launch((x.reshape(-1),), (n, lanes), shapes, ("int32", "int32"), (lanes, 1, 1), 0)


def digest_rows(words: Array) -> Launch:
    """One thread a row."""
    _ndim(words, 2, "words")
    n_rows, width = (int(n) for n in words.shape)
    return Launch((words,), (n_rows, width), ((n_rows,),), ("uint64",), (n_rows, 1, 1), 0)


def _product(shape: tuple[int, ...]) -> int:
    total = 1
    for n in shape:
        total *= int(n)
    return total


def _flatten(array: Array, rows: int, width: int) -> Array:
    return array if len(array.shape) == 2 else array.reshape(rows, width)


Planner = Callable[..., Launch]
