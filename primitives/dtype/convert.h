// Conversions between the narrow floating types and the machine's own, one element at a time, written to be read. Every
// narrowing rounds once, to nearest even. NaN stays NaN: it becomes quiet, keeps its sign and loses its payload. A
// number beyond the greatest finite one becomes infinite in f16, bf16 and f8e5m2, NaN in the other f8 types, which have
// no infinity, and the greatest finite number in f6e2m3, f6e3m2 and f4e2m1, which have no NaN either: there NaN becomes
// -0. In f8e4m3fnuz and f8e5m2fnuz there is no -0, and NaN no sign. f8e8m0 has powers of two alone: a number rounds to
// the nearest, of two the greater one, but never below 2^-127; 0 and what is negative become NaN. These are the rules
// of ml_dtypes (but for NaN in types without one, and f8e8m0 below 2^-126), which ONNX follows where it does not
// saturate.
#pragma once

#include <bit>
#include <cstdint>

#include "primitives/dtype/dtype.h"

#pragma GCC visibility push(default)  // exported by libtenon.so
namespace tenon {

// The number that the low dtype_info(dtype).bits bits of `bits` stand for; every floating dtype.
double decode_float(DType dtype, uint64_t bits);

// The bits of the number of `dtype` nearest to `value`. long double holds every int64, uint64 and double exactly, so
// integers are rounded once as well.
uint64_t encode_float(DType dtype, long double value);

// The same for bf16, in bit arithmetic, since kernels convert it often.
inline float bf16_to_f32(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
uint16_t f32_to_bf16(float value);
float f16_to_f32(uint16_t bits);
uint16_t f32_to_f16(float value);

}  // namespace tenon
#pragma GCC visibility pop
