// A fold is correct if it keeps the sets of addresses that belong together. Each test walks the operands before and
// after it.
#include "primitives/simplify/simplify.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "primitives/shape/shape.h"

namespace tenon::simplify {
namespace {

constexpr int32_t most_operands = 4;

struct Layout {
  int32_t rank = 0;
  int64_t dims[8] = {};
  int64_t strides[most_operands][8] = {};
  int64_t* pointers[most_operands] = {strides[0], strides[1], strides[2], strides[3]};

  Layout() = default;
  Layout(const Layout& other) : rank(other.rank) {
    std::copy_n(other.dims, 8, dims);
    std::copy_n(&other.strides[0][0], 8 * most_operands, &strides[0][0]);
  }
  Layout& operator=(const Layout&) = delete;
};

// For each index, the offsets of all operands. `chosen` limits the walked axes.
std::vector<std::vector<int64_t>> walk(const Layout& layout, int32_t operands, uint32_t chosen = ~0U) {
  std::vector<std::vector<int64_t>> tuples = {std::vector<int64_t>(static_cast<size_t>(operands), 0)};
  for (int32_t axis = 0; axis < layout.rank; ++axis) {
    if ((chosen >> axis & 1) == 0) continue;
    std::vector<std::vector<int64_t>> wider;
    for (const auto& tuple : tuples) {
      for (int64_t i = 0; i < layout.dims[axis]; ++i) {
        auto next = tuple;
        for (int32_t o = 0; o < operands; ++o) next[static_cast<size_t>(o)] += i * layout.strides[o][axis];
        wider.push_back(next);
      }
    }
    tuples = std::move(wider);
  }
  return tuples;
}

std::vector<std::vector<int64_t>> sorted(std::vector<std::vector<int64_t>> tuples) {
  std::sort(tuples.begin(), tuples.end());
  return tuples;
}

// Random dims. The strides have a random axis order, some gaps, and 0 in some axes of operands that may repeat.
Layout random_layout(std::mt19937* random, int32_t operands, int32_t first_that_repeats) {
  Layout layout;
  layout.rank = static_cast<int32_t>((*random)() % 6);
  for (int32_t axis = 0; axis < layout.rank; ++axis) layout.dims[axis] = 1 + static_cast<int64_t>((*random)() % 3);
  std::vector<int32_t> order(static_cast<size_t>(layout.rank));
  std::iota(order.begin(), order.end(), 0);
  const bool shuffled = (*random)() % 2 == 0;
  if (shuffled) std::shuffle(order.begin(), order.end(), *random);
  for (int32_t o = 0; o < operands; ++o) {
    if ((*random)() % 4 == 0) std::shuffle(order.begin(), order.end(), *random);
    int64_t step = 1;
    for (auto axis = order.rbegin(); axis != order.rend(); ++axis) {
      layout.strides[o][*axis] = step;
      step *= layout.dims[*axis];
      if ((*random)() % 8 == 0) step += 5;
      const bool repeats = o >= first_that_repeats && (*random)() % 4 == 0;
      if (repeats) layout.strides[o][*axis] = 0;
    }
  }
  return layout;
}

TEST(FoldElementwise, KeepsWhichElementsMeet) {
  std::mt19937 random(1);
  int folded_axes = 0;
  for (int i = 0; i < 5000; ++i) {
    const Layout before = random_layout(&random, 3, 1);
    Layout after = before;
    after.rank = fold_elementwise(after.rank, after.dims, after.pointers, 3);
    ASSERT_GE(after.rank, 1);
    ASSERT_LE(after.rank, std::max(before.rank, 1));
    EXPECT_EQ(sorted(walk(before, 3)), sorted(walk(after, 3)));
    for (int32_t axis = 0; axis < after.rank; ++axis) {
      EXPECT_TRUE(after.rank == 1 || after.dims[axis] > 1);
      EXPECT_TRUE(axis == 0 || after.strides[0][axis - 1] >= after.strides[0][axis]);
    }
    folded_axes += before.rank - after.rank;
  }
  EXPECT_GT(folded_axes, 3000);
}

TEST(FoldElementwise, ContiguousOperandsBecomeOneAxis) {
  Layout layout;
  layout.rank = 4;
  std::copy_n(Dims{2, 3, 1, 4}.data(), 4, layout.dims);
  for (auto& strides : layout.strides) std::copy_n(Dims{12, 4, 4, 1}.data(), 4, strides);
  EXPECT_EQ(fold_elementwise(4, layout.dims, layout.pointers, 4), 1);
  EXPECT_EQ(layout.dims[0], 24);
  for (const auto& strides : layout.strides) EXPECT_EQ(strides[0], 1);
}

TEST(FoldElementwise, EqualTransposedLayoutsBecomeOneAxis) {
  Layout layout;
  layout.rank = 3;
  std::copy_n(Dims{2, 3, 4}.data(), 3, layout.dims);
  for (auto& strides : layout.strides) std::copy_n(Dims{1, 8, 2}.data(), 3, strides);
  EXPECT_EQ(fold_elementwise(3, layout.dims, layout.pointers, 2), 1);
  EXPECT_EQ(layout.dims[0], 24);
}

TEST(FoldElementwise, NothingBecomesOneElement) {
  Layout layout;
  EXPECT_EQ(fold_elementwise(0, layout.dims, layout.pointers, 2), 1);
  EXPECT_EQ(layout.dims[0], 1);
  EXPECT_EQ(layout.strides[0][0], 1);
  layout.dims[0] = layout.dims[1] = 1;
  layout.strides[1][0] = 0;
  EXPECT_EQ(fold_elementwise(2, layout.dims, layout.pointers, 2), 1);
  EXPECT_EQ(layout.strides[1][0], 1);
}

TEST(FoldElementwise, RowsThatRepeatKeepTwoAxes) {
  Layout layout;
  layout.rank = 3;
  std::copy_n(Dims{5, 2, 7}.data(), 3, layout.dims);
  std::copy_n(Dims{14, 7, 1}.data(), 3, layout.strides[0]);
  std::copy_n(Dims{14, 7, 1}.data(), 3, layout.strides[1]);
  std::copy_n(Dims{0, 0, 1}.data(), 3, layout.strides[2]);
  EXPECT_EQ(fold_elementwise(3, layout.dims, layout.pointers, 3), 2);
  EXPECT_EQ(layout.dims[0], 10);
  EXPECT_EQ(layout.strides[2][0], 0);
  EXPECT_EQ(layout.strides[2][1], 1);
}

// The source offsets that contribute to each destination offset.
std::vector<std::vector<int64_t>> meetings(Layout layout, uint32_t axes) {
  for (int32_t axis = 0; axis < layout.rank; ++axis) {
    if (axes >> axis & 1) layout.strides[0][axis] = 0;
  }
  return sorted(walk(layout, 2));
}

TEST(FoldReduce, KeepsWhatMeetsInEachResult) {
  std::mt19937 random(2);
  for (int i = 0; i < 5000; ++i) {
    Layout before = random_layout(&random, 2, 1);
    if (before.rank == 0) continue;
    const uint32_t axes = 1 + static_cast<uint32_t>(random()) % ((1U << before.rank) - 1);
    Layout after = before;
    uint32_t folded = axes;
    after.rank = fold_reduce(after.rank, after.dims, &folded, after.pointers, 2);
    EXPECT_NE(folded, 0U);
    EXPECT_EQ(folded >> after.rank, 0U);
    EXPECT_LE(after.rank, before.rank);
    EXPECT_EQ(meetings(before, axes), meetings(after, folded));
  }
}

TEST(FoldReduce, ContiguousReductionsTakeAtMostTwoAxes) {
  Layout layout;
  std::copy_n(Dims{2, 3, 4, 5}.data(), 4, layout.dims);
  std::copy_n(Dims{60, 20, 5, 1}.data(), 4, layout.strides[1]);
  std::copy_n(Dims{3, 1, 1, 1}.data(), 4, layout.strides[0]);
  uint32_t axes = 0b1100;
  EXPECT_EQ(fold_reduce(4, layout.dims, &axes, layout.pointers, 2), 2);
  EXPECT_EQ(axes, 0b10U);
  EXPECT_EQ(layout.dims[0], 6);
  EXPECT_EQ(layout.dims[1], 20);
}

TEST(FoldMarked, KeepsMarkedAxesAloneAndInOrder) {
  std::mt19937 random(3);
  for (int i = 0; i < 5000; ++i) {
    const Layout before = random_layout(&random, 3, 1);
    const uint32_t marked = before.rank == 0 ? 0 : static_cast<uint32_t>(random()) % (1U << before.rank);
    Layout after = before;
    uint32_t folded = marked;
    after.rank = fold_marked(after.rank, after.dims, &folded, after.pointers, 3);
    EXPECT_EQ(__builtin_popcount(folded), __builtin_popcount(marked));
    EXPECT_EQ(walk(before, 3), walk(after, 3));  // the order is equal, because no element moves
    EXPECT_EQ(walk(before, 3, marked), walk(after, 3, folded));
  }
}

TEST(FoldMarked, MakesOuterAxisInner) {
  Layout layout;
  std::copy_n(Dims{2, 3, 1, 4, 5}.data(), 5, layout.dims);
  for (auto& strides : layout.strides) std::copy_n(Dims{60, 20, 20, 5, 1}.data(), 5, strides);
  uint32_t marked = 0b100;
  EXPECT_EQ(fold_marked(5, layout.dims, &marked, layout.pointers, 2), 3);
  EXPECT_EQ(marked, 0b10U);
  EXPECT_EQ(layout.dims[0], 6);
  EXPECT_EQ(layout.dims[1], 1);
  EXPECT_EQ(layout.dims[2], 20);
}

TEST(FoldHalves, KeepsTheTwoGroupsApart) {
  std::mt19937 random(4);
  for (int i = 0; i < 5000; ++i) {
    Layout before = random_layout(&random, 3, 3);
    if (before.rank == 0) continue;
    const auto axis = static_cast<int32_t>(random() % static_cast<uint32_t>(before.rank));
    for (int32_t a = 0; a < axis; ++a) before.strides[2][a] = 0;
    Layout after = before;
    int32_t folded = axis;
    after.rank = fold_halves(after.rank, after.dims, &folded, after.pointers, 3);
    ASSERT_LT(folded, after.rank);
    EXPECT_LE(after.rank, before.rank);
    EXPECT_EQ(walk(before, 3), walk(after, 3));
    EXPECT_EQ(walk(before, 3, ~0U << axis), walk(after, 3, ~0U << folded));
  }
}

TEST(FoldBatch, LeavesTheMatrixAlone) {
  std::mt19937 random(5);
  for (int i = 0; i < 5000; ++i) {
    const Layout before = random_layout(&random, 3, 1);
    if (before.rank < 2) continue;
    Layout after = before;
    after.rank = fold_batch(after.rank, after.dims, after.pointers, 3);
    ASSERT_GE(after.rank, 2);
    EXPECT_EQ(walk(before, 3), walk(after, 3));
    for (int32_t axis = 1; axis <= 2; ++axis) {
      EXPECT_EQ(after.dims[after.rank - axis], before.dims[before.rank - axis]);
      EXPECT_EQ(after.strides[1][after.rank - axis], before.strides[1][before.rank - axis]);
    }
  }
}

// {destination, index, source without its axis}: the offsets that a gather of slices combines.
std::vector<std::vector<int64_t>> gathered(const GatherFold& fold) {
  Layout layout;
  layout.rank = fold.src_rank - 1 + fold.indices_rank;
  for (int32_t axis = 0; axis < layout.rank; ++axis) {
    const int32_t inside = axis - fold.axis;
    layout.strides[0][axis] = fold.dst_strides[axis];
    if (inside >= 0 && inside < fold.indices_rank) {
      layout.dims[axis] = fold.indices_dims[inside];
      layout.strides[1][axis] = fold.indices_strides[inside];
    } else {
      const int32_t from = inside < 0 ? axis : axis - fold.indices_rank + 1;
      layout.dims[axis] = fold.src_dims[from];
      layout.strides[2][axis] = fold.src_strides[from];
    }
  }
  return walk(layout, 3);
}

TEST(FoldGather, KeepsWhichIndexTakesWhichSlice) {
  std::mt19937 random(6);
  for (int i = 0; i < 5000; ++i) {
    const Layout src = random_layout(&random, 1, 1);
    const Layout indices = random_layout(&random, 1, 1);
    if (src.rank == 0 || src.rank + indices.rank - 1 > 8) continue;
    GatherFold fold = {};
    fold.src_rank = src.rank;
    fold.indices_rank = indices.rank;
    fold.axis = static_cast<int32_t>(random() % static_cast<uint32_t>(src.rank));
    std::copy_n(src.dims, 8, fold.src_dims);
    std::copy_n(src.strides[0], 8, fold.src_strides);
    std::copy_n(indices.dims, 8, fold.indices_dims);
    std::copy_n(indices.strides[0], 8, fold.indices_strides);
    Dims dst;
    for (int32_t axis = 0; axis < fold.axis; ++axis) dst.push_back(src.dims[axis]);
    for (int32_t axis = 0; axis < indices.rank; ++axis) dst.push_back(indices.dims[axis]);
    for (int32_t axis = fold.axis + 1; axis < src.rank; ++axis) dst.push_back(src.dims[axis]);
    const Dims strides = contiguous_strides(dst);
    std::copy(strides.begin(), strides.end(), fold.dst_strides);
    GatherFold after = fold;
    fold_gather(&after);
    EXPECT_EQ(gathered(fold), gathered(after));
    EXPECT_GE(after.indices_rank, 1);
    EXPECT_EQ(after.src_dims[after.axis], fold.src_dims[fold.axis]);
    EXPECT_EQ(after.src_strides[after.axis], fold.src_strides[fold.axis]);
  }
}

}  // namespace
}  // namespace tenon::simplify
