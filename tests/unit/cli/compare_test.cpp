#include "sdk/cli/onnx_test/compare.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace tenon::cli {
namespace {

Tensor floats(const std::vector<float>& values) {
  return Tensor::from<float>(values, {static_cast<int64_t>(values.size())});
}
Tensor whole(const std::vector<int64_t>& values) {
  return Tensor::from<int64_t>(values, {static_cast<int64_t>(values.size())});
}
Tensor bf16(const std::vector<uint16_t>& bits) {
  return Tensor::copy_from_host(bits.data(), {static_cast<int64_t>(bits.size())}, DType::bf16);
}

TEST(Compare, TakesFloatsWithinTheTolerance) {
  EXPECT_EQ(difference(floats({1000.5f, -2.0f}), floats({1000.0f, -2.0f}), {}), "");
  EXPECT_EQ(difference(floats({1, 5}), floats({1, 4}), {}), "element [1] is 5 where 4 is expected (1 of 2 differ)");
  EXPECT_EQ(difference(floats({1, 5}), floats({1, 4}), {0.5, 0}), "");
}

TEST(Compare, NanAndInfinitiesEqualThemselvesOnly) {
  const float nan = std::nanf(""), inf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(difference(floats({nan, inf, -inf}), floats({nan, inf, -inf}), {}), "");
  EXPECT_NE(difference(floats({nan}), floats({1}), {}), "");
  EXPECT_NE(difference(floats({1}), floats({nan}), {}), "");
  EXPECT_NE(difference(floats({inf}), floats({-inf}), {}), "");
  EXPECT_NE(difference(floats({1}), floats({inf}), {}), "");
}

TEST(Compare, IntegersMustBeEqual) {
  EXPECT_EQ(difference(whole({1000000}), whole({1000000}), {}), "");
  EXPECT_EQ(difference(whole({1000001}), whole({1000000}), {}),
            "element [0] is 1000001 where 1000000 is expected (1 of 1 differ)");
}

TEST(Compare, ShapesAndTypesMustBeEqual) {
  EXPECT_EQ(difference(floats({1}), whole({1}), {}), "it is f32[1] where i64[1] is expected");
  EXPECT_EQ(difference(floats({1, 1}), floats({1}), {}), "it is f32[2] where f32[1] is expected");
}

TEST(Compare, Bf16MayDifferByTwoUnitsInTheLastPlace) {
  EXPECT_EQ(difference(bf16({0x3f80, 0x8001}), bf16({0x3f82, 0x0001}), {}), "");
  EXPECT_NE(difference(bf16({0x3f80}), bf16({0x3f83}), {}), "");
  EXPECT_EQ(difference(bf16({0x7fc0}), bf16({0x7fff}), {}), "");
  EXPECT_NE(difference(bf16({0x7fc0}), bf16({0x7f80}), {}), "");
}

}  // namespace
}  // namespace tenon::cli
