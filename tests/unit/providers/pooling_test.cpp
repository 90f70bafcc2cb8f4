// Pooling over every dtype on every dispatch target, against a loop over windows in double: maxima with and without
// positions, averages and norms, ranks, strides, dilations, pads, odd numbers of channels, and operands with channels
// last, slices or gaps.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "primitives/text/format.h"
#include "tests/unit/providers/provider_fixture.h"
#include "tests/unit/providers/values.h"

namespace tenon::provider {
namespace {

struct Sizes {
  int32_t rank;
  int64_t images, channels;
  int64_t src[3], kernel[3], stride[3], dilation[3], pad[3];
};

struct Method {
  int32_t op;
  double p = 0;
  bool positions = false;
};

constexpr double infinity = std::numeric_limits<double>::infinity();

// Half a unit in the last place, or the error of a sum if it is greater.
double rounding_of(int32_t dtype) {
  return dtype == EP_DTYPE_f16 ? 1.0 / 2048 : dtype == EP_DTYPE_bf16 ? 1.0 / 256 : dtype == EP_DTYPE_f32 ? 1e-6 : 1e-14;
}

class PoolingOfTypes : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    cpu_ = open_on_target(GetParam());
    if (cpu_ == nullptr) GTEST_SKIP() << "this processor or build has no " << GetParam();
  }

  static std::vector<int64_t> dims_of(const Sizes& s, const int64_t* spatial) {
    std::vector<int64_t> dims{s.images, s.channels};
    dims.insert(dims.end(), spatial, spatial + s.rank);
    return dims;
  }

  void check(const Sizes& s, const Method& method, int32_t dtype, Order order, double special = 0) {
    SCOPED_TRACE(fmt::format("{} spatial dims, {} images of {} channels, op {} p {}{}, type {}, order {}", s.rank,
                             s.images, s.channels, method.op, method.p, method.positions ? " with positions" : "",
                             dtype, static_cast<int>(order)));
    int64_t result[3] = {1, 1, 1};
    for (int32_t axis = 0; axis < s.rank; ++axis) {
      result[axis] = (s.src[axis] + 2 * s.pad[axis] - (s.kernel[axis] - 1) * s.dilation[axis] - 1) / s.stride[axis] + 1;
    }
    Values src(EP_ROLE_SRC, dtype, dims_of(s, s.src), order, &generator_);
    Values dst(EP_ROLE_DST, dtype, dims_of(s, result), order, &generator_);
    Values positions(EP_ROLE_DST_INDICES, EP_DTYPE_i64, dims_of(s, result), order, &generator_);
    if (special != 0) {
      for (int64_t i = 3; i < src.count(); i += 17) src.set(i, special);
    }
    std::vector<ep_operand_desc> operands{dst.desc(), src.desc()};
    std::vector<void*> addresses{dst.address(), src.address()};
    if (method.positions) {
      operands.insert(operands.begin() + 1, positions.desc());
      addresses.insert(addresses.begin() + 1, positions.address());
    }
    ep_primitive_desc desc = descriptor(EP_PRIMITIVE_pooling, operands);
    ep_pooling_attributes& at = desc.attributes.pooling;
    at.op = method.op;
    at.p = method.p;
    at.spatial_rank = s.rank;
    for (int32_t axis = 0; axis < s.rank; ++axis) {
      at.kernel[axis] = s.kernel[axis];
      at.stride[axis] = s.stride[axis];
      at.dilation[axis] = s.dilation[axis];
      at.pad_low[axis] = at.pad_high[axis] = s.pad[axis];
    }
    const LaunchResult run = run_once(*cpu_, desc, addresses);
    ASSERT_EQ(run.status, EP_STATUS_OK) << cpu_->host.sentence();
    EXPECT_EQ(run.implementation, "simd");
    for (int64_t i = 0; i < dst.count(); ++i) {
      int64_t where = -1;
      const double want = wanted(s, method, src, result, i, &where);
      if (std::isnan(want)) {
        ASSERT_TRUE(std::isnan(dst.at(i))) << i;
      } else if (std::isinf(want) || method.op == EP_POOLING_MAX) {
        ASSERT_EQ(dst.at(i), want) << i;
      } else {
        ASSERT_NEAR(dst.at(i), want, rounding_of(dtype) * std::abs(want) + (dtype == EP_DTYPE_f64 ? 1e-14 : 2e-6)) << i;
      }
      if (method.positions) {
        ASSERT_EQ(positions.at(i), static_cast<double>(where)) << i;
      }
    }
  }

  // Result number `i`, and the position of its maximum in the plane.
  static double wanted(const Sizes& s, const Method& method, const Values& src, const int64_t* result, int64_t i,
                       int64_t* where) {
    int64_t at[3] = {0, 0, 0}, pixels = 1, taps = 1, inside = 0, padded = 0;
    int64_t plane = i;
    for (int32_t axis = s.rank; axis-- > 0; plane /= result[axis]) at[axis] = plane % result[axis];
    for (int32_t axis = 0; axis < s.rank; ++axis) {
      pixels *= s.src[axis];
      taps *= s.kernel[axis];
    }
    double held = method.op == EP_POOLING_MAX ? -infinity : 0;
    for (int64_t tap = 0; tap < taps; ++tap) {
      int64_t rest = tap, place = 0, step = 1;
      bool is_inside = true, is_padded = true;
      for (int32_t axis = s.rank; axis-- > 0; rest /= s.kernel[axis]) {
        const int64_t x = at[axis] * s.stride[axis] - s.pad[axis] + rest % s.kernel[axis] * s.dilation[axis];
        is_inside = is_inside && x >= 0 && x < s.src[axis];
        is_padded = is_padded && x < s.src[axis] + s.pad[axis];
        place += x * step;
        step *= s.src[axis];
      }
      padded += is_padded ? 1 : 0;
      if (!is_inside) continue;
      ++inside;
      const double x = src.at(plane * pixels + place);
      if (method.op == EP_POOLING_MAX) {
        if (*where >= 0 && (std::isnan(held) || !(x > held || std::isnan(x)))) continue;
        held = x;
        *where = place;
      } else {
        held += method.op != EP_POOLING_LP ? x : method.p == 1 ? std::abs(x) : x * x;
      }
    }
    if (method.op == EP_POOLING_LP) return method.p == 1 ? held : std::sqrt(held);
    if (method.op == EP_POOLING_AVERAGE) return held / static_cast<double>(inside);
    return method.op == EP_POOLING_MAX ? held : held / static_cast<double>(padded);
  }

  std::mt19937 generator_{29};
  std::unique_ptr<OpenProvider> cpu_;
};

constexpr int32_t floats[] = {EP_DTYPE_f16, EP_DTYPE_bf16, EP_DTYPE_f32, EP_DTYPE_f64};
constexpr int32_t integers[] = {EP_DTYPE_i8,  EP_DTYPE_u8,  EP_DTYPE_i16, EP_DTYPE_u16,
                                EP_DTYPE_i32, EP_DTYPE_u32, EP_DTYPE_i64, EP_DTYPE_u64};
constexpr Order orders[] = {Order::rows, Order::channels_last, Order::slices, Order::gaps};
constexpr Method methods[] = {{EP_POOLING_MAX},     {EP_POOLING_MAX, 0, true},
                              {EP_POOLING_AVERAGE}, {EP_POOLING_AVERAGE_INCLUDE_PAD},
                              {EP_POOLING_LP, 1},   {EP_POOLING_LP, 2}};

std::vector<Sizes> sizes_of_tests() {
  std::vector<Sizes> list{
      {1, 2, 19, {31}, {4}, {3}, {1}, {1}},
      {2, 1, 130, {13, 15}, {3, 3}, {2, 2}, {1, 1}, {1, 1}},
      {2, 2, 33, {9, 40}, {2, 3}, {1, 2}, {2, 3}, {1, 0}},
      {3, 2, 21, {5, 6, 7}, {3, 2, 3}, {2, 1, 2}, {1, 1, 2}, {1, 0, 1}},
      {3, 1, 2, {4, 5, 6}, {2, 2, 2}, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}},
  };
  for (const int64_t channels : {1, 3, 5, 17, 63, 64}) {
    list.push_back({2, 1, channels, {11, 12}, {3, 3}, {2, 2}, {1, 1}, {1, 1}});
  }
  return list;
}

TEST_P(PoolingOfTypes, EqualsALoopOverWindows) {
  for (const Sizes& sizes : sizes_of_tests()) {
    for (const Order order : orders) {
      for (const Method& method : methods) {
        for (const int32_t dtype : floats) check(sizes, method, dtype, order);
        if (method.op != EP_POOLING_MAX) continue;
        for (const int32_t dtype : integers) check(sizes, method, dtype, order);
      }
    }
  }
}

TEST_P(PoolingOfTypes, KeepsNanInfinityAndDenormals) {
  for (const Sizes& sizes : sizes_of_tests()) {
    for (const int32_t dtype : floats) {
      for (const double special : {static_cast<double>(NAN), infinity, -infinity}) {
        for (const Order order : {Order::rows, Order::channels_last}) {
          check(sizes, methods[0], dtype, order, special);
          check(sizes, methods[1], dtype, order, special);
        }
      }
      const double least = dtype == EP_DTYPE_f16 ? 0x1p-24 : dtype == EP_DTYPE_f64 ? 0x1p-1074 : 0x1p-133;
      const Sizes one{1, 1, sizes.channels, {5}, {1}, {1}, {1}, {0}};
      check(one, methods[0], dtype, Order::rows, least);
    }
  }
}

// A plane whose rows do not fit in the L2 cache, and threads that share a plane.
TEST_P(PoolingOfTypes, OfLongRowsAndOnManyThreads) {
  check({2, 1, 16, {3, 9000}, {3, 3}, {2, 2}, {1, 1}, {1, 1}}, methods[0], EP_DTYPE_f16, Order::rows);
  cpu_ = std::make_unique<OpenProvider>("cpu", Settings{{"simd", GetParam()}}, 5);
  for (const int32_t dtype : {EP_DTYPE_bf16, EP_DTYPE_f64}) {
    for (const Order order : orders)
      check({2, 3, 20, {70, 80}, {3, 3}, {2, 2}, {1, 1}, {1, 1}}, methods[1], dtype, order);
  }
}

INSTANTIATE_TEST_SUITE_P(Target, PoolingOfTypes, testing::Values("baseline", "avx2", "avx3"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace tenon::provider
