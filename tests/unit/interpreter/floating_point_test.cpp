// Numbers of a call that the core itself computes do not depend on the caller's floating-point state, and that state
// does not change.
#include <gtest/gtest.h>

#include <cfenv>
#include <cstring>
#include <functional>
#include <vector>

#include "core/ops/ops.h"

namespace tenon {
namespace {

struct Call {
  const char* what;
  std::function<Tensor()> make;
};

std::vector<Call> calls() {
  const Tensor x = Tensor::from<double>(std::vector<double>{1, 2, 3, 0.1, 5, 6}, {1, 2, 3}, Device("cpu"));
  return {
      {"arange of f32", [] { return cast(arange(0.1, 5.0, 0.3), DType::f64); }},
      {"arange of f64", [] { return arange(0.1, 5.0, 0.1, DType::f64); }},
      {"the length of an arange", [] { return arange(1.0, 2.0, 0.1, DType::f64); }},
      {"alpha times a number", [x] { return add(x, Scalar(0.1), Scalar(0.7)); }},
      {"the scale of attention", [x] { return scaled_dot_product_attention(x, x, x); }},
  };
}

TEST(FloatingPoint, OfTheCallerChangesNoNumberOfTheCore) {
  for (const Call& call : calls()) {
    const std::vector<double> want = call.make().to_host<double>();
    for (const int rounding : {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO}) {
      std::fesetround(rounding);
      const Tensor made = call.make();
      const int after = std::fegetround();
      std::fesetround(FE_TONEAREST);
      EXPECT_EQ(after, rounding) << call.what;
      const std::vector<double> got = made.to_host<double>();
      ASSERT_EQ(got.size(), want.size()) << call.what << ", rounding " << rounding;
      EXPECT_EQ(std::memcmp(got.data(), want.data(), want.size() * sizeof(double)), 0)
          << call.what << ", rounding " << rounding;
    }
  }
}

}  // namespace
}  // namespace tenon
