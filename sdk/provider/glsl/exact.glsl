// Quotient and square root of f32, rounded to nearest even on every device. Vulkan permits an error of 2.5 units in the
// last place for a quotient, and of 4.5 * 2^-23 of the value for a root (1.0 / inversesqrt()), and denormals may be
// flushed. So the device only estimates the result from the significands, and integers correct it. The estimate of the
// first 25 binary digits is deliberately 16 or 32 too low; its remainder is correct modulo 2^32 and less than 2^32.
// Five or six steps of long division then give the remaining digits. The 25th digit decides the rounding: no root and
// no normal quotient lies exactly between two floats, so a 25th digit of 1 always has a nonzero remainder.
// This file is also valid C++: a test compiles it with inexact estimates.

#ifndef ESTIMATE_QUOTIENT
#define ESTIMATE_QUOTIENT(x, y) ((x) / (y))
#define ESTIMATE_ROOT(x) sqrt(x)
#endif

// Returns the biased exponent of a finite, nonzero `magnitude` (below 1 if it is denormal), and its 24 digits.
int exponent_of(uint magnitude) {
  return magnitude >= 0x800000u ? int(magnitude >> 23) : findMSB(magnitude) - 22;
}
uint significand_of(uint magnitude) {
  return magnitude >= 0x800000u ? (magnitude & 0x7fffffu) | 0x800000u : magnitude << (23 - findMSB(magnitude));
}

// True unless the bits are those of a positive normal number.
bool not_normal(uint bits) { return bits - 0x800000u >= 0x7f000000u; }

// digits / 2^drop, rounded to nearest even; drop is 1 to 26. `more`: the exact value is slightly above `digits`.
uint rounded(uint digits, bool more, int drop) {
  const uint half_way = 1u << (drop - 1);
  const uint fell_away = digits & (2u * half_way - 1u);
  const uint kept = digits >> drop;
  return kept + uint(fell_away > half_way || (fell_away == half_way && (more || (kept & 1u) != 0u)));
}

float exact_quotient(float x, float y) {
  const uint a = floatBitsToUint(x) & 0x7fffffffu;
  const uint b = floatBitsToUint(y) & 0x7fffffffu;
  const uint sign = (floatBitsToUint(x) ^ floatBitsToUint(y)) & 0x80000000u;
  uint dividend = (a & 0x7fffffu) | 0x800000u;
  uint divisor = (b & 0x7fffffu) | 0x800000u;
  int exponent = int(a >> 23) - int(b >> 23) + 127;
  if (not_normal(a) || not_normal(b)) {
    if (a > 0x7f800000u) return x;
    if (b > 0x7f800000u) return y;
    if (a == 0x7f800000u || b == 0u) return uintBitsToFloat(a == b ? 0x7fc00000u : sign | 0x7f800000u);
    if (b == 0x7f800000u || a == 0u) return uintBitsToFloat(sign);
    dividend = significand_of(a);
    divisor = significand_of(b);
    exponent = exponent_of(a) - exponent_of(b) + 127;
  }
  const int below_one = dividend < divisor ? 1 : 0;
  exponent -= below_one;
  const float estimate = ESTIMATE_QUOTIENT(float(dividend), float(divisor));
  uint digits = uint(estimate * (below_one != 0 ? 33554432.0f : 16777216.0f)) - 16u;
  uint rest = (dividend << (24 + below_one)) - digits * divisor;
  for (int i = 4; i >= 0; --i) {
    if (rest >= divisor << i) {
      rest -= divisor << i;
      digits += 1u << i;
    }
  }
  if (exponent >= 255) return uintBitsToFloat(sign | 0x7f800000u);
  if (exponent >= 1) return uintBitsToFloat(sign | ((uint(exponent - 1) << 23) + ((digits + 1u) >> 1)));
  return uintBitsToFloat(sign | rounded(digits, rest != 0u, min(2 - exponent, 26)));
}

float exact_root(float x) {
  const uint bits = floatBitsToUint(x);
  uint significand = (bits & 0x7fffffu) | 0x800000u;
  int exponent = int(bits >> 23) - 127;
  if (not_normal(bits)) {
    const uint magnitude = bits & 0x7fffffffu;
    if (magnitude == 0u || magnitude > 0x7f800000u || bits == 0x7f800000u) return x;
    if (bits != magnitude) return uintBitsToFloat(0x7fc00000u);
    significand = significand_of(magnitude);
    exponent = exponent_of(magnitude) - 127;
  }
  const int odd = exponent & 1;
  const uint square = significand << (1 + odd);  // times 2^24
  const float estimate = ESTIMATE_ROOT(float(square));
  uint digits = uint(estimate * 4096.0f) - 32u;
  uint rest = (square << 24) - digits * digits;
  for (int i = 5; i >= 0; --i) {
    const uint step = (digits << (i + 1)) + (1u << (2 * i));  // (digits + 2^i)^2 - digits^2
    if (rest >= step) {
      rest -= step;
      digits += 1u << i;
    }
  }
  return uintBitsToFloat((uint(((exponent - odd) >> 1) + 126) << 23) + ((digits + 1u) >> 1));
}
