// What a kernel text expects from Metal, said in CUDA. Stands before the generated signature.
#include <cuda_fp16.h>
#include <cuda_bf16.h>

#ifndef INFINITY
#define INFINITY __int_as_float(0x7f800000)
#endif

typedef unsigned int uint;
typedef unsigned short ushort;
typedef unsigned char uchar;

template <typename To, typename From>
__device__ __forceinline__ To as_type(From value) {
    static_assert(sizeof(To) == sizeof(From), "as_type keeps the size");
    union {
        From from;
        To to;
    } both;
    both.from = value;
    return both.to;
}

namespace metal {
__device__ __forceinline__ float fma(float a, float b, float c) {
    return __fmaf_rn(a, b, c);
}
__device__ __forceinline__ float exp(float x) {
    return ::expf(x);
}
__device__ __forceinline__ float sqrt(float x) {
    return __fsqrt_rn(x);
}
__device__ __forceinline__ float max(float a, float b) {
    return ::fmaxf(a, b);
}
} // namespace metal
