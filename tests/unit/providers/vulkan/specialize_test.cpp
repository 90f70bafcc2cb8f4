// The rest of a module when its constants are known.
#include "providers/vulkan/kernels/specialize.h"

#include <gtest/gtest.h>

#include <set>

#include "ep_api/ep_api.h"
#include "providers/vulkan/kernels/modules.h"

namespace tenon::provider::vulkan {
namespace {

constexpr uint32_t op_function = 54;
constexpr uint32_t op_name = 5;

uint64_t count_of(const std::vector<uint32_t>& words, uint32_t op) {
  uint64_t count = 0;
  for (size_t at = 5; at < words.size(); at += words[at] >> 16) count += (words[at] & 0xffffU) == op ? 1 : 0;
  return count;
}

TEST(Specialize, LeavesOneRowOfAModule) {
  const std::span<const uint32_t> whole = module_words("map1_f32_words");
  ASSERT_FALSE(whole.empty());
  const std::vector<uint32_t> all(whole.begin(), whole.end());
  const std::vector<uint32_t> relu = specialize(whole, std::vector<uint32_t>{256, 32, EP_UNARY_relu});
  const std::vector<uint32_t> erf = specialize(whole, std::vector<uint32_t>{256, 32, EP_UNARY_erf});
  EXPECT_LT(relu.size(), all.size() / 3);
  EXPECT_LT(relu.size(), erf.size());
  EXPECT_LT(count_of(relu, op_function), count_of(all, op_function));
  EXPECT_EQ(count_of(relu, op_name), 0u);
  EXPECT_EQ(std::vector<uint32_t>(relu.begin(), relu.begin() + 5), std::vector<uint32_t>(all.begin(), all.begin() + 5));
}

TEST(Specialize, LeavesPacksOutOfAPipelineWithoutThem) {
  std::vector<uint32_t> values = {256, 32, EP_BINARY_add, EP_DTYPE_f32, EP_DTYPE_f32, 0, 0, 0, 1};
  const std::vector<uint32_t> without = specialize(module_words("map2_f32_narrow"), values);
  values.back() = 4;
  EXPECT_LT(count_of(without, op_function), count_of(specialize(module_words("map2_f32_narrow"), values), op_function));
}

TEST(Specialize, TakesTheDefaultOfAConstantThatIsNotGiven) {
  const std::span<const uint32_t> whole = module_words("reduce_i32_words");
  ASSERT_FALSE(whole.empty());
  EXPECT_EQ(specialize(whole, {}), specialize(whole, std::vector<uint32_t>{256, 32, EP_REDUCE_sum}));
}

TEST(Specialize, IsDoneAfterOnce) {
  const std::vector<uint32_t> values = {256, 32, EP_BINARY_pow};
  const std::vector<uint32_t> once = specialize(module_words("map2_f32_words"), values);
  EXPECT_EQ(specialize(once, values), once);
}

// True if `module` declares `capability`, and `mode` for f32 of its entry point.
bool asks(const std::vector<uint32_t>& module, uint32_t capability, uint32_t mode) {
  uint32_t entry = 0;
  bool declared = false;
  bool executed = false;
  for (size_t at = 5; at < module.size(); at += module[at] >> 16) {
    const uint32_t op = module[at] & 0xffffU;
    if (op == 15) entry = module[at + 2];
    declared = declared || (op == 17 && module[at + 1] == capability);
    executed = executed || (op == 16 && module[at + 1] == entry && module[at + 2] == mode && module[at + 3] == 32);
  }
  EXPECT_EQ(declared, executed);
  return declared;
}

TEST(FloatModes, AreAskedForWhereFloatsAreComputed) {
  const std::vector<uint32_t> relu =
      specialize(module_words("map1_f32_words"), std::vector<uint32_t>{256, 32, EP_UNARY_relu});
  EXPECT_EQ(ask_of_floats(relu, {}), relu);
  const std::vector<uint32_t> both = ask_of_floats(relu, {true, true});
  EXPECT_TRUE(asks(both, 4466, 4461));  // SignedZeroInfNanPreserve
  EXPECT_TRUE(asks(both, 4467, 4462));  // RoundingModeRTE
  const std::vector<uint32_t> one = ask_of_floats(relu, {true, false});
  EXPECT_TRUE(asks(one, 4466, 4461));
  EXPECT_FALSE(asks(one, 4467, 4462));
  EXPECT_FALSE(asks(both, 4464, 4459));
  EXPECT_TRUE(asks(ask_of_floats(relu, {false, false, true}), 4464, 4459));  // DenormPreserve
  const std::span<const uint32_t> move = module_words("move_bits_words");
  const std::vector<uint32_t> bits(move.begin(), move.end());
  EXPECT_EQ(ask_of_floats(bits, {true, true}), bits);
}

TEST(Modules, AnUnknownNameHasNoWords) { EXPECT_TRUE(module_words("map9_f32_words").empty()); }

}  // namespace
}  // namespace tenon::provider::vulkan
