// gdn_step: the gated delta rule over consecutive tokens, from a carried state.
//
// inputs   queries [n_tokens, k_heads, key_dim] T, keys the same shape (both after l2 norm, the
//          queries scaled)    values [n_tokens, v_heads, value_dim] T
//          betas, decays float32 [n_tokens, v_heads]
//          state float32 [v_heads, key_dim, value_dim]
// params   0 n_tokens, 1 k_heads, 2 v_heads, 3 key_dim, 4 value_dim
// outputs  out [n_tokens, v_heads, value_dim] float32
//          next [v_heads, key_dim, value_dim] float32, the state after the last token
// grid     x: value_dim, y: v_heads
// A thread owns one column of the state and keeps it in `next`; no other thread touches it.
//   S <- decay S;  d = beta (v - S^T k);  S <- S + k d^T;  o = S^T q
// Head j of the values uses key head j / (v_heads / k_heads). Sums run upwards, products fused.

const int column = int(thread_position_in_grid.x);
const int head = int(thread_position_in_grid.y);
const int n_tokens = params[0];
const int k_heads = params[1];
const int v_heads = params[2];
const int key_dim = params[3];
const int value_dim = params[4];
if (head >= v_heads || column >= value_dim) {
    return;
}
const int k_head = head / (v_heads / k_heads);
const int64_t state_at = int64_t(head) * key_dim * value_dim + column;
for (int i = 0; i < key_dim; ++i) {
    next[state_at + int64_t(i) * value_dim] = state[state_at + int64_t(i) * value_dim];
}
for (int token = 0; token < n_tokens; ++token) {
    const int64_t key_at = (int64_t(token) * k_heads + k_head) * key_dim;
    const int64_t gate_at = int64_t(token) * v_heads + head;
    const float decay = decays[gate_at];
    float known = 0.0f;
    for (int i = 0; i < key_dim; ++i) {
        const int64_t place = state_at + int64_t(i) * value_dim;
        const float faded = next[place] * decay;
        next[place] = faded;
        known = metal::fma(faded, float(keys[key_at + i]), known);
    }
    const float delta = betas[gate_at] * (float(values[gate_at * value_dim + column]) - known);
    float result = 0.0f;
    for (int i = 0; i < key_dim; ++i) {
        const int64_t place = state_at + int64_t(i) * value_dim;
        const float fresh = metal::fma(float(keys[key_at + i]), delta, next[place]);
        next[place] = fresh;
        result = metal::fma(fresh, float(queries[key_at + i]), result);
    }
    out[gate_at * value_dim + column] = result;
}
