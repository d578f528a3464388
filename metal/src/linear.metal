// linear: matrix product whose every output is summed in one fixed order.
//
// inputs   x [n_rows, depth] T, any strides    weight [width, depth] T, any strides
// params   0 n_rows, 1 width, 2 depth
// output   out [n_rows, width] T = x @ weight.T, summed in float32
// grid     x: width, y: n_rows
// One thread an output: four partial sums over depth (i modulo 4), each upwards with fused
// products, then (s0 + s1) + (s2 + s3). Nothing depends on n_rows, so no cut of the rows shows.
// Every product is fused by name, so no compiler is free to fuse or not to fuse. Read by strides.

const int column = int(thread_position_in_grid.x);
const int row = int(thread_position_in_grid.y);
const int n_rows = params[0];
const int width = params[1];
const int depth = params[2];
if (row >= n_rows || column >= width) {
    return;
}
const int64_t x_step = x_strides[1];
const int64_t w_step = weight_strides[1];
int64_t x_at = row * x_strides[0];
int64_t w_at = column * weight_strides[0];
float s0 = 0.0f;
float s1 = 0.0f;
float s2 = 0.0f;
float s3 = 0.0f;
int i = 0;
for (; i + 4 <= depth; i += 4) {
    s0 = metal::fma(float(x[x_at]), float(weight[w_at]), s0);
    s1 = metal::fma(float(x[x_at + x_step]), float(weight[w_at + w_step]), s1);
    s2 = metal::fma(float(x[x_at + 2 * x_step]), float(weight[w_at + 2 * w_step]), s2);
    s3 = metal::fma(float(x[x_at + 3 * x_step]), float(weight[w_at + 3 * w_step]), s3);
    x_at += 4 * x_step;
    w_at += 4 * w_step;
}
if (i < depth) {
    s0 = metal::fma(float(x[x_at]), float(weight[w_at]), s0);
}
if (i + 1 < depth) {
    s1 = metal::fma(float(x[x_at + x_step]), float(weight[w_at + w_step]), s1);
}
if (i + 2 < depth) {
    s2 = metal::fma(float(x[x_at + 2 * x_step]), float(weight[w_at + 2 * w_step]), s2);
}
out[int64_t(row) * width + column] = T((s0 + s1) + (s2 + s3));
