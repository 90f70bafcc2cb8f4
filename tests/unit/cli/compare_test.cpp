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

TEST(Compare, WhatShouldBeZeroMayBeARoundingOfTheGreatest) {
  EXPECT_EQ(difference(floats({1000, 1e-4f}), floats({1000, 0}), {}), "");
  EXPECT_NE(difference(floats({1000, 2e-4f}), floats({1000, 0}), {}), "");
  const float inf = std::numeric_limits<float>::infinity();
  EXPECT_NE(difference(floats({inf, 1e-4f}), floats({inf, 0}), {}), "");
}

TEST(Compare, DrawsHaveOneDistribution) {
  std::vector<float> dropped, others, twice, fewer, all(100, 2);
  std::vector<float> rising, falling, wider, shifted;
  for (int i = 0; i < 100; ++i) {
    const auto value = static_cast<float>(i + 1);
    dropped.push_back(i % 2 == 0 ? 0 : value);
    others.push_back(i % 4 < 2 ? 0 : value);
    twice.push_back(i % 4 < 2 ? 0 : 2 * value);
    fewer.push_back(i % 10 == 0 ? 0 : value);
    rising.push_back(value);
    falling.push_back(101 - value);
    wider.push_back(50 + (value - 50) * 2);
    shifted.push_back(value + 20);
  }
  EXPECT_EQ(difference_of_draws(floats(others), floats(dropped), {}), "");
  EXPECT_EQ(difference_of_draws(floats(twice), floats(dropped), {}),
            "element [3] is 8 where 4 is expected (1 of 100 differ); neither was dropped");
  EXPECT_EQ(difference_of_draws(floats(fewer), floats(dropped), {}), "10 of 100 elements are 0, where 50 are expected");
  EXPECT_EQ(difference_of_draws(floats(falling), floats(rising), {}), "");
  EXPECT_NE(difference_of_draws(floats(wider), floats(rising), {}), "");
  EXPECT_NE(difference_of_draws(floats(shifted), floats(rising), {}), "");
  EXPECT_NE(difference_of_draws(floats(all), floats(rising), {}), "");
  EXPECT_EQ(difference_of_draws(floats({1}), whole({1}), {}), "it is f32[1] where i64[1] is expected");
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
