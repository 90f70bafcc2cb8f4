#include "primitives/reference/scalar.h"

#include "ep_api/ep_api.h"
#include "primitives/reference/prelude.h"
#include "primitives/table/table.h"

namespace tenon::reference {
namespace {

using table::Domain;

// True if rows of `domain` are compiled for T. A row that is never called with T need not compile for it.
template <class T>
constexpr bool compiles(Domain domain) {
  switch (domain) {
    case Domain::FLOAT: return std::is_same_v<T, double>;
    case Domain::SIGNED: return !std::is_same_v<T, uint64_t>;
    case Domain::INTEGER: return !std::is_same_v<T, double>;
    case Domain::BITS: return !std::is_same_v<T, double>;
    case Domain::BOOL: return std::is_same_v<T, uint64_t>;
    default: return true;
  }
}

template <class T>
T lowest() {
  return std::is_same_v<T, double> ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::lowest();
}
template <class T>
T highest() {
  return std::is_same_v<T, double> ? std::numeric_limits<T>::infinity() : std::numeric_limits<T>::max();
}

#define ep_lit(value) static_cast<T>(value)
#define ep_lowest() lowest<T>()
#define ep_highest() highest<T>()
#define ROW(id, domain, expression)              \
  case id:                                       \
    if constexpr (compiles<T>(Domain::domain)) { \
      return static_cast<T>(expression);         \
    }                                            \
    break;

}  // namespace

using namespace prelude;  // NOLINT(google-build-using-namespace): the rows name its functions

template <class T>
T unary(int32_t op, T x, [[maybe_unused]] T a, [[maybe_unused]] T b) {
  switch (op) {
#define EP_UNARY(name, id, domain, result, expression) ROW(id, domain, expression)
#include "ep_api/scalar_ops.def"
#undef EP_UNARY
    default: break;
  }
  return T{0};
}

template <class T>
T binary(int32_t op, T x, T y) {
  switch (op) {
#define EP_BINARY(name, id, domain, result, check, expression) ROW(id, domain, expression)
#include "ep_api/scalar_ops.def"
#undef EP_BINARY
    default: break;
  }
  return T{0};
}

template <class T>
T ternary(int32_t op, T x, T y, T z) {
  switch (op) {
#define EP_TERNARY(name, id, domain, result, expression) ROW(id, domain, expression)
#include "ep_api/scalar_ops.def"
#undef EP_TERNARY
    default: break;
  }
  return T{0};
}

template <class T>
T reduce_init(int32_t op) {
  switch (op) {
#define EP_REDUCE(name, id, domain, init, map, combine, finish) ROW(id, domain, init)
#include "ep_api/scalar_ops.def"
#undef EP_REDUCE
    default: break;
  }
  return T{0};
}

template <class T>
T reduce_map(int32_t op, T x) {
  switch (op) {
#define EP_REDUCE(name, id, domain, init, map, combine, finish) ROW(id, domain, map)
#include "ep_api/scalar_ops.def"
#undef EP_REDUCE
    default: break;
  }
  return T{0};
}

template <class T>
T reduce_combine(int32_t op, T x, T y) {
  switch (op) {
#define EP_REDUCE(name, id, domain, init, map, combine, finish) ROW(id, domain, combine)
#include "ep_api/scalar_ops.def"
#undef EP_REDUCE
    default: break;
  }
  return T{0};
}

template <class T>
T reduce_finish(int32_t op, T x, int64_t count) {
  [[maybe_unused]] const T n = static_cast<T>(count);
  switch (op) {
#define EP_REDUCE(name, id, domain, init, map, combine, finish) ROW(id, domain, finish)
#include "ep_api/scalar_ops.def"
#undef EP_REDUCE
    default: break;
  }
  return T{0};
}

template <class T>
int32_t divisor_fault(T y) {
  return !std::is_same_v<T, double> && y == T{0} ? EP_FAULT_DIVISION_BY_ZERO : 0;
}

#define INSTANTIATE(T)                              \
  template T unary<T>(int32_t, T, T, T);            \
  template T binary<T>(int32_t, T, T);              \
  template T ternary<T>(int32_t, T, T, T);          \
  template T reduce_init<T>(int32_t);               \
  template T reduce_map<T>(int32_t, T);             \
  template T reduce_combine<T>(int32_t, T, T);      \
  template T reduce_finish<T>(int32_t, T, int64_t); \
  template int32_t divisor_fault<T>(T);
INSTANTIATE(double)
INSTANTIATE(int64_t)
INSTANTIATE(uint64_t)
#undef INSTANTIATE

}  // namespace tenon::reference
