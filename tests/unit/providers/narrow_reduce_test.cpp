// Reductions of f16 and bf16 and positions of their greatest and least elements, which have kernels of their own on
// AVX2 and AVX3, on every dispatch target: rows and columns that end within a vector, rows with gaps between them, and
// NaN. Sums of small integers are exact in f32, so each result equals that of a loop in double, rounded once.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <vector>

#include "primitives/dtype/dtype.h"
#include "primitives/reference/element.h"
#include "primitives/text/format.h"
#include "sdk/provider/descriptor.h"
#include "tests/unit/providers/provider_fixture.h"

namespace tenon::provider {
namespace {

struct Matrix {
  int64_t rows, columns, stride;
};

class NarrowReduce : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    cpu_ = open_on_target(GetParam());
    if (cpu_ == nullptr) GTEST_SKIP() << "this processor or build has no " << GetParam();
  }

  // Fills `src` with numbers from -2 to 4, and a few NaN if `nans`. The gaps between rows hold a large number.
  static std::vector<double> fill(int32_t dtype, const Matrix& matrix, bool nans, std::vector<uint16_t>* src) {
    const auto [rows, columns, stride] = matrix;
    uint16_t numbers[8] = {};
    for (int64_t i = 0; i < 8; ++i) {
      reference::store(static_cast<DType>(dtype), numbers, i, i < 7 ? static_cast<double>(i) - 2 : NAN);
    }
    std::mt19937 generator(15);
    std::vector<double> values;
    src->assign(static_cast<size_t>(rows * stride), 0x5678);
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t column = 0; column < columns; ++column) {
        const bool nan = nans && row % 11 == 3 && column % 13 == 5;
        const auto number = static_cast<int64_t>(nan ? 7 : generator() % 7);
        values.push_back(nan ? NAN : static_cast<double>(number) - 2);
        (*src)[static_cast<size_t>(row * stride + column)] = numbers[number];
      }
    }
    return values;
  }

  // Reduces the axes of `mask` of a matrix, and compares each result with a loop.
  void compare(int32_t dtype, int32_t op, const Matrix& matrix, uint32_t mask) {
    const auto [rows, columns, stride] = matrix;
    const auto type = static_cast<DType>(dtype);
    const int64_t results = ((mask & 1) != 0 ? 1 : rows) * ((mask & 2) != 0 ? 1 : columns);
    std::vector<uint16_t> src, dst(static_cast<size_t>(results), 0x1234);
    std::vector<double> wanted(static_cast<size_t>(results), op == EP_REDUCE_max ? -INFINITY : 0);
    const std::vector<double> values = fill(dtype, matrix, results > 4, &src);
    for (int64_t i = 0; i < rows * columns; ++i) {
      const double value = values[static_cast<size_t>(i)];
      double& result = wanted[static_cast<size_t>(
          ((mask & 1) != 0 ? 0 : i / columns) * ((mask & 2) != 0 ? 1 : columns) + ((mask & 2) != 0 ? 0 : i % columns))];
      if (op == EP_REDUCE_max)
        result = std::isnan(value) || value > result ? value : result;
      else
        result += op == EP_REDUCE_sum_square ? value * value : value;
    }
    ep_primitive_desc desc = descriptor(
        EP_PRIMITIVE_reduce, {dense(EP_ROLE_DST, dtype, {(mask & 1) != 0 ? 1 : rows, (mask & 2) != 0 ? 1 : columns}),
                              strided(EP_ROLE_SRC, dtype, {rows, columns}, {stride, 1})});
    desc.attributes.reduce.op = op;
    desc.attributes.reduce.axes = mask;
    ASSERT_EQ(run_once(*cpu_, desc, {dst.data(), src.data()}).status, EP_STATUS_OK) << cpu_->host.sentence();
    for (int64_t i = 0; i < results; ++i) {
      uint16_t rounded = 0;
      reference::store(type, &rounded, 0, wanted[static_cast<size_t>(i)]);
      const double want = reference::load<double>(type, &rounded, 0),
                   got = reference::load<double>(type, dst.data(), i);
      ASSERT_TRUE(got == want || (std::isnan(got) && std::isnan(want)))
          << dtype_name(type) << ", reduction " << op << " over axes " << mask << " of " << rows << " x " << columns
          << " with rows " << stride << " apart: result " << i << " is " << got << ", not " << want;
    }
  }

  // Finds the greatest or least elements along an axis, and compares each position with a loop.
  void compare_positions(int32_t dtype, int32_t op, bool last, const Matrix& matrix, int32_t axis) {
    const auto [rows, columns, stride] = matrix;
    const int64_t results = axis == 0 ? columns : rows, length = axis == 0 ? rows : columns;
    std::vector<uint16_t> src;
    const std::vector<double> values = fill(dtype, matrix, true, &src);
    std::vector<int64_t> dst(static_cast<size_t>(results), -7);
    ep_primitive_desc desc = descriptor(
        EP_PRIMITIVE_arg_reduce, {dense(EP_ROLE_DST, EP_DTYPE_i64, {axis == 0 ? 1 : rows, axis == 0 ? columns : 1}),
                                  strided(EP_ROLE_SRC, dtype, {rows, columns}, {stride, 1})});
    desc.attributes.arg_reduce = {op, axis, last ? 1 : 0, 0};
    ASSERT_EQ(run_once(*cpu_, desc, {dst.data(), src.data()}).status, EP_STATUS_OK) << cpu_->host.sentence();
    for (int64_t i = 0; i < results; ++i) {
      int64_t want = 0;
      double best = NAN;
      for (int64_t k = 0; k < length; ++k) {
        const double value = values[static_cast<size_t>(axis == 0 ? k * columns + i : i * columns + k)];
        const bool further = op == EP_REDUCE_max ? value > best : value < best;
        const bool equal = value == best || (std::isnan(value) && std::isnan(best));
        const bool replaces = !std::isnan(best) && (further || std::isnan(value));
        if (k > 0 && !replaces && !(last && equal)) continue;
        best = value;
        want = k;
      }
      ASSERT_EQ(dst[static_cast<size_t>(i)], want)
          << dtype_name(static_cast<DType>(dtype)) << ", op " << op << (last ? ", the last" : "") << " along axis "
          << axis << " of " << rows << " x " << columns << " with rows " << stride << " apart: result " << i;
    }
  }

  void compare_all_positions(const Matrix& matrix, int32_t axis) {
    for (const int32_t dtype : {EP_DTYPE_f16, EP_DTYPE_bf16}) {
      for (const int32_t op : {EP_REDUCE_max, EP_REDUCE_min}) {
        for (const bool last : {false, true}) compare_positions(dtype, op, last, matrix, axis);
      }
    }
  }

  void compare_all(const Matrix& matrix, uint32_t mask) {
    for (const int32_t dtype : {EP_DTYPE_f16, EP_DTYPE_bf16}) {
      for (const int32_t op : {EP_REDUCE_sum, EP_REDUCE_max, EP_REDUCE_sum_square}) compare(dtype, op, matrix, mask);
    }
  }

  std::unique_ptr<OpenProvider> cpu_;
};

TEST_P(NarrowReduce, RowsThatEndWithinAVector) {
  for (const int64_t length : {1, 3, 15, 16, 17, 31, 33, 63, 64, 65, 127, 130, 1000, 4095, 4097, 9001})
    compare_all({37, length, length + length % 3}, 2);
}

TEST_P(NarrowReduce, ColumnsThatEndWithinAVector) {
  for (const int64_t length : {1, 3, 4, 5, 9, 16, 17, 63, 65, 127, 128, 129, 255, 257, 300, 1031})
    compare_all({517, length, length + length % 3}, 1);
  for (const int64_t length : {1, 2, 3, 4, 9, 17, 63}) compare_all({4011, length, length}, 1);
}

TEST_P(NarrowReduce, BothAxesToOne) {
  for (const Matrix& matrix : {Matrix{1, 1, 1}, Matrix{1, 31, 31}, Matrix{3, 1025, 1025}, Matrix{41, 5003, 5004}})
    compare_all(matrix, 3);
}

// Four million elements and more are read row by row.
TEST_P(NarrowReduce, ColumnsOfManyElements) {
  for (const Matrix& matrix : {Matrix{5501, 771, 771}, Matrix{2051, 2053, 2060}}) compare_all(matrix, 1);
}

TEST_P(NarrowReduce, PositionsInRowsAndColumnsThatEndWithinAVector) {
  for (const int64_t length : {1, 5, 16, 17, 31, 63, 64, 65, 127, 129, 300, 1031}) {
    compare_all_positions({37, length, length + length % 3}, 1);
    compare_all_positions({37, length, length + length % 3}, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Target, NarrowReduce, testing::Values("baseline", "avx2", "avx3"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace tenon::provider
