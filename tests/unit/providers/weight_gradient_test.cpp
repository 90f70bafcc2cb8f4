// Gradients of the weights of convolutions on every dispatch target, against sums in double precision. The cpu provider
// uses Winograd's method for 3 x 3 taps and enough channels, and reads few channels from a frame.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "primitives/text/format.h"
#include "tests/unit/providers/provider_fixture.h"
#include "tests/unit/providers/sums_in_double.h"

namespace tenon::provider {
namespace {

struct Sizes {
  int64_t count, in, out, groups, height, width, kernel[2], stride[2], dilation[2], pad[2];
  bool channels_last = true;
  int64_t src(int axis) const { return axis == 0 ? height : width; }
  int64_t results(int axis) const {
    return (src(axis) + 2 * pad[axis] - dilation[axis] * (kernel[axis] - 1) - 1) / stride[axis] + 1;
  }
  int64_t taps() const { return kernel[0] * kernel[1]; }
};

std::string text_of(const Sizes& s) {
  return fmt::format(
      "{} x {} to {} channels in {} groups, {} x {}, {} x {} taps, strides {} {}, dilations {} {}, pads {} {}{}",
      s.count, s.in, s.out, s.groups, s.height, s.width, s.kernel[0], s.kernel[1], s.stride[0], s.stride[1],
      s.dilation[0], s.dilation[1], s.pad[0], s.pad[1], s.channels_last ? "" : ", channels first");
}

struct WeightGradient {
  explicit WeightGradient(const Sizes& sizes) : sizes(sizes) {
    const auto filled = [&](int64_t n) {
      std::vector<float> values(static_cast<size_t>(n));
      for (float& value : values) value = range(generator);
      return values;
    };
    src = filled(sizes.count * sizes.in * sizes.height * sizes.width);
    gradient = filled(sizes.count * sizes.out * sizes.results(0) * sizes.results(1));
    dst.resize(static_cast<size_t>(sizes.out * sizes.in / sizes.groups * sizes.taps()) + guard, poison);
  }

  ep_status run(OpenProvider& cpu) {
    const auto operand = [&](int32_t role, int64_t channels, int64_t height, int64_t width) {
      if (!sizes.channels_last) return dense(role, EP_DTYPE_f32, {sizes.count, channels, height, width});
      return strided(role, EP_DTYPE_f32, {sizes.count, channels, height, width},
                     {channels * height * width, 1, width * channels, channels});
    };
    ep_primitive_desc desc = descriptor(
        EP_PRIMITIVE_convolution_weight,
        {dense(EP_ROLE_DST, EP_DTYPE_f32, {sizes.out, sizes.in / sizes.groups, sizes.kernel[0], sizes.kernel[1]}),
         operand(EP_ROLE_SRC, sizes.in, sizes.height, sizes.width),
         operand(EP_ROLE_GRADIENT, sizes.out, sizes.results(0), sizes.results(1))});
    ep_convolution_weight_attributes& attributes = desc.attributes.convolution_weight;
    attributes.spatial_rank = 2;
    attributes.groups = sizes.groups;
    for (int i = 0; i < 2; ++i) {
      attributes.stride[i] = sizes.stride[i];
      attributes.dilation[i] = sizes.dilation[i];
      attributes.pad_low[i] = attributes.pad_high[i] = sizes.pad[i];
    }
    const LaunchResult result = run_once(cpu, desc, {dst.data(), src.data(), gradient.data()});
    EXPECT_EQ(result.implementation, "product");
    return result.status;
  }

  size_t place(int64_t image, int64_t channel, int64_t y, int64_t x, int64_t channels, int64_t height,
               int64_t width) const {
    const int64_t at = sizes.channels_last ? ((image * height + y) * width + x) * channels + channel
                                           : ((image * channels + channel) * height + y) * width + x;
    return static_cast<size_t>(at);
  }

  // Result number `i`, and the sum of the magnitudes that it adds up.
  double wanted(size_t i, double* magnitude) const {
    const auto number = static_cast<int64_t>(i);
    const int64_t tap[2] = {number / sizes.kernel[1] % sizes.kernel[0], number % sizes.kernel[1]};
    const int64_t channels = sizes.in / sizes.groups;
    const int64_t out = number / sizes.taps() / channels;
    const int64_t in = number / sizes.taps() % channels + out / (sizes.out / sizes.groups) * channels;
    double sum = 0;
    *magnitude = 0;
    for (int64_t image = 0; image < sizes.count; ++image) {
      for (int64_t y = 0; y < sizes.results(0); ++y) {
        for (int64_t x = 0; x < sizes.results(1); ++x) {
          const int64_t sy = y * sizes.stride[0] + tap[0] * sizes.dilation[0] - sizes.pad[0];
          const int64_t sx = x * sizes.stride[1] + tap[1] * sizes.dilation[1] - sizes.pad[1];
          if (sy < 0 || sy >= sizes.height || sx < 0 || sx >= sizes.width) continue;
          const double left = src[place(image, in, sy, sx, sizes.in, sizes.height, sizes.width)];
          const double product =
              left * gradient[place(image, out, y, x, sizes.out, sizes.results(0), sizes.results(1))];
          sum += product;
          *magnitude += std::abs(product);
        }
      }
    }
    return sum;
  }

  double error() const {
    return worst_error(dst, [&](size_t i, double* magnitude) { return wanted(i, magnitude); });
  }

  Sizes sizes;
  std::mt19937 generator{11};
  std::uniform_real_distribution<float> range{-1.0F, 1.0F};
  std::vector<float> src, gradient, dst;
};

const Sizes by_winograd{2, 37, 45, 1, 15, 13, {3, 3}, {1, 1}, {1, 1}, {1, 1}};

std::vector<Sizes> shapes() {
  std::vector<Sizes> shapes{
      by_winograd,
      {1, 64, 32, 1, 7, 33, {3, 3}, {1, 1}, {1, 1}, {0, 2}},   // squares outside of the image
      {2, 64, 64, 2, 9, 11, {3, 3}, {1, 1}, {1, 1}, {1, 1}},   // groups
      {1, 32, 32, 1, 84, 80, {3, 3}, {1, 1}, {1, 1}, {1, 1}},  // more squares than one chunk
      {3, 20, 24, 1, 58, 60, {3, 3}, {1, 1}, {1, 1}, {1, 1}},  // the direct method, more lines than one chunk
      {2, 3, 33, 1, 31, 30, {7, 7}, {2, 2}, {1, 1}, {3, 3}},   // a frame
      {1, 5, 16, 1, 12, 40, {2, 5}, {1, 3}, {2, 1}, {0, 4}},   // a frame, and a remainder of pixels
      {2, 48, 50, 1, 14, 15, {3, 3}, {2, 2}, {1, 1}, {1, 1}},  // strides
      {2, 40, 20, 1, 14, 15, {1, 1}, {2, 2}, {1, 1}, {0, 0}},  // one tap
      {1, 17, 19, 1, 16, 17, {3, 2}, {1, 2}, {3, 2}, {2, 1}},  // dilations
      {1, 12, 15, 3, 9, 8, {3, 3}, {1, 1}, {1, 1}, {1, 1}},    // few channels of each group
      {1, 18, 14, 1, 5, 5, {9, 9}, {1, 1}, {1, 1}, {4, 4}},    // taps outside of the image
  };
  std::mt19937 generator(3);
  const auto any = [&](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(generator() % static_cast<uint64_t>(high - low + 1));
  };
  for (int i = 0; i < 12; ++i) {
    shapes.push_back({any(1, 3),
                      any(1, 70),
                      any(1, 70),
                      1,
                      any(9, 21),
                      any(9, 21),
                      {any(1, 3), any(1, 3)},
                      {any(1, 2), any(1, 2)},
                      {any(1, 2), any(1, 2)},
                      {any(0, 2), any(0, 2)}});
  }
  for (size_t i = 0, given = shapes.size(); i < given; ++i) {
    shapes.push_back(shapes[i]);
    shapes.back().channels_last = false;
  }
  return shapes;
}

class WeightGradients : public ::testing::TestWithParam<const char*> {};

TEST_P(WeightGradients, StayWithinTheirBoundOfSumsInDoublePrecision) {
  const auto cpu = open_on_target(GetParam());
  if (cpu == nullptr) GTEST_SKIP() << "this processor does not have " << GetParam();
  double worst = 0;
  for (const Sizes& sizes : shapes()) {
    WeightGradient gradient(sizes);
    ASSERT_EQ(gradient.run(*cpu), EP_STATUS_OK) << text_of(sizes) << ": " << cpu->host.sentence();
    const double error = gradient.error();
    EXPECT_LE(error, bound) << text_of(sizes);
    worst = std::max(worst, error);
  }
  RecordProperty("worst", fmt::format("{:.3g} epsilons", worst * (1 << 23)));
}

// With one channel of SRC, taps at the border do not reach every pixel.
TEST_P(WeightGradients, KeepNanAndInfinityWhereTheyBelong) {
  const auto cpu = open_on_target(GetParam());
  if (cpu == nullptr) GTEST_SKIP() << "this processor does not have " << GetParam();
  constexpr float infinity = std::numeric_limits<float>::infinity();
  for (const float value : {std::numeric_limits<float>::quiet_NaN(), infinity, -infinity}) {
    WeightGradient gradient(by_winograd);
    for (const size_t at : {5, 4444, 1999}) gradient.src[at] = value;
    ASSERT_EQ(gradient.run(*cpu), EP_STATUS_OK) << cpu->host.sentence();
    EXPECT_LE(gradient.error(), bound) << value;
    gradient = WeightGradient(by_winograd);
    gradient.gradient[4 * 45 + 31] = value;
    ASSERT_EQ(gradient.run(*cpu), EP_STATUS_OK) << cpu->host.sentence();
    EXPECT_LE(gradient.error(), bound) << value;
  }
}

// Sums of four elements overflow, but their products do not.
TEST_P(WeightGradients, DoNotOverflowBeforeTheSumsDo) {
  const auto cpu = open_on_target(GetParam());
  if (cpu == nullptr) GTEST_SKIP() << "this processor does not have " << GetParam();
  WeightGradient gradient(by_winograd);
  for (float& value : gradient.src) value *= 3e38F;
  for (float& value : gradient.gradient) value *= 1e-3F;
  ASSERT_EQ(gradient.run(*cpu), EP_STATUS_OK) << cpu->host.sentence();
  EXPECT_LE(gradient.error(), bound);
}

INSTANTIATE_TEST_SUITE_P(Targets, WeightGradients, ::testing::Values("baseline", "avx2", "avx3"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace tenon::provider
