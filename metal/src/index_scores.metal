// index_scores: indexer query heads against the pooled key of every complete group.
//
// inputs   queries float32 [n_queries, heads, dim], normalised AND rotated
//          pooled  [n_groups, dim] T, normalised, NOT rotated
//          cosines, sines float32 [n_keys, pairs], row i for the i-th live position
// params   0 n_queries, 1 heads, 2 dim, 3 n_groups, 4 n_keys, 5 pairs (0: no rotation),
//          6 group_size
// output   out float32 [n_queries, n_groups]; -inf where the group is not complete yet
// grid     x: n_groups, y: n_queries / 4 rounded up
// Query t stands at live row n_keys - n_queries + t. Group g is rotated by its first row,
// g * group_size: channel i pairs with channel i + pairs, channels from 2 * pairs on pass through.
// score = sum over heads of relu(query . key), not scaled; sums run upwards, each product fused.
// A thread does 4 queries of one group to turn a key once; each query has sums of its own.

const int group = int(thread_position_in_grid.x);
const int first = int(thread_position_in_grid.y) * 4;
const int n_queries = params[0];
const int heads = params[1];
const int dim = params[2];
const int n_groups = params[3];
const int n_keys = params[4];
const int pairs = params[5];
const int group_size = params[6];
if (first >= n_queries || group >= n_groups) {
    return;
}
const int64_t key_at = int64_t(group) * dim;
const int64_t angle_at = int64_t(group) * group_size * pairs;
int64_t query_at[4];
float totals[4];
for (int j = 0; j < 4; ++j) {
    const int query = first + j < n_queries ? first + j : n_queries - 1; // read twice, stored once
    query_at[j] = int64_t(query) * heads * dim;
    totals[j] = 0.0f;
}
for (int head = 0; head < heads; ++head) {
    float dots[4];
    for (int j = 0; j < 4; ++j) {
        dots[j] = 0.0f;
    }
    for (int i = 0; i < pairs; ++i) {
        const float low = float(pooled[key_at + i]);
        const float high = float(pooled[key_at + i + pairs]);
        const float cosine = cosines[angle_at + i];
        const float sine = sines[angle_at + i];
        const float turned_low = metal::fma(low, cosine, -(high * sine));
        const float turned_high = metal::fma(high, cosine, low * sine);
        for (int j = 0; j < 4; ++j) {
            dots[j] = metal::fma(queries[query_at[j] + i], turned_low, dots[j]);
            dots[j] = metal::fma(queries[query_at[j] + i + pairs], turned_high, dots[j]);
        }
    }
    for (int i = 2 * pairs; i < dim; ++i) {
        const float key = float(pooled[key_at + i]);
        for (int j = 0; j < 4; ++j) {
            dots[j] = metal::fma(queries[query_at[j] + i], key, dots[j]);
        }
    }
    for (int j = 0; j < 4; ++j) {
        totals[j] += dots[j] <= 0.0f ? 0.0f : dots[j]; // keeps NaN, which max() would hide
        query_at[j] += dim;
    }
}
for (int j = 0; j < 4; ++j) {
    const int64_t query = int64_t(first) + j;
    if (query < n_queries) {
        const int64_t query_row = int64_t(n_keys) - n_queries + query;
        const bool complete = (int64_t(group) + 1) * group_size <= query_row + 1;
        out[query * n_groups + group] = complete ? totals[j] : -INFINITY;
    }
}
