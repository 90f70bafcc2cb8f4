#include "core/tensor/scalar.h"

#include <cstring>
#include <limits>

#include "primitives/dtype/convert.h"

namespace tenon {

int64_t Scalar::to_int() const {
  if (dtype_ != DType::f64) return value_.i64;
  constexpr double limit = 9223372036854775808.0;  // 2^63
  if (!(value_.f64 == value_.f64)) return 0;
  if (value_.f64 >= limit) return std::numeric_limits<int64_t>::max();
  if (value_.f64 < -limit) return std::numeric_limits<int64_t>::min();
  return static_cast<int64_t>(value_.f64);
}

Scalar Scalar::with(const Scalar& other, char operation) const {
  if (operation == '/' || dtype_ == DType::f64 || other.dtype_ == DType::f64) {
    const double a = to_double(), b = other.to_double();
    return operation == '+' ? a + b : operation == '-' ? a - b : operation == '*' ? a * b : a / b;
  }
  const auto a = static_cast<uint64_t>(to_int()), b = static_cast<uint64_t>(other.to_int());
  return static_cast<int64_t>(operation == '+' ? a + b : operation == '-' ? a - b : a * b);
}

Scalar element_as_scalar(const void* bytes, DType dtype) {
  const DTypeInfo& info = dtype_info(dtype);
  uint64_t bits = 0;
  std::memcpy(&bits, bytes, static_cast<size_t>(dtype_bytes(dtype, 1)));
  if (info.bits < 8) bits &= (uint64_t{1} << info.bits) - 1;
  const int unused = 64 - info.bits;
  switch (info.type_class) {
    case DTypeClass::FLOAT: return Scalar(decode_float(dtype, bits));
    case DTypeClass::BOOL: return Scalar(bits != 0);
    case DTypeClass::INT: return Scalar(static_cast<int64_t>(bits << unused) >> unused);
    default: return dtype == DType::u64 ? Scalar(bits) : Scalar(static_cast<int64_t>(bits));
  }
}

}  // namespace tenon
