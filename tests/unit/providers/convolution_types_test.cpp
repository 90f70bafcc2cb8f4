// Convolutions, transposed convolutions and gradients of weights over f16, bf16, f32 and f64, on every dispatch target,
// against sums in long double: ranks, groups, strides, dilations, pads, epilogues, constant weights, and operands with
// channels last, gaps or repeated images. None of them may run in plain loops.
#include <gtest/gtest.h>

#include <algorithm>
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
  int64_t images, in, out, groups;
  int64_t src[3], kernel[3], stride[3], dilation[3], pad[3];
  bool transposed = false;
  bool finishes = false;  // a bias, then a residual and perhaps relu
  bool relu = true;
  bool constant = false;
};

// Half a unit in the last place of the type, and the error of the sums, relative to the sum of magnitudes.
double rounding_of(int32_t dtype) {
  return dtype == EP_DTYPE_f16 ? 1.0 / 2048 : dtype == EP_DTYPE_bf16 ? 1.0 / 256 : dtype == EP_DTYPE_f32 ? 1e-7 : 1e-16;
}
double sum_error_of(int32_t dtype) { return dtype == EP_DTYPE_f64 ? 3e-15 : 1e-6; }

class ConvolutionTypes : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    cpu_ = open_on_target(GetParam());
    if (cpu_ == nullptr) GTEST_SKIP() << "this processor or build has no " << GetParam();
  }

  static std::vector<int64_t> dims_of(int64_t first, int64_t second, const int64_t* spatial, int32_t rank) {
    std::vector<int64_t> dims{first, second};
    dims.insert(dims.end(), spatial, spatial + rank);
    return dims;
  }

  static int64_t elements(const int64_t* dims, int32_t rank) {
    int64_t count = 1;
    for (int32_t i = 0; i < rank; ++i) count *= dims[i];
    return count;
  }

  // Visits the positions of the larger and of the smaller side that tap `tap` joins.
  template <class Visit>
  static void pairs(const Sizes& s, const int64_t* large, const int64_t* small, int64_t tap, const Visit& visit) {
    for (int64_t i = 0; i < elements(small, s.rank); ++i) {
      int64_t rest_small = i, rest_tap = tap, at = 0, step = 1;
      bool inside = true;
      for (int32_t axis = s.rank; axis-- > 0;) {
        const int64_t position =
            rest_small % small[axis] * s.stride[axis] - s.pad[axis] + rest_tap % s.kernel[axis] * s.dilation[axis];
        inside = inside && position >= 0 && position < large[axis];
        at += position * step;
        step *= large[axis];
        rest_small /= small[axis];
        rest_tap /= s.kernel[axis];
      }
      if (inside) visit(at, i);
    }
  }

  static void results_of(const Sizes& s, int64_t* dst) {
    for (int32_t axis = 0; axis < s.rank; ++axis) {
      const int64_t reach = (s.kernel[axis] - 1) * s.dilation[axis] + 1;
      dst[axis] = s.transposed ? (s.src[axis] - 1) * s.stride[axis] + reach - 2 * s.pad[axis]
                               : (s.src[axis] + 2 * s.pad[axis] - reach) / s.stride[axis] + 1;
    }
  }

  void check(const Sizes& s, int32_t dtype, Order order) {
    SCOPED_TRACE(fmt::format("{} spatial dims, {} to {} channels in {} groups, type {}, order {}{}", s.rank, s.in,
                             s.out, s.groups, dtype, static_cast<int>(order), s.transposed ? ", transposed" : ""));
    int64_t result[3];
    results_of(s, result);
    const int64_t in_each = s.in / s.groups, out_each = s.out / s.groups;
    Values dst(EP_ROLE_DST, dtype, dims_of(s.images, s.out, result, s.rank), order, &generator_);
    Values src(EP_ROLE_SRC, dtype, dims_of(s.images, s.in, s.src, s.rank), order, &generator_);
    Values weight(EP_ROLE_WEIGHT, dtype,
                  s.transposed ? dims_of(s.in, out_each, s.kernel, s.rank) : dims_of(s.out, in_each, s.kernel, s.rank),
                  order == Order::channels_last ? Order::rows : order, &generator_);
    Values bias(EP_ROLE_BIAS, dtype, {s.out}, order, &generator_);
    Values other(EP_ROLE_EPILOGUE_0, dtype, dims_of(s.images, s.out, result, s.rank), order, &generator_);
    std::vector<ep_operand_desc> operands{dst.desc(), src.desc(), weight.desc()};
    std::vector<void*> addresses{dst.address(), src.address(), weight.address()};
    if (s.constant) operands[2].flags |= EP_OPERAND_FLAG_CONSTANT;
    if (s.finishes) {
      operands.push_back(bias.desc());
      addresses.push_back(bias.address());
    }
    ep_primitive_desc desc = descriptor(EP_PRIMITIVE_convolution, operands);
    ep_convolution_attributes& attributes = desc.attributes.convolution;
    attributes.spatial_rank = s.rank;
    attributes.groups = static_cast<int32_t>(s.groups);
    attributes.transposed = s.transposed ? 1 : 0;
    for (int32_t axis = 0; axis < s.rank; ++axis) {
      attributes.stride[axis] = s.stride[axis];
      attributes.dilation[axis] = s.dilation[axis];
      attributes.pad_low[axis] = attributes.pad_high[axis] = s.pad[axis];
    }
    if (s.finishes) {
      then_add_residual(&desc);
      if (s.relu) desc.epilogues[desc.epilogue_count++] = {1, EP_UNARY_relu, 0, 4};
      addresses.push_back(other.address());
    }
    const LaunchResult run = run_once(*cpu_, desc, addresses, std::vector<ep_scalar>(EP_MAX_SCALARS));
    ASSERT_EQ(run.status, EP_STATUS_OK) << cpu_->host.sentence();
    EXPECT_NE(run.implementation, "plain");

    const int64_t pixels = elements(result, s.rank), src_pixels = elements(s.src, s.rank);
    const int64_t taps = elements(s.kernel, s.rank);
    const std::vector<double> src_numbers = src.numbers(), weight_numbers = weight.numbers();
    std::vector<long double> sums(static_cast<size_t>(dst.count())), sizes(sums.size());
    for (int64_t tap = 0; tap < taps; ++tap) {
      pairs(s, s.transposed ? result : s.src, s.transposed ? s.src : result, tap, [&](int64_t large, int64_t small) {
        const int64_t from = s.transposed ? small : large, to = s.transposed ? large : small;
        for (int64_t i = 0; i < s.images * s.out * in_each; ++i) {
          const int64_t n = i / in_each / s.out, o = i / in_each % s.out, c = i % in_each;
          const int64_t channel = o / out_each * in_each + c;
          const int64_t w = s.transposed ? channel * out_each + o % out_each : o * in_each + c;
          const long double product =
              static_cast<long double>(src_numbers[static_cast<size_t>((n * s.in + channel) * src_pixels + from)]) *
              weight_numbers[static_cast<size_t>(w * taps + tap)];
          const auto at = static_cast<size_t>((n * s.out + o) * pixels + to);
          sums[at] += product;
          sizes[at] += std::abs(product);
        }
      });
    }
    for (int64_t i = 0; i < dst.count(); ++i) {
      long double want = sums[static_cast<size_t>(i)];
      if (s.finishes) want += bias.at(i / pixels % s.out) + other.at(i);
      if (s.finishes && s.relu) want = std::max(want, 0.0L);
      const double near = rounding_of(dtype) * std::abs(static_cast<double>(want)) +
                          sum_error_of(dtype) * (static_cast<double>(sizes[static_cast<size_t>(i)]) + 1);
      ASSERT_NEAR(dst.at(i), static_cast<double>(want), near) << "result " << i << " by " << run.implementation;
    }
  }

  bool allows_open_dims(const ep_primitive_desc& desc) {
    ep_support_info info{};
    info.struct_size = sizeof info;
    info.struct_type = EP_STRUCT_SUPPORT_INFO;
    ep_error* error = nullptr;
    EXPECT_EQ(cpu_->ops.primitive_support(cpu_->device, &desc, &info, &error), EP_STATUS_OK);
    return (info.flags & EP_SUPPORT_FLAG_ANY_DIMS) != 0;
  }

  void check_gradient(const Sizes& s, int32_t dtype, Order order) {
    SCOPED_TRACE(fmt::format("gradient, {} spatial dims, {} to {} channels in {} groups, type {}, order {}", s.rank,
                             s.in, s.out, s.groups, dtype, static_cast<int>(order)));
    int64_t result[3];
    results_of(s, result);
    const int64_t in_each = s.in / s.groups, out_each = s.out / s.groups;
    Values dst(EP_ROLE_DST, dtype, dims_of(s.out, in_each, s.kernel, s.rank),
               order == Order::channels_last ? Order::rows : order, &generator_);
    Values src(EP_ROLE_SRC, dtype, dims_of(s.images, s.in, s.src, s.rank), order, &generator_);
    Values gradient(EP_ROLE_GRADIENT, dtype, dims_of(s.images, s.out, result, s.rank), order, &generator_);
    ep_primitive_desc desc = descriptor(EP_PRIMITIVE_convolution_weight, {dst.desc(), src.desc(), gradient.desc()});
    ep_convolution_weight_attributes& attributes = desc.attributes.convolution_weight;
    attributes.spatial_rank = s.rank;
    attributes.groups = static_cast<int32_t>(s.groups);
    for (int32_t axis = 0; axis < s.rank; ++axis) {
      attributes.stride[axis] = s.stride[axis];
      attributes.dilation[axis] = s.dilation[axis];
      attributes.pad_low[axis] = s.pad[axis];
    }
    const LaunchResult run = run_once(*cpu_, desc, {dst.address(), src.address(), gradient.address()});
    ASSERT_EQ(run.status, EP_STATUS_OK) << cpu_->host.sentence();
    EXPECT_NE(run.implementation, "plain");
    if (allows_open_dims(desc)) {  // the host then opens them
      const LaunchResult open = run_once(*cpu_, desc, {dst.address(), src.address(), gradient.address()}, {}, true);
      EXPECT_NE(open.implementation, "plain");
    }

    const int64_t pixels = elements(result, s.rank), src_pixels = elements(s.src, s.rank);
    const int64_t taps = elements(s.kernel, s.rank);
    const std::vector<double> src_numbers = src.numbers(), gradient_numbers = gradient.numbers();
    for (int64_t i = 0; i < dst.count(); ++i) {
      const int64_t o = i / taps / in_each, channel = o / out_each * in_each + i / taps % in_each;
      long double want = 0, size = 1;
      pairs(s, s.src, result, i % taps, [&](int64_t from, int64_t to) {
        for (int64_t n = 0; n < s.images; ++n) {
          const long double product =
              static_cast<long double>(src_numbers[static_cast<size_t>((n * s.in + channel) * src_pixels + from)]) *
              gradient_numbers[static_cast<size_t>((n * s.out + o) * pixels + to)];
          want += product;
          size += std::abs(product);
        }
      });
      const double near =
          rounding_of(dtype) * std::abs(static_cast<double>(want)) + sum_error_of(dtype) * static_cast<double>(size);
      ASSERT_NEAR(dst.at(i), static_cast<double>(want), near) << "weight " << i << " by " << run.implementation;
    }
  }

  static constexpr Order orders[] = {Order::rows, Order::channels_last, Order::gaps, Order::repeated};

  std::mt19937 generator_{47};
  std::unique_ptr<OpenProvider> cpu_;
};

constexpr int32_t types[] = {EP_DTYPE_f16, EP_DTYPE_bf16, EP_DTYPE_f32, EP_DTYPE_f64};

const std::vector<Sizes>& many_sizes() {
  static const std::vector<Sizes> list = {
      {1, 2, 5, 7, 1, {37}, {5}, {1}, {1}, {2}},
      {1, 1, 12, 12, 12, {41}, {3}, {2}, {2}, {1}},
      {2, 2, 19, 33, 1, {13, 11}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
      {2, 1, 3, 17, 1, {23, 25}, {7, 5}, {2, 3}, {1, 1}, {3, 2}},
      {2, 1, 37, 65, 1, {9, 10}, {1, 1}, {1, 1}, {1, 1}, {0, 0}},
      {2, 1, 24, 16, 4, {12, 13}, {3, 2}, {1, 2}, {2, 1}, {2, 0}},
      {2, 2, 23, 23, 23, {15, 14}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
      {2, 1, 6, 18, 6, {9, 17}, {3, 3}, {2, 2}, {1, 1}, {1, 1}},
      {3, 1, 6, 9, 1, {5, 6, 7}, {3, 2, 3}, {1, 1, 2}, {1, 2, 1}, {1, 1, 1}},
      {3, 2, 8, 8, 8, {4, 5, 6}, {2, 3, 3}, {1, 2, 1}, {1, 1, 1}, {0, 1, 1}},
      {1, 1, 9, 6, 1, {19}, {4}, {2}, {1}, {1}, true},
      {2, 2, 11, 13, 1, {7, 9}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, true},
      {2, 1, 10, 6, 1, {7, 6}, {4, 3}, {2, 3}, {1, 2}, {1, 0}, true},
      {2, 1, 16, 8, 4, {6, 7}, {2, 2}, {2, 2}, {1, 1}, {0, 0}, true},
      {2, 1, 7, 7, 7, {8, 6}, {3, 3}, {2, 2}, {1, 1}, {1, 1}, true},
      {2, 2, 19, 19, 19, {9, 11}, {3, 5}, {1, 1}, {1, 2}, {1, 2}, true},
      {1, 1, 12, 12, 12, {33}, {5}, {1}, {1}, {2}, true},
      {3, 1, 4, 5, 1, {3, 4, 5}, {2, 3, 2}, {2, 1, 2}, {1, 1, 1}, {0, 1, 0}, true},
  };
  return list;
}

TEST_P(ConvolutionTypes, OfManyOrders) {
  for (const Sizes& sizes : many_sizes()) {
    for (const int32_t dtype : types) {
      for (const Order order : orders) check(sizes, dtype, order);
    }
  }
}

TEST_P(ConvolutionTypes, WithEpiloguesAndConstantWeights) {
  for (Sizes sizes : many_sizes()) {
    sizes.finishes = sizes.constant = true;
    for (const int32_t dtype : types) check(sizes, dtype, Order::channels_last);
    sizes.relu = false;
    for (const int32_t dtype : types) check(sizes, dtype, Order::channels_last);
    sizes.constant = false;
    for (const int32_t dtype : types) check(sizes, dtype, Order::rows);
  }
}

TEST_P(ConvolutionTypes, GradientsOfWeights) {
  for (const Sizes& sizes : many_sizes()) {
    if (sizes.transposed) continue;
    for (const int32_t dtype : types) {
      for (const Order order : orders) check_gradient(sizes, dtype, order);
    }
  }
}

// The provider divides f64 work by the number of threads.
TEST_P(ConvolutionTypes, OnManyThreads) {
  cpu_ = std::make_unique<OpenProvider>("cpu", Settings{{"simd", GetParam()}}, 5);
  for (const Sizes& sizes : many_sizes()) {
    for (const int32_t dtype : {EP_DTYPE_f16, EP_DTYPE_f64}) {
      check(sizes, dtype, Order::rows);
      if (!sizes.transposed) check_gradient(sizes, dtype, Order::rows);
    }
  }
  check({2, 1, 40, 130, 1, {7, 7}, {3, 3}, {1, 1}, {1, 1}, {1, 1}}, EP_DTYPE_f64, Order::rows);
  check_gradient({2, 1, 40, 130, 1, {7, 7}, {3, 3}, {1, 1}, {1, 1}, {1, 1}}, EP_DTYPE_f64, Order::rows);
}

TEST_P(ConvolutionTypes, KeepNanInfinityAndDenormals) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const std::vector<double> specials{NAN, infinity, -infinity, 0x1p-24, -0x3p-24, 0x1p-133, -0x5p-133, 0x1p-1074, 1};
  const auto count = static_cast<int64_t>(specials.size());
  ep_device_info info{};
  info.struct_size = sizeof info;
  info.struct_type = EP_STRUCT_DEVICE_INFO;
  ASSERT_EQ(cpu_->plugin.device_info(cpu_->plugin.plugin, 0, &info, nullptr), EP_STATUS_OK);
  for (const int32_t dtype : types) {
    const bool flushes = (info.flushed_dtypes >> dtype & 1) != 0;
    Values dst(EP_ROLE_DST, dtype, {1, 1, count}, Order::rows, &generator_);
    Values src(EP_ROLE_SRC, dtype, {1, 1, count}, Order::rows, &generator_);
    Values weight(EP_ROLE_WEIGHT, dtype, {1, 1, 1}, Order::rows, &generator_);
    for (int64_t i = 0; i < count; ++i) src.set(i, specials[static_cast<size_t>(i)]);
    weight.set(0, 1);
    ep_primitive_desc desc = descriptor(EP_PRIMITIVE_convolution, {dst.desc(), src.desc(), weight.desc()});
    desc.attributes.convolution.spatial_rank = 1;
    desc.attributes.convolution.groups = 1;
    desc.attributes.convolution.stride[0] = desc.attributes.convolution.dilation[0] = 1;
    const LaunchResult run = run_once(*cpu_, desc, {dst.address(), src.address(), weight.address()});
    ASSERT_EQ(run.status, EP_STATUS_OK) << cpu_->host.sentence();
    for (int64_t i = 0; i < count; ++i) {
      const double got = dst.at(i), want = src.at(i);
      if (flushes && std::abs(want) < 0x1p-126 && got == 0) continue;
      EXPECT_TRUE(std::isnan(want) ? std::isnan(got) : got == want)
          << "type " << dtype << " by " << run.implementation << ": " << got << ", not " << want;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Target, ConvolutionTypes, testing::Values("baseline", "avx2", "avx3"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace tenon::provider
