// sum_parts: the parts of a product, added upwards.
//
// inputs   parts float32 [n_parts, n]
// params   0 n_parts, 1 n
// output   out float32 [n]
// grid     x: n

const int place = int(thread_position_in_grid.x);
const int n_parts = params[0];
const int n = params[1];
if (place >= n) {
    return;
}
float sum = parts[place];
for (int part = 1; part < n_parts; ++part) {
    sum += parts[int64_t(part) * n + place];
}
out[place] = sum;
