#include "primitives/shape/shape.h"

#include <gtest/gtest.h>

namespace tenon {
namespace {

TEST(Dims, InsertsErasesAndResizes) {
  Dims dims = {2, 3, 4};
  dims.insert(1, 7);
  EXPECT_EQ(dims, (Dims{2, 7, 3, 4}));
  dims.erase(0);
  EXPECT_EQ(dims, (Dims{7, 3, 4}));
  dims.resize(4, 9);
  EXPECT_EQ(dims, (Dims{7, 3, 4, 9}));
  dims.resize(1);
  EXPECT_EQ(dims, Dims{7});
  EXPECT_EQ(to_string(Dims{2, -1}), "[2, -1]");
  EXPECT_EQ(to_string(Dims{}), "[]");
}

TEST(Dims, CountRefusesNegativeDimsAndOverflow) {
  EXPECT_EQ(checked_count({2, 3, 4}), 24);
  EXPECT_EQ(checked_count({}), 1);
  EXPECT_EQ(checked_count({0, 5}), 0);
  EXPECT_EQ(checked_count({2, -1}), std::nullopt);
  const int64_t huge = int64_t{1} << 31;
  EXPECT_EQ(checked_count({huge, huge}, 1), int64_t{1} << 62);
  EXPECT_EQ(checked_count({huge, huge}, 8), std::nullopt);
  EXPECT_EQ(checked_count({huge, huge, huge, 0}, 8), std::nullopt);
}

TEST(Strides, AreRowMajor) {
  EXPECT_EQ(contiguous_strides({2, 3, 4}), (Dims{12, 4, 1}));
  EXPECT_EQ(contiguous_strides({}), Dims{});
  EXPECT_TRUE(is_contiguous({2, 3}, {3, 1}));
  EXPECT_FALSE(is_contiguous({2, 3}, {1, 2}));
  EXPECT_TRUE(is_contiguous({2, 1, 3}, {3, 999, 1}));
  EXPECT_TRUE(is_contiguous({0, 3}, {5, 7}));
  EXPECT_FALSE(is_contiguous({4}, {0}));
}

}  // namespace
}  // namespace tenon
