#include "sdk/cli/compare/divergence.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "core/ops/ops.h"
#include "primitives/text/format.h"

namespace tenon::cli {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

std::string type_of(const Tensor& tensor) { return fmt::format("{}{}", dtype_name(tensor.dtype()), tensor.dims()); }

std::vector<double> numbers_of(const Tensor& tensor) {
  return cast(tensor.to(Device::host()), DType::f64).to_host<double>();
}

std::string bytes_of(const Tensor& tensor) {
  std::string bytes(static_cast<size_t>(tensor.bytes()), '\0');
  if (!bytes.empty()) tensor.copy_to_host(bytes.data());
  return bytes;
}

// Returns the position of a float among all values of its type in increasing order, from its bytes (sign and
// magnitude).
int64_t position(const char* bytes, size_t size) {
  uint64_t bits = 0;
  std::memcpy(&bits, bytes, size);
  const uint64_t sign = uint64_t{1} << (8 * size - 1);
  const auto magnitude = static_cast<int64_t>(bits & (sign - 1));
  return (bits & sign) != 0 ? -magnitude : magnitude;
}

double root_mean_square(const std::vector<double>& values) {
  double sum = 0, count = 0;
  for (double value : values) {
    if (!std::isfinite(value)) continue;
    sum += value * value;
    ++count;
  }
  return count == 0 ? 0 : std::sqrt(sum / count);
}

double relative_error(double a, double b, double scale) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b) ? 0 : kInfinite;
  if (a == b) return 0;
  if (std::isinf(a) || std::isinf(b)) return kInfinite;
  return std::fabs(a - b) / std::max(std::fabs(a), scale);
}

}  // namespace

double default_tolerance(DType dtype, Tier tier) {
  const double wide = tier == Tier::full ? 1 : tier == Tier::portable ? 10 : 500;
  switch (dtype) {
    case DType::f64: return 1e-12 * wide;
    case DType::f32: return 1e-4 * wide;
    case DType::f16: return tier == Tier::relaxed ? 5e-2 : 1e-2;
    case DType::bf16: return 5e-2;
    case DType::f8e4m3fn: return 0.25;
    case DType::f8e5m2: return 0.5;
    default: return 0;
  }
}

Divergence measure_divergence(const Tensor& a, const Tensor& b, double tolerance) {
  Divergence result;
  if (a.dtype() != b.dtype() || a.dims() != b.dims()) {
    result.types = fmt::format("{} against {}", type_of(a), type_of(b));
    return result;
  }
  result.elements = a.elements();
  if (result.elements == 0) return result;
  const std::vector<double> in_a = numbers_of(a), in_b = numbers_of(b);
  const std::string bytes_a = bytes_of(a), bytes_b = bytes_of(b);
  const bool floats = is_floating(a.dtype());
  const auto size = static_cast<size_t>(dtype_size(a.dtype()));
  const double scale = floats ? root_mean_square(in_a) : 1;
  double worst = -1;
  for (size_t i = 0; i < in_a.size(); ++i) {
    const char* left = bytes_a.data() + i * size;
    const char* right = bytes_b.data() + i * size;
    const bool same = size == 0 ? in_a[i] == in_b[i] : std::memcmp(left, right, size) == 0;
    if (same) continue;
    ++result.differing;
    const double error = relative_error(in_a[i], in_b[i], scale);
    if (!(error <= tolerance) || (!floats && !same)) ++result.beyond;
    result.max_relative = std::max(result.max_relative, error);
    if (std::isfinite(in_a[i]) && std::isfinite(in_b[i])) {
      result.max_absolute = std::max(result.max_absolute, std::fabs(in_a[i] - in_b[i]));
      if (floats) {
        const auto distance =
            static_cast<uint64_t>(position(left, size)) - static_cast<uint64_t>(position(right, size));
        result.max_ulp = std::max(result.max_ulp, std::min(distance, ~distance + 1));
      }
    } else if (error > 0) {
      result.max_absolute = kInfinite;
    }
    if (error <= worst) continue;
    worst = error;
    result.worst = static_cast<int64_t>(i);
    result.worst_a = in_a[i];
    result.worst_b = in_b[i];
  }
  return result;
}

std::string element_place(int64_t at, const Dims& dims) {
  Dims index = dims;
  for (int32_t axis = dims.rank(); axis-- > 0;) {
    index[axis] = at % dims[axis];
    at /= dims[axis];
  }
  return to_string(index);
}

}  // namespace tenon::cli
