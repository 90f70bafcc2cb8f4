// Converts narrow floats, as bits, to f32 and back: sdk/provider/float_formats.h in GLSL. packHalf2x16 may round in
// either direction, and the device's conversions may flush denormals, so these conversions use integers. f16 must be
// fast: adding a normal number moves the last bit of a denormal to where f32 rounds.

#include "sdk/provider/glsl/half.glsl"

struct Format {
  int exponent_bits;
  int mantissa_bits;
  bool has_infinity;
};

Format format_of(const int dtype) {
  if (dtype == DTYPE_f8e5m2) return Format(5, 2, true);
  return Format(4, 3, false);
}

float narrow_to_f32(uint bits, const int dtype) {
  if (dtype == DTYPE_bf16) return uintBitsToFloat(bits << 16);
  if (dtype == DTYPE_f16) return f16_to_f32(bits);
  const Format format = format_of(dtype);
  const int width = format.exponent_bits + format.mantissa_bits;
  const uint sign = ((bits >> width) & 1u) << 31;
  const uint magnitude = bits & ((1u << width) - 1u);
  const uint all = ((1u << format.exponent_bits) - 1u) << format.mantissa_bits;
  const int bias = (1 << (format.exponent_bits - 1)) - 1;
  if (format.has_infinity && magnitude == all) return uintBitsToFloat(sign | 0x7f800000u);
  if (format.has_infinity ? magnitude > all : magnitude == (1u << width) - 1u) {
    return uintBitsToFloat(sign | 0x7fc00000u);
  }
  if (magnitude >= (1u << format.mantissa_bits)) {
    return uintBitsToFloat(sign | ((magnitude << (23 - format.mantissa_bits)) + (uint(127 - bias) << 23)));
  }
  if (magnitude == 0u) return uintBitsToFloat(sign);
  const int top = findMSB(magnitude);  // a denormal is normal in f32
  const uint exponent = uint(127 + 1 - bias - format.mantissa_bits + top);
  return uintBitsToFloat(sign | (exponent << 23) | ((magnitude << (23 - top)) & 0x7fffffu));
}

// Rounds once, to nearest even.
uint narrow_from_f32(float value, const int dtype) {
  const uint bits = floatBitsToUint(value);
  const uint magnitude = bits & 0x7fffffffu;
  if (dtype == DTYPE_bf16) return bf16_from_f32(value);
  if (dtype == DTYPE_f16) return f16_from_f32(value);
  const Format format = format_of(dtype);
  const int width = format.exponent_bits + format.mantissa_bits;
  const uint sign = (bits >> 31) << width;
  const uint all = ((1u << format.exponent_bits) - 1u) << format.mantissa_bits;
  const int bias = (1 << (format.exponent_bits - 1)) - 1;
  const uint nan = format.has_infinity ? all | (1u << (format.mantissa_bits - 1)) : (1u << width) - 1u;
  const uint overflow = format.has_infinity ? all : nan;
  const uint greatest = format.has_infinity ? all - 1u : (1u << width) - 2u;
  if (magnitude > 0x7f800000u) return sign | nan;
  if (magnitude == 0x7f800000u) return sign | overflow;
  const int exponent = int(magnitude >> 23) - 127;
  int drop = 23 - format.mantissa_bits;
  if (exponent < 1 - bias) drop += 1 - bias - exponent;
  if (drop > 25) return sign;
  const uint significand = (magnitude & 0x7fffffu) | (magnitude >= 0x800000u ? 0x800000u : 0u);
  uint rounded = significand >> drop;
  const uint rest = significand & ((1u << drop) - 1u);
  const uint half_way = 1u << (drop - 1);
  if (rest > half_way || (rest == half_way && (rounded & 1u) != 0u)) ++rounded;
  const uint result =
      exponent < 1 - bias ? rounded : rounded + (uint(exponent + bias - 1) << format.mantissa_bits);
  return sign | (result > greatest ? overflow : result);
}
