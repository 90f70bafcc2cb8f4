// Linear and cubic resize over every float on every dispatch target, against products of matrices of weights in double:
// both axes grow, shrink or stay, few or many elements behind an axis, and operands with channels last, slices or gaps.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <vector>

#include "primitives/text/format.h"
#include "tests/unit/providers/provider_fixture.h"
#include "tests/unit/providers/values.h"

namespace tenon::provider {
namespace {

struct Sizes {
  int64_t images, channels, from[2], to[2];
};

struct Method {
  int32_t mode;
  int32_t flags;  // besides EP_RESIZE_FLAG_HALF
};

// Weights by the position of the element of SRC.
using Weights = std::map<int64_t, double>;

// The weight of each element of SRC, by element of DST, for pixels with centres at one half. Elements beyond the border
// are the one at the border.
std::vector<Weights> weights_of(const Method& method, int64_t from, int64_t to) {
  const double scale = static_cast<double>(to) / static_cast<double>(from);
  const bool antialias = (method.flags & EP_RESIZE_FLAG_ANTIALIAS) != 0;
  const double factor = antialias ? std::min(scale, 1.0) : 1;
  const double reach = (method.mode == EP_RESIZE_LINEAR ? 1 : 2) / factor;
  std::vector<Weights> rows;
  for (int64_t i = 0; i < to; ++i) {
    const double x = (static_cast<double>(i) + 0.5) / scale - 0.5;
    Weights row;
    double sum = 0;
    for (auto place = static_cast<int64_t>(std::floor(x - reach)); place <= std::ceil(x + reach); ++place) {
      const double d = std::abs((static_cast<double>(place) - x) * factor);
      double weight = std::max(0.0, 1 - d);
      if (method.mode == EP_RESIZE_CUBIC) {
        weight = d <= 1 ? (1.25 * d - 2.25) * d * d + 1 : d < 2 ? -0.75 * (((d - 5) * d + 8) * d - 4) : 0;
      }
      row[std::clamp<int64_t>(place, 0, from - 1)] += weight;
      sum += weight;
    }
    for (auto& [place, weight] : row) weight /= sum;
    rows.push_back(row);
  }
  return rows;
}

double rounding_of(int32_t dtype) {
  return dtype == EP_DTYPE_f16 ? 1.0 / 2048 : dtype == EP_DTYPE_bf16 ? 1.0 / 256 : dtype == EP_DTYPE_f32 ? 1e-6 : 1e-14;
}

class ResizeOfTypes : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    cpu_ = open_on_target(GetParam());
    if (cpu_ == nullptr) GTEST_SKIP() << "this processor or build has no " << GetParam();
  }

  void check(const Sizes& s, const Method& method, int32_t dtype, Order order, Order src_order, double special = 0) {
    SCOPED_TRACE(fmt::format("{} x {} to {} x {}, {} images of {} channels, mode {} flags {}, type {}, order {} {}",
                             s.from[0], s.from[1], s.to[0], s.to[1], s.images, s.channels, method.mode, method.flags,
                             dtype, static_cast<int>(order), static_cast<int>(src_order)));
    Values dst(EP_ROLE_DST, dtype, {s.images, s.channels, s.to[0], s.to[1]}, order, &generator_);
    Values src(EP_ROLE_SRC, dtype, {s.images, s.channels, s.from[0], s.from[1]}, src_order, &generator_);
    if (special != 0) src.set(src.count() / 2, special);
    ep_primitive_desc desc = descriptor(EP_PRIMITIVE_resize, {dst.desc(), src.desc()});
    ep_resize_attributes& at = desc.attributes.resize;
    at.mode = method.mode;
    at.flags = method.flags | EP_RESIZE_FLAG_HALF;
    at.cubic = method.mode == EP_RESIZE_CUBIC ? -0.75 : 0;
    for (int32_t axis = 0; axis < 4; ++axis) {
      at.scale[axis] = axis < 2 ? 1 : static_cast<double>(s.to[axis - 2]) / static_cast<double>(s.from[axis - 2]);
      at.offset[axis] = -0.5;
    }
    const LaunchResult run = run_once(*cpu_, desc, {dst.address(), src.address()}, {ep_scalar{}});
    ASSERT_EQ(run.status, EP_STATUS_OK) << cpu_->host.sentence();
    const auto down = weights_of(method, s.from[0], s.to[0]), right = weights_of(method, s.from[1], s.to[1]);
    for (int64_t plane = 0; plane < s.images * s.channels; ++plane) {
      std::vector<double> lines(static_cast<size_t>(s.from[0] * s.to[1]));
      for (int64_t y = 0; y < s.from[0]; ++y) {
        for (int64_t x = 0; x < s.to[1]; ++x) {
          lines[static_cast<size_t>(y * s.to[1] + x)] = blended(right[static_cast<size_t>(x)], [&](int64_t k) {
            return src.at((plane * s.from[0] + y) * s.from[1] + k);
          });
        }
      }
      for (int64_t i = 0; i < s.to[0] * s.to[1]; ++i) {
        const double want = blended(down[static_cast<size_t>(i / s.to[1])],
                                    [&](int64_t k) { return lines[static_cast<size_t>(k * s.to[1] + i % s.to[1])]; });
        const double got = dst.at(plane * s.to[0] * s.to[1] + i);
        if (std::isfinite(want)) {
          // An element of weight 0 may be read or not.
          if (special != 0 && std::isnan(got)) continue;
          ASSERT_NEAR(got, want, 2 * rounding_of(dtype) * (std::abs(want) + 1)) << "plane " << plane << " at " << i;
        } else {
          ASSERT_FALSE(std::isfinite(got)) << "plane " << plane << " at " << i;
        }
      }
    }
  }

  // Elements of weight 0 do not count.
  template <class At>
  static double blended(const Weights& weights, const At& at) {
    double sum = 0;
    for (const auto& [place, weight] : weights) {
      if (weight != 0) sum += weight * at(place);
    }
    return sum;
  }

  std::mt19937 generator_{31};
  std::unique_ptr<OpenProvider> cpu_;
};

constexpr Sizes sizes[] = {
    {2, 3, {17, 33}, {9, 21}}, {1, 5, {13, 11}, {29, 47}},     {1, 1, {40, 9}, {7, 30}},
    {2, 17, {6, 50}, {20, 5}}, {1, 3, {300, 200}, {150, 401}}, {1, 2, {12, 7}, {12, 19}},
    {1, 63, {9, 8}, {5, 8}},   {3, 1, {1, 5}, {1, 3}},         {1, 4, {8, 9}, {8, 9}},
};
constexpr Method methods[] = {{EP_RESIZE_LINEAR, 0},
                              {EP_RESIZE_LINEAR, EP_RESIZE_FLAG_ANTIALIAS},
                              {EP_RESIZE_CUBIC, 0},
                              {EP_RESIZE_CUBIC, EP_RESIZE_FLAG_ANTIALIAS}};

TEST_P(ResizeOfTypes, EqualsProductsOfWeights) {
  for (const Sizes& size : sizes) {
    for (const Method& method : methods) {
      for (const int32_t dtype : {EP_DTYPE_f16, EP_DTYPE_bf16, EP_DTYPE_f32, EP_DTYPE_f64}) {
        for (const Order order : {Order::rows, Order::channels_last, Order::slices}) {
          check(size, method, dtype, order, order);
        }
        check(size, method, dtype, Order::channels_last, Order::gaps);
      }
    }
  }
}

TEST_P(ResizeOfTypes, KeepsNanAndInfinity) {
  for (const Sizes& size : sizes) {
    for (const double special : {static_cast<double>(NAN), std::numeric_limits<double>::infinity()}) {
      for (const int32_t dtype : {EP_DTYPE_f16, EP_DTYPE_f32}) {
        check(size, methods[0], dtype, Order::rows, Order::rows, special);
        check(size, methods[0], dtype, Order::channels_last, Order::channels_last, special);
      }
    }
  }
}

// Threads share the rows of a plane.
TEST_P(ResizeOfTypes, OnManyThreads) {
  cpu_ = std::make_unique<OpenProvider>("cpu", Settings{{"simd", GetParam()}}, 5);
  for (const Method& method : methods)
    check({1, 1, {700, 500}, {400, 600}}, method, EP_DTYPE_f16, Order::rows, Order::rows);
}

INSTANTIATE_TEST_SUITE_P(Target, ResizeOfTypes, testing::Values("baseline", "avx2", "avx3"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace tenon::provider
