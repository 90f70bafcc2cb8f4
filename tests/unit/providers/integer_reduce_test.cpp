// Reductions of integers, and positions of their greatest and least elements, on every dispatch target, against loops
// over 64-bit integers: rows and columns that end within a vector, short rows, gaps, expanded axes, and sums that wrap.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <vector>

#include "primitives/dtype/dtype.h"
#include "primitives/reference/element.h"
#include "sdk/provider/descriptor.h"
#include "tests/unit/providers/provider_fixture.h"

namespace tenon::provider {
namespace {

constexpr int32_t integer_dtypes[] = {EP_DTYPE_i8, EP_DTYPE_i16, EP_DTYPE_i32, EP_DTYPE_i64,
                                      EP_DTYPE_u8, EP_DTYPE_u16, EP_DTYPE_u32, EP_DTYPE_u64};

// A matrix whose rows are `stride` apart; `stride` 0 repeats one row.
struct IntegerMatrix {
  int64_t rows, columns, stride;
};

class IntegerReduce : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    cpu_ = open_on_target(GetParam());
    if (cpu_ == nullptr) GTEST_SKIP() << "this processor or build has no " << GetParam();
  }

  // Random elements of the whole range, or of five values if `few`.
  static std::vector<char> fill(int32_t dtype, const IntegerMatrix& matrix, bool few) {
    const auto size = static_cast<size_t>(dtype_info(static_cast<DType>(dtype)).bits / 8);
    std::vector<char> bytes(static_cast<size_t>((matrix.rows - 1) * matrix.stride + matrix.columns) * size);
    std::mt19937_64 generator(31);
    for (size_t i = 0; i < bytes.size() / size; ++i) {
      const auto value = static_cast<int64_t>(few ? generator() % 5 : generator());
      reference::store(static_cast<DType>(dtype), bytes.data(), static_cast<int64_t>(i), value);
    }
    return bytes;
  }

  template <class T>
  static T combined(int32_t op, T value, T x) {
    switch (op) {
      case EP_REDUCE_max: return std::max(value, x);
      case EP_REDUCE_min: return std::min(value, x);
      case EP_REDUCE_prod: return static_cast<T>(static_cast<uint64_t>(value) * static_cast<uint64_t>(x));
      default: return static_cast<T>(static_cast<uint64_t>(value) + static_cast<uint64_t>(x));
    }
  }

  template <class T>
  void compare(int32_t dtype, int32_t op, const IntegerMatrix& matrix, int32_t axis) {
    const auto type = static_cast<DType>(dtype);
    const auto [rows, columns, stride] = matrix;
    const int64_t results = axis == 0 ? columns : rows, length = axis == 0 ? rows : columns;
    std::vector<char> src = fill(dtype, matrix, false);
    const auto size = static_cast<size_t>(dtype_info(type).bits / 8);
    std::vector<char> dst(static_cast<size_t>(results) * size), wanted = dst;
    ep_primitive_desc desc =
        descriptor(EP_PRIMITIVE_reduce, {dense(EP_ROLE_DST, dtype, {axis == 0 ? 1 : rows, axis == 0 ? columns : 1}),
                                         strided(EP_ROLE_SRC, dtype, {rows, columns}, {stride, 1})});
    desc.attributes.reduce.op = op;
    desc.attributes.reduce.axes = 1U << axis;
    ASSERT_EQ(run_once(*cpu_, desc, {dst.data(), src.data()}).status, EP_STATUS_OK) << cpu_->host.sentence();
    for (int64_t i = 0; i < results; ++i) {
      const auto at = [&](int64_t k) {
        return reference::load<T>(type, src.data(), axis == 0 ? k * matrix.stride + i : i * matrix.stride + k);
      };
      T value = at(0);
      for (int64_t k = 1; k < length; ++k) value = combined(op, value, at(k));
      reference::store(type, wanted.data(), i, value);
    }
    ASSERT_EQ(dst, wanted) << dtype_name(type) << ", reduction " << op << " along axis " << axis << " of " << rows
                           << " x " << columns << " with rows " << stride << " apart";
  }

  template <class T>
  void compare_positions(int32_t dtype, bool greatest, bool last, const IntegerMatrix& matrix, int32_t axis) {
    const auto type = static_cast<DType>(dtype);
    const auto [rows, columns, stride] = matrix;
    const int64_t results = axis == 0 ? columns : rows, length = axis == 0 ? rows : columns;
    std::vector<char> src = fill(dtype, matrix, true);
    std::vector<int64_t> dst(static_cast<size_t>(results), -7);
    ep_primitive_desc desc = descriptor(
        EP_PRIMITIVE_arg_reduce, {dense(EP_ROLE_DST, EP_DTYPE_i64, {axis == 0 ? 1 : rows, axis == 0 ? columns : 1}),
                                  strided(EP_ROLE_SRC, dtype, {rows, columns}, {stride, 1})});
    desc.attributes.arg_reduce = {greatest ? EP_REDUCE_max : EP_REDUCE_min, axis, last ? 1 : 0, 0};
    ASSERT_EQ(run_once(*cpu_, desc, {dst.data(), src.data()}).status, EP_STATUS_OK) << cpu_->host.sentence();
    for (int64_t i = 0; i < results; ++i) {
      const auto at = [&](int64_t k) {
        return reference::load<T>(type, src.data(), axis == 0 ? k * matrix.stride + i : i * matrix.stride + k);
      };
      int64_t want = 0;
      for (int64_t k = 1; k < length; ++k) {
        if (greatest ? at(k) > at(want) : at(k) < at(want)) want = k;
        if (last && at(k) == at(want)) want = k;
      }
      ASSERT_EQ(dst[static_cast<size_t>(i)], want)
          << dtype_name(type) << (greatest ? ", greatest" : ", least") << (last ? ", the last" : "") << " along axis "
          << axis << " of " << rows << " x " << columns << " with rows " << stride << " apart: result " << i;
    }
  }

  void compare_all(const IntegerMatrix& matrix, int32_t axis) {
    for (const int32_t dtype : integer_dtypes) {
      reference::with_compute_type(static_cast<DType>(dtype), [&](auto type) {
        using T = std::conditional_t<std::is_same_v<decltype(type), uint64_t>, uint64_t, int64_t>;
        for (const int32_t op : {EP_REDUCE_sum, EP_REDUCE_prod, EP_REDUCE_max, EP_REDUCE_min})
          compare<T>(dtype, op, matrix, axis);
        for (const bool greatest : {false, true}) {
          for (const bool last : {false, true}) compare_positions<T>(dtype, greatest, last, matrix, axis);
        }
      });
    }
  }

  std::unique_ptr<OpenProvider> cpu_;
};

TEST_P(IntegerReduce, RowsOfAnyLength) {
  for (const int64_t length : {1, 2, 3, 4, 9, 15, 16, 17, 31, 33, 65, 127, 1003})
    compare_all({37, length, length + length % 3}, 1);
  compare_all({2001, 3, 3}, 1);
}

TEST_P(IntegerReduce, ColumnsOfAnyNumber) {
  for (const int64_t columns : {1, 2, 3, 4, 9, 17, 33, 63, 64, 65, 257, 515})
    compare_all({261, columns, columns + columns % 3}, 0);
  for (const int64_t columns : {3, 9}) compare_all({2051, columns, columns}, 0);
}

TEST_P(IntegerReduce, ExpandedAxes) {
  for (const int64_t columns : {1, 3, 64, 1031}) {
    compare_all({131, columns, 0}, 0);
    compare_all({131, columns, 0}, 1);
  }
}

INSTANTIATE_TEST_SUITE_P(Target, IntegerReduce, testing::Values("baseline", "avx2", "avx3"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace tenon::provider
