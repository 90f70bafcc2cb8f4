// cast<To>(value) converts one element to another type. Storage types of narrow floats have their own C++ types here.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "sdk/provider/float_formats.h"

namespace tenon::provider::cpu {

// A C++ type of its own, so that templates can tell it from an integer.
struct F16Bits {
  uint16_t bits;
};
struct Bf16Bits {
  uint16_t bits;
};
// A float format of one byte.
template <class Format>
struct ByteBits {
  uint8_t bits;
  static ByteBits from(float value) { return {static_cast<uint8_t>(Format::from_f32(value))}; }
};
using F8E4M3FNBits = ByteBits<F8E4M3FN>;
using F8E5M2Bits = ByteBits<F8E5M2>;
using F8E4M3FNUZBits = ByteBits<F8E4M3FNUZ>;
using F8E5M2FNUZBits = ByteBits<F8E5M2FNUZ>;
using F8E8M0Bits = ByteBits<F8E8M0>;

template <class T>
inline T from_f32(float value) {
  if constexpr (std::is_same_v<T, F16Bits>)
    return {static_cast<uint16_t>(F16::from_f32(value))};
  else if constexpr (std::is_same_v<T, Bf16Bits>)
    return {bf16_from_f32(value)};
  else
    return T::from(value);
}
inline float to_f32(F16Bits value) { return F16::to_f32(value.bits); }
inline float to_f32(Bf16Bits value) { return bf16_to_f32(value.bits); }
template <class Format>
inline float to_f32(ByteBits<Format> value) {
  return Format::to_f32(value.bits);
}

template <class T>
inline constexpr bool is_narrow_float = std::is_class_v<T>;

// Rounds to f32 by "round to odd": an inexact result gets an odd last bit. A second rounding, to a format of at most 22
// bits, then equals a direct rounding of `value`.
inline float to_odd_f32(double value) {
  float nearest = static_cast<float>(value);
  if (static_cast<double>(nearest) == value || std::isnan(value) || std::isinf(nearest)) return nearest;
  if ((std::bit_cast<uint32_t>(nearest) & 1U) == 0) {
    const bool up = (static_cast<double>(nearest) < value) == (value > 0);
    nearest = std::bit_cast<float>(std::bit_cast<uint32_t>(nearest) + (up ? 1U : ~0U));
  }
  return nearest;
}

// Returns a double that rounds to every narrow float as `value` does: the bits below the 52 leading ones become one
// sticky bit.
template <class I>
double sticky_double(I value) {
  using U = std::make_unsigned_t<I>;
  const bool negative = value < 0;
  U magnitude = negative ? U{0} - static_cast<U>(value) : static_cast<U>(value);
  if constexpr (sizeof(I) == 8) {
    if (magnitude >> 53 != 0) magnitude = ((magnitude >> 12) | ((magnitude & 0xfff) != 0 ? 1U : 0U)) << 12;
  }
  const auto result = static_cast<double>(magnitude);
  return negative ? -result : result;
}

// Truncates toward zero and saturates. NaN becomes 0.
template <class I, class F>
I float_to_integer(F value) {
  if (std::isnan(value)) return 0;
  constexpr F least = static_cast<F>(std::numeric_limits<I>::min());
  const F limit = std::ldexp(F{1}, std::numeric_limits<I>::digits);  // the greatest value plus one, exact
  if (value >= limit) return std::numeric_limits<I>::max();
  if (value <= least) return std::numeric_limits<I>::min();
  return static_cast<I>(value);
}

template <class To, class From>
To cast(From value) {
  if constexpr (std::is_same_v<To, bool>)
    return value != From{0};
  else if constexpr (is_narrow_float<To>) {
    if constexpr (std::is_same_v<From, float>)
      return from_f32<To>(value);
    else if constexpr (std::is_same_v<From, double>)
      return from_f32<To>(to_odd_f32(value));
    else
      return from_f32<To>(to_odd_f32(sticky_double(value)));
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    return float_to_integer<To>(value);
  } else {
    return static_cast<To>(value);
  }
}

}  // namespace tenon::provider::cpu
