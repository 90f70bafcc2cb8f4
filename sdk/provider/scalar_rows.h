// Every scalar function of ep_api/scalar_ops.def as a C++ function: unary_row(Op<EP_UNARY_relu>{}, x, a, b).
// unary_defined<T>(EP_UNARY_relu) is true if relu accepts T. A function whose result is BOOL returns bool.
#pragma once

#include "sdk/provider/prelude.h"

namespace tenon::provider::scalar {

template <int32_t id>
using Op = std::integral_constant<int32_t, id>;

enum class Domain : uint8_t { FLOAT, SIGNED, NUMERIC, INTEGER, BITS, BOOL, ANY, COND };

template <class T>
constexpr bool in_domain(Domain domain) {
  switch (domain) {
    case Domain::FLOAT: return is_float<T>;
    case Domain::SIGNED: return is_float<T> || (is_int<T> && std::is_signed_v<T>);
    case Domain::NUMERIC: return is_float<T> || is_int<T>;
    case Domain::INTEGER: return is_int<T>;
    case Domain::BITS: return !is_float<T>;
    case Domain::BOOL: return std::is_same_v<T, bool>;
    case Domain::ANY:
    case Domain::COND: return true;
  }
  return false;
}

// Literals and limits in the type of x, which an expression may use besides the prelude.
#define TENON_ROW_LITERALS(T)                                                                    \
  [[maybe_unused]] auto ep_lit = [](double value) { return static_cast<T>(value); };             \
  [[maybe_unused]] auto ep_lowest = [] {                                                         \
    return is_float<T> ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::lowest(); \
  };                                                                                             \
  [[maybe_unused]] auto ep_highest = [] {                                                        \
    return is_float<T> ? std::numeric_limits<T>::infinity() : std::numeric_limits<T>::max();     \
  };

#define EP_UNARY(name, id, domain, result, expression)                                          \
  template <class T>                                                                            \
  TENON_SCALAR inline auto unary_row(Op<id>, T x, [[maybe_unused]] T a, [[maybe_unused]] T b) { \
    TENON_ROW_LITERALS(T)                                                                       \
    return expression;                                                                          \
  }
#define EP_BINARY(name, id, domain, result, check, expression) \
  template <class T>                                           \
  TENON_SCALAR inline auto binary_row(Op<id>, T x, T y) {      \
    TENON_ROW_LITERALS(T)                                      \
    return expression;                                         \
  }
#define EP_TERNARY(name, id, domain, result, expression)        \
  template <class X, class T>                                   \
  TENON_SCALAR inline auto ternary_row(Op<id>, X x, T y, T z) { \
    TENON_ROW_LITERALS(T)                                       \
    return expression;                                          \
  }
#define EP_REDUCE(name, id, domain, init, map, combine, finish)            \
  template <class T>                                                       \
  TENON_SCALAR inline T reduce_init(Op<id>) {                              \
    TENON_ROW_LITERALS(T)                                                  \
    return init;                                                           \
  }                                                                        \
  template <class T>                                                       \
  TENON_SCALAR inline T reduce_map(Op<id>, T x) {                          \
    TENON_ROW_LITERALS(T)                                                  \
    return map;                                                            \
  }                                                                        \
  template <class T>                                                       \
  TENON_SCALAR inline T reduce_combine(Op<id>, T x, T y) {                 \
    return combine;                                                        \
  }                                                                        \
  template <class T>                                                       \
  TENON_SCALAR inline T reduce_finish(Op<id>, T x, [[maybe_unused]] T n) { \
    return finish;                                                         \
  }
#include "ep_api/scalar_ops.def"
#undef EP_UNARY
#undef EP_BINARY
#undef EP_TERNARY
#undef EP_REDUCE
#undef TENON_ROW_LITERALS

// The properties of a scalar function besides its expression. `known` is false for an unknown id.
struct RowFacts {
  bool known = false;
  Domain domain = Domain::ANY;
  bool bool_result = false;
  bool checks_divisor = false;
};

constexpr bool SAME_result = false;
constexpr bool BOOL_result = true;
constexpr bool NONE_check = false;
constexpr bool DIVISOR_check = true;

constexpr RowFacts unary_facts(int32_t op) {
  switch (op) {
#define EP_UNARY(name, id, domain, result, expression) \
  case id:                                             \
    return {true, Domain::domain, result##_result, false};
#include "ep_api/scalar_ops.def"
#undef EP_UNARY
    default: return {};
  }
}
constexpr RowFacts binary_facts(int32_t op) {
  switch (op) {
#define EP_BINARY(name, id, domain, result, check, expression) \
  case id:                                                     \
    return {true, Domain::domain, result##_result, check##_check};
#include "ep_api/scalar_ops.def"
#undef EP_BINARY
    default: return {};
  }
}
constexpr RowFacts ternary_facts(int32_t op) {
  switch (op) {
#define EP_TERNARY(name, id, domain, result, expression) \
  case id:                                               \
    return {true, Domain::domain, result##_result, false};
#include "ep_api/scalar_ops.def"
#undef EP_TERNARY
    default: return {};
  }
}
constexpr RowFacts reduce_facts(int32_t op) {
  switch (op) {
#define EP_REDUCE(name, id, domain, init, map, combine, finish) \
  case id:                                                      \
    return {true, Domain::domain, false, false};
#include "ep_api/scalar_ops.def"
#undef EP_REDUCE
    default: return {};
  }
}

// True if the scalar functions of `domain` take elements of type `dtype`.
constexpr bool defined_on(Domain domain, int32_t dtype) {
  switch (dtype) {
    case EP_DTYPE_bool: return in_domain<bool>(domain);
    case EP_DTYPE_i8:
    case EP_DTYPE_i16:
    case EP_DTYPE_i32:
    case EP_DTYPE_i64:
    case EP_DTYPE_i4: return in_domain<int64_t>(domain);
    case EP_DTYPE_u8:
    case EP_DTYPE_u16:
    case EP_DTYPE_u32:
    case EP_DTYPE_u64:
    case EP_DTYPE_u4: return in_domain<uint64_t>(domain);
    default: return in_domain<float>(domain);
  }
}

}  // namespace tenon::provider::scalar
