// How the axes of an operand become rows.
#include "providers/opencl/kernels/axes.h"

#include <gtest/gtest.h>

#include <initializer_list>

namespace tenon::provider::opencl {
namespace {

ep_operand_desc operand(std::initializer_list<int64_t> dims, std::initializer_list<int64_t> strides) {
  ep_operand_desc made{};
  made.rank = static_cast<int32_t>(dims.size());
  std::copy(dims.begin(), dims.end(), made.dims);
  std::copy(strides.begin(), strides.end(), made.strides);
  return made;
}

TEST(Axes, KeptAxesNumberTheRowsAndWalkedAxesSpanThem) {
  const RowParameters rows = rows_of(operand({2, 1, 5}, {5, 5, 1}), operand({2, 3, 5}, {15, 5, 1}), 0b010);
  EXPECT_EQ(rows.rows, 10u);
  EXPECT_EQ(rows.length, 3u);
  EXPECT_EQ(rows.kept_rank, 2);
  EXPECT_EQ(rows.kept_dims[1], 5u);
  EXPECT_EQ(rows.kept_dst[0], 5u);
  EXPECT_EQ(rows.kept_src[0], 15u);
  EXPECT_EQ(rows.walked_rank, 1);
  EXPECT_EQ(rows.walked_src[0], 5u);
}

TEST(Axes, AxesOfOneElementAreLeftOut) {
  const RowParameters rows = rows_of(operand({1, 4, 1}, {4, 1, 1}), operand({1, 4, 1}, {4, 1, 1}), 0b100);
  EXPECT_EQ(rows.rows, 4u);
  EXPECT_EQ(rows.length, 1u);
  EXPECT_EQ(rows.kept_rank, 1);
  EXPECT_EQ(rows.walked_rank, 1);  // kernels read a stride
  EXPECT_EQ(rows.walked_dims[0], 1u);
}

TEST(Axes, AWorkItemHasAShortRowOrAColumnAlone) {
  const auto prefers = [](int64_t rows, int64_t length, int64_t row_stride, int64_t element_stride) {
    const ep_operand_desc src = operand({rows, length}, {row_stride, element_stride});
    return prefers_items(rows_of(operand({rows, 1}, {1, 1}), src, 0b10));
  };
  EXPECT_TRUE(prefers(1000, 7, 7, 1));
  EXPECT_TRUE(prefers(1000, 500, 1, 1000));
  EXPECT_FALSE(prefers(1000, 500, 500, 1));
  EXPECT_FALSE(prefers(1, 500, 1, 2));  // one row is not a column of neighbours
}

}  // namespace
}  // namespace tenon::provider::opencl
