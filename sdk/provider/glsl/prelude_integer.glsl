// The prelude on integers. Arithmetic wraps at WIDTH bits. Functions for floats only are identities here and are never
// called.

#if defined(CLASS_i32)
#define LEAST (T(-1) << (WIDTH - 1))
#define GREATEST (~LEAST)
#elif defined(CLASS_i64)
#define LEAST (T(1) << 63)
#define GREATEST (~LEAST)
#else
#define LEAST T(0)
#define GREATEST wrap(~T(0))
#endif
#if defined(CLASS_i32) || defined(CLASS_i64)
#define SIGNED
#endif

T ep_add(T x, T y) { return wrap(x + y); }
T ep_sub(T x, T y) { return wrap(x - y); }
T ep_mul(T x, T y) { return wrap(x * y); }
T ep_neg(T x) { return wrap(T(0) - x); }
T ep_abs(T x) {
#ifdef SIGNED
  return x < T(0) ? ep_neg(x) : x;
#else
  return x;
#endif
}
T ep_min(T x, T y) { return x < y ? x : y; }
T ep_max(T x, T y) { return x > y ? x : y; }
T ep_lowest() { return LEAST; }
T ep_highest() { return GREATEST; }

// Returns the fault code (EP_FAULT_*) of a division by y, or 0.
uint divisor_fault(T y) { return y == T(0) ? 2u : 0u; }
// GLSL does not define quotient and remainder of negative numbers, so they are computed from magnitudes. The least
// integer divided by -1 wraps.
T ep_div(T x, T y) {
  if (y == T(0)) return T(0);
#if defined(CLASS_i32)
  const uint quotient = uint(abs(x)) / uint(abs(y));
  return wrap((x < 0) != (y < 0) ? -int(quotient) : int(quotient));
#elif defined(CLASS_i64)
  const uint64_t quotient = uint64_t(x < 0 ? -x : x) / uint64_t(y < 0 ? -y : y);
  return (x < 0) != (y < 0) ? -int64_t(quotient) : int64_t(quotient);
#else
  return x / y;
#endif
}
T ep_fmod(T x, T y) { return y == T(0) ? T(0) : wrap(x - ep_div(x, y) * y); }
T ep_mod(T x, T y) {
  T remainder = ep_fmod(x, y);
#ifdef SIGNED
  if (remainder != T(0) && ((remainder < T(0)) != (y < T(0)))) remainder += y;
#endif
  return remainder;
}
T ep_floor_div(T x, T y) {
  if (y == T(0)) return T(0);
  T quotient = ep_div(x, y);
#ifdef SIGNED
  if (quotient * y != x && ((x < T(0)) != (y < T(0)))) quotient -= T(1);
#endif
  return quotient;
}
T ep_pow(T x, T y) {
#ifdef SIGNED
  if (y < T(0)) return x == T(1) ? T(1) : x == T(-1) ? ((y & T(1)) != T(0) ? x : T(1)) : T(0);
#endif
  T result = T(1);
  for (T rest = y; rest != T(0); rest >>= 1) {
    if ((rest & T(1)) != T(0)) result = ep_mul(result, x);
    x = ep_mul(x, x);
  }
  return result;
}
T ep_fma(T x, T y, T z) { return ep_add(ep_mul(x, y), z); }
bool ep_isnan(T x) { return false; }
bool ep_isinf(T x) { return false; }

T ep_bit_and(T x, T y) { return x & y; }
T ep_bit_or(T x, T y) { return x | y; }
T ep_bit_xor(T x, T y) { return x ^ y; }
T ep_bit_not(T x) { return wrap(~x); }
#if defined(WIDE)
#define BITS T(64)
#else
#define BITS T(WIDTH)
#endif
T ep_shl(T x, T y) { return y < T(0) || y >= BITS ? T(0) : wrap(x << int(y)); }
T ep_shr(T x, T y) {
#ifdef SIGNED
  if (y < T(0) || y >= BITS) return x < T(0) ? T(-1) : T(0);
#else
  if (y >= BITS) return T(0);
#endif
  return x >> int(y);
}

// The divisor of the magnitudes. Only the result wraps.
#if defined(CLASS_i32)
#define MAGNITUDE uint
#elif defined(CLASS_i64)
#define MAGNITUDE uint64_t
#else
#define MAGNITUDE T
#endif
T ep_gcd(T x, T y) {
  MAGNITUDE a = MAGNITUDE(x < T(0) ? T(0) - x : x);
  MAGNITUDE b = MAGNITUDE(y < T(0) ? T(0) - y : y);
  while (b != MAGNITUDE(0)) {
    const MAGNITUDE rest = a % b;
    a = b;
    b = rest;
  }
  return wrap(T(a));
}

T ep_floor(T x) { return x; }
T ep_ceil(T x) { return x; }
T ep_trunc(T x) { return x; }
T ep_rint(T x) { return x; }
#define EP_FLOAT_FUNCTION(name, function, library, shape, first, last, least, near_roots) \
  T function(T x) { return x; }
#include "ep_api/accuracy.def"
#undef EP_FLOAT_FUNCTION
