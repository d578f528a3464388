// attention_scores: every query head against the keys of its chosen groups and of its raw tail.
//
// inputs   queries float32 [n_queries, heads, dim], normalised AND rotated
//          keys    [n_keys, kv_heads, dim] T, normalised, NOT rotated
//          cosines, sines float32 [n_keys, pairs], row i for the i-th live position
//          chosen  int32 [n_queries, topk], numbers of complete groups, -1 for an empty slot
// params   0 n_queries, 1 heads, 2 kv_heads, 3 dim, 4 n_keys, 5 pairs (0: no rotation),
//          6 topk, 7 group_size
// output   out float32 [n_queries, heads, topk * group_size + group_size - 1]: the rows of the
//          groups in slot order, then the tail; -inf where there is no row or the query must not
//          see it; scaled by 1 / sqrt(dim)
// grid     x: heads, y: places, z: n_queries
// Query t stands at live row n_keys - n_queries + t. Query head j uses key head
// j / (heads / kv_heads). Channel i pairs with channel i + pairs. Sums run upwards, products fused.

const int head = int(thread_position_in_grid.x);
const int place = int(thread_position_in_grid.y);
const int query = int(thread_position_in_grid.z);
const int n_queries = params[0];
const int heads = params[1];
const int kv_heads = params[2];
const int dim = params[3];
const int pairs = params[5];
const int topk = params[6];
const int group_size = params[7];
const int places = topk * group_size + group_size - 1;
if (query >= n_queries || head >= heads || place >= places) {
    return;
}
const int64_t query_row = int64_t(params[4]) - n_queries + query;
const int64_t complete = (query_row + 1) / group_size;
const int slot = place / group_size;
int64_t row = complete * group_size + (place - topk * group_size);
bool seen = row <= query_row;
if (slot < topk) {
    const int64_t group = chosen[int64_t(query) * topk + slot];
    row = group * group_size + (place - slot * group_size);
    seen = group >= 0 && group < complete;
}
const int64_t out_at = (int64_t(query) * heads + head) * places + place;
if (!seen) {
    out[out_at] = -INFINITY;
    return;
}
const int64_t query_at = (int64_t(query) * heads + head) * dim;
const int64_t key_at = (row * kv_heads + head / (heads / kv_heads)) * dim;
const int64_t angle_at = row * pairs;
float dot = 0.0f;
for (int i = 0; i < pairs; ++i) {
    const float low = float(keys[key_at + i]);
    const float high = float(keys[key_at + i + pairs]);
    const float cosine = cosines[angle_at + i];
    const float sine = sines[angle_at + i];
    const float turned_low = metal::fma(low, cosine, -(high * sine));
    const float turned_high = metal::fma(high, cosine, low * sine);
    dot = metal::fma(queries[query_at + i], turned_low, dot);
    dot = metal::fma(queries[query_at + i + pairs], turned_high, dot);
}
for (int i = 2 * pairs; i < dim; ++i) {
    dot = metal::fma(queries[query_at + i], float(keys[key_at + i]), dot);
}
out[out_at] = dot / metal::sqrt(float(dim));
