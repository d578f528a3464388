// index_scores: indexer query heads against the pooled key of every complete group.
//
// inputs   queries float32 [n_queries, heads, dim], normalised AND rotated
//          pooled  [n_groups, dim] T, normalised, NOT rotated
//          cosines, sines float32 [n_keys, pairs], row i for the i-th live position
// params   0 n_queries, 1 heads, 2 dim, 3 n_groups, 4 n_keys, 5 pairs (0: no rotation),
//          6 group_size
// output   out [n_queries, n_groups] float32; -inf where the group is not complete yet
// grid     x: n_groups, y: n_queries
// Query t stands at live row n_keys - n_queries + t. Group g is rotated by its first row,
// g * group_size: channel i pairs with channel i + pairs, channels from 2 * pairs on pass through.
// score = sum over heads of relu(query . key), not scaled; sums run upwards, each product fused.

const int group = int(thread_position_in_grid.x);
const int query = int(thread_position_in_grid.y);
const int n_queries = params[0];
const int heads = params[1];
const int dim = params[2];
const int n_groups = params[3];
const int n_keys = params[4];
const int pairs = params[5];
const int group_size = params[6];
if (query >= n_queries || group >= n_groups) {
    return;
}
const int64_t place = int64_t(query) * n_groups + group;
const int64_t query_row = int64_t(n_keys) - n_queries + query;
const int64_t first_row = int64_t(group) * group_size;
if (first_row + group_size > query_row + 1) {
    out[place] = -INFINITY;
    return;
}
const int64_t key_at = int64_t(group) * dim;
const int64_t angle_at = first_row * pairs;
float total = 0.0f;
for (int head = 0; head < heads; ++head) {
    const int64_t query_at = (int64_t(query) * heads + head) * dim;
    float dot = 0.0f;
    for (int i = 0; i < pairs; ++i) {
        const float low = float(pooled[key_at + i]);
        const float high = float(pooled[key_at + i + pairs]);
        const float cosine = cosines[angle_at + i];
        const float sine = sines[angle_at + i];
        const float turned_low = metal::fma(low, cosine, -(high * sine));
        const float turned_high = metal::fma(high, cosine, low * sine);
        dot = metal::fma(queries[query_at + i], turned_low, dot);
        dot = metal::fma(queries[query_at + i + pairs], turned_high, dot);
    }
    for (int i = 2 * pairs; i < dim; ++i) {
        dot = metal::fma(queries[query_at + i], float(pooled[key_at + i]), dot);
    }
    total += dot <= 0.0f ? 0.0f : dot; // keeps NaN, which max() would hide
}
out[place] = total;
