#include "core/tensor/scalar.h"

#include <limits>

namespace tenon {

int64_t Scalar::to_int() const {
  if (dtype_ != DType::f64) return value_.i64;
  constexpr double limit = 9223372036854775808.0;  // 2^63
  if (!(value_.f64 == value_.f64)) return 0;
  if (value_.f64 >= limit) return std::numeric_limits<int64_t>::max();
  if (value_.f64 < -limit) return std::numeric_limits<int64_t>::min();
  return static_cast<int64_t>(value_.f64);
}

}  // namespace tenon
