#include "primitives/dtype/convert.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tenon {
namespace {

// The special values of a format.
enum class Specials : uint8_t {
  IEEE,    // the greatest exponent encodes infinity and NaN
  FN,      // the greatest exponent encodes numbers too; NaN is all ones
  FNUZ,    // NaN has the bits of -0, and the bias is one greater
  FINITE,  // no special values
};

// sign, exponent_bits, mantissa_bits. Exponent 0 is denormal.
struct Format {
  int exponent_bits;
  int mantissa_bits;
  Specials specials;

  int bias() const { return (1 << (exponent_bits - 1)) - (specials == Specials::FNUZ ? 0 : 1); }
  uint64_t sign() const { return uint64_t{1} << (exponent_bits + mantissa_bits); }
  uint64_t exponent_mask() const { return ((uint64_t{1} << exponent_bits) - 1) << mantissa_bits; }
  uint64_t mantissa_mask() const { return (uint64_t{1} << mantissa_bits) - 1; }
  uint64_t nan(uint64_t sign_bit) const {
    if (specials == Specials::IEEE) return sign_bit | exponent_mask() | uint64_t{1} << (mantissa_bits - 1);
    return specials == Specials::FN ? sign_bit | exponent_mask() | mantissa_mask() : sign();
  }
  // The result for a number that is too great.
  uint64_t overflow(uint64_t sign_bit) const {
    if (specials == Specials::IEEE) return sign_bit | exponent_mask();
    return specials == Specials::FINITE ? sign_bit | exponent_mask() | mantissa_mask() : nan(sign_bit);
  }
  // The least bit pattern (without the sign) that is not a finite number.
  uint64_t finite_end() const {
    if (specials == Specials::IEEE) return exponent_mask();
    return (exponent_mask() | mantissa_mask()) + (specials == Specials::FN ? 0 : 1);
  }
};

Format format_of(DType dtype) {
  switch (dtype) {
    case DType::f16: return {5, 10, Specials::IEEE};
    case DType::bf16: return {8, 7, Specials::IEEE};
    case DType::f8e4m3fn: return {4, 3, Specials::FN};
    case DType::f8e5m2: return {5, 2, Specials::IEEE};
    case DType::f8e4m3fnuz: return {4, 3, Specials::FNUZ};
    case DType::f8e5m2fnuz: return {5, 2, Specials::FNUZ};
    case DType::f6e2m3: return {2, 3, Specials::FINITE};
    case DType::f6e3m2: return {3, 2, Specials::FINITE};
    case DType::f4e2m1: return {2, 1, Specials::FINITE};
    case DType::f32: return {8, 23, Specials::IEEE};
    default: return {11, 52, Specials::IEEE};
  }
}

// 2^exponent, for the exponents of normal numbers of f64.
double power_of_two(int exponent) { return std::bit_cast<double>(static_cast<uint64_t>(exponent + 1023) << 52); }

// The exponent of a positive normal number of f64. For zero and denormals it is less than for any normal number.
int exponent_of(double number) { return static_cast<int>(std::bit_cast<uint64_t>(number) >> 52) - 1023; }

// Rounds a number from 0 to 2^52 to an integer, to nearest even: the sum has no bits below 1.
long double round_to_even(long double number) {
  constexpr long double one_is_last_place = 1 / std::numeric_limits<long double>::epsilon();
  return number + one_is_last_place - one_is_last_place;
}

// The number itself, or the quiet NaN of its sign.
double quiet(double number) {
  return std::isnan(number) ? std::copysign(std::numeric_limits<double>::quiet_NaN(), number) : number;
}

constexpr uint64_t power_nan = 0xff;

// f8e8m0: the power 2^(bits - 127).
double decode_power(uint64_t bits) {
  if ((bits & 0xff) == power_nan) return std::numeric_limits<double>::quiet_NaN();
  return std::ldexp(1.0, static_cast<int>(bits & 0xff) - 127);
}

uint64_t encode_power(long double value) {
  if (!(value > 0)) return power_nan;
  if (std::isinf(value)) return power_nan;
  int exponent = std::ilogb(value);
  if (std::ldexp(value, -exponent) >= 1.5L) ++exponent;
  if (exponent > 127) return power_nan;
  return static_cast<uint64_t>(std::max(exponent, -127) + 127);
}

}  // namespace

double decode_float(DType dtype, uint64_t bits) {
  if (dtype == DType::f64) return quiet(std::bit_cast<double>(bits));
  // A processor that flushes denormals would read them as zero.
  if (dtype == DType::f32 && (bits & 0x7f800000) != 0) return quiet(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  if (dtype == DType::f8e8m0) return decode_power(bits);
  const Format format = format_of(dtype);
  if (format.specials == Specials::FNUZ && (bits & (2 * format.sign() - 1)) == format.sign()) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  const uint64_t magnitude = bits & (format.exponent_mask() | format.mantissa_mask());
  const double sign = bits & format.sign() ? -1.0 : 1.0;
  if (magnitude >= format.finite_end()) {
    const bool infinite = format.specials == Specials::IEEE && magnitude == format.exponent_mask();
    const double special =
        infinite ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
    return std::copysign(special, sign);
  }
  const uint64_t mantissa = magnitude & format.mantissa_mask();
  const int exponent = static_cast<int>(magnitude >> format.mantissa_bits);
  const uint64_t units = exponent == 0 ? mantissa : mantissa | (uint64_t{1} << format.mantissa_bits);
  const int last_place = std::max(exponent, 1) - format.bias() - format.mantissa_bits;
  return sign * static_cast<double>(units) * power_of_two(last_place);
}

uint64_t encode_float(DType dtype, long double value) {
  if (dtype == DType::f8e8m0) return encode_power(value);
  const Format format = format_of(dtype);
  const uint64_t sign = std::signbit(value) ? format.sign() : 0;
  if (std::isnan(value)) return format.nan(sign);
  // The machine rounds to its own types; a number that is too great becomes infinite.
  if (dtype == DType::f64) return std::bit_cast<uint64_t>(static_cast<double>(value));
  if (dtype == DType::f32) return std::bit_cast<uint32_t>(static_cast<float>(value));
  const long double magnitude = std::fabs(value);
  const int least = 1 - format.bias();
  // If rounding to f64 gives the next power of two, so does rounding to fewer bits.
  const int exponent = std::max(exponent_of(static_cast<double>(magnitude)), least);
  if (exponent > format.bias() + 1) return format.overflow(sign);
  // The number in units of its last place. If rounding reaches the next power of two, the carry raises the exponent.
  const long double units = round_to_even(magnitude * power_of_two(format.mantissa_bits - exponent));
  const auto steps = static_cast<uint64_t>(units);
  const uint64_t bits = steps + (static_cast<uint64_t>(exponent - least) << format.mantissa_bits);
  if (bits == 0 && format.specials == Specials::FNUZ) return 0;  // there is no -0
  return bits >= format.finite_end() ? format.overflow(sign) : sign | bits;
}

uint16_t f32_to_bf16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value)) return static_cast<uint16_t>(bits >> 16 | 0x40);
  const uint32_t to_even = 0x7fff + (bits >> 16 & 1);
  return static_cast<uint16_t>((bits + to_even) >> 16);
}

float f16_to_f32(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
  const uint32_t magnitude = bits & 0x7fff;
  if (magnitude >= 0x7c00) return std::bit_cast<float>(sign | 0x7f800000 | (magnitude & 0x3ff) << 13);
  if (magnitude < 0x400) return std::copysign(static_cast<float>(magnitude) * 0x1p-24F, sign ? -1.0F : 1.0F);
  return std::bit_cast<float>(sign | ((magnitude << 13) + (112U << 23)));
}

uint16_t f32_to_f16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = bits >> 16 & 0x8000;
  const uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return static_cast<uint16_t>(sign | 0x7e00);
  if (magnitude >= 0x47800000) return static_cast<uint16_t>(sign | 0x7c00);
  if (magnitude < 0x38800000) {
    const float units = std::nearbyint(std::bit_cast<float>(magnitude) * 0x1p24F);
    return static_cast<uint16_t>(sign | static_cast<uint32_t>(units));
  }
  const uint32_t rebiased = magnitude - (112U << 23);
  const uint32_t to_even = 0xfff + (rebiased >> 13 & 1);
  return static_cast<uint16_t>(sign | (rebiased + to_even) >> 13);
}

}  // namespace tenon
