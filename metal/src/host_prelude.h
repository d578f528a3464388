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

// float32 to 16 bits, to nearest, ties to even; FRACTION bits of fraction, BIAS of the exponent
template <int FRACTION, int BIAS>
static inline uint16_t narrow(float value) {
    const uint bits = as_type<uint>(value);
    const uint16_t sign = uint16_t((bits >> 16) & 0x8000u);
    const uint magnitude = bits & 0x7fffffffu;
    const uint top = (1u << (15 - FRACTION)) - 1u;
    if (magnitude > 0x7f800000u) {
        const uint quiet = (top << FRACTION) | (1u << (FRACTION - 1));
        return uint16_t(sign | quiet);
    }
    if (magnitude == 0x7f800000u) {
        return uint16_t(sign | (top << FRACTION));
    }
    if (magnitude == 0u) {
        return sign;
    }
    const double scaled = std::fabs(double(value));
    int exponent = 0;
    std::frexp(scaled, &exponent);
    const int lowest = 2 - BIAS;
    const int shift = FRACTION + 1 - (exponent > lowest ? exponent : lowest);
    const double units = std::nearbyint(std::ldexp(scaled, shift));
    const int raised = exponent > lowest ? exponent - lowest : 0;
    const double packed = units + double(raised) * double(1 << FRACTION);
    const double ceiling = double(top) * double(1 << FRACTION);
    return uint16_t(sign | uint16_t(packed < ceiling ? packed : ceiling));
}

struct bfloat16_t {
    uint16_t bits;
    bfloat16_t() = default;
    explicit bfloat16_t(float value) : bits(narrow<7, 127>(value)) {}
    explicit operator float() const {
        return as_type<float>(uint(bits) << 16);
    }
};

struct float16_t {
    uint16_t bits;
    float16_t() = default;
    explicit float16_t(float value) : bits(narrow<10, 15>(value)) {}
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
