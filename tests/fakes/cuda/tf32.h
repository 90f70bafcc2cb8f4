// TF32 as the fake libraries compute it.
#pragma once

#include <cmath>

namespace tenon::fakes::cuda {

// `value` with ten bits after the leading one.
inline double to_tf32(double value) {
  if (!std::isfinite(value)) return value;
  int exponent = 0;
  const double fraction = std::frexp(value, &exponent);
  return std::ldexp(std::nearbyint(fraction * 2048), exponent - 11);
}

}  // namespace tenon::fakes::cuda
