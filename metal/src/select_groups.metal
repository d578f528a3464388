// select_groups: the groups of highest score of every query; among equals the lower number wins.
//
// inputs   scores float32 [n_queries, n_groups]; -inf and NaN are never chosen
// params   0 n_queries, 1 n_groups, 2 topk
// output   out int32 [n_queries, topk], best first, -1 where there are fewer candidates
// grid     x: max(n_groups, topk), y: n_queries
// A thread ranks one group; the same thread number also empties one slot if it stays unfilled.

const int number = int(thread_position_in_grid.x);
const int query = int(thread_position_in_grid.y);
const int n_queries = params[0];
const int n_groups = params[1];
const int topk = params[2];
if (query >= n_queries || (number >= n_groups && number >= topk)) {
    return;
}
const int64_t row = int64_t(query) * n_groups;
const float own = number < n_groups ? scores[row + number] : -INFINITY;
int candidates = 0;
int rank = 0;
for (int other = 0; other < n_groups; ++other) {
    const float score = scores[row + other];
    if (score > -INFINITY) {
        candidates += 1;
        if (score > own || (score == own && other < number)) {
            rank += 1;
        }
    }
}
if (own > -INFINITY && rank < topk) {
    out[int64_t(query) * topk + rank] = number;
}
if (number < topk && number >= candidates) {
    out[int64_t(query) * topk + number] = -1;
}
