// digest_rows: a 64-bit hash of every row's bits (its own hash, not the owner digest).
//
// inputs   words [n_rows, width] T, one of uint8, uint16, uint32: the row's bits, little-endian
// params   0 n_rows, 1 width
// output   out uint64 [n_rows] = mix(width + sum over i of mix(words[i] + (i + 1) * G)), modulo
//          2^64, where mix is the finaliser of splitmix64 and G its increment
// grid     x: n_rows
// The sum has no order, so the reference may take it in any.

const int row = int(thread_position_in_grid.x);
const int n_rows = params[0];
const int width = params[1];
if (row >= n_rows) {
    return;
}
uint64_t sum = uint64_t(width);
for (int i = 0; i < width; ++i) {
    uint64_t h = uint64_t(words[int64_t(row) * width + i]);
    h += (uint64_t(i) + 1ul) * 0x9E3779B97F4A7C15ul;
    h = (h ^ (h >> 30)) * 0xBF58476D1CE4E5B9ul;
    h = (h ^ (h >> 27)) * 0x94D049BB133111EBul;
    sum += h ^ (h >> 31);
}
sum = (sum ^ (sum >> 30)) * 0xBF58476D1CE4E5B9ul;
sum = (sum ^ (sum >> 27)) * 0x94D049BB133111EBul;
out[row] = sum ^ (sum >> 31);
