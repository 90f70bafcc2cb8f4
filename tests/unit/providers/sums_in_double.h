// Compares f32 results with sums in double precision.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <span>

namespace tenon::provider {

inline constexpr float poison = -4711.0F;
inline constexpr size_t guard = 64;  // elements of poison after the results

// The greatest worst_error that a convolution of random operands may have, by Winograd's F(2x2, 3x3) or by the direct
// method: 4 epsilons of f32. F(4x4, 3x3) would have ten times this error.
inline constexpr double bound = 4.0 / (1 << 23);

// Returns the greatest error of a finite result, divided by the sum of the magnitudes that it adds up: wanted(i,
// &magnitude) returns result number `i` and stores that sum. NaN and infinities must be at the right positions, and the
// guard unchanged.
template <class Wanted>
double worst_error(std::span<const float> results, const Wanted& wanted) {
  double worst = 0;
  for (size_t i = 0; i + guard < results.size(); ++i) {
    double magnitude = 0;
    const double want = wanted(i, &magnitude), got = results[i];
    if (!std::isfinite(want)) {
      EXPECT_TRUE(std::isnan(want) ? std::isnan(got) : got == want) << i << ": " << got << ", not " << want;
    } else {
      EXPECT_TRUE(std::isfinite(got)) << i << ": " << got << ", not " << want;
      worst = std::max(worst, std::abs(got - want) / std::max(magnitude, 1e-30));
    }
  }
  for (size_t i = results.size() - guard; i < results.size(); ++i) EXPECT_EQ(results[i], poison) << "behind results";
  return worst;
}

}  // namespace tenon::provider
