// The bits of launch scalars, for kernels that take them as 64-bit numbers.
#pragma once

#include <bit>
#include <cstdint>

#include "sdk/provider/descriptor.h"
#include "sdk/provider/float_formats.h"

namespace tenon::provider {

// The number of bits at which integers of `dtype` wrap; 1 for bool.
inline uint32_t width_of(int32_t dtype) {
  return dtype == EP_DTYPE_bool ? 1 : static_cast<uint32_t>(dtype_size(dtype)) * 8;
}

// The bits of `value`, rounded to `dtype`, a float of at most 32 bits.
inline uint32_t narrow_bits(float value, int32_t dtype) {
  switch (dtype) {
    case EP_DTYPE_f16: return F16::from_f32(value);
    case EP_DTYPE_bf16: return bf16_from_f32(value);
    case EP_DTYPE_f8e4m3fn: return F8E4M3FN::from_f32(value);
    case EP_DTYPE_f8e5m2: return F8E5M2::from_f32(value);
    case EP_DTYPE_f8e4m3fnuz: return F8E4M3FNUZ::from_f32(value);
    case EP_DTYPE_f8e5m2fnuz: return F8E5M2FNUZ::from_f32(value);
    case EP_DTYPE_f8e8m0: return F8E8M0::from_f32(value);
    default: return std::bit_cast<uint32_t>(value);
  }
}

// The value of `bits`, a float of at most 32 bits.
inline float wide_value(uint32_t bits, int32_t dtype) {
  switch (dtype) {
    case EP_DTYPE_f16: return F16::to_f32(bits);
    case EP_DTYPE_bf16: return bf16_to_f32(static_cast<uint16_t>(bits));
    case EP_DTYPE_f8e4m3fn: return F8E4M3FN::to_f32(bits);
    case EP_DTYPE_f8e5m2: return F8E5M2::to_f32(bits);
    case EP_DTYPE_f8e4m3fnuz: return F8E4M3FNUZ::to_f32(bits);
    case EP_DTYPE_f8e5m2fnuz: return F8E5M2FNUZ::to_f32(bits);
    case EP_DTYPE_f8e8m0: return F8E8M0::to_f32(bits);
    default: return std::bit_cast<float>(bits);
  }
}

// The bits of `scalar` as an element of `dtype` in memory.
inline uint64_t element_bits(const ep_scalar& scalar, int32_t dtype) {
  if (dtype == EP_DTYPE_bool) return scalar.value.u64 != 0 ? 1 : 0;
  if (!is_floating(dtype)) return scalar.value.u64;
  if (dtype == EP_DTYPE_f64) return std::bit_cast<uint64_t>(scalar.value.f64);
  return narrow_bits(static_cast<float>(scalar.value.f64), dtype);
}

// The bits of `scalar`, rounded to `dtype`, in the type that kernels use to compute `dtype`: f64 for f64, f32 for other
// floats, 32 or 64 bits for integers.
inline uint64_t scalar_bits(const ep_scalar& scalar, int32_t dtype) {
  const uint64_t bits = element_bits(scalar, dtype);
  if (dtype == EP_DTYPE_f64) return bits;
  if (is_floating(dtype)) return std::bit_cast<uint32_t>(wide_value(static_cast<uint32_t>(bits), dtype));
  const uint32_t width = width_of(dtype);
  if (width >= 32) return bits;
  const uint64_t kept = bits & ((UINT64_C(1) << width) - 1);
  const bool negative = dtype_class(dtype) == DTypeClass::INT && (kept >> (width - 1)) != 0;
  return negative ? kept | ~((UINT64_C(1) << width) - 1) : kept;
}

}  // namespace tenon::provider
