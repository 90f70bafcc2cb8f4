#version 460
#extension GL_GOOGLE_include_directive : require
// copy with a cast. Integers pass through 64-bit two's complement in a uvec2, floats through f32. Integer operations
// replace the device's conversions where these may round differently. Needs no 64-bit arithmetic.
#define WIDE
#include "memory.glsl"
#include "narrow_floats.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 3) const int SRC_DTYPE = 12;
layout(constant_id = 4) const int DST_DTYPE = 12;

#include "shape.glsl"

bool is_float(const int dtype) {
  return dtype == DTYPE_f32 || dtype == DTYPE_f16 || dtype == DTYPE_bf16 || dtype == DTYPE_f8e4m3fn ||
         dtype == DTYPE_f8e5m2;
}
bool is_signed(const int dtype) {
  return dtype == DTYPE_i8 || dtype == DTYPE_i16 || dtype == DTYPE_i32 || dtype == DTYPE_i64;
}

uvec2 negated(uvec2 x) {
  const uint low = ~x.x + 1u;
  return uvec2(low, ~x.y + (low == 0u ? 1u : 0u));
}

// The integer that an element with these bits represents.
uvec2 integer_of(uvec2 bits) {
  if (SRC_SIZE == 8 || !is_signed(SRC_DTYPE)) return bits;
  const int value = bitfieldExtract(int(bits.x), 0, SRC_SIZE * 8);
  return uvec2(uint(value), value < 0 ? 0xffffffffu : 0u);
}

// x * 2^shift in f32. If dst is f32, rounds to nearest. Otherwise rounds toward zero and sets the last bit if the
// result is inexact, so that a second rounding is correct.
float float_of(uint x, uint fell_away, int shift) {
  if (x == 0u) return 0.0;
  const int top = findMSB(x);
  uint significand = x;
  int exponent = top + shift;
  if (top > 23) {
    const int drop = top - 23;
    const uint rest = x & ((1u << drop) - 1u);
    significand = x >> drop;
    const uint half_way = 1u << (drop - 1);
    if (DST_DTYPE != DTYPE_f32) {
      significand |= (rest | fell_away) != 0u ? 1u : 0u;
    } else if (rest > half_way || (rest == half_way && (fell_away != 0u || (significand & 1u) != 0u))) {
      ++significand;
    }
  } else {
    significand <<= 23 - top;
  }
  // A carry increments the exponent.
  return uintBitsToFloat((uint(exponent + 126) << 23) + significand);
}
float to_float(uvec2 x) {
  if (SRC_SIZE < 4) return is_signed(SRC_DTYPE) ? float(int(x.x)) : float(x.x);  // exact
  const bool negative = is_signed(SRC_DTYPE) && (x.y & 0x80000000u) != 0u;
  if (negative) x = negated(x);
  float value;
  if (x.y == 0u) {
    value = float_of(x.x, 0u, 0);
  } else {
    const int zeros = 31 - findMSB(x.y);
    const uint top = zeros == 0 ? x.y : (x.y << zeros) | (x.x >> (32 - zeros));
    value = float_of(top, zeros == 0 ? x.x : x.x << zeros, 32 - zeros);
  }
  return negative ? -value : value;
}

// Truncates toward zero and saturates. NaN becomes 0.
uvec2 to_integer(float x) {
  const uint bits = floatBitsToUint(x);
  const uint magnitude = bits & 0x7fffffffu;
  const bool negative = bits != magnitude;
  if (magnitude > 0x7f800000u) return uvec2(0u);
  const int width = size_of(DST_DTYPE) * 8;
  const int digits = is_signed(DST_DTYPE) ? width - 1 : width;
  const int exponent = int(magnitude >> 23) - 127;
  if (exponent < 0 || (negative && !is_signed(DST_DTYPE))) return uvec2(0u);
  if (exponent >= digits) {  // the greatest value, or the least value if negative
    const uvec2 greatest = digits >= 32 ? uvec2(0xffffffffu, digits == 32 ? 0u : 0xffffffffu >> (64 - digits))
                                        : uvec2((1u << digits) - 1u, 0u);
    return negative ? ~greatest : greatest;
  }
  const uint significand = (magnitude & 0x7fffffu) | 0x800000u;
  const int shift = exponent - 23;
  uvec2 value;
  if (shift <= 0) {
    value = uvec2(significand >> -shift, 0u);
  } else if (shift < 32) {
    value = uvec2(significand << shift, significand >> (32 - shift));
  } else {
    value = uvec2(0u, significand << (shift - 32));
  }
  return negative ? negated(value) : value;
}

uvec2 float_bits(float value) {
  return uvec2(DST_DTYPE == DTYPE_f32 ? floatBitsToUint(value) : narrow_from_f32(value, DST_DTYPE), 0u);
}

#define INPUTS 1
#define INPUT_SIZE(i) SRC_SIZE

uvec2 computed(uvec2 x, uvec2 y, uvec2 z) {
  if (is_float(SRC_DTYPE)) {
    const float value = SRC_DTYPE == DTYPE_f32 ? uintBitsToFloat(x.x) : narrow_to_f32(x.x, SRC_DTYPE);
    if (DST_DTYPE == DTYPE_bool) return uvec2((floatBitsToUint(value) & 0x7fffffffu) != 0u ? 1u : 0u, 0u);
    return is_float(DST_DTYPE) ? float_bits(value) : to_integer(value);
  }
  const uvec2 value = integer_of(x);
  if (DST_DTYPE == DTYPE_bool) return uvec2((value.x | value.y) != 0u ? 1u : 0u, 0u);
  return is_float(DST_DTYPE) ? float_bits(to_float(value)) : value;
}

#include "elements.glsl"
