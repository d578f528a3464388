// group_status: is every live position in exactly one complete group or in the tail?
//
// inputs   positions int32 [n_rows]    position of every live row, in logical order
//          starts    int32 [n_groups]  row at which a group begins
//          anchors   int32 [n_groups]  position that a group was pooled for
// params   0 n_rows, 1 n_groups, 2 group_size, 3 tail_start (row), 4 frontier (-1: none)
// output   words     uint32 [n_groups + 1]  status bits of every group, then of the tail
// grid     x: n_groups + 1
// A hole between two parts belongs to the later one. Nothing outside the live rows is read.

const int part = int(thread_position_in_grid.x);
const int n_rows = params[0];
const int n_groups = params[1];
const int group_size = params[2];
const int frontier = params[4];
if (part > n_groups) {
    return;
}
const bool is_tail = part == n_groups;
const int64_t begin = is_tail ? int64_t(params[3]) : int64_t(starts[part]);
const int64_t end = is_tail ? int64_t(n_rows) : begin + group_size;
const int64_t due = part == 0 ? int64_t(0) : int64_t(starts[part - 1]) + group_size;
uint word = 0u;
if (begin > due) {
    word |= STATUS_UNCOVERED;
}
if (begin < due) {
    word |= STATUS_TWICE;
}
if (begin < 0 || end > n_rows || begin > n_rows) {
    word |= STATUS_OUTSIDE;
} else {
    for (int64_t row = begin; row < end; ++row) {
        const int64_t position = positions[row];
        if (position < 0) {
            word |= STATUS_OUTSIDE;
        }
        if (row > 0) {
            const int64_t step = position - int64_t(positions[row - 1]);
            if (step == 0) {
                word |= STATUS_TWICE;
            } else if (step != 1) {
                word |= STATUS_HOLE;
            }
        }
    }
    if (!is_tail && anchors[part] != positions[begin]) {
        word |= STATUS_ANCHOR;
    }
    if (is_tail && end - begin >= group_size) {
        word |= STATUS_LONG_TAIL;
    }
}
if (is_tail) {
    const int last = n_rows == 0 ? -1 : positions[n_rows - 1];
    if (last != frontier) {
        word |= STATUS_FRONTIER;
    }
}
words[part] = word;
