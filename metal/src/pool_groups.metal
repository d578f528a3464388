// pool_groups: mean of every complete group of raw index keys, before norm and rotation.
//
// inputs   raw [n_rows, width] T, any strides, row 0 is the first live position
// params   0 n_groups (n_rows / group_size, the tail is left out), 1 width, 2 group_size
// output   out [n_groups, width] float32
// grid     x: width, y: n_groups
// The sum runs from the group's first row to its last, in float32. Read by strides, not copied.

const int column = int(thread_position_in_grid.x);
const int group = int(thread_position_in_grid.y);
const int n_groups = params[0];
const int width = params[1];
const int group_size = params[2];
if (group >= n_groups || column >= width) {
    return;
}
float sum = 0.0f;
for (int member = 0; member < group_size; ++member) {
    const int64_t row = int64_t(group) * group_size + member;
    sum += float(raw[row * raw_strides[0] + column * raw_strides[1]]);
}
out[int64_t(group) * width + column] = sum / float(group_size);
