// Launch geometry of sizes that no device here can hold.
#include "providers/vulkan/kernels/geometry.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include <random>
#include <set>
#include <vector>

namespace tenon::provider::vulkan {
namespace {

Space space_of(std::vector<int64_t> dims, std::vector<std::vector<int64_t>> strides, int32_t size) {
  Space space;
  space.rank = static_cast<int32_t>(dims.size());
  space.operands = static_cast<int32_t>(strides.size());
  std::copy(dims.begin(), dims.end(), space.dims);
  for (int32_t i = 0; i < space.operands; ++i) {
    std::copy(strides[i].begin(), strides[i].end(), space.strides[i]);
    space.sizes[i] = size;
  }
  return space;
}

std::vector<Space> pieces_of(const Space& space) {
  std::vector<Space> pieces;
  EXPECT_EQ(for_each_piece(space,
                           [&](const Space& piece) {
                             pieces.push_back(piece);
                             return EP_STATUS_OK;
                           }),
            EP_STATUS_OK);
  return pieces;
}

TEST(Geometry, PutsFewGroupsInOneRow) {
  EXPECT_EQ(grid_of(1, 65535).x, 1u);
  EXPECT_EQ(grid_of(65535, 65535).x, 65535u);
  EXPECT_EQ(grid_of(65535, 65535).y, 1u);
}

TEST(Geometry, CoversMoreGroupsThanOneRowHolds) {
  for (uint64_t groups : {UINT64_C(65536), UINT64_C(65537), UINT64_C(1) << 20, (UINT64_C(1) << 31) - 1}) {
    const Grid grid = grid_of(groups, 65535);
    EXPECT_LE(grid.x, 65535u);
    EXPECT_LE(grid.y, 65535u);
    EXPECT_GE(uint64_t{grid.x} * grid.y, groups);
    EXPECT_LT(uint64_t{grid.x} * grid.y - groups, grid.x) << "a whole row would be idle";
  }
}

TEST(Geometry, LeavesAWholeGibibyteInOnePiece) {
  const Space space = space_of({INT64_C(1) << 28}, {{1}, {1}}, 4);
  EXPECT_EQ(pieces_of(space).size(), 1u);
  EXPECT_TRUE(space.contiguous());
}

TEST(Geometry, CutsMoreThanTwoToTheThirtySecondElements) {
  const int64_t n = (INT64_C(5) << 32) + 12345;
  const std::vector<Space> pieces = pieces_of(space_of({n}, {{1}, {1}}, 4));
  int64_t next = 0;
  for (const Space& piece : pieces) {
    EXPECT_TRUE(piece.fits());
    EXPECT_LE(piece.reach(0), most_bytes);
    EXPECT_EQ(piece.offsets[0], next);
    EXPECT_EQ(piece.offsets[1], next);
    next += piece.count();
  }
  EXPECT_EQ(next, n);
}

TEST(Geometry, CutsWhereWhatIsAlignedStaysSo) {
  for (const Space& piece : pieces_of(space_of({(INT64_C(3) << 30) + 7}, {{1}, {1}}, 2))) {
    EXPECT_EQ(piece.offsets[0] % 16, 0);
  }
}

TEST(Geometry, CutsAlongTheAxisThatReachesFarthest) {
  // Few elements, 2^33 apart.
  const std::vector<Space> pieces = pieces_of(space_of({4, 1000}, {{1000, 1}, {INT64_C(1) << 33, 1}}, 4));
  ASSERT_EQ(pieces.size(), 4u);
  for (int64_t i = 0; i < 4; ++i) {
    EXPECT_EQ(pieces[i].dims[0], 1);
    EXPECT_EQ(pieces[i].dims[1], 1000);
    EXPECT_EQ(pieces[i].offsets[0], i * 1000);
    EXPECT_EQ(pieces[i].offsets[1], i << 33);
  }
}

TEST(Geometry, CutsABroadcastByItsElements) {
  const std::vector<Space> pieces = pieces_of(space_of({INT64_C(1) << 31}, {{0}, {0}}, 1));
  EXPECT_EQ(pieces.size(), 2u);
  EXPECT_EQ(pieces[1].offsets[0], 0);
}

TEST(Geometry, SurvivesSizesThatOverflow) {
  Space space = space_of({INT64_C(1) << 40, INT64_C(1) << 40}, {{INT64_C(1) << 40, 1}}, 8);
  EXPECT_EQ(space.count(), INT64_MAX);
  EXPECT_EQ(space.reach(0), INT64_MAX);
  EXPECT_FALSE(space.fits());
}

TEST(Geometry, StopsAtTheFirstFailure) {
  int calls = 0;
  const ep_status status = for_each_piece(space_of({INT64_C(1) << 34}, {{1}}, 1), [&](const Space&) {
    ++calls;
    return calls == 3 ? EP_STATUS_DEVICE_LOST : EP_STATUS_OK;
  });
  EXPECT_EQ(status, EP_STATUS_DEVICE_LOST);
  EXPECT_EQ(calls, 3);
}

// Pieces are boxes with one corner as their offset. Together they contain every element once.
TEST(Geometry, PiecesTogetherAreTheWhole) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 50; ++round) {
    const int64_t far = INT64_C(1) << (20 + random() % 12);
    const std::vector<int64_t> dims = {static_cast<int64_t>(1 + random() % 5), static_cast<int64_t>(1 + random() % 7),
                                       static_cast<int64_t>(1 + random() % 9)};
    const Space space = space_of(dims, {{far * 5, 3, far}, {63, 9, 1}}, 4);
    std::set<int64_t> seen;
    for (const Space& piece : pieces_of(space)) {
      ASSERT_TRUE(piece.fits());
      for (int64_t a = 0; a < piece.dims[0]; ++a) {
        for (int64_t b = 0; b < piece.dims[1]; ++b) {
          for (int64_t c = 0; c < piece.dims[2]; ++c) {
            const int64_t number = piece.offsets[1] + a * 63 + b * 9 + c;
            EXPECT_TRUE(seen.insert(number).second);
            EXPECT_EQ(piece.offsets[0] + a * far * 5 + b * 3 + c * far,
                      number / 63 * far * 5 + number % 63 / 9 * 3 + number % 9 * far);
          }
        }
      }
    }
    EXPECT_EQ(static_cast<int64_t>(seen.size()), space.count());
  }
}

// Every tile of every matrix is computed once, in dispatches of limited work.
TEST(MatmulCut, IsOfLittleWork) {
  constexpr uint64_t most = UINT64_C(1) << 36;
  for (const auto& [tiles, batches, k] : {std::array<uint64_t, 3>{1, 1, 64},
                                          {16384, 1, 8192},
                                          {4, 70000, 3},
                                          {16384, 12, 16384},
                                          {9, 100000, 0},
                                          {1, 3, UINT64_C(1) << 28}}) {
    const MatmulCut cut = cut_matmul(tiles, batches, k, most);
    EXPECT_EQ(cut.all_tiles, tiles);
    EXPECT_GE(cut.tiles, 1u);
    EXPECT_LE(cut.tiles, tiles);
    EXPECT_GE(cut.batches, 1u);
    EXPECT_LE(cut.batches, std::min<uint64_t>(batches, 65535));
    EXPECT_TRUE(cut.tiles == tiles || cut.batches == 1) << "a piece of a matrix is of one matrix";
    EXPECT_TRUE(cut.tiles * cut.batches == 1 || cut.tiles * cut.batches * matmul_tile_work(k) <= most);
  }
  EXPECT_EQ(cut_matmul(4, 70000, 3, most).batches, 65535u);
  EXPECT_EQ(cut_matmul(16384, 1, 8192, most).tiles, 2047u);
}

}  // namespace
}  // namespace tenon::provider::vulkan
