// indexed_attention: attention of every query over its chosen groups and its raw tail.
//
// inputs   queries float32 [n_queries, heads, dim], normalised AND rotated
//          keys    [n_keys, kv_heads, dim] T, normalised, NOT rotated; values the same shape
//          cosines, sines float32 [n_keys, pairs], row i for the i-th live position
//          chosen  int32 [n_queries, topk], numbers of complete groups, -1 for an empty slot
// params   0 n_queries, 1 heads, 2 kv_heads, 3 dim, 4 n_keys, 5 pairs (0: no rotation),
//          6 topk, 7 group_size
// output   out float32 [n_queries, heads, dim]; 0 where a query sees nothing
// grid     x: dim, y: heads, z: n_queries
// Query t stands at live row n_keys - n_queries + t. It sees the groups in slot order, the rows of
// a group upwards, then the tail upwards: softmax is built online in that one order. Query head j
// uses key head j / (heads / kv_heads). A slot that names a group the query must not see (not
// complete at its row) is passed over. Channel i pairs with channel i + pairs.

const int channel = int(thread_position_in_grid.x);
const int head = int(thread_position_in_grid.y);
const int query = int(thread_position_in_grid.z);
const int n_queries = params[0];
const int heads = params[1];
const int kv_heads = params[2];
const int dim = params[3];
const int n_keys = params[4];
const int pairs = params[5];
const int topk = params[6];
const int group_size = params[7];
if (query >= n_queries || head >= heads || channel >= dim) {
    return;
}
const int kv_head = head / (heads / kv_heads);
const int64_t query_row = int64_t(n_keys) - n_queries + query;
const int64_t complete = (query_row + 1) / group_size;
const int64_t query_at = (int64_t(query) * heads + head) * dim;
const float scale = 1.0f / metal::sqrt(float(dim));
bool any = false;
float peak = 0.0f;
float weight = 0.0f;
float mix = 0.0f;
for (int slot = 0; slot <= topk; ++slot) {
    int64_t first = complete * group_size;
    int64_t stop = query_row + 1;
    if (slot < topk) {
        const int64_t group = chosen[int64_t(query) * topk + slot];
        if (group < 0 || group >= complete) {
            continue;
        }
        first = group * group_size;
        stop = first + group_size;
    }
    for (int64_t row = first; row < stop; ++row) {
        const int64_t key_at = (row * kv_heads + kv_head) * dim;
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
        const float score = metal::fma(dot, scale, 0.0f); // by name, so no later sum fuses it
        const float value = float(values[key_at + channel]);
        if (!any) {
            any = true;
            peak = score;
            weight = 1.0f;
            mix = value;
        } else {
            const float higher = metal::max(peak, score);
            const float keep = metal::exp(peak - higher);
            const float gain = metal::exp(score - higher);
            weight = metal::fma(weight, keep, gain);
            mix = metal::fma(mix, keep, gain * value);
            peak = higher;
        }
    }
}
out[query_at + channel] = any ? mix / weight : 0.0f;
