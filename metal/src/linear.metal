// linear: matrix product whose every output is summed in one fixed order.
//
// inputs   x [n_rows, depth] T    weight [depth, width] T
// params   0 n_rows, 1 width, 2 depth, 3 block (terms of one part), 4 n_parts
// output   parts float32 [n_parts, n_rows, width]; sum_parts adds them to x @ weight
// grid     x: width, y: n_rows / 8 rounded up, z: n_parts
// A part is the sum over `block` neighbouring terms, upwards, each product fused by name, so no
// compiler is free to fuse or not to. The parts are added upwards. So the order follows from depth
// alone: n_rows does not enter, and no cut of the rows shows. A thread does 8 rows of one column to
// read a weight once; each row has a sum of its own.

const int column = int(thread_position_in_grid.x);
const int first = int(thread_position_in_grid.y) * 8;
const int part = int(thread_position_in_grid.z);
const int n_rows = params[0];
const int width = params[1];
const int depth = params[2];
const int block = params[3];
const int n_parts = params[4];
if (first >= n_rows || column >= width || part >= n_parts) {
    return;
}
const int begin = part * block;
const int end = depth - begin < block ? depth : begin + block;
int64_t x_at[8];
float sums[8];
for (int j = 0; j < 8; ++j) {
    const int row = first + j < n_rows ? first + j : n_rows - 1; // read twice, stored once
    x_at[j] = int64_t(row) * depth;
    sums[j] = 0.0f;
}
int64_t w_at = int64_t(begin) * width + column;
for (int i = begin; i < end; ++i) {
    const float w = float(weight[w_at]);
    for (int j = 0; j < 8; ++j) {
        sums[j] = metal::fma(float(x[x_at[j] + i]), w, sums[j]);
    }
    w_at += width;
}
for (int j = 0; j < 8; ++j) {
    if (first + j < n_rows) {
        parts[(int64_t(part) * n_rows + first + j) * width + column] = sums[j];
    }
}
