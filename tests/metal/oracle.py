"""What every kernel should give, defined once more in NumPy: float64, or Python integers.

Independent of `metal.reference`: no MLX, no vectorised shortcuts where a loop says it plainer.
"""

from __future__ import annotations

import numpy as np

MASK = 2**64 - 1
HOLE, ANCHOR, UNCOVERED, TWICE, FRONTIER, OUTSIDE, LONG_TAIL = (1 << i for i in range(7))


def group_status(positions, starts, anchors, tail_start, frontier, group_size):
    """(word, first failing part or -1), by counting who covers which row."""
    n = len(positions)
    spans = [(s, s + group_size) for s in map(int, starts)] + [(tail_start, n)]
    faults = dict.fromkeys(range(len(spans)), 0)
    for part, (begin, end) in enumerate(spans):
        before = spans[part - 1][1] if part else 0
        faults[part] |= UNCOVERED if begin > before else 0
        faults[part] |= TWICE if begin < before else 0
        if begin < 0 or end > n or begin > end:
            faults[part] |= OUTSIDE
            continue
        faults[part] |= _row_faults([int(p) for p in positions], begin, end)
        if part < len(starts) and int(anchors[part]) != int(positions[begin]):
            faults[part] |= ANCHOR
    tail = len(starts)
    if 0 <= tail_start <= n and n - tail_start >= group_size:
        faults[tail] |= LONG_TAIL
    if (int(positions[-1]) if n else -1) != frontier:
        faults[tail] |= FRONTIER
    word = 0
    for bits in faults.values():
        word |= bits
    return word, next((part for part, bits in faults.items() if bits), -1)


def _row_faults(positions, begin, end):
    bits = 0
    for row in range(begin, end):
        if positions[row] < 0:
            bits |= OUTSIDE
        if row and positions[row] == positions[row - 1]:
            bits |= TWICE
        elif row and positions[row] != positions[row - 1] + 1:
            bits |= HOLE
    return bits


def coverage(n_rows, starts, tail_start, group_size):
    """How many groups or tails hold each row: the partition is right when all counts are 1."""
    counts = np.zeros(n_rows, int)
    for start in starts:
        counts[max(start, 0) : max(start + group_size, 0)] += 1
    counts[tail_start:] += 1
    return counts


def append_rows(bank, rows, at):
    out = np.array(bank)
    out[at : at + len(rows)] = rows
    return out


def pool_groups(raw, group_size):
    n_groups = len(raw) // group_size
    groups = raw[: n_groups * group_size].astype(np.float64)
    return groups.reshape(n_groups, group_size, raw.shape[1]).mean(axis=1)


def rotate(x, cosine, sine):
    """Half rotation as a product with a plain rotation matrix for each pair of channels."""
    out = np.array(x, np.float64)
    pairs = len(cosine)
    for i in range(pairs):
        turn = np.array([[cosine[i], -sine[i]], [sine[i], cosine[i]]], np.float64)
        out[[i, i + pairs]] = turn @ np.array([x[i], x[i + pairs]], np.float64)
    return out


def index_scores(queries, pooled, cosines, sines, n_keys, group_size):
    n_queries, heads, _ = queries.shape
    out = np.full((n_queries, len(pooled)), -np.inf)
    for t in range(n_queries):
        row = n_keys - n_queries + t
        for g in range((row + 1) // group_size):
            if g >= len(pooled):
                break
            key = rotate(pooled[g], cosines[g * group_size], sines[g * group_size])
            dots = [float(queries[t, h].astype(np.float64) @ key) for h in range(heads)]
            out[t, g] = sum(max(dot, 0.0) for dot in dots)
    return out


def select_groups(scores, topk):
    out = np.full((len(scores), topk), -1)
    for t, row in enumerate(scores):
        legal = [(-float(s), g) for g, s in enumerate(row) if s > -np.inf]
        for slot, (_, g) in enumerate(sorted(legal)[:topk]):
            out[t, slot] = g
    return out


def places(chosen, row, group_size):
    """Live row at every place of a query: its groups in slot order, then the tail; None: unseen."""
    complete = (row + 1) // group_size
    out = []
    for group in map(int, chosen):
        legal = 0 <= group < complete
        out += [group * group_size + i if legal else None for i in range(group_size)]
    tail = [complete * group_size + i for i in range(group_size - 1)]
    return out + [r if r <= row else None for r in tail]


def attention_scores(queries, keys, cosines, sines, chosen, group_size):
    n_queries, heads, dim = queries.shape
    n_keys, kv_heads, _ = keys.shape
    out = np.full((n_queries, heads, (chosen.shape[1] + 1) * group_size - 1), -np.inf)
    for t in range(n_queries):
        for place, row in enumerate(places(chosen[t], n_keys - n_queries + t, group_size)):
            for h in range(heads) if row is not None else ():
                key = rotate(keys[row, h * kv_heads // heads], cosines[row], sines[row])
                out[t, h, place] = queries[t, h].astype(np.float64) @ key / np.sqrt(dim)
    return out


def indexed_attention(scores, values, chosen, group_size):
    n_queries, heads, _ = scores.shape
    n_keys, kv_heads, dim = values.shape
    out = np.zeros((n_queries, heads, dim))
    for t in range(n_queries):
        rows = places(chosen[t], n_keys - n_queries + t, group_size)
        for h in range(heads):
            meant = [(s, r) for s, r in zip(scores[t, h], rows, strict=True) if r is not None]
            meant = [(s, r) for s, r in meant if s > -np.inf]
            if meant:
                logits = np.array([s for s, _ in meant], np.float64)
                weights = np.exp(logits - logits.max())
                seen = values[[r for _, r in meant], h * kv_heads // heads].astype(np.float64)
                out[t, h] = weights / weights.sum() @ seen
    return out


def gdn_step(queries, keys, values, betas, decays, state):
    n_tokens, k_heads, _ = queries.shape
    v_heads, value_dim = values.shape[1:]
    state = np.array(state, np.float64)
    outs = np.zeros((n_tokens, v_heads, value_dim))
    for t in range(n_tokens):
        for h in range(v_heads):
            q = queries[t, h * k_heads // v_heads].astype(np.float64)
            k = keys[t, h * k_heads // v_heads].astype(np.float64)
            s = state[h] * float(decays[t, h])
            s = s + np.outer(k, float(betas[t, h]) * (values[t, h].astype(np.float64) - s.T @ k))
            outs[t, h], state[h] = s.T @ q, s
    return outs, state


def linear(x, weight):
    return x.astype(np.float64) @ weight.astype(np.float64)


def expert_linear(x, weight, experts):
    out = np.full((len(x), weight.shape[2]), np.nan)
    for row, expert in enumerate(experts):
        if 0 <= expert < len(weight):
            out[row] = x[row].astype(np.float64) @ weight[expert].astype(np.float64)
    return out


def find_nonfinite(x):
    """(flat index or -1, kind 0 finite, 1 NaN, 2 +Inf, 3 -Inf)."""
    for i, value in enumerate(np.asarray(x, np.float64).reshape(-1).tolist()):
        if value != value:
            return i, 1
        if value in (np.inf, -np.inf):
            return i, 2 if value > 0 else 3
    return -1, 0


def digest_rows(words):
    out = []
    for row in words.tolist():
        total = len(row)
        for i, word in enumerate(row):
            total += _mix(word + (i + 1) * 0x9E3779B97F4A7C15)
        out.append(_mix(total))
    return np.array(out, np.uint64)


def _mix(h):
    h &= MASK
    h = ((h ^ (h >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    h = ((h ^ (h >> 27)) * 0x94D049BB133111EB) & MASK
    return h ^ (h >> 31)
