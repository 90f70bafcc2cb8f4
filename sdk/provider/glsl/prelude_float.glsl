// The prelude on f32. GLSL's exp, log, sin and pow are not used: Vulkan permits exp(80) to be off by 163 units in the
// last place. The functions here use only addition, subtraction, multiplication (correctly rounded in Vulkan) and
// integers. ep_div and ep_sqrt are in exact.glsl. A plain `/` is used only where Vulkan's bound, 2.5 units in the last
// place, is sufficient for our bound. `precise` forbids the compiler to fuse and reorder. NaN is recognised by its
// bits, because a compiler may assume that isnan() is false.
#include "sdk/provider/glsl/exact.glsl"

#define NAN uintBitsToFloat(0x7fc00000u)
#define INFINITY uintBitsToFloat(0x7f800000u)

uint magnitude_bits(float x) { return floatBitsToUint(x) & 0x7fffffffu; }
bool ep_isnan(float x) { return magnitude_bits(x) > 0x7f800000u; }
bool ep_isinf(float x) { return magnitude_bits(x) == 0x7f800000u; }
// Selects instead of `bits | sign`: after branches and a barrier(), the optimiser of Mesa 22's lavapipe (LLVM 15)
// combines the bits of two numbers wrongly. With GALLIVM_PERF=nopt it does not.
float with_sign_of(float magnitude, float x) {
  const uint bits = magnitude_bits(magnitude);
  return uintBitsToFloat(floatBitsToUint(x) >= 0x80000000u ? bits | 0x80000000u : bits);
}

float ep_add(float x, float y) { precise float r = x + y; return r; }
float ep_sub(float x, float y) { precise float r = x - y; return r; }
float ep_mul(float x, float y) { precise float r = x * y; return r; }
float ep_div(float x, float y) { return exact_quotient(x, y); }
float ep_sqrt(float x) { return exact_root(x); }
float ep_neg(float x) { return uintBitsToFloat(floatBitsToUint(x) ^ 0x80000000u); }
float ep_abs(float x) { return uintBitsToFloat(magnitude_bits(x)); }
float ep_fma(float x, float y, float z) { precise float r = fma(x, y, z); return r; }
float ep_min(float x, float y) { return ep_isnan(x) ? x : (x < y ? x : y); }
float ep_max(float x, float y) { return ep_isnan(x) ? x : (x > y ? x : y); }
float ep_lowest() { return -INFINITY; }
float ep_highest() { return INFINITY; }

// Every float from 2^23 on is an integer.
bool is_whole(float x) { return !(ep_abs(x) < 8388608.0); }
float ep_floor(float x) { return is_whole(x) ? x : with_sign_of(floor(x), x); }
float ep_ceil(float x) { return is_whole(x) ? x : with_sign_of(ceil(x), x); }
float ep_trunc(float x) { return is_whole(x) ? x : with_sign_of(trunc(x), x); }
float ep_rint(float x) { return is_whole(x) ? x : with_sign_of(roundEven(x), x); }

// 2^n for n in [-126, 127].
float power_of_two(int n) { return uintBitsToFloat(uint(n + 127) << 23); }

// y * 2^n for n in [-252, 254]. A denormal result is rounded once.
float scale(float y, int n) {
  const int low = n >> 1;
  precise float r = y * power_of_two(low) * power_of_two(n - low);
  return r;
}

// (exp(r) - 1 - r) / r^2 for |r| <= ln 2 / 2 (Cephes, expf).
float exp_tail(float r) {
  precise float p = 1.9875691500e-4;
  p = p * r + 1.3981999507e-3;
  p = p * r + 8.3334519073e-3;
  p = p * r + 4.1665795894e-2;
  p = p * r + 1.6666665459e-1;
  p = p * r + 5.0000001201e-1;
  return p;
}
// x - n ln 2, where n is the integer nearest to x / ln 2. ln 2 is split into two parts; n times the first part is
// exact.
float reduce_by_ln2(float x, out int n) {
  precise float whole = roundEven(x * 1.44269504088896341);
  precise float r = (x - whole * 0.693359375) - whole * -2.12194440e-4;
  n = int(whole);
  return r;
}
// exp(x) * 2^shift
float exp_shifted(float x, int shift) {
  if (ep_isnan(x)) return x;
  int n;
  const float r = reduce_by_ln2(x < -104.0 ? -104.0 : (x > 90.0 ? 90.0 : x), n);
  precise float y = (exp_tail(r) * (r * r) + r) + 1.0;
  return scale(y, n + shift);
}
float ep_exp(float x) { return exp_shifted(x, 0); }

float ep_exp2(float x) {
  if (ep_isnan(x)) return x;
  const float bounded = x < -152.0 ? -152.0 : (x > 130.0 ? 130.0 : x);
  const float whole = roundEven(bounded);
  precise float r = (bounded - whole) * 0.69314718055994531;
  precise float y = (exp_tail(r) * (r * r) + r) + 1.0;
  return scale(y, int(whole));
}

float ep_expm1(float x) {
  if (ep_isnan(x) || x == 0.0) return x;
  int n;
  const float r = reduce_by_ln2(x < -25.0 ? -25.0 : (x > 89.0 ? 89.0 : x), n);
  precise float p = exp_tail(r) * (r * r) + r;
  if (n == 0) return p;
  // One factor 2 is applied last, so that 2^128 does not overflow too early.
  const float half_power = power_of_two(n - 1);
  precise float y = half_power * p + (half_power - 0.5);
  y = y + y;
  return y;
}

// x = m 2^e with sqrt(1/2) <= m < sqrt(2); f = m - 1, rest = log(m) - f.
void split_log(float x, out float e, out float f, out float rest) {
  uint bits = floatBitsToUint(x);
  int denormal = 0;
  if (bits < 0x00800000u && bits != 0u) {
    denormal = findMSB(bits) - 23;  // normalised with integers, because a device may flush denormals
    bits = (uint(1) << 23) | ((bits << -denormal) & 0x7fffffu);
  }
  // Adding the distance from sqrt(1/2) to 1 carries into the exponent exactly if m must be halved.
  const uint shifted = bits + (0x3f800000u - 0x3f3504f3u);
  e = float(int(shifted >> 23) - 127 + denormal);
  precise float g = uintBitsToFloat((shifted & 0x7fffffu) + 0x3f3504f3u) - 1.0;
  precise float z = g * g;
  precise float p = 7.0376836292e-2;
  p = p * g - 1.1514610310e-1;
  p = p * g + 1.1676998740e-1;
  p = p * g - 1.2420140846e-1;
  p = p * g + 1.4249322787e-1;
  p = p * g - 1.6668057665e-1;
  p = p * g + 2.0000714765e-1;
  p = p * g - 2.4999993993e-1;
  p = p * g + 3.3333331174e-1;
  precise float tail = (p * g) * z - z * 0.5;
  f = g;
  rest = tail;
}
// log: NaN below 0 and for NaN, -inf at 0, +inf at +inf.
float log_edges(float x, float result) {
  if (ep_isnan(x)) return x;
  if (magnitude_bits(x) == 0u) return -INFINITY;
  if (floatBitsToUint(x) >= 0x80000000u) return NAN;
  return ep_isinf(x) ? x : result;
}
float ep_log(float x) {
  float e, f, rest;
  split_log(x, e, f, rest);
  precise float low = e * -2.12194440e-4 + rest;
  precise float r = e * 0.693359375 + (low + f);
  return log_edges(x, r);
}
float ep_log2(float x) {
  float e, f, rest;
  split_log(x, e, f, rest);
  precise float low = (f + rest) * 0.44269504088896341;  // log2(e) = 1 + 0.4427
  precise float r = (low + rest) + (f + e);
  return log_edges(x, r);
}
float ep_log10(float x) {
  float e, f, rest;
  split_log(x, e, f, rest);
  precise float low = e * 4.6050390665e-6 + (f + rest) * 0.43429448190325183;
  precise float r = e * 0.301025390625 + low;
  return log_edges(x, r);
}
float ep_log1p(float x) {
  precise float u = 1.0 + x;
  if (u == 1.0 || x == INFINITY) return x;
  // log(u) x / (u - 1) corrects the rounding of 1 + x (Higham, Accuracy and Stability, 1.14.1).
  precise float r = ep_log(u) * ep_div(x, ep_sub(u, 1.0));
  return r;
}

float ep_tanh(float x) {
  if (ep_isnan(x)) return x;
  const float magnitude = ep_abs(x);
  if (magnitude < 0.625) {
    precise float z = x * x;
    precise float p = -5.70498872745e-3;
    p = p * z + 2.06390887954e-2;
    p = p * z - 5.37397155531e-2;
    p = p * z + 1.33314422036e-1;
    p = p * z - 3.33332819422e-1;
    p = (p * z) * x + x;
    return p;
  }
  precise float large = 1.0 - 2.0 / (ep_exp(2.0 * (magnitude < 10.0 ? magnitude : 10.0)) + 1.0);
  return with_sign_of(large, x);
}

// An odd polynomial below 0.92; 1 - exp of a polynomial above it (N. Juffa's erff).
float ep_erf(float x) {
  if (ep_isnan(x)) return x;
  const float t = ep_abs(x) < 4.0 ? ep_abs(x) : 4.0;
  precise float s = t * t;
  precise float p;
  if (t > 0.921875) {
    precise float u = -3.88396438e-3 * t + 2.42546219e-2;
    p = -1.72853470e-5 * t + 3.83197126e-4;
    p = p * s + u;
    p = p * t - 1.06777877e-1;
    p = p * t - 6.34846687e-1;
    p = p * t - 1.28717512e-1;
    p = p * t - t;
    p = 1.0 - ep_exp(p);
  } else {
    p = -5.96761703e-4;
    p = p * s + 4.99119423e-3;
    p = p * s - 2.67681349e-2;
    p = p * s + 1.12819925e-1;
    p = p * s - 3.76125336e-1;
    p = p * s + 1.28379166e-1;
    p = p * t + t;
  }
  return with_sign_of(p, x);
}

// --- trigonometry ---

// x - q pi/2, in [-pi/4, pi/4]. Integers multiply x by 96 bits of 2/pi (Payne and Hanek), so no float operation
// cancels.
float reduce_by_half_pi(float x, out int quadrant) {
  const uint bits = magnitude_bits(x);
  if (bits <= 0x3f490fdbu) {  // pi/4
    quadrant = 0;
    return x;
  }
  const uint two_over_pi[7] =
      uint[7](0x28be60dbu, 0x9391054au, 0x7f09d5f4u, 0x7d4d3770u, 0x36d8a566u, 0x4f10e410u, 0x7f9458eau);
  const uint mantissa = ((bits & 0x7fffffu) | 0x800000u) << 8;
  const int exponent = int(bits >> 23) - 126;
  const int word = exponent >> 5;
  const int shift = exponent & 31;
  uint high = word != 0 ? two_over_pi[word - 1] : 0u;
  uint middle = two_over_pi[word];
  uint low = two_over_pi[word + 1];
  if (shift != 0) {
    high = (high << shift) | (middle >> (32 - shift));
    middle = (middle << shift) | (low >> (32 - shift));
    low = (low << shift) | (two_over_pi[word + 2] >> (32 - shift));
  }
  uint top, ignored, carry_high, product;
  umulExtended(mantissa, low, top, ignored);
  umulExtended(mantissa, middle, carry_high, product);
  uint carry;
  product = uaddCarry(product, top, carry);
  uint whole = mantissa * high + carry_high + carry;
  int q = int(whole >> 30);
  whole &= 0x3fffffffu;
  bool negative = false;
  if ((whole & 0x20000000u) != 0u) {
    whole |= 0xc0000000u;
    ++q;
    negative = true;
    product = ~product + 1u;
    whole = ~whole + (product == 0u ? 1u : 0u);
  }
  // The fraction is whole:product / 2^62. Shifts its leading bit to the top.
  int zeros;
  if (whole != 0u) {
    zeros = 31 - findMSB(whole);
    if (zeros != 0) whole = (whole << zeros) | (product >> (32 - zeros));
  } else {
    zeros = product == 0u ? 63 : 63 - findMSB(product);
    whole = product << (zeros - 32);
  }
  const float upper = float(whole >> 8);
  const float lower = float(whole & 0xffu);
  // pi/2 = 1.57079637 - 4.37113883e-8
  precise float r = upper * 1.57079637 + (lower * (1.57079637 / 256.0) - upper * 4.37113883e-8);
  r = r * power_of_two(-22 - zeros);
  if (negative) r = -r;
  if (floatBitsToUint(x) >= 0x80000000u) {
    r = -r;
    q = -q;
  }
  quadrant = q & 3;
  return r;
}
float sin_near_zero(float x) {
  precise float z = x * x;
  precise float p = -1.9515295891e-4;
  p = p * z + 8.3321608736e-3;
  p = p * z - 1.6666654611e-1;
  p = (p * z) * x + x;
  return p;
}
float cos_near_zero(float x) {
  precise float z = x * x;
  precise float p = 2.443315711809948e-5;
  p = p * z - 1.388731625493765e-3;
  p = p * z + 4.166664568298827e-2;
  p = ((p * z) * z - 0.5 * z) + 1.0;
  return p;
}
bool no_angle(float x) { return magnitude_bits(x) >= 0x7f800000u; }
float ep_sin(float x) {
  if (no_angle(x)) return NAN;
  int q;
  const float r = reduce_by_half_pi(x, q);
  const float y = (q & 1) != 0 ? cos_near_zero(r) : sin_near_zero(r);
  return (q & 2) != 0 ? -y : y;
}
float ep_cos(float x) {
  if (no_angle(x)) return NAN;
  int q;
  const float r = reduce_by_half_pi(x, q);
  const float y = (q & 1) != 0 ? sin_near_zero(r) : cos_near_zero(r);
  return q == 1 || q == 2 ? -y : y;
}
float ep_tan(float x) {
  if (no_angle(x)) return NAN;
  int q;
  const float r = reduce_by_half_pi(x, q);
  precise float z = r * r;
  precise float p = 9.38540185543e-3;
  p = p * z + 3.11992232697e-3;
  p = p * z + 2.44301354525e-2;
  p = p * z + 5.34112807005e-2;
  p = p * z + 1.33387994085e-1;
  p = p * z + 3.33331568548e-1;
  p = (p * z) * r + r;
  if ((q & 1) != 0) p = ep_div(-1.0, p);
  return p;
}

// asin on [0, 0.5] (Cephes, asinf).
float asin_small(float x) {
  precise float z = x * x;
  precise float p = 4.2163199048e-2;
  p = p * z + 2.4181311049e-2;
  p = p * z + 4.5470025998e-2;
  p = p * z + 7.4953002686e-2;
  p = p * z + 1.6666752422e-1;
  p = (p * z) * x + x;
  return p;
}
float ep_asin(float x) {
  const float magnitude = ep_abs(x);
  if (!(magnitude <= 1.0)) return NAN;
  if (magnitude <= 0.5) return asin_small(x);
  precise float y = 1.57079637 - (2.0 * asin_small(ep_sqrt(0.5 * (1.0 - magnitude))) + 4.37113883e-8);
  return with_sign_of(y, x);
}
float ep_acos(float x) {
  const float magnitude = ep_abs(x);
  if (!(magnitude <= 1.0)) return NAN;
  precise float y;
  if (magnitude <= 0.5) {
    y = 1.57079637 - (asin_small(x) + 4.37113883e-8);
    return y;
  }
  y = 2.0 * asin_small(ep_sqrt(0.5 * (1.0 - magnitude)));
  if (x < 0.0) y = 3.14159274 - (y + 8.74227766e-8);
  return y;
}
float ep_atan(float x) {
  if (ep_isnan(x)) return x;
  const float magnitude = ep_abs(x);
  float r = magnitude;
  float base = 0.0;
  float base_low = 0.0;
  if (magnitude > 2.414213562373095) {
    base = 1.57079637;
    base_low = -4.37113883e-8;
    r = ep_neg(ep_div(1.0, magnitude));
  } else if (magnitude > 0.4142135623730950) {
    base = 0.785398185;
    base_low = -2.18556941e-8;
    r = ep_div(ep_sub(magnitude, 1.0), ep_add(magnitude, 1.0));
  }
  precise float z = r * r;
  precise float p = 8.05374449538e-2;
  p = p * z - 1.38776856032e-1;
  p = p * z + 1.99777106478e-1;
  p = p * z - 3.33329491539e-1;
  p = base + (((p * z) * r + base_low) + r);
  return with_sign_of(p, x);
}

// --- hyperbolic functions (Cephes) ---

float ep_sinh(float x) {
  if (ep_isnan(x)) return x;
  const float magnitude = ep_abs(x);
  if (magnitude <= 1.0) {
    precise float z = x * x;
    precise float p = 2.03721912945e-4;
    p = p * z + 8.33028376239e-3;
    p = p * z + 1.66667160211e-1;
    p = (p * z) * x + x;
    return p;
  }
  const float e = exp_shifted(magnitude, -1);
  precise float y = e - 0.25 / e;
  return with_sign_of(y, x);
}
float ep_cosh(float x) {
  if (ep_isnan(x)) return x;
  const float e = exp_shifted(ep_abs(x), -1);
  precise float y = e + 0.25 / e;
  return y;
}
float ep_asinh(float x) {
  if (ep_isnan(x)) return x;
  const float magnitude = ep_abs(x);
  precise float y;
  if (magnitude > 1500.0) {
    y = ep_log(magnitude) + 0.693147180559945;
  } else if (magnitude < 0.5) {
    precise float z = x * x;
    precise float p = 2.0122003309e-2;
    p = p * z - 4.2699340972e-2;
    p = p * z + 7.4847586088e-2;
    p = p * z - 1.6666288134e-1;
    y = (p * z) * magnitude + magnitude;
  } else {
    y = ep_log(magnitude + ep_sqrt(magnitude * magnitude + 1.0));
  }
  return with_sign_of(y, x);
}
float ep_acosh(float x) {
  if (ep_isnan(x)) return x;
  if (x < 1.0) return NAN;
  precise float y;
  if (x > 1500.0) {
    y = ep_log(x) + 0.693147180559945;
    return y;
  }
  precise float z = x - 1.0;
  if (z < 0.5) {
    precise float p = 1.7596881071e-3;
    p = p * z - 7.5272886713e-3;
    p = p * z + 2.6454905019e-2;
    p = p * z - 1.1784741703e-1;
    p = p * z + 1.4142135263;
    y = p * ep_sqrt(z);
  } else {
    y = ep_log(x + ep_sqrt(z * (x + 1.0)));
  }
  return y;
}
float ep_atanh(float x) {
  const float magnitude = ep_abs(x);
  if (!(magnitude <= 1.0)) return NAN;
  precise float y;
  if (magnitude < 0.5) {
    precise float z = x * x;
    precise float p = 1.81740078349e-1;
    p = p * z + 8.24370301058e-2;
    p = p * z + 1.46691431730e-1;
    p = p * z + 1.99782164500e-1;
    p = p * z + 3.33337300303e-1;
    y = (p * z) * magnitude + magnitude;
  } else {
    y = magnitude == 1.0 ? INFINITY : 0.5 * ep_log1p(ep_div(2.0 * magnitude, ep_sub(1.0, magnitude)));
  }
  return with_sign_of(y, x);
}

// --- powers and remainders ---

// x * y - p, where p is the rounded product. Exact, without a fused multiply-add (Dekker).
float product_error(float x, float y, float p) {
  precise float cx = 4097.0 * x;
  precise float xh = cx - (cx - x);
  precise float xl = x - xh;
  precise float cy = 4097.0 * y;
  precise float yh = cy - (cy - y);
  precise float yl = y - yh;
  precise float e = ((xh * yh - p) + xh * yl + xl * yh) + xl * yl;
  return e;
}

// log(x) = high + low for x > 0, with a relative error of about 2^-40 (after N. Juffa).
void log_extended(float x, out float high, out float low) {
  uint bits = floatBitsToUint(x);
  int denormal = 0;
  if (bits < 0x00800000u) {
    denormal = findMSB(bits) - 23;
    bits = (uint(1) << 23) | ((bits << -denormal) & 0x7fffffu);
  }
  const uint shifted = bits + (0x3f800000u - 0x3f3504f3u);
  const float e = float(int(shifted >> 23) - 127 + denormal);
  precise float m = uintBitsToFloat((shifted & 0x7fffffu) + 0x3f3504f3u) - 1.0;
  // q = m / (m + 2) in two parts
  precise float r = 1.0 / (m + 2.0);
  precise float q = r * m;
  precise float qm = q * m;
  precise float ql = r * (((m - 2.0 * q) - qm) - product_error(q, m, qm));
  // 2 atanh(q) = 2 q + 2 q^3 (1/3 + ...)
  precise float s = q * q;
  precise float sl = product_error(q, q, s) + q * (ql + ql);
  precise float p = 0.1293334961;
  p = p * s + 0.1419928074;
  p = p * s + 0.2000148296;
  p = p * s + 0.3333332539;
  precise float c = s * q;
  precise float cl = product_error(s, q, c) + (sl * q + s * ql);
  precise float tail = p * c + (p * cl + ql);
  precise float twice = 2.0 * q;
  // ln 2 in two parts; e times the first part is exact.
  precise float sum = e * 0.693359375 + twice;
  precise float rest = twice - (sum - e * 0.693359375);
  precise float l = e * -2.12194440e-4 + (2.0 * tail + rest);
  precise float ln2_low = e * 1.31947e-12;
  l = l - ln2_low;
  precise float h = sum + l;
  precise float hl = (sum - h) + l;
  high = h;
  low = hl;
}

float power_of_positive(float x, float y) {
  float high, low;
  log_extended(x, high, low);
  precise float t = high * y;
  if (!(ep_abs(t) < 120.0)) return t > 0.0 ? INFINITY : 0.0;
  // Adds the rounding error of t and the part of `low`. |t| < 120 and |log x| > 1e-8 keep y small enough for
  // product_error.
  const float small = 1.0 / 1048576.0;
  precise float scaled = product_error(high * 1048576.0, y * small, t);
  precise float rest = scaled + low * y;
  precise float power = ep_exp(t);
  if (ep_isinf(power)) return power;
  power = power * rest + power;
  return power;
}
float ep_pow(float x, float y) {
  if (x == 1.0 || y == 0.0) return 1.0;
  if (ep_isnan(x)) return x;
  if (ep_isnan(y)) return y;
  const float magnitude = ep_abs(x);
  const bool whole = is_whole(y) || ep_floor(y) == y;
  const bool odd = whole && ep_abs(y) < 16777216.0 && (int(y) & 1) != 0;
  const bool negate = odd && floatBitsToUint(x) >= 0x80000000u;
  float power;
  if (ep_isinf(y)) {
    if (magnitude == 1.0) return 1.0;
    return (magnitude > 1.0) == (y > 0.0) ? INFINITY : 0.0;
  }
  if (magnitude_bits(x) == 0u) {
    power = y < 0.0 ? INFINITY : 0.0;
  } else if (ep_isinf(x)) {
    power = y > 0.0 ? INFINITY : 0.0;
  } else {
    if (floatBitsToUint(x) >= 0x80000000u && !whole) return NAN;  // not x < 0, which may flush a denormal x
    power = power_of_positive(magnitude, y);
  }
  return negate ? -power : power;
}

// Exact: the remainder of the mantissas, for eight bits of the difference of exponents at a time.
float ep_fmod(float x, float y) {
  const uint a = magnitude_bits(x);
  const uint b = magnitude_bits(y);
  if (a >= 0x7f800000u || b > 0x7f800000u || b == 0u) return NAN;
  if (a < b) return x;
  const int ea = max(int(a >> 23), 1);
  const int eb = max(int(b >> 23), 1);
  const uint divisor = (b & 0x7fffffu) | (b >= 0x800000u ? 0x800000u : 0u);
  uint rest = ((a & 0x7fffffu) | (a >= 0x800000u ? 0x800000u : 0u)) % divisor;
  for (int steps = ea - eb; steps > 0; steps -= 8) rest = (rest << min(steps, 8)) % divisor;
  const uint sign = floatBitsToUint(x) & 0x80000000u;
  if (rest == 0u) return uintBitsToFloat(sign);
  const int shift = 23 - findMSB(rest);
  if (eb - shift >= 1) return uintBitsToFloat(sign | (uint(eb - shift) << 23) | ((rest << shift) & 0x7fffffu));
  return uintBitsToFloat(sign | (rest << (eb - 1)));
}
float ep_mod(float x, float y) {
  const float remainder = ep_fmod(x, y);
  if (remainder == 0.0) return with_sign_of(0.0, y);
  return (remainder < 0.0) != (y < 0.0) ? ep_add(remainder, y) : remainder;
}
float ep_floor_div(float x, float y) {
  if (y == 0.0) return ep_div(x, y);
  const float remainder = ep_fmod(x, y);
  precise float quotient = ep_div(ep_sub(x, remainder), y);
  if (remainder != 0.0 && (remainder < 0.0) != (y < 0.0)) quotient = quotient - 1.0;
  if (quotient == 0.0) return uintBitsToFloat((floatBitsToUint(x) ^ floatBitsToUint(y)) & 0x80000000u);
  float floored = ep_floor(quotient);
  if (ep_sub(quotient, floored) > 0.5) floored = ep_add(floored, 1.0);
  return floored;
}

// Functions for integers only.
float ep_bit_and(float x, float y) { return x; }
float ep_bit_or(float x, float y) { return x; }
float ep_bit_xor(float x, float y) { return x; }
float ep_bit_not(float x) { return x; }
float ep_shl(float x, float y) { return x; }
float ep_shr(float x, float y) { return x; }
float ep_gcd(float x, float y) { return x; }
