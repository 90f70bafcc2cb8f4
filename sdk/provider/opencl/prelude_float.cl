// The prelude on float and double. See prelude.cl.

static inline bool ep_isnan(EP_T x) { return isnan(x) != 0; }
static inline bool ep_isinf(EP_T x) { return isinf(x) != 0; }
static inline EP_T ep_lowest(void) { return -(EP_T)INFINITY; }
static inline EP_T ep_highest(void) { return (EP_T)INFINITY; }

static inline EP_T ep_add(EP_T x, EP_T y) { return x + y; }
static inline EP_T ep_sub(EP_T x, EP_T y) { return x - y; }
static inline EP_T ep_mul(EP_T x, EP_T y) { return x * y; }
// double has more than twice the digits of float, so rounding twice gives the correctly rounded result.
#if defined(EP_FLOAT32) && defined(EP_ROUND_IN_FLOAT64)
static inline EP_T ep_div(EP_T x, EP_T y) { return (float)((double)x / (double)y); }
static inline EP_T ep_sqrt(EP_T x) { return (float)sqrt((double)x); }
#else
static inline EP_T ep_div(EP_T x, EP_T y) { return x / y; }
static inline EP_T ep_sqrt(EP_T x) { return sqrt(x); }
#endif
static inline EP_T ep_neg(EP_T x) { return -x; }
static inline EP_T ep_abs(EP_T x) { return fabs(x); }
static inline EP_T ep_fma(EP_T x, EP_T y, EP_T z) { return fma(x, y, z); }
static inline EP_T ep_min(EP_T x, EP_T y) { return ep_isnan(x) ? x : (x < y ? x : y); }
static inline EP_T ep_max(EP_T x, EP_T y) { return ep_isnan(x) ? x : (x > y ? x : y); }
static inline EP_T ep_floor(EP_T x) { return floor(x); }
static inline EP_T ep_ceil(EP_T x) { return ceil(x); }
static inline EP_T ep_trunc(EP_T x) { return trunc(x); }
static inline EP_T ep_rint(EP_T x) { return rint(x); }

static inline EP_T ep_exp(EP_T x) { return exp(x); }
static inline EP_T ep_exp2(EP_T x) { return exp2(x); }
static inline EP_T ep_expm1(EP_T x) { return expm1(x); }
static inline EP_T ep_log(EP_T x) { return log(x); }
static inline EP_T ep_log1p(EP_T x) { return log1p(x); }
static inline EP_T ep_log2(EP_T x) { return log2(x); }
static inline EP_T ep_log10(EP_T x) { return log10(x); }
static inline EP_T ep_sin(EP_T x) { return sin(x); }
static inline EP_T ep_cos(EP_T x) { return cos(x); }
static inline EP_T ep_asin(EP_T x) { return asin(x); }
static inline EP_T ep_acos(EP_T x) { return acos(x); }
static inline EP_T ep_sinh(EP_T x) { return sinh(x); }
static inline EP_T ep_cosh(EP_T x) { return cosh(x); }
static inline EP_T ep_asinh(EP_T x) { return asinh(x); }
static inline EP_T ep_acosh(EP_T x) { return acosh(x); }
static inline EP_T ep_pow(EP_T x, EP_T y) { return pow(x, y); }
static inline EP_T ep_fmod(EP_T x, EP_T y) { return fmod(x, y); }

static inline EP_T ep_mod(EP_T x, EP_T y) {
  const EP_T remainder = ep_fmod(x, y);
  if (remainder == 0) return copysign((EP_T)0, y);
  return (remainder < 0) != (y < 0) ? remainder + y : remainder;
}
// Like Python, subtracts the remainder before dividing, so that rounding of x / y cannot cross an integer.
static inline EP_T ep_floor_div(EP_T x, EP_T y) {
  if (y == 0) return ep_div(x, y);
  const EP_T remainder = ep_fmod(x, y);
  EP_T quotient = ep_div(x - remainder, y);
  if (remainder != 0 && (remainder < 0) != (y < 0)) quotient -= 1;
  if (quotient == 0) return copysign((EP_T)0, ep_div(x, y));
  EP_T floored = floor(quotient);
  if (quotient - floored > (EP_T)0.5) floored += 1;
  return floored;
}

#ifdef EP_FLOAT64
static inline EP_T ep_tan(EP_T x) { return tan(x); }
static inline EP_T ep_atan(EP_T x) { return atan(x); }
static inline EP_T ep_atanh(EP_T x) { return atanh(x); }
static inline double ep_at_most_one(double x) { return x > 1.0 ? 1.0 : x < -1.0 ? -1.0 : x; }
static inline EP_T ep_tanh(EP_T x) { return fabs(x) >= 20.0 ? copysign(1.0, x) : ep_at_most_one(tanh(x)); }
static inline EP_T ep_erf(EP_T x) { return fabs(x) >= 6.0 ? copysign(1.0, x) : ep_at_most_one(erf(x)); }
#else

// x - q pi/2, in [-pi/4, pi/4]. Integers multiply x by 96 bits of 2/pi (Payne and Hanek), so no float operation
// cancels.
static inline float ep_reduce_by_half_pi(float x, int* quadrant) {
  const uint bits = as_uint(x) & 0x7fffffffu;
  *quadrant = 0;
  if (bits <= 0x3f490fdbu) return x;  // pi/4
  const uint two_over_pi[7] = {0x28be60dbu, 0x9391054au, 0x7f09d5f4u, 0x7d4d3770u,
                               0x36d8a566u, 0x4f10e410u, 0x7f9458eau};
  const uint mantissa = ((bits & 0x7fffffu) | 0x800000u) << 8;
  const int exponent = (int)(bits >> 23) - 126;
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
  // The product modulo 2^64, without its lowest word. The top two bits count quarter turns.
  const ulong product = ((ulong)(mantissa * high) << 32) + (ulong)mantissa * middle + mul_hi(mantissa, low);
  int q = (int)(product >> 62);
  long fraction = (long)(product << 2) >> 2;  // fraction of a quarter turn, in units of 2^-62, from -1/2 to 1/2
  if (fraction < 0) ++q;
  const bool negative = fraction < 0;
  const ulong magnitude = negative ? (ulong)-fraction : (ulong)fraction;
  const int zeros = (int)clz(magnitude | 1ul);
  const uint leading = (uint)((magnitude << zeros) >> 32);
  const float upper = (float)(leading >> 8);
  const float lower = (float)(leading & 0xffu);
  // pi/2 = 1.57079637 - 4.37113883e-8
  float r = upper * 1.57079637f + (lower * (1.57079637f / 256.0f) - upper * 4.37113883e-8f);
  r = ldexp(r, -22 - zeros);
  if (negative) r = -r;
  if (as_uint(x) >= 0x80000000u) {
    r = -r;
    q = -q;
  }
  *quadrant = q & 3;
  return r;
}
static inline float ep_tan(float x) {
  if ((as_uint(x) & 0x7fffffffu) >= 0x7f800000u) return NAN;
  int q;
  const float r = ep_reduce_by_half_pi(x, &q);
  const float z = r * r;
  float p = 9.38540185543e-3f;
  p = p * z + 3.11992232697e-3f;
  p = p * z + 2.44301354525e-2f;
  p = p * z + 5.34112807005e-2f;
  p = p * z + 1.33387994085e-1f;
  p = p * z + 3.33331568548e-1f;
  p = (p * z) * r + r;
  return (q & 1) != 0 ? ep_div(-1.0f, p) : p;
}
static inline float ep_atan(float x) {
  if (ep_isnan(x)) return x;
  const float magnitude = fabs(x);
  float r = magnitude;
  float base = 0.0f;
  float base_low = 0.0f;
  if (magnitude > 2.414213562373095f) {
    base = 1.57079637f;
    base_low = -4.37113883e-8f;
    r = ep_div(-1.0f, magnitude);
  } else if (magnitude > 0.4142135623730950f) {
    base = 0.785398185f;
    base_low = -2.18556941e-8f;
    r = ep_div(magnitude - 1.0f, magnitude + 1.0f);
  }
  const float z = r * r;
  float p = 8.05374449538e-2f;
  p = p * z - 1.38776856032e-1f;
  p = p * z + 1.99777106478e-1f;
  p = p * z - 3.33329491539e-1f;
  p = base + (((p * z) * r + base_low) + r);
  return copysign(p, x);
}
static inline float ep_tanh(float x) {
  if (ep_isnan(x)) return x;
  const float magnitude = fabs(x);
  if (magnitude < 0.625f) {
    const float z = x * x;
    float p = -5.70498872745e-3f;
    p = p * z + 2.06390887954e-2f;
    p = p * z - 5.37397155531e-2f;
    p = p * z + 1.33314422036e-1f;
    p = p * z - 3.33332819422e-1f;
    return (p * z) * x + x;
  }
  const float large = 1.0f - ep_div(2.0f, exp(2.0f * (magnitude < 10.0f ? magnitude : 10.0f)) + 1.0f);
  return copysign(large, x);
}
static inline float ep_atanh(float x) {
  const float magnitude = fabs(x);
  if (!(magnitude <= 1.0f)) return NAN;
  if (magnitude == 1.0f) return copysign((float)INFINITY, x);
  float y;
  if (magnitude < 0.5f) {
    const float z = x * x;
    float p = 1.81740078349e-1f;
    p = p * z + 8.24370301058e-2f;
    p = p * z + 1.46691431730e-1f;
    p = p * z + 1.99782164500e-1f;
    p = p * z + 3.33337300303e-1f;
    y = (p * z) * magnitude + magnitude;
  } else {
    y = 0.5f * log1p(ep_div(2.0f * magnitude, 1.0f - magnitude));
  }
  return copysign(y, x);
}
// An odd polynomial below 0.92; 1 - exp of a polynomial above it (N. Juffa's erff).
static inline float ep_erf(float x) {
  if (ep_isnan(x)) return x;
  const float t = fabs(x) < 4.0f ? fabs(x) : 4.0f;
  const float s = t * t;
  float p;
  if (t > 0.921875f) {
    const float u = -3.88396438e-3f * t + 2.42546219e-2f;
    p = -1.72853470e-5f * t + 3.83197126e-4f;
    p = p * s + u;
    p = p * t - 1.06777877e-1f;
    p = p * t - 6.34846687e-1f;
    p = p * t - 1.28717512e-1f;
    p = p * t - t;
    p = 1.0f - exp(p);
  } else {
    p = -5.96761703e-4f;
    p = p * s + 4.99119423e-3f;
    p = p * s - 2.67681349e-2f;
    p = p * s + 1.12819925e-1f;
    p = p * s - 3.76125336e-1f;
    p = p * s + 1.28379166e-1f;
    p = p * t + t;
  }
  return copysign(p, x);
}
#endif

// Functions for integers only.
static inline EP_T ep_bit_and(EP_T x, EP_T y) { return x; }
static inline EP_T ep_bit_or(EP_T x, EP_T y) { return x; }
static inline EP_T ep_bit_xor(EP_T x, EP_T y) { return x; }
static inline EP_T ep_bit_not(EP_T x) { return x; }
static inline EP_T ep_shl(EP_T x, EP_T y) { return x; }
static inline EP_T ep_shr(EP_T x, EP_T y) { return x; }
static inline EP_T ep_gcd(EP_T x, EP_T y) { return x; }
