// Converts narrow floats, as bits, to f32 and back. To f32 is exact; from f32 rounds once, to nearest even.
//
// f16 is IEEE binary16. bf16 is the upper half of f32. f8e5m2 is like IEEE, with infinities. f8e4m3fn has no infinities
// and one NaN (0x7f); overflow gives NaN. The fnuz types have one NaN, with the bits of -0. The f6 types and f4e2m1
// have no infinities and no NaN: overflow gives the greatest number, NaN gives -0. f8e8m0 has only powers of two and
// one NaN.
#pragma once

#include <bit>
#include <cstdint>

namespace tenon::provider {

inline float bf16_to_f32(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

inline uint16_t bf16_from_f32(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffU) > 0x7f800000U) return static_cast<uint16_t>((bits >> 16) | 0x40U);
  return static_cast<uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
}

// The special values of a format: those of IEEE, of f8e4m3fn, of the fnuz types, or none.
enum class Specials : uint8_t { IEEE, FN, FNUZ, FINITE };

// A format of 1 sign bit, `exponent_bits` and `mantissa_bits`.
template <int exponent_bits, int mantissa_bits, Specials specials>
struct NarrowFloat {
  static constexpr bool has_infinity = specials == Specials::IEEE;
  static constexpr bool has_own_nan = specials == Specials::IEEE || specials == Specials::FN;
  static constexpr int bias = (1 << (exponent_bits - 1)) - (specials == Specials::FNUZ ? 0 : 1);
  static constexpr uint32_t sign_bit = 1U << (exponent_bits + mantissa_bits);
  static constexpr uint32_t exponent_all = ((1U << exponent_bits) - 1) << mantissa_bits;
  static constexpr uint32_t magnitude_mask = sign_bit - 1;
  static constexpr uint32_t nan_bits = has_infinity ? exponent_all | (1U << (mantissa_bits - 1)) : magnitude_mask;
  static constexpr uint32_t overflow_bits = has_infinity ? exponent_all : magnitude_mask;
  static constexpr uint32_t greatest_finite = has_infinity  ? exponent_all - 1
                                              : has_own_nan ? magnitude_mask - 1
                                                            : magnitude_mask;

  static uint32_t nan(uint32_t sign) { return has_own_nan ? sign | nan_bits : sign_bit; }
  static uint32_t overflow(uint32_t sign) { return specials == Specials::FNUZ ? sign_bit : sign | overflow_bits; }

  static float to_f32(uint32_t bits) {
    const uint32_t sign = (bits & sign_bit) != 0 ? 0x80000000U : 0U;
    const uint32_t magnitude = bits & magnitude_mask;
    if (specials == Specials::FNUZ && (bits & (2 * sign_bit - 1)) == sign_bit) return std::bit_cast<float>(0x7fc00000U);
    if (magnitude > (has_infinity ? exponent_all : greatest_finite)) return std::bit_cast<float>(sign | 0x7fc00000U);
    if (has_infinity && magnitude == exponent_all) return std::bit_cast<float>(sign | 0x7f800000U);
    if (magnitude < (1U << mantissa_bits)) {  // zero or denormal: exact in f32
      const float scale = std::bit_cast<float>(static_cast<uint32_t>(127 + 1 - bias - mantissa_bits) << 23);
      const float value = static_cast<float>(magnitude) * scale;
      return sign != 0 ? -value : value;
    }
    return std::bit_cast<float>(sign |
                                ((magnitude << (23 - mantissa_bits)) + (static_cast<uint32_t>(127 - bias) << 23)));
  }

  static uint32_t from_f32(float value) {
    const uint32_t bits = std::bit_cast<uint32_t>(value);
    const uint32_t sign = (bits >> 31) != 0 ? sign_bit : 0U;
    const uint32_t magnitude = bits & 0x7fffffffU;
    if (magnitude > 0x7f800000U) return nan(sign);
    if (magnitude == 0x7f800000U) return overflow(sign);
    const int exponent = static_cast<int>(magnitude >> 23) - 127;
    // The number of low bits that the 24-bit significand loses: more for denormals of the narrow format.
    int drop = 23 - mantissa_bits;
    if (exponent < 1 - bias) drop += 1 - bias - exponent;
    if (drop > 25) return specials == Specials::FNUZ ? 0 : sign;
    const uint32_t significand = (magnitude & 0x7fffffU) | (magnitude >= 0x800000U ? 0x800000U : 0U);
    uint32_t rounded = significand >> drop;
    const uint32_t rest = significand & ((1U << drop) - 1);
    const uint32_t half = 1U << (drop - 1);
    if (rest > half || (rest == half && (rounded & 1U) != 0)) ++rounded;
    // A carry out of the significand moves into the exponent.
    const uint32_t result =
        exponent < 1 - bias ? rounded : rounded + (static_cast<uint32_t>(exponent + bias - 1) << mantissa_bits);
    if (result > greatest_finite) return overflow(sign);
    return specials == Specials::FNUZ && result == 0 ? 0 : sign | result;
  }
};

using F16 = NarrowFloat<5, 10, Specials::IEEE>;
using F8E5M2 = NarrowFloat<5, 2, Specials::IEEE>;
using F8E4M3FN = NarrowFloat<4, 3, Specials::FN>;
using F8E5M2FNUZ = NarrowFloat<5, 2, Specials::FNUZ>;
using F8E4M3FNUZ = NarrowFloat<4, 3, Specials::FNUZ>;
using F6E2M3 = NarrowFloat<2, 3, Specials::FINITE>;
using F6E3M2 = NarrowFloat<3, 2, Specials::FINITE>;
using F4E2M1 = NarrowFloat<2, 1, Specials::FINITE>;

// The power 2^(bits - 127). Numbers round to the nearest power, ties to the greater one, but never below 2^-127.
struct F8E8M0 {
  static float to_f32(uint32_t bits) {
    if (bits == 0xff) return std::bit_cast<float>(0x7fc00000U);
    return std::bit_cast<float>(bits == 0 ? 0x400000U : bits << 23);
  }
  static uint32_t from_f32(float value) {
    const uint32_t bits = std::bit_cast<uint32_t>(value);
    if (!(value > 0) || bits >= 0x7f400000U) return 0xff;
    if (bits < 0x800000U) return bits >= 0x600000U ? 1 : 0;  // a denormal: from 1.5 * 2^-127 on, rounds to 2^-126
    return (bits + 0x400000U) >> 23;                         // significands from 1.5 on round to the next power
  }
};

}  // namespace tenon::provider
