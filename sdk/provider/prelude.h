// The scalar C++ dialect of the prelude of ep_api/scalar_ops.def: every function of the prelude for float, double, the
// integer types and bool. f16, bf16 and f8 compute in float: convert them at load and store (float_formats.h).
//
// Error bounds are those of ep_api/accuracy.def. On float and double these are the functions of the C library (glibc:
// below 2 units in the last place), so they follow C99 Annex F. min and max return NaN if either argument is NaN.
// Integers wrap, and so does the least integer divided by -1. Division by 0 gives 0; the caller checks for it first
// (divisor_fault).
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "ep_api/ep_api.h"

// nvcc compiles this file for the device too. CUDA's functions of the same names keep the same bounds.
#if defined(__CUDACC__)
#define TENON_SCALAR __host__ __device__
#else
#define TENON_SCALAR
#endif

namespace tenon::provider::scalar {

template <class T>
inline constexpr bool is_float = std::is_floating_point_v<T>;
template <class T>
inline constexpr bool is_int = std::is_integral_v<T> && !std::is_same_v<T, bool>;

// An unsigned type, at least as wide as `unsigned`, in which the arithmetic of T wraps without undefined behaviour.
template <class T>
struct WrapOf {
  using type = std::conditional_t<(sizeof(T) > 4), uint64_t, uint32_t>;
};
template <class T>
using Wrap = typename WrapOf<T>::type;

template <class T>
TENON_SCALAR T ep_add(T x, T y) {
  if constexpr (is_float<T>)
    return x + y;
  else
    return static_cast<T>(static_cast<Wrap<T>>(x) + static_cast<Wrap<T>>(y));
}
template <class T>
TENON_SCALAR T ep_sub(T x, T y) {
  if constexpr (is_float<T>)
    return x - y;
  else
    return static_cast<T>(static_cast<Wrap<T>>(x) - static_cast<Wrap<T>>(y));
}
template <class T>
TENON_SCALAR T ep_mul(T x, T y) {
  if constexpr (is_float<T>)
    return x * y;
  else
    return static_cast<T>(static_cast<Wrap<T>>(x) * static_cast<Wrap<T>>(y));
}
template <class T>
TENON_SCALAR T ep_neg(T x) {
  if constexpr (is_float<T>)
    return -x;
  else
    return static_cast<T>(Wrap<T>{0} - static_cast<Wrap<T>>(x));
}
template <class T>
TENON_SCALAR T ep_abs(T x) {
  if constexpr (is_float<T>)
    return std::fabs(x);
  else if constexpr (std::is_signed_v<T>)
    return x < 0 ? ep_neg(x) : x;
  else
    return x;
}

// Returns the fault code of an integer division by y, or 0 if it has no fault. Float divisions have none.
template <class T>
TENON_SCALAR int32_t divisor_fault(T y) {
  if constexpr (is_int<T>) {
    if (y == 0) return EP_FAULT_DIVISION_BY_ZERO;
  }
  return 0;
}
// True for -1: dividing the least integer by -1 would trap on the processor.
template <class T>
TENON_SCALAR bool is_minus_one(T y) {
  if constexpr (std::is_signed_v<T>)
    return y == static_cast<T>(-1);
  else
    return false;
}

template <class T>
TENON_SCALAR T ep_div(T x, T y) {
  if constexpr (is_float<T>)
    return x / y;
  else
    return y == T{0} ? T{0} : is_minus_one(y) ? ep_neg(x) : static_cast<T>(x / y);
}
template <class T>
TENON_SCALAR T ep_fmod(T x, T y) {
  if constexpr (is_float<T>)
    return std::fmod(x, y);
  else
    return y == T{0} || is_minus_one(y) ? T{0} : static_cast<T>(x % y);
}
template <class T>
TENON_SCALAR T ep_mod(T x, T y) {
  T remainder = ep_fmod(x, y);
  if constexpr (is_float<T>) {
    if (remainder == T{0}) return std::copysign(T{0}, y);
    if ((remainder < T{0}) != (y < T{0})) remainder += y;
  } else if constexpr (std::is_signed_v<T>) {
    if (remainder != 0 && ((remainder < 0) != (y < 0))) remainder = static_cast<T>(remainder + y);
  }
  return remainder;
}
template <class T>
TENON_SCALAR T ep_floor_div(T x, T y) {
  if constexpr (is_float<T>) {
    // Like Python, subtracts the remainder before dividing, so that rounding of x / y cannot cross an integer.
    if (y == T{0}) return x / y;
    const T remainder = std::fmod(x, y);
    T quotient = (x - remainder) / y;
    if (remainder != T{0} && (remainder < T{0}) != (y < T{0})) quotient -= T{1};
    if (quotient == T{0}) return std::copysign(T{0}, x / y);
    T floored = std::floor(quotient);
    if (quotient - floored > T(0.5)) floored += T{1};
    return floored;
  } else {
    T quotient = ep_div(x, y);
    if constexpr (std::is_signed_v<T>) {
      if (ep_fmod(x, y) != 0 && ((x < 0) != (y < 0))) quotient = static_cast<T>(quotient - 1);
    }
    return quotient;
  }
}

template <class T>
TENON_SCALAR T ep_floor(T x) {
  if constexpr (is_float<T>)
    return std::floor(x);
  else
    return x;
}
template <class T>
TENON_SCALAR T ep_ceil(T x) {
  if constexpr (is_float<T>)
    return std::ceil(x);
  else
    return x;
}
template <class T>
TENON_SCALAR T ep_trunc(T x) {
  if constexpr (is_float<T>)
    return std::trunc(x);
  else
    return x;
}
template <class T>
TENON_SCALAR T ep_rint(T x) {
  if constexpr (is_float<T>)
    return std::nearbyint(x);
  else
    return x;
}

template <class T>
TENON_SCALAR bool ep_isnan(T x) {
  if constexpr (is_float<T>)
    return std::isnan(x);
  else
    return false;
}
template <class T>
TENON_SCALAR bool ep_isinf(T x) {
  if constexpr (is_float<T>)
    return std::isinf(x);
  else
    return false;
}
template <class T>
TENON_SCALAR T ep_max(T x, T y) {
  if constexpr (is_float<T>) {
    if (std::isnan(x)) return x;
    return x > y ? x : y;
  } else {
    return x > y ? x : y;
  }
}
template <class T>
TENON_SCALAR T ep_min(T x, T y) {
  if constexpr (is_float<T>) {
    if (std::isnan(x)) return x;
    return x < y ? x : y;
  } else {
    return x < y ? x : y;
  }
}

#define TENON_LIBRARY_C(name)     \
  template <class T>              \
  TENON_SCALAR T ep_##name(T x) { \
    return std::name(x);          \
  }
#define TENON_LIBRARY_NONE(name)
#define EP_FLOAT_FUNCTION(name, function, library, shape, first, last, least, near_roots) TENON_LIBRARY_##library(name)
#include "ep_api/accuracy.def"
#undef EP_FLOAT_FUNCTION
#undef TENON_LIBRARY_C
#undef TENON_LIBRARY_NONE

template <class T>
TENON_SCALAR T ep_pow(T x, T y) {
  if constexpr (is_float<T>) {
    return std::pow(x, y);
  } else {
    if constexpr (std::is_signed_v<T>) {
      if (y < 0) return x == 1 ? T{1} : x == static_cast<T>(-1) ? ((y & 1) != 0 ? x : T{1}) : T{0};
    }
    T result = 1;
    for (auto rest = static_cast<std::make_unsigned_t<T>>(y); rest != 0;
         rest = static_cast<decltype(rest)>(rest >> 1)) {
      if ((rest & 1U) != 0) result = ep_mul(result, x);
      x = ep_mul(x, x);
    }
    return result;
  }
}
template <class T>
TENON_SCALAR T ep_fma(T x, T y, T z) {
  if constexpr (is_float<T>)
    return std::fma(x, y, z);
  else
    return ep_add(ep_mul(x, y), z);
}

template <class T>
TENON_SCALAR bool ep_eq(T x, T y) {
  return x == y;
}
template <class T>
TENON_SCALAR bool ep_ne(T x, T y) {
  return x != y;
}
template <class T>
TENON_SCALAR bool ep_lt(T x, T y) {
  return x < y;
}
template <class T>
TENON_SCALAR bool ep_le(T x, T y) {
  return x <= y;
}
template <class T>
TENON_SCALAR bool ep_gt(T x, T y) {
  return x > y;
}
template <class T>
TENON_SCALAR bool ep_ge(T x, T y) {
  return x >= y;
}
template <class T>
TENON_SCALAR T ep_select(bool condition, T x, T y) {
  return condition ? x : y;
}
TENON_SCALAR inline bool ep_land(bool x, bool y) { return x && y; }
TENON_SCALAR inline bool ep_lor(bool x, bool y) { return x || y; }
TENON_SCALAR inline bool ep_lxor(bool x, bool y) { return x != y; }
TENON_SCALAR inline bool ep_lnot(bool x) { return !x; }
template <class T>
TENON_SCALAR bool ep_truth(T x) {
  return x != T{0};
}

template <class T>
TENON_SCALAR T ep_bit_and(T x, T y) {
  return static_cast<T>(x & y);
}
template <class T>
TENON_SCALAR T ep_bit_or(T x, T y) {
  return static_cast<T>(x | y);
}
template <class T>
TENON_SCALAR T ep_bit_xor(T x, T y) {
  return static_cast<T>(x ^ y);
}
template <class T>
TENON_SCALAR T ep_bit_not(T x) {
  if constexpr (std::is_same_v<T, bool>)
    return !x;
  else
    return static_cast<T>(~x);
}
// No branches, so that compilers can vectorise loops.
template <class T>
TENON_SCALAR T ep_shl(T x, T y) {
  constexpr auto width = static_cast<Wrap<T>>(sizeof(T) * 8);
  const auto steps = static_cast<Wrap<T>>(y);
  const T shifted = static_cast<T>(static_cast<Wrap<T>>(x) << (steps & (width - 1)));
  return steps < width ? shifted : T{0};
}
template <class T>
TENON_SCALAR T ep_shr(T x, T y) {
  constexpr auto width = static_cast<Wrap<T>>(sizeof(T) * 8);
  const auto steps = static_cast<Wrap<T>>(y);
  if constexpr (std::is_signed_v<T>) {
    return static_cast<T>(x >> (steps < width ? steps : width - 1));  // width - 1 leaves only the sign
  } else {
    const T shifted = static_cast<T>(x >> (steps & (width - 1)));
    return steps < width ? shifted : T{0};
  }
}
// The divisor of the magnitudes; the magnitude of the least integer wraps.
template <class T>
TENON_SCALAR T ep_gcd(T x, T y) {
  auto a = static_cast<std::make_unsigned_t<T>>(ep_abs(x));
  auto b = static_cast<std::make_unsigned_t<T>>(ep_abs(y));
  while (b != 0) {
    const auto rest = static_cast<decltype(a)>(a % b);
    a = b;
    b = rest;
  }
  return static_cast<T>(a);
}

#define EP_FUNCTION  \
  template <class T> \
  TENON_SCALAR T
#define EP_V T
#define EP_OWN_LIBRARY
#define ep_lit(value) static_cast<T>(value)
#include "sdk/provider/prelude_functions.def"
#undef EP_FUNCTION
#undef EP_V
#undef EP_OWN_LIBRARY
#undef ep_lit

}  // namespace tenon::provider::scalar
