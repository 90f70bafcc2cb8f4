// The prelude on integers. Arithmetic wraps at EP_WIDTH bits. Functions for floats only are identities here and are
// never called. See prelude.cl.

#define EP_TYPE_WIDTH ((int)sizeof(EP_T) * 8)
#ifdef EP_SIGNED
// Uses the unsigned type, since C leaves signed overflow undefined.
static inline EP_T ep_wrap(EP_U x) {
  return (EP_T)(x << (EP_TYPE_WIDTH - EP_WIDTH)) >> (EP_TYPE_WIDTH - EP_WIDTH);
}
static inline EP_T ep_lowest(void) { return ep_wrap((EP_U)1 << (EP_WIDTH - 1)); }
static inline EP_T ep_highest(void) { return (EP_T)~ep_lowest(); }
#else
#define EP_U EP_T
static inline EP_T ep_wrap(EP_T x) { return (x << (EP_TYPE_WIDTH - EP_WIDTH)) >> (EP_TYPE_WIDTH - EP_WIDTH); }
static inline EP_T ep_lowest(void) { return 0; }
static inline EP_T ep_highest(void) { return ep_wrap(~(EP_T)0); }
#endif

static inline EP_T ep_add(EP_T x, EP_T y) { return ep_wrap((EP_U)x + (EP_U)y); }
static inline EP_T ep_sub(EP_T x, EP_T y) { return ep_wrap((EP_U)x - (EP_U)y); }
static inline EP_T ep_mul(EP_T x, EP_T y) { return ep_wrap((EP_U)x * (EP_U)y); }
static inline EP_T ep_neg(EP_T x) { return ep_wrap((EP_U)0 - (EP_U)x); }
static inline EP_T ep_abs(EP_T x) { return x < (EP_T)0 ? ep_neg(x) : x; }
static inline EP_T ep_min(EP_T x, EP_T y) { return x < y ? x : y; }
static inline EP_T ep_max(EP_T x, EP_T y) { return x > y ? x : y; }

// Returns the fault code (EP_FAULT_*) of a division by y, or 0.
static inline int ep_divisor_fault(EP_T y) { return y == (EP_T)0 ? 2 : 0; }
// Returns 1 instead of 0 and instead of -1, since dividing the least integer by -1 traps.
static inline EP_T ep_safe_divisor(EP_T y) {
#ifdef EP_SIGNED
  if (y == (EP_T)-1) return 1;
#endif
  return y == (EP_T)0 ? (EP_T)1 : y;
}
static inline EP_T ep_div(EP_T x, EP_T y) {
  const EP_T quotient = x / ep_safe_divisor(y);
#ifdef EP_SIGNED
  if (y == (EP_T)-1) return ep_neg(x);
#endif
  return y == (EP_T)0 ? (EP_T)0 : quotient;
}
static inline EP_T ep_fmod(EP_T x, EP_T y) { return x % ep_safe_divisor(y); }
static inline EP_T ep_mod(EP_T x, EP_T y) {
  EP_T remainder = ep_fmod(x, y);
#ifdef EP_SIGNED
  if (remainder != 0 && (remainder < 0) != (y < 0)) remainder += y;
#endif
  return remainder;
}
static inline EP_T ep_floor_div(EP_T x, EP_T y) {
  EP_T quotient = ep_div(x, y);
#ifdef EP_SIGNED
  if (y != 0 && ep_fmod(x, y) != 0 && (x < 0) != (y < 0)) quotient -= 1;
#endif
  return quotient;
}
static inline EP_T ep_pow(EP_T x, EP_T y) {
#ifdef EP_SIGNED
  if (y < 0) return x == 1 ? 1 : x == -1 ? ((y & 1) != 0 ? x : 1) : 0;
#endif
  EP_T result = 1;
  for (EP_U rest = (EP_U)y; rest != 0; rest >>= 1) {
    if ((rest & 1) != 0) result = ep_mul(result, x);
    x = ep_mul(x, x);
  }
  return result;
}
static inline EP_T ep_fma(EP_T x, EP_T y, EP_T z) { return ep_add(ep_mul(x, y), z); }
static inline bool ep_isnan(EP_T x) { return false; }
static inline bool ep_isinf(EP_T x) { return false; }

static inline EP_T ep_bit_and(EP_T x, EP_T y) { return x & y; }
static inline EP_T ep_bit_or(EP_T x, EP_T y) { return x | y; }
static inline EP_T ep_bit_xor(EP_T x, EP_T y) { return x ^ y; }
static inline EP_T ep_bit_not(EP_T x) { return ep_wrap((EP_U)~x); }
static inline EP_T ep_shl(EP_T x, EP_T y) {
  return y < (EP_T)0 || y >= (EP_T)EP_WIDTH ? (EP_T)0 : ep_wrap((EP_U)x << (EP_U)y);
}
static inline EP_T ep_shr(EP_T x, EP_T y) {
  if (y < (EP_T)0 || y >= (EP_T)EP_WIDTH) return x < (EP_T)0 ? (EP_T)-1 : (EP_T)0;
  return x >> y;
}

// The divisor of the magnitudes. Only the result wraps.
static inline EP_T ep_gcd(EP_T x, EP_T y) {
  EP_U a = x < (EP_T)0 ? (EP_U)0 - (EP_U)x : (EP_U)x;
  EP_U b = y < (EP_T)0 ? (EP_U)0 - (EP_U)y : (EP_U)y;
  while (b != 0) {
    const EP_U rest = a % b;
    a = b;
    b = rest;
  }
  return ep_wrap(a);
}

static inline EP_T ep_floor(EP_T x) { return x; }
static inline EP_T ep_ceil(EP_T x) { return x; }
static inline EP_T ep_trunc(EP_T x) { return x; }
static inline EP_T ep_rint(EP_T x) { return x; }
#define EP_FLOAT_FUNCTION(name, function, library, shape, first, last, least, near_roots) \
  static inline EP_T function(EP_T x) { return x; }
#include "ep_api/accuracy.def"
#undef EP_FLOAT_FUNCTION
