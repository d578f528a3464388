// indexed_attention: values of the chosen groups and the raw tail, mixed by softmax of the scores.
//
// inputs   scores float32 [n_queries, heads, topk * group_size + group_size - 1], as
//          attention_scores gives them; -inf is passed over
//          values [n_keys, kv_heads, dim] T
//          chosen int32 [n_queries, topk], the same as for the scores
// params   0 n_queries, 1 heads, 2 kv_heads, 3 dim, 4 n_keys, 5 topk, 6 group_size
// output   out float32 [n_queries, heads, dim]; 0 where a query sees nothing
// grid     x: dim, y: heads, z: n_queries
// The softmax is built online in one order: groups in slot order, a group's rows upwards, then the
// tail upwards. Nothing depends on n_queries, so no cut of the queries shows. A slot that names no
// complete group is passed over whatever its scores are.

const int channel = int(thread_position_in_grid.x);
const int head = int(thread_position_in_grid.y);
const int query = int(thread_position_in_grid.z);
const int n_queries = params[0];
const int heads = params[1];
const int kv_heads = params[2];
const int dim = params[3];
const int topk = params[5];
const int group_size = params[6];
if (query >= n_queries || head >= heads || channel >= dim) {
    return;
}
const int kv_head = head / (heads / kv_heads);
const int64_t query_row = int64_t(params[4]) - n_queries + query;
const int64_t complete = (query_row + 1) / group_size;
const int64_t tail_at = int64_t(topk) * group_size;
int64_t score_at = (int64_t(query) * heads + head) * (tail_at + group_size - 1);
bool any = false;
float peak = 0.0f;
float weight = 0.0f;
float mix = 0.0f;
for (int slot = 0; slot <= topk; ++slot) {
    int64_t first = complete * group_size;
    int64_t stop = query_row + 1;
    if (slot < topk) {
        const int64_t group = chosen[int64_t(query) * topk + slot];
        first = group * group_size;
        stop = group >= 0 && group < complete ? first + group_size : first;
    }
    for (int64_t row = first; row < stop; ++row) {
        const float score = scores[score_at + (row - first)];
        if (score == -INFINITY) {
            continue;
        }
        const float value = float(values[(row * kv_heads + kv_head) * dim + channel]);
        if (!any) {
            any = true;
            peak = score;
            weight = 1.0f;
            mix = value;
        } else if (score <= peak) {
            const float gain = metal::exp(score - peak);
            weight += gain;
            mix = metal::fma(gain, value, mix);
        } else {
            // a new peak; not-a-number lands here, too, and stays
            const float keep = metal::exp(peak - score);
            weight = metal::fma(weight, keep, 1.0f);
            mix = metal::fma(mix, keep, value);
            peak = score;
        }
    }
    score_at += group_size;
}
out[(int64_t(query) * heads + head) * dim + channel] = any ? mix / weight : 0.0f;
