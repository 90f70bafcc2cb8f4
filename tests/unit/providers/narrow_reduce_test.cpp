// Reductions of f16 and bf16, which have kernels of their own on AVX2 and AVX3, on every dispatch target: rows and
// columns that end within a vector, rows that lie apart, and NaN. Sums of small integers are exact in f32, so each
// result is that of a loop in double, rounded once.
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
    if (cpu_ == nullptr) GTEST_SKIP() << "this processor has no " << GetParam();
  }

  // Reduces the axes of `mask` of a matrix with a few NaN, and compares each result with a loop.
  void compare(int32_t dtype, int32_t op, const Matrix& matrix, uint32_t mask) {
    const auto [rows, columns, stride] = matrix;
    const auto type = static_cast<DType>(dtype);
    const int64_t results = ((mask & 1) != 0 ? 1 : rows) * ((mask & 2) != 0 ? 1 : columns);
    std::vector<uint16_t> src(static_cast<size_t>(rows * stride)), dst(static_cast<size_t>(results), 0x1234);
    std::vector<double> wanted(static_cast<size_t>(results), op == EP_REDUCE_max ? -INFINITY : 0);
    uint16_t numbers[8] = {};  // from -2 to 4, and NaN
    for (int64_t i = 0; i < 8; ++i) reference::store(type, numbers, i, i < 7 ? static_cast<double>(i) - 2 : NAN);
    std::mt19937 generator(15);
    for (uint16_t& gap : src) gap = 0x5678;  // a large number
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t column = 0; column < columns; ++column) {
        const bool nan = results > 4 && row % 11 == 3 && column % 13 == 5;
        const auto number = static_cast<int64_t>(nan ? 7 : generator() % 7);
        const double value = nan ? NAN : static_cast<double>(number) - 2;
        src[static_cast<size_t>(row * stride + column)] = numbers[number];
        double& result = wanted[static_cast<size_t>(((mask & 1) != 0 ? 0 : row) * ((mask & 2) != 0 ? 1 : columns) +
                                                    ((mask & 2) != 0 ? 0 : column))];
        if (op == EP_REDUCE_max)
          result = std::isnan(value) || value > result ? value : result;
        else
          result += op == EP_REDUCE_sum_square ? value * value : value;
      }
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
  for (const int64_t length : {1, 5, 16, 17, 63, 65, 127, 128, 129, 255, 257, 300, 1031})
    compare_all({517, length, length + length % 3}, 1);
}

TEST_P(NarrowReduce, BothAxesToOne) {
  for (const Matrix& matrix : {Matrix{1, 1, 1}, Matrix{1, 31, 31}, Matrix{3, 1025, 1025}, Matrix{41, 5003, 5004}})
    compare_all(matrix, 3);
}

// Four million elements and more are read row by row.
TEST_P(NarrowReduce, ColumnsOfManyElements) {
  for (const Matrix& matrix : {Matrix{5501, 771, 771}, Matrix{2051, 2053, 2060}}) compare_all(matrix, 1);
}

INSTANTIATE_TEST_SUITE_P(Target, NarrowReduce, testing::Values("baseline", "avx2", "avx3"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace tenon::provider
