// Defects are planted in correct plans.
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "core/plan/memory_plan.h"
#include "tests/unit/plan/models.h"

namespace tenon::plan {
namespace {

MemoryPlan plan_of(const std::vector<Value>& values) {
  auto plan = plan_memory(values, {});
  EXPECT_TRUE(plan.ok());
  return std::move(plan).value();
}

TEST(CheckPlan, NamesTwoValuesThatOverlap) {
  const std::vector<Value> values{{64, 64, 0, 4, kNone}, {100, 4, 2, 6, kNone}};
  MemoryPlan plan = plan_of(values);
  plan.locations[0] = {0, 64};
  plan.locations[1] = {0, 0};
  EXPECT_EQ(check_plan(values, {}, plan).message(),
            "The memory plan is wrong: values 0 (64 bytes at 64) and 1 (100 bytes at 0) share bytes of block 0 at "
            "step 2.");
}

// Moves one value at a time onto a byte of another that lives at the same time.
TEST(CheckPlan, FindsEachPlantedOverlapInPlansOfModels) {
  std::mt19937_64 random(3);
  for (const testing::ModelOfValues& model : testing::models_of_values()) {
    SCOPED_TRACE(model.name);
    const std::vector<Value>& values = model.values;
    const MemoryPlan sound = plan_of(values);
    ASSERT_TRUE(check_plan(values, {}, sound).ok());
    int planted = 0;
    for (int round = 0; round < 400; ++round) {
      const size_t a = random() % values.size(), b = (a + 1 + random() % 4) % values.size();
      if (a == b || values[a].group != kNone || values[b].group != kNone) continue;
      if (values[a].first > values[b].last || values[b].first > values[a].last) continue;
      MemoryPlan broken = sound;
      broken.locations[a].offset = broken.locations[b].offset / 256 * 256;
      broken.blocks[0] += values[a].bytes;
      ++planted;
      const Status found = check_plan(values, {}, broken);
      ASSERT_EQ(found.code(), Code::internal) << a << " onto " << b;
      ASSERT_NE(found.message().find("share bytes"), std::string::npos) << found.message();
    }
    EXPECT_GT(planted, 3);
  }
}

TEST(CheckPlan, FindsPlacesOutsideABlockMisalignedOrTornApart) {
  const std::vector<Value> values{{64, 64, 0, 1, 9}, {64, 64, 1, 2, 9}, {32, 16, 0, 2, kNone}};
  const MemoryPlan sound = plan_of(values);
  MemoryPlan plan = sound;
  plan.locations[2].offset = sound.blocks[0] - 16;
  EXPECT_FALSE(check_plan(values, {}, plan).ok());
  plan = sound;
  plan.locations[2].block = 1;
  EXPECT_FALSE(check_plan(values, {}, plan).ok());
  plan = sound;
  plan.locations[2].offset += 8;
  plan.blocks[0] += 8;
  EXPECT_NE(check_plan(values, {}, plan).message().find("not a multiple of 16"), std::string::npos);
  plan = sound;
  plan.locations[1].offset += 128;
  plan.blocks[0] += 128;
  EXPECT_NE(check_plan(values, {}, plan).message().find("of group 9 lie at"), std::string::npos);
  plan = sound;
  plan.locations.pop_back();
  EXPECT_FALSE(check_plan(values, {}, plan).ok());
  EXPECT_FALSE(check_plan(values, {64, false}, sound).ok());
  EXPECT_FALSE(check_plan(values, {~uint64_t{0}, true}, sound).ok());
}

// A group owns its location from its first step to its last, even while no value of the group is alive.
TEST(CheckPlan, KeepsThePlaceOfAGroupBetweenItsValues) {
  const std::vector<Value> values{{64, 64, 0, 1, 0}, {64, 64, 5, 6, 0}, {64, 64, 3, 3, kNone}};
  MemoryPlan plan = plan_of(values);
  EXPECT_EQ(plan.peak(), 128u);
  plan.locations[2] = plan.locations[0];
  EXPECT_FALSE(check_plan(values, {}, plan).ok());
}

}  // namespace
}  // namespace tenon::plan
