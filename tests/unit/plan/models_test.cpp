// The plans of models against their lower bounds.
#include "tests/unit/plan/models.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>

namespace tenon::testing {
namespace {

TEST(PlansOfModels, LieWithinFivePercentOfTheLowerBoundInOneBlock) {
  for (const ModelOfValues& model : models_of_values()) {
    SCOPED_TRACE(model.name);
    const auto begin = std::chrono::steady_clock::now();
    const auto plan = plan::plan_memory(model.values, {});
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
    ASSERT_TRUE(plan.ok()) << plan.status().message();
    ASSERT_TRUE(plan::check_plan(model.values, {}, plan.value()).ok());
    EXPECT_EQ(plan.value().blocks.size(), 1u);
    const auto peak = static_cast<double>(plan.value().peak());
    const auto bound = static_cast<double>(plan.value().lower_bound);
    EXPECT_LE(peak, 1.05 * bound);
    uint64_t sum = 0;
    for (const plan::Value& value : model.values) sum += value.bytes;
    std::printf("%-20s %4zu values, %8.2f MB one by one, peak %7.2f MB, lower bound %7.2f MB, ratio %.4f, %.2f ms\n",
                model.name.c_str(), model.values.size(), static_cast<double>(sum) / 1e6, peak / 1e6, bound / 1e6,
                peak / bound, took.count());
  }
}

TEST(PlansOfModels, FitBlocksOfHalfThePeak) {
  for (const ModelOfValues& model : models_of_values()) {
    SCOPED_TRACE(model.name);
    const auto whole = plan::plan_memory(model.values, {});
    ASSERT_TRUE(whole.ok());
    uint64_t largest = 0;
    for (const plan::Value& value : model.values) largest = std::max(largest, value.bytes);
    const plan::Pool pool{std::max(whole.value().peak() / 2, largest + 256), false};
    const auto cut = plan::plan_memory(model.values, pool);
    ASSERT_TRUE(cut.ok()) << cut.status().message();
    EXPECT_TRUE(plan::check_plan(model.values, pool, cut.value()).ok());
    EXPECT_GE(cut.value().blocks.size(), 2u);
    EXPECT_LE(cut.value().blocks.size(), 3u);
    EXPECT_LE(static_cast<double>(cut.value().peak()), 1.5 * static_cast<double>(whole.value().peak()));
  }
}

}  // namespace
}  // namespace tenon::testing
