#include "sdk/cli/onnx_test/compare.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "core/ops/ops.h"
#include "primitives/text/format.h"

namespace tenon::cli {
namespace {

std::string type_of(const Tensor& tensor) { return fmt::format("{}{}", dtype_name(tensor.dtype()), tensor.dims()); }

std::string place_of(int64_t at, const Dims& dims) {
  Dims index = dims;
  for (int32_t axis = dims.rank(); axis-- > 0;) {
    index[axis] = at % dims[axis];
    at /= dims[axis];
  }
  return to_string(index);
}

std::string number(double value) { return fmt::format("{:.9g}", value); }

std::string report(int64_t first, int64_t count, const Dims& dims, const std::string& actual,
                   const std::string& expected) {
  return fmt::format("element {} is {} where {} is expected ({} of {} differ)", place_of(first, dims), actual, expected,
                     count, element_count(dims));
}

// Returns the position of a bf16 or f16 among all values of its type in increasing order. The difference of two
// positions is their distance in units in the last place.
int64_t position_of(uint16_t bits) {
  const int64_t magnitude = bits & 0x7fff;
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

// One rounding of the greatest finite element; 0 for a dtype that is compared by units in the last place.
double rounding_of(const std::vector<double>& expected, DType dtype) {
  if (dtype != DType::f32 && dtype != DType::f64) return 0;
  double greatest = 0;
  for (const double each : expected) greatest = std::isfinite(each) ? std::max(greatest, std::fabs(each)) : greatest;
  return greatest * (dtype == DType::f32 ? 0x1p-23 : 0x1p-52);
}

bool close(double actual, double expected, const Tolerance& tolerance) {
  if (std::isnan(expected) || std::isnan(actual)) return std::isnan(expected) && std::isnan(actual);
  if (std::isinf(expected) || std::isinf(actual)) return expected == actual;
  return std::fabs(actual - expected) <= tolerance.atol + tolerance.rtol * std::fabs(expected);
}

std::string compare_floats(const Tensor& actual, const Tensor& expected, const Tolerance& tolerance) {
  const std::vector<double> a = cast(actual.to(Device::host()), DType::f64).to_host<double>();
  const std::vector<double> e = cast(expected.to(Device::host()), DType::f64).to_host<double>();
  std::vector<uint16_t> a_bits, e_bits;  // for f16
  if (actual.dtype() == DType::f16) {
    a_bits.resize(a.size());
    e_bits.resize(e.size());
    actual.copy_to_host(a_bits.data());
    expected.copy_to_host(e_bits.data());
  }
  const Tolerance allowed{tolerance.rtol, std::max(tolerance.atol, rounding_of(e, expected.dtype()))};
  int64_t first = -1, count = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    if (close(a[i], e[i], allowed)) continue;
    const bool finite = std::isfinite(a[i]) && std::isfinite(e[i]);
    if (finite && !a_bits.empty() && std::llabs(position_of(a_bits[i]) - position_of(e_bits[i])) <= 2) continue;
    if (count++ == 0) first = static_cast<int64_t>(i);
  }
  if (count == 0) return {};
  return report(first, count, actual.dims(), number(a[static_cast<size_t>(first)]),
                number(e[static_cast<size_t>(first)]));
}

std::string compare_bf16(const Tensor& actual, const Tensor& expected) {
  std::vector<uint16_t> a(static_cast<size_t>(actual.elements())), e(a.size());
  actual.copy_to_host(a.data());
  expected.copy_to_host(e.data());
  for (size_t i = 0; i < a.size(); ++i) {
    const bool a_nan = (a[i] & 0x7fff) > 0x7f80, e_nan = (e[i] & 0x7fff) > 0x7f80;
    if (a_nan && e_nan) continue;
    if (a_nan || e_nan || std::llabs(position_of(a[i]) - position_of(e[i])) > 2) {
      return report(static_cast<int64_t>(i), 1, actual.dims(), fmt::format("{:#06x}", a[i]),
                    fmt::format("{:#06x}", e[i]));
    }
  }
  return {};
}

std::string compare_bytes(const Tensor& actual, const Tensor& expected) {
  const auto size = static_cast<size_t>(dtype_size(actual.dtype()));
  std::string a(static_cast<size_t>(actual.bytes()), '\0'), e = a;
  actual.copy_to_host(a.data());
  expected.copy_to_host(e.data());
  int64_t first = -1, count = 0;
  for (size_t i = 0; i < static_cast<size_t>(actual.elements()); ++i) {
    if (std::memcmp(a.data() + i * size, e.data() + i * size, size) == 0) continue;
    if (count++ == 0) first = static_cast<int64_t>(i);
  }
  if (count == 0) return {};
  const auto element = [&](const Tensor& tensor) {
    return number(select(reshape(tensor, {-1}), 0, first).item().to_double());
  };
  return report(first, count, actual.dims(), element(actual), element(expected));
}

std::string types_differ(const Tensor& actual, const Tensor& expected) {
  if (actual.dtype() == expected.dtype() && actual.dims() == expected.dims()) return {};
  return fmt::format("it is {} where {} is expected", type_of(actual), type_of(expected));
}

constexpr double kErrors = 3;  // allowed difference of two samples, in standard errors

struct Moments {
  double mean = 0, deviation = 0;
};

Moments moments_of(const std::vector<double>& values) {
  Moments moments;
  const auto count = static_cast<double>(values.size());
  for (const double value : values) moments.mean += value / count;
  for (const double value : values) moments.deviation += (value - moments.mean) * (value - moments.mean) / count;
  moments.deviation = std::sqrt(moments.deviation);
  return moments;
}

std::string compare_moments(const std::vector<double>& a, const std::vector<double>& e) {
  const Moments actual = moments_of(a), expected = moments_of(e);
  const auto count = static_cast<double>(a.size());
  const double most = kErrors * std::sqrt(2 / count) * std::max(actual.deviation, expected.deviation);
  // The error of a standard deviation is about 1 / sqrt(2) of the error of the mean.
  if (std::fabs(actual.mean - expected.mean) <= most && std::fabs(actual.deviation - expected.deviation) <= most)
    return {};
  return fmt::format("its mean is {} and its standard deviation {}, where {} and {} are expected", number(actual.mean),
                     number(actual.deviation), number(expected.mean), number(expected.deviation));
}

}  // namespace

std::string difference_of_draws(const Tensor& actual, const Tensor& expected, const Tolerance& tolerance) {
  if (std::string text = types_differ(actual, expected); !text.empty()) return text;
  const std::vector<double> a = cast(actual.to(Device::host()), DType::f64).to_host<double>();
  const std::vector<double> e = cast(expected.to(Device::host()), DType::f64).to_host<double>();
  const auto zeros = [](const std::vector<double>& values) {
    return static_cast<double>(std::count(values.begin(), values.end(), 0.0));
  };
  if (zeros(e) == 0) return compare_moments(a, e);
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] == 0 || e[i] == 0 || close(a[i], e[i], tolerance)) continue;
    return fmt::format("{}; neither was dropped",
                       report(static_cast<int64_t>(i), 1, actual.dims(), number(a[i]), number(e[i])));
  }
  const auto count = static_cast<double>(a.size());
  const double share = (zeros(a) + zeros(e)) / (2 * count);
  if (std::fabs(zeros(a) - zeros(e)) <= kErrors * std::sqrt(2 * count * share * (1 - share))) return {};
  return fmt::format("{} of {} elements are 0, where {} are expected", zeros(a), count, zeros(e));
}

std::string difference(const Tensor& actual, const Tensor& expected, const Tolerance& tolerance) {
  if (std::string text = types_differ(actual, expected); !text.empty()) return text;
  if (actual.dtype() == DType::bf16) return compare_bf16(actual, expected);
  if (dtype_size(actual.dtype()) == 0 && is_integer(actual.dtype()))  // packed: elements share bytes
    return compare_bytes(cast(actual.to(Device::host()), DType::i8), cast(expected.to(Device::host()), DType::i8));
  return is_floating(actual.dtype()) ? compare_floats(actual, expected, tolerance) : compare_bytes(actual, expected);
}

std::string difference(const onnx::Value& actual, const onnx::Value& expected, const Tolerance& tolerance) {
  if (actual.is_tensor() && expected.is_tensor()) return difference(actual.tensor(), expected.tensor(), tolerance);
  if (onnx::to_string(actual) != onnx::to_string(expected))
    return fmt::format("it is {} where {} is expected", onnx::to_string(actual), onnx::to_string(expected));
  if (actual.kind() == onnx::Value::Kind::strings) {
    for (size_t i = 0; i < actual.strings().size(); ++i) {
      if (actual.strings()[i] == expected.strings()[i]) continue;
      return fmt::format("element {} is '{}' where '{}' is expected", i, actual.strings()[i], expected.strings()[i]);
    }
  }
  if (actual.kind() != onnx::Value::Kind::sequence) return {};
  for (size_t i = 0; i < actual.elements().size(); ++i) {
    const std::string text = difference(actual.elements()[i], expected.elements()[i], tolerance);
    if (!text.empty()) return fmt::format("element {}: {}", i, text);
  }
  return {};
}

}  // namespace tenon::cli
