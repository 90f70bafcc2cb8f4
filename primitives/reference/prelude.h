// The prelude of scalar_ops.def for double, int64_t and uint64_t. Integers wrap: they are computed in uint64_t, and
// a stored element keeps the low bits of its dtype.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace tenon::reference::prelude {

template <class T>
inline constexpr bool is_float = std::is_same_v<T, double>;

template <class T>
T wrap(uint64_t bits) {
  return static_cast<T>(bits);
}
template <class T>
uint64_t raw(T x) {
  return static_cast<uint64_t>(x);
}

template <class T>
T ep_add(T x, T y) {
  if constexpr (is_float<T>)
    return x + y;
  else
    return wrap<T>(raw(x) + raw(y));
}
template <class T>
T ep_sub(T x, T y) {
  if constexpr (is_float<T>)
    return x - y;
  else
    return wrap<T>(raw(x) - raw(y));
}
template <class T>
T ep_mul(T x, T y) {
  if constexpr (is_float<T>)
    return x * y;
  else
    return wrap<T>(raw(x) * raw(y));
}
template <class T>
T ep_neg(T x) {
  if constexpr (is_float<T>)
    return -x;
  else
    return wrap<T>(0 - raw(x));
}
template <class T>
T ep_abs(T x) {
  if constexpr (is_float<T>)
    return std::fabs(x);
  else
    return x < 0 ? ep_neg(x) : x;
}
inline uint64_t ep_abs(uint64_t x) { return x; }
// For integers the caller has already rejected a divisor of 0. The quotient of the least integer and -1 wraps.
template <class T>
T ep_div(T x, T y) {
  if constexpr (std::is_same_v<T, int64_t>) {
    if (y == -1) return ep_neg(x);
  }
  return x / y;
}

#define TENON_LIBRARY_C(name) \
  inline double ep_##name(double x) { return std::name(x); }
#define TENON_LIBRARY_NONE(name)
#define EP_FLOAT_FUNCTION(name, function, library, shape, first, last, least, near_roots) TENON_LIBRARY_##library(name)
#include "ep_api/accuracy.def"
#undef EP_FLOAT_FUNCTION
#undef TENON_LIBRARY_C
#undef TENON_LIBRARY_NONE
// In long double: the asymptotic series for x >= 30, where four terms suffice; for smaller x the recurrence down from
// there.
inline double ep_digamma(double x) {
  constexpr long double pi = 3.14159265358979323846L;
  if (std::fabs(x) < 1e-30) return -1 / x;
  if (x < 0) {
    const long double part = static_cast<long double>(x) - std::nearbyint(x);
    if (!(std::fabs(part) > 0)) return std::numeric_limits<double>::quiet_NaN();
    return static_cast<double>(static_cast<long double>(ep_digamma(-x)) + 1 / -static_cast<long double>(x) -
                               pi * std::cos(pi * part) / std::sin(pi * part));
  }
  long double sum = 0, z = x;
  for (; z < 30; ++z) sum -= 1 / z;
  const long double w = 1 / (z * z);
  const long double series = w * (1 / 12.0L - w * (1 / 120.0L - w * (1 / 252.0L - w * (1 / 240.0L - w / 132.0L))));
  return static_cast<double>(std::log(z) - 0.5L / z - series + sum);
}

template <class T>
T ep_floor(T x) {
  if constexpr (is_float<T>)
    return std::floor(x);
  else
    return x;
}
template <class T>
T ep_ceil(T x) {
  if constexpr (is_float<T>)
    return std::ceil(x);
  else
    return x;
}
template <class T>
T ep_trunc(T x) {
  if constexpr (is_float<T>)
    return std::trunc(x);
  else
    return x;
}
template <class T>
T ep_rint(T x) {
  if constexpr (is_float<T>)
    return std::nearbyint(x);
  else
    return x;
}

template <class T>
bool ep_isnan(T x) {
  if constexpr (is_float<T>)
    return std::isnan(x);
  else
    return false;
}
template <class T>
bool ep_isinf(T x) {
  if constexpr (is_float<T>)
    return std::isinf(x);
  else
    return false;
}
template <class T>
T ep_min(T x, T y) {
  if (ep_isnan(x)) return x;
  return ep_isnan(y) || y < x ? y : x;
}
template <class T>
T ep_max(T x, T y) {
  if (ep_isnan(x)) return x;
  return ep_isnan(y) || y > x ? y : x;
}

template <class T>
T integer_pow(T x, T y) {
  if (y < T{0}) {
    if (x == T{1}) return 1;
    if (x == static_cast<T>(-1)) return y % 2 == 0 ? T{1} : x;
    return 0;
  }
  uint64_t result = 1;
  uint64_t square = raw(x);
  for (uint64_t exponent = raw(y); exponent != 0; exponent >>= 1) {
    if (exponent & 1) result *= square;
    square *= square;
  }
  return wrap<T>(result);
}
template <class T>
T ep_pow(T x, T y) {
  if constexpr (is_float<T>)
    return std::pow(x, y);
  else
    return integer_pow(x, y);
}

template <class T>
T ep_fmod(T x, T y) {
  if constexpr (is_float<T>)
    return std::fmod(x, y);
  else
    return ep_sub(x, ep_mul(ep_div(x, y), y));
}
// The remainder that has the sign of y.
template <class T>
T ep_mod(T x, T y) {
  const T rest = ep_fmod(x, y);
  if (rest != T{0} && (rest < T{0}) != (y < T{0})) return rest + y;
  if constexpr (is_float<T>)
    return rest == 0 ? std::copysign(0.0, y) : rest;
  else
    return rest;
}
// The greatest integer not above the exact quotient.
template <class T>
T ep_floor_div(T x, T y) {
  if constexpr (is_float<T>) {
    if (y == 0) return x / y;
    if (!std::isfinite(x)) return std::numeric_limits<double>::quiet_NaN();  // as Python and NumPy
    if (std::isinf(y)) return x != 0 && std::signbit(x) != std::signbit(y) ? -1.0 : x / y;
    const double rest = ep_mod(x, y);
    return std::nearbyint((x - rest) / y);
  } else {
    return ep_div(x, y) - (ep_fmod(x, y) != T{0} && (x < T{0}) != (y < T{0}) ? 1 : 0);
  }
}
template <class T>
T ep_fma(T x, T y, T z) {
  if constexpr (is_float<T>)
    return std::fma(x, y, z);
  else
    return ep_add(ep_mul(x, y), z);
}

template <class T>
bool ep_eq(T x, T y) {
  return x == y;
}
template <class T>
bool ep_ne(T x, T y) {
  return x != y;
}
template <class T>
bool ep_lt(T x, T y) {
  return x < y;
}
template <class T>
bool ep_le(T x, T y) {
  return x <= y;
}
template <class T>
bool ep_gt(T x, T y) {
  return x > y;
}
template <class T>
bool ep_ge(T x, T y) {
  return x >= y;
}
template <class T>
T ep_select(bool condition, T x, T y) {
  return condition ? x : y;
}
template <class T>
bool ep_truth(T x) {
  return x != T{0};
}
inline bool ep_land(bool x, bool y) { return x && y; }
inline bool ep_lor(bool x, bool y) { return x || y; }
inline bool ep_lxor(bool x, bool y) { return x != y; }
inline bool ep_lnot(bool x) { return !x; }

template <class T>
T ep_bit_and(T x, T y) {
  return x & y;
}
template <class T>
T ep_bit_or(T x, T y) {
  return x | y;
}
template <class T>
T ep_bit_xor(T x, T y) {
  return x ^ y;
}
template <class T>
T ep_bit_not(T x) {
  return ~x;
}
// A shift by 64 or more returns 0 or copies of the sign. Narrower dtypes lose the high bits when the result is stored.
template <class T>
T ep_shl(T x, T y) {
  return raw(y) >= 64 ? T{0} : wrap<T>(raw(x) << raw(y));
}
template <class T>
T ep_shr(T x, T y) {
  if (raw(y) >= 64) return x < T{0} ? static_cast<T>(-1) : T{0};
  return x >> y;
}
template <class T>
T ep_gcd(T x, T y) {
  const uint64_t a = raw(ep_abs(x)), b = raw(ep_abs(y));
  return wrap<T>(b == 0 ? a : raw(ep_gcd<uint64_t>(b, a % b)));
}

}  // namespace tenon::reference::prelude
