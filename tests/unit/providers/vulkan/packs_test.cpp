// Descriptors and launches that use packs of 16 bytes, and those that must not.
#include "providers/vulkan/kernels/packs.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/unit/providers/provider_fixture.h"

namespace tenon::provider::vulkan {
namespace {

ep_operand_desc row(int32_t dtype) { return strided(EP_ROLE_SRC, dtype, {EP_ANY}, {1}); }
ep_operand_desc one_for_all(int32_t dtype) { return strided(EP_ROLE_SRC, dtype, {EP_ANY}, {0}); }

Layout layout(const std::vector<ep_operand_desc>& operands, bool packs = true) {
  ep_primitive_desc desc{};
  desc.operand_count = static_cast<uint32_t>(operands.size());
  std::copy(operands.begin(), operands.end(), desc.operands);
  return layout_of(desc, packs);
}

TEST(Packs, FillSixteenBytesOfEveryType) {
  for (const auto& [dtype, elements] : std::vector<std::pair<int32_t, int32_t>>{{EP_DTYPE_bool, 16},
                                                                                {EP_DTYPE_i8, 16},
                                                                                {EP_DTYPE_f8e5m2, 16},
                                                                                {EP_DTYPE_f16, 8},
                                                                                {EP_DTYPE_bf16, 8},
                                                                                {EP_DTYPE_f32, 4},
                                                                                {EP_DTYPE_i64, 2},
                                                                                {EP_DTYPE_f64, 2}}) {
    EXPECT_EQ(layout({row(dtype)}).pack, elements) << dtype;
    EXPECT_EQ(layout({row(dtype), row(dtype), row(dtype), row(dtype)}).pack, elements) << dtype;
  }
}

TEST(Packs, AreAsManyElementsAsTheLargestTypeAllows) {
  EXPECT_EQ(layout({row(EP_DTYPE_bool), row(EP_DTYPE_f32), row(EP_DTYPE_f32)}).pack, 4);
  EXPECT_EQ(layout({row(EP_DTYPE_f32), row(EP_DTYPE_f16)}).pack, 4);
  EXPECT_EQ(layout({row(EP_DTYPE_i16), row(EP_DTYPE_i64)}).pack, 2);
  EXPECT_EQ(layout({row(EP_DTYPE_bool), row(EP_DTYPE_i64)}).pack, 1) << "two bytes are less than one access";
}

TEST(Packs, DoNotLookAtWhatIsNoRowOfElements) {
  const Layout with_scalar = layout({row(EP_DTYPE_u8), row(EP_DTYPE_u8), scalar_operand(EP_ROLE_SRC, EP_DTYPE_f64)});
  EXPECT_EQ(with_scalar.pack, 16);
  EXPECT_EQ(with_scalar.repeated, 0U);
  const Layout repeated = layout({row(EP_DTYPE_f16), one_for_all(EP_DTYPE_f16), row(EP_DTYPE_f16)});
  EXPECT_FALSE(repeated.strided);
  EXPECT_EQ(repeated.repeated, 1U);
  EXPECT_EQ(repeated.pack, 8);
  EXPECT_EQ(packs_in(repeated, 80, {0, 6, 32, 0}), 10U) << "one element needs no alignment but its own";
}

TEST(Packs, NeedOperandsThatAreContiguousWhateverTheDims) {
  EXPECT_EQ(layout({strided(EP_ROLE_SRC, EP_DTYPE_f32, {EP_ANY, 6, 5}, {30, 5, 1})}).pack, 4);
  for (const ep_operand_desc& other :
       {strided(EP_ROLE_SRC, EP_DTYPE_f32, {EP_ANY}, {2}), strided(EP_ROLE_SRC, EP_DTYPE_f32, {EP_ANY, 5}, {6, 1}),
        strided(EP_ROLE_SRC, EP_DTYPE_f32, {EP_ANY, EP_ANY}, {EP_ANY, 1}),
        strided(EP_ROLE_SRC, EP_DTYPE_f32, {EP_ANY, 5}, {0, 1}),
        strided(EP_ROLE_SRC, EP_DTYPE_f32, {4, EP_ANY}, {1, 4})}) {
    const Layout found = layout({strided(EP_ROLE_SRC, EP_DTYPE_f32, {EP_ANY, 5}, {5, 1}), other});
    EXPECT_TRUE(found.strided);
    EXPECT_EQ(found.pack, 1);
  }
  EXPECT_TRUE(layout({one_for_all(EP_DTYPE_f32)}).strided) << "a destination is not repeated";
}

TEST(Packs, AreLeftOutWhereNobodyAskedForThem) {
  const Layout found = layout({row(EP_DTYPE_f32), row(EP_DTYPE_f32)}, false);
  EXPECT_FALSE(found.strided);
  EXPECT_EQ(packs_in(found, 1000, {0, 0, 0, 0}), 0U);
}

TEST(Packs, LeaveOverLessThanOne) {
  const Layout floats = layout({row(EP_DTYPE_f32), row(EP_DTYPE_f32)});
  EXPECT_EQ(packs_in(floats, 3, {256, 512, 0, 0}), 0U);
  EXPECT_EQ(packs_in(floats, 4, {256, 512, 0, 0}), 1U);
  EXPECT_EQ(packs_in(floats, 4099, {256, 512, 0, 0}), 1024U);
}

TEST(Packs, AreNoneWhereAnAddressIsNotAligned) {
  const Layout floats = layout({row(EP_DTYPE_f32), row(EP_DTYPE_f32), row(EP_DTYPE_f32)});
  for (size_t i = 0; i < 3; ++i) {
    for (uint64_t offset : {4, 8, 12}) {
      uint64_t addresses[4] = {4096, 4096, 4096, 0};
      addresses[i] += offset;
      EXPECT_EQ(packs_in(floats, 4096, addresses), 0U);
    }
  }
  const Layout compared = layout({row(EP_DTYPE_bool), row(EP_DTYPE_f32), row(EP_DTYPE_f32)});
  EXPECT_EQ(packs_in(compared, 4096, {4100, 4096, 4096, 0}), 1024U) << "its packs are four bytes";
  EXPECT_EQ(packs_in(compared, 4096, {4098, 4096, 4096, 0}), 0U);
}

}  // namespace
}  // namespace tenon::provider::vulkan
