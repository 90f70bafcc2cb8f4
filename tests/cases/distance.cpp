#include "tests/cases/distance.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "primitives/dtype/convert.h"
#include "primitives/text/format.h"

namespace tenon::cases {
namespace {

// The bit patterns of a floating dtype as whole numbers in the order of their values. -0 and 0 are both 0.
int64_t ordered(DType dtype, uint64_t bits) {
  const uint64_t sign = uint64_t{1} << (dtype_info(dtype).bits - 1);
  const auto magnitude = static_cast<int64_t>(bits & (sign - 1));
  return bits & sign ? -magnitude : magnitude;
}

}  // namespace

std::optional<uint64_t> steps_between(DType dtype, uint64_t a, uint64_t b) {
  if (std::isnan(decode_float(dtype, a)) || std::isnan(decode_float(dtype, b))) return std::nullopt;
  const int64_t first = ordered(dtype, a), second = ordered(dtype, b);
  return static_cast<uint64_t>(std::max(first, second)) - static_cast<uint64_t>(std::min(first, second));
}

bool is_near(DType dtype, const Tolerance& tolerance, uint64_t got, uint64_t want) {
  if (got == want) return true;
  if (!is_floating(dtype)) return false;
  const double g = decode_float(dtype, got);
  const double w = decode_float(dtype, want);
  const auto steps = steps_between(dtype, got, want);
  if (!steps.has_value()) return std::isnan(g) && std::isnan(w);
  // A double holds every tolerance exactly, and a number of steps that it must round is far beyond any.
  if (static_cast<double>(*steps) <= tolerance.ulps) return true;
  const bool wide = dtype == DType::f64;
  const double epsilon = wide ? std::numeric_limits<double>::epsilon() : std::numeric_limits<float>::epsilon();
  const double least = wide ? std::numeric_limits<double>::min() : std::numeric_limits<float>::min();
  return std::fabs(g - w) <= std::max(tolerance.epsilons * epsilon, tolerance.tiny * least);
}

bool is_within(DType dtype, const Saturation& saturation, uint64_t got, uint64_t want, uint64_t x) {
  if (saturation.most == 0) return true;
  if (std::fabs(decode_float(dtype, got)) > saturation.most) return false;
  return !(std::fabs(decode_float(dtype, x)) >= saturation.from) || got == want;
}

std::string value_text(DType dtype, uint64_t bits) {
  if (!is_floating(dtype)) {
    const bool is_signed = dtype_info(dtype).type_class == DTypeClass::INT;
    return is_signed ? fmt::format("{}", static_cast<int64_t>(bits)) : fmt::format("{}", bits);
  }
  const double value = decode_float(dtype, bits);
  if (std::isnan(value)) return "NaN";
  return dtype == DType::f64 ? fmt::format("{:.17g}", value) : fmt::format("{:.9g}", value);
}

std::string tolerance_text(const Tolerance& tolerance) {
  return fmt::format("{:g} ulp, {:g} epsilons, {:g} least normals", tolerance.ulps, tolerance.epsilons, tolerance.tiny);
}

}  // namespace tenon::cases
