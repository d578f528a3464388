// append_rows: new rows into a copy of a bank's array.
//
// inputs   bank [capacity, width] T, any strides    rows [n_rows, width] T, any strides
// params   0 capacity, 1 width, 2 n_rows, 3 at (row of the bank that gets rows[0])
// output   out  [capacity, width] T, rows at .. at + n_rows - 1 new, all others as in bank
// grid     x: width, y: capacity
// Inputs are read by their strides: no contiguous copy is made first.

const int column = int(thread_position_in_grid.x);
const int row = int(thread_position_in_grid.y);
const int capacity = params[0];
const int width = params[1];
const int n_rows = params[2];
const int at = params[3];
if (row >= capacity || column >= width) {
    return;
}
const int64_t place = int64_t(row) * width + column;
const int64_t fresh = int64_t(row) - at;
if (fresh >= 0 && fresh < n_rows) {
    out[place] = rows[fresh * rows_strides[0] + column * rows_strides[1]];
} else {
    out[place] = bank[row * bank_strides[0] + column * bank_strides[1]];
}
