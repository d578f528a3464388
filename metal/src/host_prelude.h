// What a kernel text expects from Metal, said in C++ for the host.
#include <cmath>
#include <cstdint>
#include <cstring>

typedef unsigned int uint;
typedef unsigned short ushort;
typedef unsigned char uchar;

struct uint3 {
    uint x;
    uint y;
    uint z;
};

template <typename To, typename From>
static inline To as_type(From value) {
    static_assert(sizeof(To) == sizeof(From), "as_type keeps the size");
    To out;
    std::memcpy(&out, &value, sizeof(To));
    return out;
}

// 16-bit floats are read here and copied, never made: every sum is float32
struct bfloat16_t {
    uint16_t bits;
    explicit operator float() const {
        return as_type<float>(uint(bits) << 16);
    }
};

struct float16_t {
    uint16_t bits;
    explicit operator float() const {
        const int exponent = (bits >> 10) & 31;
        const int fraction = bits & 1023;
        const float sign = (bits & 0x8000) != 0 ? -1.0f : 1.0f;
        if (exponent == 31) {
            const uint widened = (uint(bits & 0x8000) << 16) | 0x7f800000u | (uint(fraction) << 13);
            return as_type<float>(widened);
        }
        if (exponent == 0) {
            return sign * std::ldexp(float(fraction), -24);
        }
        return sign * std::ldexp(float(fraction + 1024), exponent - 25);
    }
};

namespace metal {
static inline float fma(float a, float b, float c) {
    return std::fma(a, b, c);
}
static inline float exp(float x) {
    return std::exp(x);
}
static inline float sqrt(float x) {
    return std::sqrt(x);
}
static inline float max(float a, float b) {
    return std::fmax(a, b);
}
} // namespace metal
