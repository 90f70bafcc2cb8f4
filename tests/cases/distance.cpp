#include "tests/cases/distance.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "primitives/dtype/convert.h"
#include "primitives/text/format.h"
#include "tests/cases/element.h"

namespace tenon::cases {
namespace {

// Maps the bit patterns of a floating dtype to integers in the order of their values. -0 and 0 are both 0.
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
  // A double holds every tolerance exactly. A number of steps that it must round is far beyond any tolerance.
  if (static_cast<double>(*steps) <= tolerance.ulps) return true;
  const bool wide = dtype == DType::f64;
  const double epsilon = wide ? std::numeric_limits<double>::epsilon() : std::numeric_limits<float>::epsilon();
  const double least = wide ? std::numeric_limits<double>::min() : std::numeric_limits<float>::min();
  return std::fabs(g - w) <= std::max(tolerance.epsilons * epsilon, tolerance.tiny * least);
}

bool is_zero(DType dtype, uint64_t bits) { return (bits & ~sign_bit(dtype)) == 0; }

bool may_be_denormal(DType dtype, const Tolerance& tolerance, uint64_t want) {
  if (!is_floating(dtype) || std::isnan(decode_float(dtype, want))) return false;
  const uint64_t sign = want & sign_bit(dtype);
  return is_denormal(dtype, want) || is_near(dtype, tolerance, sign | (least_normal(dtype) - 1), want);
}

std::pair<long double, long double> ends_of(DType dtype, const Range& range, uint64_t want) {
  const uint64_t magnitude = want & ~sign_bit(dtype);
  const uint64_t finite = std::min(magnitude, encode_float(dtype, greatest_finite(dtype)) - 1);
  const auto at = [&](uint64_t bits) { return static_cast<long double>(decode_float(dtype, bits)); };
  const long double step = at(finite + 1) - at(finite);
  const long double center = std::isinf(at(want)) ? range.exact : at(want);
  if (range.low == range.exact && range.high == range.exact) return {center, center};
  const bool wide = dtype == DType::f64;
  const long double times = wide ? 2 : 1;
  // Adds a little for the rounding of the ends themselves, in the 64 bits of a long double.
  const long double rounding = step + step * (wide ? 0x1p-8L : 0x1p-20L);
  return {center - times * (range.exact - range.low + rounding),
          center + times * (range.high - range.exact + rounding)};
}

bool is_in(DType dtype, const Range& range, bool flushed, uint64_t got, uint64_t want) {
  if (got == want) return true;
  const long double g = decode_float(dtype, got), w = decode_float(dtype, want);
  if (std::isnan(g) || std::isnan(w)) return std::isnan(g) && std::isnan(w);
  if (std::isinf(range.exact)) return g == w;
  const auto [low, high] = ends_of(dtype, range, want);
  const long double least = decode_float(dtype, least_normal(dtype)), greatest = greatest_finite(dtype);
  if (flushed && g == 0 && low < least && high > -least) return true;
  if (std::isinf(g)) return g > 0 ? high > greatest : low < -greatest;
  return low <= g && g <= high;
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
