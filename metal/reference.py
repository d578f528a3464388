"""Every kernel once more in array operations, with the kernel's signature.

The path of the CPU backend, and what the kernels are compared with. Nothing here is evaluated or
read back, so a reference may stand in the middle of a graph. Signatures, shapes and meaning are
those in the head comments of `src/*.metal`; results are what `metal.run` returns.
"""

from __future__ import annotations

import math
from typing import Any

import mlx.core as mx
import numpy as np

from metal.status import NonFinite, StatusBit

TYPES = """bool_ uint8 uint16 uint32 uint64 int8 int16 int32 int64 float16 bfloat16 float32 float64
complex64"""
NAMES: dict[mx.Dtype, str] = {getattr(mx, name): name.strip("_") for name in TYPES.split()}
GOLDEN = 0x9E3779B97F4A7C15
MIX_1 = 0xBF58476D1CE4E5B9
MIX_2 = 0x94D049BB133111EB


def dtype_name(array: Any) -> str:
    """Name of an MLX or NumPy array's data type, such as `bfloat16`."""
    if isinstance(array, mx.array):
        return NAMES[array.dtype]
    return str(array.dtype.name)


def group_status(
    positions: mx.array,
    starts: mx.array,
    anchors: mx.array,
    *,
    tail_start: int,
    frontier: int,
    group_size: int,
) -> tuple[mx.array, mx.array]:
    """Status word uint32 [1] and first failing part int32 [1] (`n_groups` is the tail, -1 none)."""
    words = group_words(
        positions,
        starts,
        anchors,
        tail_start=tail_start,
        frontier=frontier,
        group_size=group_size,
    )
    return fold_words(words)


def group_words(
    positions: mx.array,
    starts: mx.array,
    anchors: mx.array,
    *,
    tail_start: int,
    frontier: int,
    group_size: int,
) -> mx.array:
    """Status bits of every group, then of the tail: uint32 [n_groups + 1]."""
    n_rows, n_groups = positions.shape[0], starts.shape[0]
    begins = mx.concatenate([starts.astype(mx.int64), mx.array([tail_start], mx.int64)])
    ends = mx.concatenate([begins[:-1] + group_size, mx.array([n_rows], mx.int64)])
    due = mx.concatenate([mx.zeros((1,), mx.int64), begins[:-1] + group_size])
    outside = (begins < 0) | (ends > n_rows) | (begins > n_rows)

    row_hole, row_twice, row_negative = _row_faults(positions)
    hole = _any_row(row_hole, begins, ends) & ~outside
    twice = _any_row(row_twice, begins, ends) & ~outside
    negative = _any_row(row_negative, begins, ends) & ~outside

    padded = mx.concatenate([positions.astype(mx.int64), mx.array([-1], mx.int64)])
    firsts = padded[mx.clip(begins[:-1], 0, n_rows)]
    anchor = (anchors.astype(mx.int64) != firsts) & ~outside[:-1]
    last = padded[max(n_rows - 1, 0)]

    is_tail = mx.arange(n_groups + 1) == n_groups
    no_tail = mx.zeros((1,), mx.bool_)
    faults = {
        StatusBit.UNCOVERED: begins > due,
        StatusBit.TWICE: (begins < due) | twice,
        StatusBit.OUTSIDE: outside | negative,
        StatusBit.HOLE: hole,
        StatusBit.ANCHOR: mx.concatenate([anchor, no_tail]),
        StatusBit.LONG_TAIL: is_tail & ~outside & (ends - begins >= group_size),
        StatusBit.FRONTIER: is_tail & (last != frontier),
    }
    words = mx.zeros((n_groups + 1,), mx.uint32)
    for bit, found in faults.items():
        words = words + found.astype(mx.uint32) * int(bit)
    return words


def _row_faults(positions: mx.array) -> tuple[mx.array, mx.array, mx.array]:
    """Per row: follows a hole, stands twice, is negative; bool [n_rows] each."""
    wide = positions.astype(mx.int64)
    if positions.shape[0] == 0:
        none = mx.zeros((0,), mx.bool_)
        return none, none, none
    # the first row has no predecessor, so its step counts as good
    step = wide - mx.concatenate([wide[:1] - 1, wide[:-1]])
    return (step != 1) & (step != 0), step == 0, wide < 0


def _any_row(found: mx.array, begins: mx.array, ends: mx.array) -> mx.array:
    """Whether a row in begins[i] .. ends[i] - 1 is marked; ranges are clipped to the rows."""
    counts = mx.concatenate([mx.zeros((1,), mx.int64), mx.cumsum(found.astype(mx.int64))])
    n_rows = found.shape[0]
    low, high = mx.clip(begins, 0, n_rows), mx.clip(ends, 0, n_rows)
    return counts[high] > counts[low]


def fold_words(words: mx.array) -> tuple[mx.array, mx.array]:
    """One word from the words of all parts, and the first part that is not 0 (-1: none)."""
    bits = mx.arange(32, dtype=mx.uint32)
    seen = mx.max((words[:, None] >> bits) & 1, axis=0)
    word = (seen << bits).sum(keepdims=True).astype(mx.uint32)
    bad = words != 0
    first = mx.argmax(bad, keepdims=True).astype(mx.int32)
    return word, mx.where(mx.any(bad, keepdims=True), first, mx.array(-1, mx.int32))


def append_rows(bank: mx.array, rows: mx.array, *, at: int) -> mx.array:
    """A copy of the bank's array with `rows` at row `at`."""
    return mx.concatenate([bank[:at], rows, bank[at + rows.shape[0] :]])


def pool_groups(raw: mx.array, *, group_size: int) -> mx.array:
    """Mean of every complete group, float32 [n_rows // group_size, width]."""
    n_groups, width = raw.shape[0] // group_size, raw.shape[1]
    groups = raw[: n_groups * group_size].reshape(n_groups, group_size, width)
    return groups.astype(mx.float32).sum(axis=1) / group_size


def rotate(x: mx.array, cosines: mx.array, sines: mx.array) -> mx.array:
    """Half rotation of the first channels of x [..., dim] by float32 tables [..., pairs]."""
    pairs = cosines.shape[-1]
    low, high, rest = x[..., :pairs], x[..., pairs : 2 * pairs], x[..., 2 * pairs :]
    turned = [low * cosines - high * sines, high * cosines + low * sines, rest]
    return mx.concatenate(turned, axis=-1)


def index_scores(
    queries: mx.array,
    pooled: mx.array,
    cosines: mx.array,
    sines: mx.array,
    *,
    n_keys: int,
    group_size: int,
) -> mx.array:
    """Scores float32 [n_queries, n_groups], -inf for groups that are not complete yet."""
    n_queries, n_groups = queries.shape[0], pooled.shape[0]
    first = mx.arange(n_groups) * group_size
    keys = rotate(pooled.astype(mx.float32), cosines[first], sines[first])
    dots = mx.einsum("qhd,gd->qhg", queries, keys)
    scores = mx.maximum(dots, 0.0).sum(axis=1)
    rows = mx.arange(n_keys - n_queries, n_keys)[:, None]
    return mx.where(first[None] + group_size <= rows + 1, scores, -mx.inf)


def select_groups(scores: mx.array, *, topk: int) -> mx.array:
    """Numbers of the best groups int32 [n_queries, topk], best first, -1 for an empty slot."""
    n_queries, n_groups = scores.shape
    width = max(n_groups, topk)
    fill = mx.full((n_queries, width - n_groups), -mx.inf)
    ranked = mx.concatenate([mx.where(mx.isnan(scores), -mx.inf, scores), fill], axis=1)
    if width == 0:
        return mx.zeros((n_queries, 0), mx.int32)
    order = mx.argsort(-ranked, axis=-1)[:, :topk]  # stable: the lower number comes first
    found = mx.take_along_axis(ranked, order, axis=-1) > -mx.inf
    return mx.where(found, order.astype(mx.int32), mx.array(-1, mx.int32))


def attention_scores(
    queries: mx.array,
    keys: mx.array,
    cosines: mx.array,
    sines: mx.array,
    chosen: mx.array,
    *,
    group_size: int,
) -> mx.array:
    """Scores float32 [n_queries, heads, places] of the chosen groups' rows, then of the tail."""
    n_queries, heads, dim = queries.shape
    n_keys, kv_heads, _ = keys.shape
    rows, seen = attended_rows(chosen, n_keys, n_queries, group_size)
    if not rows.size:
        return mx.zeros((n_queries, heads, rows.shape[1]))
    turned = rotate(keys.astype(mx.float32), cosines[:, None], sines[:, None])
    grouped = queries.reshape(n_queries, kv_heads, heads // kv_heads, dim)
    scores = mx.einsum("qksd,qrkd->qksr", grouped, turned[rows]) / math.sqrt(dim)
    scores = scores.reshape(n_queries, heads, rows.shape[1])
    return mx.where(seen[:, None], scores, -mx.inf)


def indexed_attention(
    scores: mx.array, values: mx.array, chosen: mx.array, *, group_size: int
) -> mx.array:
    """Values mixed by softmax of the scores, float32 [n_queries, heads, dim]."""
    n_queries, heads, _ = scores.shape
    n_keys, kv_heads, dim = values.shape
    rows, seen = attended_rows(chosen, n_keys, n_queries, group_size)
    if not rows.size:
        return mx.zeros((n_queries, heads, dim))
    meant = mx.where(seen[:, None], scores, -mx.inf)
    any_seen = mx.any(meant != -mx.inf, axis=-1, keepdims=True)
    weights = mx.softmax(mx.where(any_seen, meant, 0.0), axis=-1)
    grouped = weights.reshape(n_queries, kv_heads, heads // kv_heads, rows.shape[1])
    mixed = mx.einsum("qksr,qrkd->qksd", grouped, values.astype(mx.float32)[rows])
    return mx.where(any_seen, mixed.reshape(n_queries, heads, dim), 0.0)


def attended_rows(
    chosen: mx.array, n_keys: int, n_queries: int, group_size: int
) -> tuple[mx.array, mx.array]:
    """Live rows int32 [n_queries, places] of every query, and which of them it sees."""
    own = mx.arange(n_keys - n_queries, n_keys, dtype=mx.int32)[:, None]
    complete = (own + 1) // group_size
    inside = mx.arange(group_size, dtype=mx.int32)
    members = chosen[:, :, None] * group_size + inside
    legal = mx.broadcast_to(((chosen >= 0) & (chosen < complete))[:, :, None], members.shape)
    flat = (n_queries, chosen.shape[1] * group_size)
    tail = complete * group_size + inside[:-1]
    rows = mx.concatenate([members.reshape(flat), tail], axis=1)
    seen = mx.concatenate([legal.reshape(flat), tail <= own], axis=1)
    return mx.where(seen, rows, 0), seen


def gdn_step(
    queries: mx.array,
    keys: mx.array,
    values: mx.array,
    betas: mx.array,
    decays: mx.array,
    state: mx.array,
) -> tuple[mx.array, mx.array]:
    """Outputs float32 [n_tokens, v_heads, value_dim] and the state after the last token."""
    n_tokens, k_heads, _ = queries.shape
    v_heads, value_dim = values.shape[1], values.shape[2]
    share = v_heads // k_heads
    wide_q = mx.repeat(queries.astype(mx.float32), share, axis=1)
    wide_k = mx.repeat(keys.astype(mx.float32), share, axis=1)
    wide_v = values.astype(mx.float32)
    outs = []
    for t in range(n_tokens):
        state = state * decays[t][:, None, None]
        known = (state * wide_k[t][:, :, None]).sum(axis=1)
        delta = betas[t][:, None] * (wide_v[t] - known)
        state = state + wide_k[t][:, :, None] * delta[:, None, :]
        outs.append((state * wide_q[t][:, :, None]).sum(axis=1))
    if not outs:
        return mx.zeros((0, v_heads, value_dim)), state
    return mx.stack(outs), state


def linear(x: mx.array, weight: mx.array) -> mx.array:
    """[n_rows, depth] @ [depth, width], summed in float32 and given in x's type."""
    return (x.astype(mx.float32) @ weight.astype(mx.float32)).astype(x.dtype)


def expert_linear(x: mx.array, weight: mx.array, experts: mx.array) -> mx.array:
    """Row i times weight[experts[i]] [depth, width]; NaN where a row names no matrix."""
    n_experts, _, width = weight.shape
    legal = (experts >= 0) & (experts < n_experts)
    if not n_experts:
        return mx.full((x.shape[0], width), mx.nan, x.dtype)
    chosen = mx.take(weight.astype(mx.float32), mx.where(legal, experts, 0), axis=0)
    out = (x.astype(mx.float32)[:, None] @ chosen)[:, 0]
    return mx.where(legal[:, None], out, mx.nan).astype(x.dtype)


def sum_parts(parts: mx.array) -> mx.array:
    """The sum over the first axis."""
    return parts.sum(axis=0)


def find_nonfinite(x: mx.array) -> tuple[mx.array, mx.array]:
    """Flat index int32 [1] of the first bad value (-1: none) and its kind int32 [1]."""
    flat = x.reshape(-1).astype(mx.float32)
    n = flat.shape[0]
    if n == 0:
        return mx.array([-1], mx.int32), mx.array([0], mx.int32)
    kinds = mx.where(mx.isnan(flat), int(NonFinite.NAN), 0)
    kinds = mx.where(flat == mx.inf, int(NonFinite.PLUS_INF), kinds)
    kinds = mx.where(flat == -mx.inf, int(NonFinite.MINUS_INF), kinds).astype(mx.int32)
    places = mx.where(kinds != 0, mx.arange(n, dtype=mx.int32), mx.array(n, mx.int32))
    return fold_places(places, kinds, n)


def fold_places(places: mx.array, kinds: mx.array, n: int) -> tuple[mx.array, mx.array]:
    """The least place of all lanes and its kind; a place of `n` means that nothing was found."""
    lane = mx.argmin(places, keepdims=True)
    place = places[lane]
    return mx.where(place < n, place, mx.array(-1, mx.int32)), kinds[lane]


def digest_rows(words: mx.array) -> mx.array:
    """64-bit hash of every row of unsigned words [n_rows, width]: uint64 [n_rows]."""
    width = words.shape[1]
    steps = _u64(np.arange(1, width + 1, dtype=np.uint64) * np.uint64(GOLDEN))
    mixed = _mix(words.astype(mx.uint64) + steps)
    return _mix(mixed.sum(axis=1) + _u64(np.array([width], np.uint64)))


def _mix(h: mx.array) -> mx.array:
    h = (h ^ (h >> _word(30))) * _word(MIX_1)
    h = (h ^ (h >> _word(27))) * _word(MIX_2)
    return h ^ (h >> _word(31))


def _word(value: int) -> mx.array:
    return _u64(np.array([value], np.uint64))


def _u64(values: np.ndarray) -> mx.array:
    return mx.array(values)
