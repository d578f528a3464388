// expert_linear: every row times a matrix of its own choice, summed in the order of `linear`.
//
// inputs   x [n_rows, depth] T    weight [n_experts, depth, width] T
//          experts int32 [n_rows], the matrix of each row
// params   0 n_rows, 1 width, 2 depth, 3 block (terms of one part), 4 n_parts, 5 n_experts
// output   parts float32 [n_parts, n_rows, width]; NaN where a row names no matrix
// grid     x: width, y: n_rows, z: n_parts
// A row gives the same bits as in `linear` with the same matrix.

const int column = int(thread_position_in_grid.x);
const int row = int(thread_position_in_grid.y);
const int part = int(thread_position_in_grid.z);
const int n_rows = params[0];
const int width = params[1];
const int depth = params[2];
const int block = params[3];
const int n_parts = params[4];
if (row >= n_rows || column >= width || part >= n_parts) {
    return;
}
const int64_t expert = experts[row];
float sum = as_type<float>(0x7fc00000u);
if (expert >= 0 && expert < params[5]) {
    const int begin = part * block;
    const int end = depth - begin < block ? depth : begin + block;
    const int64_t x_at = int64_t(row) * depth;
    int64_t w_at = (expert * depth + begin) * width + column;
    sum = 0.0f;
    for (int i = begin; i < end; ++i) {
        sum = metal::fma(float(x[x_at + i]), float(weight[w_at]), sum);
        w_at += width;
    }
}
parts[(int64_t(part) * n_rows + row) * width + column] = sum;
