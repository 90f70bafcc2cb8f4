#include "primitives/shape/shape.h"

#include <gtest/gtest.h>

#include <span>
#include <string>
#include <vector>

#include "primitives/status/error.h"

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

TEST(Dims, RefusesMoreThanTheLargestRank) {
  const std::vector<int64_t> nine(9, 1);
  const std::span<const int64_t> eight(nine.data(), 8);
  EXPECT_EQ(Dims(eight).rank(), 8);
  const auto refused = [](auto&& make) {
    try {
      make();
    } catch (const Error& error) {
      return error.code() == Code::invalid_argument && std::string(error.what()).find("rank 9") != std::string::npos;
    }
    return false;
  };
  EXPECT_TRUE(refused([&] { Dims dims{std::span<const int64_t>(nine)}; }));
  EXPECT_TRUE(refused([] { Dims dims{1, 1, 1, 1, 1, 1, 1, 1, 1}; }));
  EXPECT_TRUE(refused([] { Dims::filled(9, 1); }));
  Dims full(eight);
  EXPECT_TRUE(refused([&] { full.push_back(1); }));
  EXPECT_TRUE(refused([&] { full.insert(0, 1); }));
  EXPECT_TRUE(refused([&] { full.resize(9); }));
  EXPECT_EQ(full, Dims(eight)) << "a refusal changes nothing";
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
