#include "core/plan/memory_plan.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <random>
#include <vector>

namespace tenon::plan {
namespace {

// Values with random sizes, alignments and lifetimes of at most `longest` steps. One in four shares the location of an
// earlier one.
// earlier one.
std::vector<Value> random_values(std::mt19937_64& random, size_t count, uint32_t steps, uint32_t longest) {
  const auto draw = [&](uint64_t below) { return random() % below; };
  std::vector<Value> values;
  for (size_t i = 0; i < count; ++i) {
    Value value;
    value.bytes = draw(20) == 0 ? 0 : 1 + draw(uint64_t{1} << draw(20));
    value.alignment = uint64_t{1} << draw(9);
    value.first = static_cast<uint32_t>(draw(steps));
    value.last = value.first + static_cast<uint32_t>(draw(longest));
    if (draw(4) == 0) value.group = static_cast<uint32_t>(draw(count / 4 + 1));
    values.push_back(value);
  }
  return values;
}

// The largest sum of live bytes, step by step.
uint64_t bound_by_hand(const std::vector<Value>& values) {
  struct Life {
    uint64_t bytes = 0;
    uint32_t first = kNone, last = 0;
  };
  std::vector<Life> lives;
  std::vector<size_t> of_group;
  uint32_t end = 0;
  for (const Value& value : values) {
    if (value.bytes == 0) continue;
    size_t at = lives.size();
    if (value.group != kNone) {
      of_group.resize(std::max<size_t>(of_group.size(), value.group + 1), ~size_t{0});
      at = of_group[value.group] == ~size_t{0} ? (of_group[value.group] = lives.size()) : of_group[value.group];
    }
    if (at == lives.size()) lives.emplace_back();
    lives[at].bytes = std::max(lives[at].bytes, value.bytes);
    lives[at].first = std::min(lives[at].first, value.first);
    lives[at].last = std::max(lives[at].last, value.last);
    end = std::max(end, value.last + 1);
  }
  uint64_t most = 0;
  for (uint32_t step = 0; step < end; ++step) {
    uint64_t sum = 0;
    for (const Life& life : lives) sum += life.first <= step && step <= life.last ? life.bytes : 0;
    most = std::max(most, sum);
  }
  return most;
}

// True if two values that live at the same time share a byte, by comparing all pairs.
bool overlaps_by_hand(const std::vector<Value>& values, const MemoryPlan& plan) {
  for (size_t i = 0; i < values.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      const Value &a = values[i], &b = values[j];
      const Location &p = plan.locations[i], &q = plan.locations[j];
      if (a.bytes == 0 || b.bytes == 0 || p.block != q.block || (a.group != kNone && a.group == b.group)) continue;
      if (a.first > b.last || b.first > a.last) continue;
      if (p.offset < q.offset + b.bytes && q.offset < p.offset + a.bytes) return true;
    }
  }
  return false;
}

TEST(MemoryPlan, OfRandomLifetimesNeverLetsLiveValuesOverlap) {
  std::mt19937_64 random(7);
  double sum = 0, worst = 0;
  constexpr int kRounds = 300;
  for (int round = 0; round < kRounds; ++round) {
    SCOPED_TRACE(round);
    const auto steps = static_cast<uint32_t>(1 + random() % 200);
    const auto longest = static_cast<uint32_t>(1 + random() % (1 + steps / (1 + random() % 8)));
    const std::vector<Value> values = random_values(random, 1 + random() % 300, steps, longest);
    const auto plan = plan_memory(values, {});
    ASSERT_TRUE(plan.ok()) << plan.status().message();
    ASSERT_FALSE(overlaps_by_hand(values, plan.value()));
    ASSERT_TRUE(check_plan(values, {}, plan.value()).ok());
    ASSERT_EQ(plan.value().lower_bound, bound_by_hand(values));
    if (plan.value().lower_bound == 0) continue;
    ASSERT_EQ(plan.value().blocks.size(), 1u);
    const double ratio = static_cast<double>(plan.value().peak()) / static_cast<double>(plan.value().lower_bound);
    sum += ratio - 1;
    worst = std::max(worst, ratio);
  }
  std::printf("random lifetimes: peak over lower bound is %.4f in the mean, %.4f at worst\n", 1 + sum / kRounds, worst);
  EXPECT_LE(sum / kRounds, 0.02);
}

TEST(MemoryPlan, KeepsToTheLargestAllocation) {
  std::mt19937_64 random(8);
  for (int round = 0; round < 100; ++round) {
    SCOPED_TRACE(round);
    const std::vector<Value> values = random_values(random, 200, 100, 40);
    const Pool pool{(uint64_t{1} << 20) + random() % (uint64_t{1} << 20), false};
    const auto plan = plan_memory(values, pool);
    ASSERT_TRUE(plan.ok()) << plan.status().message();
    ASSERT_TRUE(check_plan(values, pool, plan.value()).ok());
    ASSERT_FALSE(overlaps_by_hand(values, plan.value()));
    for (const uint64_t bytes : plan.value().blocks) ASSERT_LE(bytes, pool.largest_allocation);
    const uint64_t fewest = (plan.value().lower_bound + pool.largest_allocation - 1) / pool.largest_allocation;
    ASSERT_LE(plan.value().blocks.size(), fewest + 1);
  }
}

TEST(MemoryPlan, GivesEachValueABlockOfItsOwnWherePoolsAreExclusive) {
  std::mt19937_64 random(9);
  const Pool pool{std::numeric_limits<uint64_t>::max(), true};
  for (int round = 0; round < 50; ++round) {
    SCOPED_TRACE(round);
    const std::vector<Value> values = random_values(random, 150, 60, 10);
    const auto plan = plan_memory(values, pool);
    ASSERT_TRUE(plan.ok());
    ASSERT_TRUE(check_plan(values, pool, plan.value()).ok());
    for (const Location& location : plan.value().locations) ASSERT_EQ(location.offset, 0u);
    ASSERT_LT(plan.value().blocks.size(), 120u);
  }
}

TEST(MemoryPlan, PutsAChainInTwoPlacesAndStepsInPlaceInOne) {
  std::vector<Value> chain, over;
  for (uint32_t i = 0; i < 1000; ++i) {
    chain.push_back({16, 16, i, i + 1, kNone});
    over.push_back({16, 16, i, i + 1, 5});
  }
  const auto two = plan_memory(chain, {});
  const auto one = plan_memory(over, {});
  ASSERT_TRUE(two.ok() && one.ok());
  EXPECT_EQ(two.value().peak(), 32u);
  EXPECT_EQ(one.value().peak(), 16u);
}

TEST(MemoryPlan, IsTheSameEachTime) {
  std::mt19937_64 random(10);
  const std::vector<Value> values = random_values(random, 2000, 1500, 300);
  const auto once = plan_memory(values, {});
  const auto again = plan_memory(values, {});
  ASSERT_TRUE(once.ok() && again.ok());
  EXPECT_EQ(once.value().blocks, again.value().blocks);
  for (size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(once.value().locations[i].offset, again.value().locations[i].offset);
  }
}

// Ten thousand values that are all alive at once or overlap: the methods that compare them give up, and one method
// remains.
TEST(MemoryPlan, EndsWithinItsBudgetForManyLongLives) {
  std::mt19937_64 random(11);
  const std::vector<Value> values = random_values(random, 10'000, 10'000, 10'000);
  const auto plan = plan_memory(values, {});
  ASSERT_TRUE(plan.ok());
  EXPECT_TRUE(check_plan(values, {}, plan.value()).ok());
  const double ratio = static_cast<double>(plan.value().peak()) / static_cast<double>(plan.value().lower_bound);
  std::printf("10,000 values of long lives: ratio %.4f\n", ratio);
  EXPECT_LE(ratio, 1.2);
}

TEST(MemoryPlan, OfNothingIsEmpty) {
  const auto plan = plan_memory({}, {});
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan.value().peak(), 0u);
  EXPECT_TRUE(plan.value().blocks.empty());
}

TEST(MemoryPlan, RefusesWhatNoBlockHolds) {
  const std::vector<Value> large{{100, 1, 0, 0, kNone}};
  const auto refused = plan_memory(large, {64, false});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().message(), "Value 0 has 100 bytes, but a block has 64 bytes at most.");
  const std::vector<Value> odd{{8, 3, 0, 0, kNone}};
  EXPECT_EQ(plan_memory(odd, {}).status().code(), Code::invalid_argument);
  const std::vector<Value> backwards{{8, 1, 2, 1, kNone}};
  EXPECT_EQ(plan_memory(backwards, {}).status().code(), Code::invalid_argument);
}

}  // namespace
}  // namespace tenon::plan
