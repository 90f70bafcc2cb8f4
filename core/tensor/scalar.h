// Scalar: one number with its type, as an argument of an op. Integers stay exact. A Scalar is not a tensor and has no
// device.
#pragma once

#include <concepts>
#include <cstdint>
#include <type_traits>

#include "core/device/export.h"
#include "ep_api/ep_api.h"
#include "primitives/dtype/dtype.h"

namespace tenon {

class Scalar {
 public:
  Scalar() : Scalar(0) {}
  template <std::same_as<bool> T>  // a template, so that no pointer or text becomes a bool
  Scalar(T value) : dtype_(DType::boolean) {
    value_.i64 = value ? 1 : 0;
  }
  template <std::signed_integral T>
  Scalar(T value) : dtype_(DType::i64) {
    value_.i64 = value;
  }
  template <std::unsigned_integral T>
  requires(!std::same_as<T, bool>) Scalar(T value) : dtype_(DType::u64) { value_.u64 = value; }
  template <std::floating_point T>
  Scalar(T value) : dtype_(DType::f64) {
    value_.f64 = static_cast<double>(value);
  }

  // One of boolean, i64, u64, f64.
  DType dtype() const { return dtype_; }
  double to_double() const {
    if (dtype_ == DType::f64) return value_.f64;
    return dtype_ == DType::u64 ? static_cast<double>(value_.u64) : static_cast<double>(value_.i64);
  }
  // Floats truncate toward zero and saturate, NaN gives 0.
  TENON_API int64_t to_int() const;

  // The value in the form that the ABI uses for operands of `dtype`.
  ep_scalar to_abi(DType dtype) const {
    ep_scalar out{static_cast<int32_t>(dtype), 0, {}};
    switch (dtype_info(dtype).type_class) {
      case DTypeClass::FLOAT: out.value.f64 = to_double(); break;
      case DTypeClass::BOOL: out.value.u64 = dtype_ == DType::f64 ? value_.f64 != 0 : value_.i64 != 0; break;
      default: out.value.i64 = to_int(); break;
    }
    return out;
  }

  // The value as T: floats to integers truncate and saturate; any number but 0 is true.
  template <class T>
  T to() const {
    if constexpr (std::is_same_v<T, bool>)
      return dtype_ == DType::f64 ? value_.f64 != 0 : value_.u64 != 0;
    else if constexpr (std::is_integral_v<T>)
      return dtype_ == DType::u64 ? static_cast<T>(value_.u64) : static_cast<T>(to_int());
    else
      return static_cast<T>(static_cast<decltype(T() + T())>(to_double()));
  }

  // True if both have the same number and the same dtype.
  friend bool operator==(const Scalar& a, const Scalar& b) {
    return a.dtype_ == b.dtype_ && a.value_.u64 == b.value_.u64;
  }

  // Computes in int64_t if both are integers or bool, else in double; `/` always computes in double. Integers wrap.
  friend Scalar operator+(const Scalar& a, const Scalar& b) { return a.with(b, '+'); }
  friend Scalar operator-(const Scalar& a, const Scalar& b) { return a.with(b, '-'); }
  friend Scalar operator*(const Scalar& a, const Scalar& b) { return a.with(b, '*'); }
  friend Scalar operator/(const Scalar& a, const Scalar& b) { return a.with(b, '/'); }
  friend Scalar operator-(const Scalar& a) { return a.with(Scalar(-1), '*'); }

 private:
  TENON_API Scalar with(const Scalar& other, char operation) const;

  DType dtype_;
  union {
    double f64;
    int64_t i64;
    uint64_t u64;
  } value_;
};

// The first element at `bytes`, read as `dtype`. Internal.
Scalar element_as_scalar(const void* bytes, DType dtype);

}  // namespace tenon
