// find_nonfinite: the first value that is not finite, and its kind.
//
// inputs   x [n] T, flat
// params   0 n, 1 lanes
// outputs  places int32 [lanes], first bad index that the lane met, n when it met none
//          kinds  int32 [lanes], KIND_FINITE, KIND_NAN, KIND_PLUS_INF or KIND_MINUS_INF
// grid     x: lanes
// Lane j looks at j, j + lanes, j + 2 lanes ...; the least place of all lanes is the answer.
// The exponent bits are looked at, so no floating-point mode of a compiler can hide a value.

const int lane = int(thread_position_in_grid.x);
const int n = params[0];
const int lanes = params[1];
if (lane >= lanes) {
    return;
}
int place = n;
int kind = KIND_FINITE;
for (int64_t i = lane; i < n; i += lanes) {
    const uint bits = as_type<uint>(float(x[i]));
    if ((bits & 0x7f800000u) == 0x7f800000u) {
        place = int(i);
        if ((bits & 0x007fffffu) != 0u) {
            kind = KIND_NAN;
        } else {
            kind = (bits >> 31) == 0u ? KIND_PLUS_INF : KIND_MINUS_INF;
        }
        break;
    }
}
places[lane] = place;
kinds[lane] = kind;
