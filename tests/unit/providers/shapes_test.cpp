// Shapes for which the cpu provider has special kernels, on every dispatch target, compared with the double-precision
// reference: reductions and softmax of columns, of short rows and of many rows; positions of the greatest element;
// sorts and scans of lines with gaps; gathers of single elements; products with a vector, over f64 and over bf16;
// transposed copies.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <random>

#include "primitives/dtype/dtype.h"
#include "primitives/reference/element.h"
#include "primitives/reference/reference.h"
#include "primitives/text/format.h"
#include "sdk/provider/descriptor.h"
#include "sdk/provider/scalar_rows.h"
#include "tests/unit/providers/provider_fixture.h"

namespace tenon::provider {
namespace {

constexpr uint32_t kNaNsOneIn = 400;

// Half a unit in the last place, relative.
double epsilon(int32_t dtype) {
  switch (dtype) {
    case EP_DTYPE_f64: return 1.2e-16;
    case EP_DTYPE_f32: return 6e-8;
    case EP_DTYPE_f16: return 5e-4;
    case EP_DTYPE_bf16: return 4e-3;
    default: return 0;
  }
}

class Shapes : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    provider_ = open_on_target(GetParam());
    if (provider_ == nullptr) GTEST_SKIP() << "this processor or build has no " << GetParam();
  }

  std::vector<unsigned char> random(const ep_operand_desc& operand, bool nan) {
    std::vector<unsigned char> bytes(static_cast<size_t>(extent(operand) * dtype_size(operand.dtype)));
    for (int64_t i = 0; i < extent(operand); ++i) {
      const uint32_t drawn = engine_();
      const double sign = drawn % 2 == 0 ? 1 : -1;
      const double value = nan && engine_() % kNaNsOneIn == 0 ? NAN : static_cast<double>(32 + drawn / 2 % 225) / 64;
      reference::store<double>(static_cast<DType>(operand.dtype), bytes.data(), i, sign * value);
    }
    return bytes;
  }

  std::vector<unsigned char> indices(const ep_operand_desc& operand, int64_t length) {
    std::vector<unsigned char> bytes(static_cast<size_t>(extent(operand) * dtype_size(operand.dtype)));
    for (int64_t i = 0; i < extent(operand); ++i) {
      reference::store<int64_t>(static_cast<DType>(operand.dtype), bytes.data(), i,
                                static_cast<int64_t>(engine_() % static_cast<uint64_t>(2 * length)) - length);
    }
    return bytes;
  }

  // `sources` holds the bytes of all operands but the result. Sums of `terms` numbers may differ by their rounding
  // errors.
  void check(const ep_primitive_desc& desc, std::vector<std::vector<unsigned char>> sources, double terms,
             const std::string& what, const std::string& implementation = "") {
    const ep_operand_desc& dst = desc.operands[0];
    std::vector<unsigned char> actual(static_cast<size_t>(extent(dst) * dtype_size(dst.dtype)), 0xa5);
    std::vector<unsigned char> expected = actual;
    std::vector<void*> operands = {expected.data()};
    for (auto& source : sources) operands.push_back(source.data());
    ASSERT_TRUE(reference::run(desc, operands.data(), nullptr, 0, nullptr).ok()) << what;
    operands[0] = actual.data();
    const LaunchResult result = run_once(*provider_, desc, operands);
    ASSERT_EQ(result.status, EP_STATUS_OK) << what << ": " << provider_->host.sentence();
    if (!implementation.empty()) {
      EXPECT_EQ(result.implementation, implementation) << what;
    }
    const auto type = static_cast<DType>(dst.dtype);
    for (int64_t i = 0; i < extent(dst); ++i) {
      if (!is_floating(dst.dtype)) {
        ASSERT_EQ(reference::load<int64_t>(type, actual.data(), i), reference::load<int64_t>(type, expected.data(), i))
            << what << ", element " << i;
        continue;
      }
      const double a = reference::load<double>(type, actual.data(), i);
      const double e = reference::load<double>(type, expected.data(), i);
      if ((std::isnan(a) && std::isnan(e)) || a == e) continue;
      const double wide = dst.dtype == EP_DTYPE_f64 ? epsilon(EP_DTYPE_f64) : epsilon(EP_DTYPE_f32);
      ASSERT_LE(std::fabs(a - e), 4 * epsilon(dst.dtype) * std::fabs(e) + wide * 16 * terms)
          << what << ", element " << i << ": " << a << ", not " << e;
    }
  }

  std::unique_ptr<OpenProvider> provider_;
  std::mt19937 engine_{7};
};

struct Layout {
  std::vector<int64_t> dims;
  std::vector<int64_t> strides;  // empty: dense
  uint32_t axes;
};

const Layout reduced_layouts[] = {
    {{7, 5, 16}, {}, 2},        {{3, 300, 21}, {}, 2},  {{200, 3}, {}, 2},      {{37, 15}, {}, 2},
    {{40, 333}, {}, 1},         {{9000, 5}, {}, 1},     {{2, 5000}, {}, 2},     {{1, 70000}, {}, 2},
    {{300, 700}, {}, 1},        {{60, 61}, {1, 60}, 1}, {{60, 61}, {1, 60}, 2}, {{4, 6, 5}, {30, 5, 1}, 5},
    {{4, 6, 5}, {1, 20, 4}, 6}, {{50, 20}, {40, 2}, 2}, {{50, 20}, {40, 2}, 1}, {{1, 1}, {}, 2},
    {{600, 17}, {17, 1}, 3},    {{30, 4}, {0, 1}, 2},   {{2900, 3}, {8, 1}, 1}, {{2900, 3}, {8, 2}, 1},
    {{300, 70}, {140, 2}, 1},   {{3, 5000}, {}, 1},     {{1, 5000}, {}, 1},     {{2000, 1}, {5, 1}, 2},
    {{700, 19}, {}, 1}};

ep_operand_desc source(int32_t dtype, const Layout& layout) {
  return layout.strides.empty() ? dense(EP_ROLE_SRC, dtype, layout.dims)
                                : strided(EP_ROLE_SRC, dtype, layout.dims, layout.strides);
}

TEST_P(Shapes, ReductionsEqualTheReference) {
  for (const int32_t dtype : {EP_DTYPE_f32, EP_DTYPE_f64, EP_DTYPE_f16, EP_DTYPE_bf16, EP_DTYPE_i32, EP_DTYPE_u8}) {
    for (const Layout& layout : reduced_layouts) {
      std::vector<int64_t> dims = layout.dims;
      double terms = 1;
      for (size_t axis = 0; axis < dims.size(); ++axis) {
        if (((layout.axes >> axis) & 1U) == 0) continue;
        terms *= static_cast<double>(dims[axis]);
        dims[axis] = 1;
      }
      for (const int32_t op : {EP_REDUCE_sum, EP_REDUCE_mean, EP_REDUCE_max, EP_REDUCE_min, EP_REDUCE_sum_square}) {
        if (!scalar::defined_on(scalar::reduce_facts(op).domain, dtype)) continue;
        ep_primitive_desc desc =
            descriptor(EP_PRIMITIVE_reduce, {dense(EP_ROLE_DST, dtype, dims), source(dtype, layout)});
        desc.attributes.reduce.op = op;
        desc.attributes.reduce.axes = layout.axes;
        const bool sums = op != EP_REDUCE_max && op != EP_REDUCE_min;
        check(desc, {random(desc.operands[1], is_floating(dtype) && !sums)}, sums ? terms : 0,
              fmt::format("op {} of dtype {}, {} rows", op, dtype, layout.dims[0]));
      }
    }
  }
}

TEST_P(Shapes, PositionsEqualTheReference) {
  for (const int32_t dtype : {EP_DTYPE_f32, EP_DTYPE_f64, EP_DTYPE_f16, EP_DTYPE_i32}) {
    for (const Layout& layout : reduced_layouts) {
      for (int32_t axis = 0; axis < static_cast<int32_t>(layout.dims.size()); ++axis) {
        std::vector<int64_t> dims = layout.dims;
        dims[static_cast<size_t>(axis)] = 1;
        for (int32_t variant = 0; variant < 4; ++variant) {
          ep_primitive_desc desc =
              descriptor(EP_PRIMITIVE_arg_reduce, {dense(EP_ROLE_DST, EP_DTYPE_i64, dims), source(dtype, layout)});
          desc.attributes.arg_reduce.op = variant % 2 == 0 ? EP_REDUCE_max : EP_REDUCE_min;
          desc.attributes.arg_reduce.axis = axis;
          desc.attributes.arg_reduce.last = variant / 2;
          check(desc, {random(desc.operands[1], is_floating(dtype))}, 0, fmt::format("dtype {}", dtype));
        }
      }
    }
  }
}

TEST_P(Shapes, SoftmaxAlongAnyAxisEqualsTheReference) {
  const Layout layouts[] = {{{7, 5, 16}, {}, 1},   {{300, 70}, {}, 0},     {{3, 9, 130}, {}, 1},
                            {{2, 3}, {}, 0},       {{40, 50}, {1, 40}, 1}, {{5, 64}, {100, 1}, 0},
                            {{700, 1}, {}, 0},     {{40, 50}, {0, 1}, 0},  {{40, 50}, {0, 1}, 1},
                            {{40, 50}, {1, 0}, 0}, {{40, 50}, {1, 0}, 1},  {{300, 3}, {8, 1}, 1},
                            {{300, 3}, {8, 2}, 0}};
  for (const int32_t dtype : {EP_DTYPE_f32, EP_DTYPE_f16, EP_DTYPE_bf16, EP_DTYPE_f64}) {
    for (const Layout& layout : layouts) {
      for (const int32_t log : {0, 1}) {
        ep_primitive_desc desc =
            descriptor(EP_PRIMITIVE_softmax, {dense(EP_ROLE_DST, dtype, layout.dims), source(dtype, layout)});
        desc.attributes.softmax.axis = static_cast<int32_t>(layout.axes);
        desc.attributes.softmax.log = log;
        check(desc, {random(desc.operands[1], true)}, log != 0 ? 8 : 1, fmt::format("dtype {}", dtype));
      }
    }
  }
}

// Results whose innermost axis is not the last one, and sources that lie alike or otherwise.
TEST_P(Shapes, SoftmaxOfPermutedResultsEqualsTheReference) {
  const Layout layouts[] = {{{2, 3, 4, 13, 11}, {1716, 572, 143, 1, 13}, 0},
                            {{2, 3, 5, 7, 17}, {1, 2, 6, 30, 210}, 0},
                            {{3, 20, 5, 7}, {700, 1, 140, 20}, 0},
                            {{4, 70, 3}, {3, 20, 1}, 0},
                            {{3, 1, 6, 19}, {1, 5, 60, 3}, 0}};
  for (const int32_t dtype : {EP_DTYPE_f32, EP_DTYPE_f16, EP_DTYPE_bf16, EP_DTYPE_f64}) {
    for (const Layout& layout : layouts) {
      const ep_operand_desc dst = strided(EP_ROLE_DST, dtype, layout.dims, layout.strides);
      for (int32_t axis = 0; axis < dst.rank; ++axis) {
        for (const ep_operand_desc& src : {source(dtype, layout), source(dtype, {layout.dims, {}, 0})}) {
          ep_primitive_desc desc = descriptor(EP_PRIMITIVE_softmax, {dst, src});
          desc.attributes.softmax.axis = axis;
          desc.attributes.softmax.log = axis % 2;
          check(desc, {random(src, true)}, axis % 2 != 0 ? 8 : 1,
                fmt::format("dtype {}, rank {}, axis {}", dtype, dst.rank, axis));
        }
      }
    }
  }
}

// Several short rows are processed together in each step: rows that end within a vector, fewer rows than a step takes,
// and some rows of NaN and of infinities.
TEST_P(Shapes, SoftmaxOfShortRowsEqualsTheReference) {
  for (const int32_t dtype : {EP_DTYPE_f32, EP_DTYPE_f16, EP_DTYPE_bf16, EP_DTYPE_f64}) {
    for (const int64_t n : {1, 3, 7, 8, 9, 15, 16, 17, 31, 33, 100, 255, 256, 257}) {
      for (const int64_t rows : {1, 5, 16, 37}) {
        for (const int32_t log : {0, 1}) {
          ep_primitive_desc desc = descriptor(
              EP_PRIMITIVE_softmax, {dense(EP_ROLE_DST, dtype, {rows, n}), dense(EP_ROLE_SRC, dtype, {rows, n})});
          desc.attributes.softmax.axis = 1;
          desc.attributes.softmax.log = log;
          std::vector<unsigned char> values = random(desc.operands[1], true);
          const auto set = [&](int64_t row, int64_t i, double value) {
            if (row < rows) reference::store<double>(static_cast<DType>(dtype), values.data(), row * n + i, value);
          };
          set(1, n - 1, -INFINITY);
          set(2, n - 1, INFINITY);
          set(3, n - 1, NAN);
          for (int64_t i = 0; i < n; ++i) set(4, i, -INFINITY);
          for (int64_t i = 0; i < n; ++i) set(20, i, i == n - 1 ? 100 : -100);
          check(desc, {values}, log != 0 ? 8 : 1, fmt::format("dtype {}, {} x {}, log {}", dtype, rows, n, log));
        }
      }
    }
  }
}

// `axes` is the axis of a line here.
const Layout line_layouts[] = {{{300, 21}, {}, 0},     {{20, 300}, {1, 20}, 1}, {{40, 300}, {0, 1}, 0},
                               {{300, 50}, {1, 0}, 1}, {{3, 70, 9}, {}, 1},     {{7, 90}, {200, 2}, 1},
                               {{9, 5}, {1, 9}, 1},    {{4, 1000}, {}, 1},      {{50, 40}, {0, 1}, 1}};

TEST_P(Shapes, SortsOfLinesWithGapsEqualTheReference) {
  for (const int32_t dtype : {EP_DTYPE_u8, EP_DTYPE_f16, EP_DTYPE_f32, EP_DTYPE_i32, EP_DTYPE_i64, EP_DTYPE_f64}) {
    for (const Layout& layout : line_layouts) {
      for (const int32_t descending : {0, 1}) {
        ep_primitive_desc desc = descriptor(
            EP_PRIMITIVE_sort, {dense(EP_ROLE_DST, dtype, layout.dims),
                                dense(EP_ROLE_DST_INDICES, EP_DTYPE_i64, layout.dims), source(dtype, layout)});
        desc.attributes.sort.axis = static_cast<int32_t>(layout.axes);
        desc.attributes.sort.descending = descending;
        std::vector<unsigned char> src = random(desc.operands[2], true);
        const auto count = static_cast<size_t>(extent(desc.operands[0]));
        std::vector<unsigned char> values(count * static_cast<size_t>(dtype_size(dtype))), wanted = values;
        std::vector<int64_t> positions(count), wanted_positions(count);
        void* operands[] = {wanted.data(), wanted_positions.data(), src.data()};
        ASSERT_TRUE(reference::run(desc, operands, nullptr, 0, nullptr).ok());
        ASSERT_EQ(run_once(*provider_, desc, {values.data(), positions.data(), src.data()}).status, EP_STATUS_OK);
        const std::string what = fmt::format("dtype {}, {} lines, axis {}", dtype, layout.dims[0], layout.axes);
        EXPECT_EQ(positions, wanted_positions) << what;
        EXPECT_EQ(values, wanted) << what;
      }
    }
  }
}

TEST_P(Shapes, ScansOfLinesWithGapsEqualTheReference) {
  for (const int32_t dtype : {EP_DTYPE_f16, EP_DTYPE_f32, EP_DTYPE_i64, EP_DTYPE_f64}) {
    for (const Layout& layout : line_layouts) {
      for (const int32_t variant : {0, 1, 2, 3}) {
        ep_primitive_desc desc =
            descriptor(EP_PRIMITIVE_scan, {dense(EP_ROLE_DST, dtype, layout.dims), source(dtype, layout)});
        desc.attributes.scan.op = EP_SCAN_SUM;
        desc.attributes.scan.axis = static_cast<int32_t>(layout.axes);
        desc.attributes.scan.reverse = variant % 2;
        desc.attributes.scan.exclusive = variant / 2;
        check(desc, {random(desc.operands[1], false)}, static_cast<double>(layout.dims[layout.axes]),
              fmt::format("dtype {}, {} lines, axis {}", dtype, layout.dims[0], layout.axes));
      }
    }
  }
}

TEST_P(Shapes, GathersOfElementsEqualTheReference) {
  for (const int32_t dtype : {EP_DTYPE_u8, EP_DTYPE_f16, EP_DTYPE_f32, EP_DTYPE_f64}) {
    for (const int32_t index_dtype : {EP_DTYPE_i32, EP_DTYPE_i64}) {
      for (const int32_t axis : {0, 1}) {
        const std::vector<int64_t> dims = {37, 45};
        for (const int64_t count : {1, 7, 100}) {
          std::vector<int64_t> result = dims;
          result[static_cast<size_t>(axis)] = count;
          ep_primitive_desc desc =
              descriptor(EP_PRIMITIVE_gather, {dense(EP_ROLE_DST, dtype, result), dense(EP_ROLE_SRC, dtype, dims),
                                               dense(EP_ROLE_INDICES, index_dtype, {count})});
          desc.attributes.gather.axis = axis;
          desc.attributes.gather.mode = EP_GATHER_SLICES;
          const int64_t length = dims[static_cast<size_t>(axis)];
          check(desc, {random(desc.operands[1], false), indices(desc.operands[2], length)}, 0, "slices");
          desc.operands[2] = dense(EP_ROLE_INDICES, index_dtype, result);
          desc.attributes.gather.mode = EP_GATHER_ELEMENTS;
          check(desc, {random(desc.operands[1], false), indices(desc.operands[2], length)}, 0, "elements");
        }
      }
    }
  }
}

// Indices that are adjacent, and indices that are not; slices that have gaps in the result too.
TEST_P(Shapes, GathersOfSlicesByStridedIndicesEqualTheReference) {
  for (const std::vector<int64_t>& index_strides :
       {std::vector<int64_t>{7, 1}, {14, 2}, {1, 3}, {9, 1}, {0, 1}, {0, 0}}) {
    for (const int64_t gap : {0, 3}) {
      for (const int32_t axis : {0, 1}) {
        const std::vector<int64_t> dims = {6, 9, 65};
        const std::vector<int64_t> result =
            axis == 0 ? std::vector<int64_t>{3, 7, 9, 65} : std::vector<int64_t>{6, 3, 7, 65};
        const int64_t line = 65 + gap;
        ep_primitive_desc desc = descriptor(
            EP_PRIMITIVE_gather,
            {strided(EP_ROLE_DST, EP_DTYPE_f32, result, {result[1] * result[2] * line, result[2] * line, line, 1}),
             dense(EP_ROLE_SRC, EP_DTYPE_f32, dims), strided(EP_ROLE_INDICES, EP_DTYPE_i64, {3, 7}, index_strides)});
        desc.attributes.gather.axis = axis;
        desc.attributes.gather.mode = EP_GATHER_SLICES;
        check(desc, {random(desc.operands[1], false), indices(desc.operands[2], dims[static_cast<size_t>(axis)])}, 0,
              fmt::format("axis {}, gap {}, indices {} and {} apart", axis, gap, index_strides[0], index_strides[1]));
      }
    }
  }
}

TEST_P(Shapes, ReversedGathersEqualTheReference) {
  for (const int32_t dtype : {EP_DTYPE_u8, EP_DTYPE_f16, EP_DTYPE_f32, EP_DTYPE_f64}) {
    for (const int64_t n : {2, 33, 20000}) {
      ep_primitive_desc desc =
          descriptor(EP_PRIMITIVE_gather, {dense(EP_ROLE_DST, dtype, {5, n}), dense(EP_ROLE_SRC, dtype, {5, n}),
                                           dense(EP_ROLE_INDICES, EP_DTYPE_i64, {n})});
      desc.attributes.gather.axis = 1;
      desc.attributes.gather.mode = EP_GATHER_SLICES;
      std::vector<unsigned char> reversed(static_cast<size_t>(n) * 8);
      for (int64_t i = 0; i < n; ++i) reference::store<int64_t>(DType::i64, reversed.data(), i, n - 1 - i);
      check(desc, {random(desc.operands[1], false), reversed}, 0, "reversed");
    }
  }
}

// Long and short axes on both sides of the indices, in one strip and in several; updates with gaps and repeated ones.
TEST_P(Shapes, ScattersEqualTheReference) {
  for (const int32_t dtype : {EP_DTYPE_u8, EP_DTYPE_i64, EP_DTYPE_f16, EP_DTYPE_f32, EP_DTYPE_f64}) {
    for (const std::vector<int64_t>& dims :
         {std::vector<int64_t>{300, 3}, {3, 300}, {5, 70, 2}, {2, 9, 33}, {40, 3, 20}, {700, 1}}) {
      for (const int32_t axis : {0, 1}) {
        for (const int64_t gap : {0, 1, -1}) {  // -1: the rows of updates are equal
          const int32_t op = std::vector<int32_t>{EP_SCATTER_ASSIGN, EP_SCATTER_ADD, EP_SCATTER_MIN}[engine_() % 3];
          std::vector<int64_t> steps(dims.size(), 1 + std::abs(gap));
          for (size_t k = dims.size() - 1; k-- > 0;) steps[k] = steps[k + 1] * dims[k + 1];
          if (gap < 0) steps[0] = 0;
          const int32_t index_dtype = gap == 0 ? EP_DTYPE_i32 : EP_DTYPE_i64;
          ep_primitive_desc desc =
              descriptor(EP_PRIMITIVE_scatter,
                         {dense(EP_ROLE_DST, dtype, dims), dense(EP_ROLE_SRC, dtype, dims),
                          strided(EP_ROLE_SRC_B, dtype, dims, steps), dense(EP_ROLE_INDICES, index_dtype, dims)});
          const int64_t length = dims[static_cast<size_t>(axis)];
          const auto what = fmt::format("dtype {}, {} axes from {}, axis {}, gap {}, op {}", dtype, dims.size(),
                                        dims[0], axis, gap, op);
          desc.attributes.scatter = {axis, EP_GATHER_ELEMENTS, op, 0};
          const bool nan = is_floating(dtype);
          check(desc, {random(desc.operands[1], nan), random(desc.operands[2], nan), indices(desc.operands[3], length)},
                4.0 * static_cast<double>(length), what + ", elements");
          desc.operands[3] = dense(EP_ROLE_INDICES, index_dtype, {length});
          desc.attributes.scatter.mode = EP_GATHER_SLICES;
          check(desc, {random(desc.operands[1], nan), random(desc.operands[2], nan), indices(desc.operands[3], length)},
                4.0 * static_cast<double>(length), what + ", slices");
        }
      }
    }
  }
}

TEST_P(Shapes, ProductsEqualTheReference) {
  struct Product {
    int32_t dtype;
    int64_t m, k, n;
    bool a_turned, b_turned, bias;
    const char* implementation;
  };
  const Product products[] = {{EP_DTYPE_f32, 1, 70, 130, false, false, false, "vector"},
                              {EP_DTYPE_f32, 1, 5000, 67, false, false, true, "vector"},
                              {EP_DTYPE_f32, 1, 333, 65, false, true, false, "vector"},
                              {EP_DTYPE_f32, 131, 77, 1, false, false, true, "vector"},
                              {EP_DTYPE_f32, 5, 9000, 1, true, false, false, "vector"},
                              {EP_DTYPE_f64, 1, 600, 33, false, false, true, "vector"},
                              {EP_DTYPE_f64, 70, 33, 1, false, false, false, "vector"},
                              {EP_DTYPE_f64, 1, 1, 1, false, false, false, "vector"},
                              {EP_DTYPE_f64, 200, 210, 270, false, false, true, "blocks"},
                              {EP_DTYPE_f64, 17, 400, 19, true, false, false, "blocks"},
                              {EP_DTYPE_f64, 31, 5, 530, false, true, false, "blocks"},
                              {EP_DTYPE_bf16, 33, 70, 41, false, false, false, ""},
                              {EP_DTYPE_bf16, 64, 128, 32, true, true, true, ""}};
  for (const Product& p : products) {
    const auto matrix = [&](int32_t role, int64_t rows, int64_t columns, bool turned) {
      return turned ? strided(role, p.dtype, {rows, columns}, {1, rows}) : dense(role, p.dtype, {rows, columns});
    };
    std::vector<ep_operand_desc> operands = {dense(EP_ROLE_DST, p.dtype, {p.m, p.n}),
                                             matrix(EP_ROLE_SRC, p.m, p.k, p.a_turned),
                                             matrix(EP_ROLE_SRC_B, p.k, p.n, p.b_turned)};
    if (p.bias) operands.push_back(strided(EP_ROLE_BIAS, p.dtype, {p.m, p.n}, {0, 1}));
    const ep_primitive_desc desc = descriptor(EP_PRIMITIVE_matmul, operands);
    std::vector<std::vector<unsigned char>> sources;
    for (size_t i = 1; i < operands.size(); ++i) sources.push_back(random(operands[i], false));
    check(desc, sources, 8.0 * static_cast<double>(p.k), fmt::format("{} x {} x {}", p.m, p.k, p.n), p.implementation);
  }
}

TEST_P(Shapes, TransposedCopiesEqualTheReference) {
  for (const int32_t dtype : {EP_DTYPE_u8, EP_DTYPE_f16, EP_DTYPE_f32, EP_DTYPE_f64}) {
    for (const int64_t rows : {2, 3, 4, 32, 65, 4101}) {
      for (const int64_t columns : {2, 3, 4, 31, 150, 4101}) {
        if (rows * columns > 20'000) continue;
        const ep_primitive_desc desc =
            descriptor(EP_PRIMITIVE_copy, {dense(EP_ROLE_DST, dtype, {2, rows, columns}),
                                           strided(EP_ROLE_SRC, dtype, {2, rows, columns}, {rows * columns, 1, rows})});
        check(desc, {random(desc.operands[1], false)}, 0, "transposed");
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Target, Shapes, testing::Values("baseline", "avx2", "avx3"),
                         [](const testing::TestParamInfo<const char*>& info) { return std::string(info.param); });

}  // namespace
}  // namespace tenon::provider
