// Conversions between the narrow floating types and the machine's own, one element at a time, written for clarity.
//
// Every narrowing rounds once, to nearest even. NaN stays NaN: it becomes quiet, keeps its sign and loses its payload.
// A number beyond the greatest finite one becomes infinite in f16, bf16 and f8e5m2, and NaN in the other f8 types,
// which have no infinity. In f6e2m3, f6e3m2 and f4e2m1, which have neither infinity nor NaN, it becomes the greatest
// finite number, and NaN becomes -0. f8e4m3fnuz and f8e5m2fnuz have no -0, and their NaN has no sign. f8e8m0 holds only
// powers of two: a number rounds to the nearest one, a tie to the greater one, but never below 2^-127; 0 and negative
// numbers become NaN.
//
// These are the rules of ml_dtypes, which ONNX follows where it does not saturate. They differ from it for NaN in types
// without NaN, and for f8e8m0 below 2^-126.
#pragma once

#include <bit>
#include <cstdint>

#include "primitives/dtype/dtype.h"

#pragma GCC visibility push(default)  // exported by libtenon.so
namespace tenon {

// The number that the low dtype_info(dtype).bits bits of `bits` represent. Accepts every floating dtype.
double decode_float(DType dtype, uint64_t bits);

// The bits of the number of `dtype` nearest to `value`. long double holds every int64, uint64 and double exactly, so
// integers are also rounded only once.
uint64_t encode_float(DType dtype, long double value);

// Like the function above, for bf16. Uses bit arithmetic, since kernels convert it often.
inline float bf16_to_f32(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
uint16_t f32_to_bf16(float value);
float f16_to_f32(uint16_t bits);
uint16_t f32_to_f16(float value);

}  // namespace tenon
#pragma GCC visibility pop
