// Rows: which ones are read in blocks of 16 bytes, and which axes are merged.
#include "providers/vulkan/kernels/row_space.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/unit/providers/provider_fixture.h"

namespace tenon::provider::vulkan {
namespace {

// Source and destination of the same shape, as in softmax.
RowsSpace rows(int32_t dtype, const std::vector<int64_t>& dims, const std::vector<int64_t>& src,
               const std::vector<int64_t>& dst, uint32_t walked) {
  ep_primitive_desc desc{};
  desc.operand_count = 2;
  desc.operands[0] = strided(EP_ROLE_DST, dtype, dims, dst);
  desc.operands[1] = strided(EP_ROLE_SRC, dtype, dims, src);
  return RowsSpace(desc, walked);
}

TEST(RowsSpace, TakesSixteenBytesOfContiguousRows) {
  EXPECT_EQ(rows(EP_DTYPE_f32, {3, 1000}, {1000, 1}, {1000, 1}, 2).block(2), 4);
  EXPECT_EQ(rows(EP_DTYPE_f16, {3, 1000}, {1000, 1}, {1000, 1}, 2).block(2), 8);
  EXPECT_EQ(rows(EP_DTYPE_u8, {3, 1008}, {1008, 1}, {1008, 1}, 2).block(2), 16);
  EXPECT_EQ(rows(EP_DTYPE_i64, {3, 1000}, {1000, 1}, {1000, 1}, 2).block(2), 2);
  EXPECT_EQ(rows(EP_DTYPE_f32, {1, 1001}, {1001, 1}, {1001, 1}, 2).block(2), 4) << "there is one row only";
}

TEST(RowsSpace, TakesSingleElementsWhereRowsBeginAnywhere) {
  EXPECT_EQ(rows(EP_DTYPE_f32, {3, 1001}, {1001, 1}, {1001, 1}, 2).block(2), 1);
  EXPECT_EQ(rows(EP_DTYPE_f16, {3, 1004}, {1004, 1}, {1004, 1}, 2).block(2), 1);
  EXPECT_EQ(rows(EP_DTYPE_f32, {2, 3, 40}, {123, 40, 1}, {120, 40, 1}, 4).block(2), 1);
}

TEST(RowsSpace, TakesSingleElementsWhereTheyLieApart) {
  EXPECT_EQ(rows(EP_DTYPE_f32, {1000, 4}, {4, 1}, {4, 1}, 1).block(2), 1);
  EXPECT_EQ(rows(EP_DTYPE_f32, {4, 1000}, {2000, 2}, {1000, 1}, 2).block(1), 1);
  EXPECT_EQ(rows(EP_DTYPE_f32, {4, 1000}, {0, 0}, {1000, 1}, 2).block(1), 1);
}

TEST(RowsSpace, KnowsWhetherRowsLieNearerThanTheirElements) {
  EXPECT_TRUE(rows(EP_DTYPE_f32, {1000, 4}, {4, 1}, {4, 1}, 1).rows_are_dense());
  EXPECT_TRUE(rows(EP_DTYPE_f32, {2, 300, 4}, {1200, 4, 1}, {1, 1, 1}, 0b010).rows_are_dense());
  EXPECT_FALSE(rows(EP_DTYPE_f32, {4, 1000}, {1000, 1}, {1000, 1}, 2).rows_are_dense());
  EXPECT_FALSE(rows(EP_DTYPE_f32, {300, 4, 2}, {8, 2, 1}, {1, 1, 1}, 0b101).rows_are_dense());
  EXPECT_FALSE(rows(EP_DTYPE_f32, {1000, 1}, {1, 1}, {1, 1}, 1).rows_are_dense()) << "there is one row";
}

TEST(RowsSpace, LooksAtTheDestinationWhereItIsWrittenInRows) {
  const RowsSpace space = rows(EP_DTYPE_f32, {4, 1000}, {1000, 1}, {1001, 1}, 2);
  EXPECT_EQ(space.block(1), 4);
  EXPECT_EQ(space.block(2), 1);
}

// Few invocations per row if there are many rows; more if rows are few or long.
TEST(RowsSpace, AreSharedByAsManyInvocationsAsHoldThemAndFillTheDevice) {
  const auto bits = [](int64_t count, int64_t length, bool software) {
    return lane_bits_for(rows(EP_DTYPE_f32, {count, length}, {length, 1}, {length, 1}, 2), software);
  };
  EXPECT_EQ(bits(100000, 15, false), 0U);
  EXPECT_EQ(bits(100000, 16, false), 5U);
  EXPECT_EQ(bits(262144, 1024, false), 5U);
  EXPECT_EQ(bits(262144, 1025, false), 6U);
  EXPECT_EQ(bits(4, 1024, false), 7U) << "each takes 8 elements";
  EXPECT_EQ(bits(1024, 1024, false), 6U) << "65536 invocations are enough";
  EXPECT_EQ(bits(100000, 100000, false), 8U);
  EXPECT_EQ(bits(262144, 384, true), 5U);
  EXPECT_EQ(bits(262144, 385, true), 8U);
  EXPECT_EQ(lane_bits_for(rows(EP_DTYPE_f32, {1000, 64}, {64, 1}, {64, 1}, 1), false), 0U) << "rows are dense";
}

TEST(RowsSpace, WalksAxesThatContinueEachOtherAsOne) {
  RowsBlock block{};
  const RowsSpace whole = rows(EP_DTYPE_f32, {5, 8, 1, 6}, {48, 6, 6, 1}, {1, 1, 1, 1}, 0b1110);
  whole.write(whole.kept(), &block);
  EXPECT_EQ(block.walked_rank, 1U);
  EXPECT_EQ(block.walked_dims[0], 48U);
  EXPECT_EQ(block.walked_src[0], 1U);
  EXPECT_EQ(whole.length(), 48);
  EXPECT_EQ(whole.block(1), 4);
  const RowsSpace apart = rows(EP_DTYPE_f32, {5, 8, 6}, {96, 12, 1}, {1, 1, 1}, 0b110);
  apart.write(apart.kept(), &block);
  EXPECT_EQ(block.walked_rank, 2U);
  EXPECT_EQ(apart.length(), 48);
  EXPECT_EQ(apart.block(1), 1);
  const RowsSpace around = rows(EP_DTYPE_f32, {1, 5, 48}, {7, 48, 1}, {1, 1, 1}, 0b101);
  EXPECT_EQ(around.block(1), 4) << "an axis of length 1 is not an axis";
}

}  // namespace
}  // namespace tenon::provider::vulkan
