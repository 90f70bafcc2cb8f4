#include "sdk/cli/compare/divergence.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/ops/ops.h"

namespace tenon::cli {
namespace {

const float nan_value = std::nanf("");
const float infinite = std::numeric_limits<float>::infinity();

Tensor floats(const std::vector<float>& values) {
  return Tensor::from<float>(values, {static_cast<int64_t>(values.size())});
}

TEST(Divergence, EqualTensorsHaveNone) {
  const Divergence d = measure_divergence(floats({1, -2, 3}), floats({1, -2, 3}), 0);
  EXPECT_FALSE(d.diverges());
  EXPECT_EQ(d.elements, 3);
  EXPECT_EQ(d.differing, 0);
  EXPECT_EQ(d.worst, -1);
}

TEST(Divergence, NanEqualsNanAndInfinitiesThemselves) {
  const Divergence d = measure_divergence(floats({nan_value, infinite, -infinite, -nan_value}),
                                          floats({-nan_value, infinite, -infinite, nan_value}), 0);
  EXPECT_FALSE(d.diverges());
  EXPECT_EQ(d.max_relative, 0);
}

TEST(Divergence, AnythingElseBesideOneIsInfinite) {
  for (const auto& [a, b] : {std::pair(nan_value, 1.0f), {1.0f, nan_value}, {infinite, 1.0f}, {infinite, -infinite}}) {
    const Divergence d = measure_divergence(floats({5, a}), floats({5, b}), 1e9);
    EXPECT_TRUE(d.diverges()) << a << " " << b;
    EXPECT_EQ(d.worst, 1);
    EXPECT_EQ(d.max_relative, std::numeric_limits<double>::infinity());
  }
}

TEST(Divergence, AnInfinityHidesNoErrorOfAnotherElement) {
  for (const float beside : {infinite, -infinite, nan_value}) {
    const Divergence d = measure_divergence(floats({beside, 1, 2}), floats({beside, 1, 3}), 0.1);
    EXPECT_EQ(d.beyond, 1) << beside;
    EXPECT_EQ(d.worst, 2) << beside;
  }
}

TEST(Divergence, CountsUnitsInTheLastPlace) {
  const float next = std::nextafterf(std::nextafterf(1.0f, 2), 2);
  EXPECT_EQ(measure_divergence(floats({1}), floats({next}), 1).max_ulp, 2u);
  EXPECT_EQ(measure_divergence(floats({std::nextafterf(0, 1)}), floats({std::nextafterf(0, -1)}), 10).max_ulp, 2u)
      << "across zero";
  EXPECT_EQ(measure_divergence(floats({0.0f}), floats({-0.0f}), 0).max_ulp, 0u);
  const std::vector<uint16_t> a = {0x3f80}, b = {0x3f83};
  EXPECT_EQ(measure_divergence(Tensor::copy_from_host(a.data(), {1}, DType::bf16),
                               Tensor::copy_from_host(b.data(), {1}, DType::bf16), 1)
                .max_ulp,
            3u);
}

TEST(Divergence, CancelledElementsAreHeldAgainstTheOthers) {
  const Divergence d = measure_divergence(floats({1000, 1e-6f}), floats({1000, 3e-6f}), 1e-6);
  EXPECT_FALSE(d.diverges());
  EXPECT_GT(d.max_relative, 0);
  EXPECT_TRUE(measure_divergence(floats({1e-6f}), floats({3e-6f}), 1e-6).diverges())
      << "there is nothing but small ones";
}

TEST(Divergence, NamesTheWorstElement) {
  const Divergence d = measure_divergence(floats({1, 2, 4, 8}), floats({1.01f, 2.5f, 4, 8}), 0.01);
  EXPECT_EQ(d.beyond, 1);
  EXPECT_EQ(d.differing, 2);
  EXPECT_EQ(d.worst, 1);
  EXPECT_EQ(d.worst_b, 2.5);
  EXPECT_EQ(element_place(5, {2, 3}), "[1, 2]");
}

TEST(Divergence, IntegersMustBeEqual) {
  const std::vector<int64_t> a = {int64_t{1} << 60, 3}, b = {(int64_t{1} << 60) + 1, 3};
  const Divergence d = measure_divergence(Tensor::from<int64_t>(a, {2}), Tensor::from<int64_t>(b, {2}), 1e-4);
  EXPECT_EQ(d.beyond, 1) << "though the two are one number as f64";
  EXPECT_EQ(default_tolerance(DType::i64, Tier::relaxed), 0);
}

TEST(Divergence, OtherTypesAndShapesAreSaid) {
  EXPECT_EQ(measure_divergence(floats({1, 2}), floats({1}), 1).types, "f32[2] against f32[1]");
  EXPECT_TRUE(measure_divergence(floats({1}), cast(floats({1}), DType::f64), 1).diverges());
  EXPECT_FALSE(measure_divergence(floats({}), floats({}), 0).diverges());
}

}  // namespace
}  // namespace tenon::cli
