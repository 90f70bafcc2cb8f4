// Convolutions of 3 x 3 taps, most with constant weights, on every dispatch target, against sums in double precision.
// The cpu provider uses Winograd's F(2x2, 3x3) if there are enough channels and pixels.
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
  int64_t count, in, out, height, width, pad[4];  // pads: above, left, below, right
  bool residual;
  bool changes = false;     // the weight may change
  bool transposed = false;  // pads are those of the equivalent convolution
  bool planes = false;      // channels are first
  int64_t dst_height() const { return height + pad[0] + pad[2] - 2; }
  int64_t dst_width() const { return width + pad[1] + pad[3] - 2; }
};

std::string text_of(const Sizes& s) {
  return fmt::format("{} x {} to {} channels, {} x {}, pads {} {} {} {}{}", s.count, s.in, s.out, s.height, s.width,
                     s.pad[0], s.pad[1], s.pad[2], s.pad[3], s.residual ? ", residual" : "");
}

// A relu follows.
struct Convolution {
  explicit Convolution(const Sizes& sizes) : sizes(sizes) {
    src = random_floats(sizes.count * sizes.height * sizes.width * sizes.in, &generator);
    weight = random_floats(sizes.out * sizes.in * 9, &generator);
    bias = random_floats(sizes.out, &generator);
    dst.resize(static_cast<size_t>(sizes.count * sizes.dst_height() * sizes.dst_width() * sizes.out), poison);
    other = random_floats(static_cast<int64_t>(dst.size()), &generator);
    dst.resize(dst.size() + guard, poison);
  }

  ep_status run(OpenProvider& cpu) {
    const auto operand = [&](int32_t role, int64_t channels, int64_t height, int64_t width) {
      if (sizes.planes) return dense(role, EP_DTYPE_f32, {sizes.count, channels, height, width});
      return strided(role, EP_DTYPE_f32, {sizes.count, channels, height, width},
                     {channels * height * width, 1, width * channels, channels});
    };
    ep_primitive_desc desc =
        descriptor(EP_PRIMITIVE_convolution, {operand(EP_ROLE_DST, sizes.out, sizes.dst_height(), sizes.dst_width()),
                                              operand(EP_ROLE_SRC, sizes.in, sizes.height, sizes.width),
                                              dense(EP_ROLE_WEIGHT, EP_DTYPE_f32, weight_dims()),
                                              dense(EP_ROLE_BIAS, EP_DTYPE_f32, {sizes.out})});
    if (!sizes.changes) desc.operands[2].flags = EP_OPERAND_FLAG_CONSTANT;
    ep_convolution_attributes& attributes = desc.attributes.convolution;
    attributes.spatial_rank = 2;
    attributes.groups = 1;
    attributes.transposed = sizes.transposed ? 1 : 0;
    for (int i = 0; i < 2; ++i) {
      attributes.stride[i] = attributes.dilation[i] = 1;
      attributes.pad_low[i] = sizes.transposed ? 2 - sizes.pad[i] : sizes.pad[i];
      attributes.pad_high[i] = sizes.transposed ? 2 - sizes.pad[2 + i] : sizes.pad[2 + i];
    }
    std::vector<void*> operands{dst.data(), src.data(), weight.data(), bias.data()};
    if (sizes.residual) {
      then_add_residual(&desc);
      operands.push_back(other.data());
    }
    desc.epilogues[desc.epilogue_count++] = {1, EP_UNARY_relu, 0, 0};
    const LaunchResult result = run_once(cpu, desc, operands);
    EXPECT_EQ(result.implementation, "channels_last");
    return result.status;
  }

  std::vector<int64_t> weight_dims() const {
    const int64_t first = sizes.transposed ? sizes.in : sizes.out;
    return {first, sizes.in + sizes.out - first, 3, 3};
  }
  double weight_of(int64_t channel, int64_t c, int64_t tap) const {
    const int64_t at = sizes.transposed ? (c * sizes.out + channel) * 9 + 8 - tap : (channel * sizes.in + c) * 9 + tap;
    return weight[static_cast<size_t>(at)];
  }

  // Result number `i`, and the sum of the magnitudes that it adds up.
  double wanted(size_t i, double* magnitude) const {
    const auto place = static_cast<int64_t>(i);
    const int64_t plane = sizes.dst_height() * sizes.dst_width();
    const int64_t channel = sizes.planes ? place / plane % sizes.out : place % sizes.out;
    const int64_t pixel = sizes.planes ? place / plane / sizes.out * plane + place % plane : place / sizes.out;
    const int64_t x = pixel % sizes.dst_width(), line = pixel / sizes.dst_width();
    const int64_t y = line % sizes.dst_height(), image = line / sizes.dst_height();
    double sum = bias[static_cast<size_t>(channel)];
    *magnitude = std::abs(sum);
    for (int64_t tap = 0; tap < 9; ++tap) {
      const int64_t sy = y + tap / 3 - sizes.pad[0], sx = x + tap % 3 - sizes.pad[1];
      if (sy < 0 || sy >= sizes.height || sx < 0 || sx >= sizes.width) continue;
      for (int64_t c = 0; c < sizes.in; ++c) {
        const int64_t at = sizes.planes ? ((image * sizes.in + c) * sizes.height + sy) * sizes.width + sx
                                        : ((image * sizes.height + sy) * sizes.width + sx) * sizes.in + c;
        const double left = src[static_cast<size_t>(at)];
        const double product = left * weight_of(channel, c, tap);
        sum += product;
        *magnitude += std::abs(product);
      }
    }
    if (sizes.residual) sum += other[i];
    if (sizes.residual) *magnitude += std::abs(other[i]);
    return sum <= 0 ? 0 : sum;
  }

  double error() const {
    return worst_error(dst, [&](size_t i, double* magnitude) { return wanted(i, magnitude); });
  }

  Sizes sizes;
  std::mt19937 generator{11};
  std::vector<float> src, weight, bias, other, dst;
};

std::vector<Sizes> shapes() {
  std::vector<Sizes> shapes{
      {1, 64, 64, 14, 14, {1, 1, 1, 1}, true},    // threads share squares, two panels
      {1, 24, 40, 33, 35, {1, 1, 1, 1}, false},   // each thread has its squares and keeps weights
      {1, 300, 48, 21, 23, {1, 1, 1, 1}, true},   // more channels than one chunk
      {1, 280, 304, 22, 23, {1, 1, 1, 1}, true},  // each thread has its squares, with more weights than it keeps
      {9, 17, 33, 4, 3, {1, 1, 1, 1}, true},      // images of few pixels
      {30, 16, 16, 3, 3, {0, 0, 0, 0}, false},    // images of one result
      {1, 16, 17, 12, 11, {3, 4, 5, 2}, false},   // squares outside of the image
  };
  std::mt19937 generator(3);
  const auto any = [&](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(generator() % static_cast<uint64_t>(high - low + 1));
  };
  for (int i = 0; i < 12; ++i) {
    shapes.push_back({any(1, 3),
                      any(16, 70),
                      any(16, 70),
                      any(9, 21),
                      any(9, 21),
                      {any(0, 2), any(0, 2), any(0, 2), any(0, 2)},
                      any(0, 1) == 1});
  }
  return shapes;
}

class Winograd : public ::testing::TestWithParam<const char*> {};

TEST_P(Winograd, StaysWithinItsBoundOfSumsInDoublePrecision) {
  const auto cpu = open_on_target(GetParam());
  if (cpu == nullptr) GTEST_SKIP() << "this processor does not have " << GetParam();
  double worst = 0;
  for (const Sizes& sizes : shapes()) {
    Convolution convolution(sizes);
    ASSERT_EQ(convolution.run(*cpu), EP_STATUS_OK) << text_of(sizes) << ": " << cpu->host.sentence();
    const double error = convolution.error();
    EXPECT_LE(error, bound) << text_of(sizes);
    worst = std::max(worst, error);
  }
  RecordProperty("worst", fmt::format("{:.3g} epsilons", worst * (1 << 23)));
}

TEST_P(Winograd, TakesWeightsThatMayChangeAndTransposedOnes) {
  const auto cpu = open_on_target(GetParam());
  if (cpu == nullptr) GTEST_SKIP() << "this processor does not have " << GetParam();
  for (const bool transposed : {false, true}) {
    for (const bool changes : {false, true}) {
      if (!transposed && !changes) continue;  // the test above
      for (Sizes sizes : {Sizes{1, 24, 40, 33, 35, {1, 1, 1, 1}, false}, Sizes{2, 40, 70, 17, 18, {0, 2, 1, 2}, true},
                          Sizes{3, 300, 17, 14, 15, {1, 1, 1, 1}, false}}) {
        sizes.changes = changes;
        sizes.transposed = transposed;
        Convolution convolution(sizes);
        convolution.src[777] = std::numeric_limits<float>::infinity();
        ASSERT_EQ(convolution.run(*cpu), EP_STATUS_OK) << text_of(sizes) << ": " << cpu->host.sentence();
        EXPECT_LE(convolution.error(), bound) << text_of(sizes) << (transposed ? ", transposed" : "");
      }
    }
  }
}

TEST_P(Winograd, TakesImagesWithChannelsFirst) {
  const auto cpu = open_on_target(GetParam());
  if (cpu == nullptr) GTEST_SKIP() << "this processor does not have " << GetParam();
  for (const bool transposed : {false, true}) {
    for (const bool changes : {false, true}) {
      for (Sizes sizes : {Sizes{1, 33, 40, 33, 35, {1, 1, 1, 1}, false}, Sizes{2, 40, 70, 17, 18, {0, 2, 1, 2}, true},
                          Sizes{3, 300, 32, 14, 15, {1, 1, 1, 1}, true}}) {
        sizes.changes = changes;
        sizes.transposed = transposed;
        sizes.planes = true;
        Convolution convolution(sizes);
        convolution.src[777] = std::numeric_limits<float>::infinity();
        ASSERT_EQ(convolution.run(*cpu), EP_STATUS_OK) << text_of(sizes) << ": " << cpu->host.sentence();
        EXPECT_LE(convolution.error(), bound) << text_of(sizes) << (transposed ? ", transposed" : "");
      }
    }
  }
}

// In one square at most four results depend on an element of SRC; the others stay finite.
TEST_P(Winograd, KeepsNanAndInfinityWhereTheyBelong) {
  const auto cpu = open_on_target(GetParam());
  if (cpu == nullptr) GTEST_SKIP() << "this processor does not have " << GetParam();
  constexpr float infinity = std::numeric_limits<float>::infinity();
  for (const float value : {std::numeric_limits<float>::quiet_NaN(), infinity, -infinity}) {
    Convolution convolution({1, 20, 37, 16, 15, {1, 1, 1, 1}, true});
    for (const size_t at : {5, 4444, 1999}) convolution.src[at] = value;
    convolution.bias[3] = infinity;
    convolution.other[77] = value;
    ASSERT_EQ(convolution.run(*cpu), EP_STATUS_OK) << cpu->host.sentence();
    EXPECT_LE(convolution.error(), bound) << value;
    convolution = Convolution({1, 20, 37, 16, 15, {1, 1, 1, 1}, false});
    convolution.weight[9 * 20 * 5 + 31] = value;
    ASSERT_EQ(convolution.run(*cpu), EP_STATUS_OK) << cpu->host.sentence();
    EXPECT_LE(convolution.error(), bound) << value;
  }
}

// Sums of four elements overflow, but their products with weights do not.
TEST_P(Winograd, DoesNotOverflowBeforeTheSumsDo) {
  const auto cpu = open_on_target(GetParam());
  if (cpu == nullptr) GTEST_SKIP() << "this processor does not have " << GetParam();
  Convolution convolution({1, 20, 37, 16, 15, {1, 1, 1, 1}, false});
  for (float& value : convolution.src) value *= 3e38F;
  for (float& value : convolution.weight) value *= 1e-3F;
  ASSERT_EQ(convolution.run(*cpu), EP_STATUS_OK) << cpu->host.sentence();
  EXPECT_LE(convolution.error(), bound);
}

INSTANTIATE_TEST_SUITE_P(Targets, Winograd, ::testing::Values("baseline", "avx2", "avx3"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace tenon::provider
