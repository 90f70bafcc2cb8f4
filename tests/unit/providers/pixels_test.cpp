// Convolutions of one small plane with channels first and large weights that may change, on every dispatch target,
// against sums in double: pixels that end within a vector, a few pixels after whole vectors, channels that end within a
// tile, strides, pads, dilations, one spatial dim, residuals and relu.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "tests/unit/providers/provider_fixture.h"

namespace tenon::provider {
namespace {

using Numbers = std::vector<float>;

struct Sizes {
  int64_t in, out, src[2], kernel[2], stride, dilation, low[2], high[2];
  int64_t result(int axis) const {
    return (src[axis] + low[axis] + high[axis] - (kernel[axis] - 1) * dilation - 1) / stride + 1;
  }
};

double number(const Numbers& of, int64_t i) { return static_cast<double>(of[static_cast<size_t>(i)]); }

class Pixels : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    cpu_ = open_on_target(GetParam());
    if (cpu_ == nullptr) GTEST_SKIP() << "this processor or build has no " << GetParam();
  }

  static double sum_at(const Sizes& s, const Numbers& src, const Numbers& weight, int64_t o, int64_t y, int64_t x) {
    double sum = 0;
    for (int64_t c = 0; c < s.in; ++c) {
      for (int64_t ky = 0; ky < s.kernel[0]; ++ky) {
        for (int64_t kx = 0; kx < s.kernel[1]; ++kx) {
          const int64_t sy = y * s.stride - s.low[0] + ky * s.dilation, sx = x * s.stride - s.low[1] + kx * s.dilation;
          if (sy < 0 || sy >= s.src[0] || sx < 0 || sx >= s.src[1]) continue;
          sum += number(src, (c * s.src[0] + sy) * s.src[1] + sx) *
                 number(weight, ((o * s.in + c) * s.kernel[0] + ky) * s.kernel[1] + kx);
        }
      }
    }
    return sum;
  }

  // `flat`: only one spatial dim, the columns. `finishes`: a bias and a residual are added, then relu.
  void check(const Sizes& s, bool flat, bool finishes) {
    SCOPED_TRACE(testing::Message() << s.in << " to " << s.out << " channels, " << s.src[0] << " x " << s.src[1] << ", "
                                    << s.kernel[0] << " x " << s.kernel[1] << " taps, stride " << s.stride);
    const int64_t height = s.result(0), width = s.result(1);
    Numbers src = random_floats(s.in * s.src[0] * s.src[1], &generator_),
            weight = random_floats(s.out * s.in * s.kernel[0] * s.kernel[1], &generator_);
    Numbers bias = random_floats(s.out, &generator_), other = random_floats(s.out * height * width, &generator_),
            dst(other.size(), NAN);
    const auto operand = [&](int32_t role, int64_t first, int64_t second, int64_t rows, int64_t columns) {
      return flat ? dense(role, EP_DTYPE_f32, {first, second, columns})
                  : dense(role, EP_DTYPE_f32, {first, second, rows, columns});
    };
    std::vector<ep_operand_desc> operands = {operand(EP_ROLE_DST, 1, s.out, height, width),
                                             operand(EP_ROLE_SRC, 1, s.in, s.src[0], s.src[1]),
                                             operand(EP_ROLE_WEIGHT, s.out, s.in, s.kernel[0], s.kernel[1])};
    std::vector<void*> addresses{dst.data(), src.data(), weight.data()};
    if (finishes) operands.push_back(dense(EP_ROLE_BIAS, EP_DTYPE_f32, {s.out}));
    if (finishes) addresses.push_back(bias.data());
    ep_primitive_desc desc = descriptor(EP_PRIMITIVE_convolution, operands);
    ep_convolution_attributes& attributes = desc.attributes.convolution;
    attributes.spatial_rank = flat ? 1 : 2;
    attributes.groups = 1;
    for (int i = 0; i < attributes.spatial_rank; ++i) {
      attributes.stride[i] = s.stride;
      attributes.dilation[i] = s.dilation;
      attributes.pad_low[i] = s.low[flat ? 1 : i];
      attributes.pad_high[i] = s.high[flat ? 1 : i];
    }
    if (finishes) {
      then_add_residual(&desc);
      desc.epilogues[desc.epilogue_count++] = {1, EP_UNARY_relu, 0, 0};
      addresses.push_back(other.data());
    }
    ASSERT_EQ(run_once(*cpu_, desc, addresses).status, EP_STATUS_OK) << cpu_->host.sentence();
    for (int64_t i = 0; i < s.out * height * width; ++i) {
      const int64_t o = i / (height * width), y = i / width % height, x = i % width;
      double sum = sum_at(s, src, weight, o, y, x);
      if (finishes) sum = std::max(sum + number(bias, o) + number(other, i), 0.0);
      ASSERT_NEAR(number(dst, i), sum, 3e-7 * static_cast<double>(s.in * s.kernel[0] * s.kernel[1]))
          << "channel " << o << ", pixel " << y << ", " << x;
    }
  }

  std::mt19937 generator_{43};
  std::unique_ptr<OpenProvider> cpu_;
};

TEST_P(Pixels, OfManySizes) {
  for (const bool finishes : {false, true}) {
    check({130, 679, {14, 14}, {3, 3}, 2, 1, {1, 1}, {1, 1}}, false, finishes);
    check({130, 677, {9, 9}, {3, 3}, 1, 1, {0, 0}, {0, 0}}, false, finishes);
    check({90, 978, {5, 9}, {3, 3}, 1, 1, {1, 1}, {1, 1}}, false, finishes);
    check({80, 1094, {7, 10}, {3, 3}, 1, 2, {2, 0}, {0, 0}}, false, finishes);  // 5 x 6
    check({256, 1030, {4, 5}, {1, 1}, 1, 1, {0, 0}, {0, 0}}, false, finishes);
    check({50, 1059, {11, 15}, {5, 3}, 3, 1, {2, 3}, {1, 0}}, false, finishes);
    check({515, 517, {2, 2}, {1, 1}, 1, 1, {0, 0}, {0, 0}}, false, finishes);
    check({64, 1371, {8, 8}, {3, 3}, 1, 1, {1, 1}, {1, 1}}, false, finishes);
    check({256, 621, {1, 25}, {1, 5}, 1, 1, {0, 2}, {0, 2}}, true, finishes);
    check({300, 877, {1, 100}, {1, 3}, 2, 1, {0, 1}, {0, 0}}, true, finishes);
  }
}

INSTANTIATE_TEST_SUITE_P(Target, Pixels, testing::Values("baseline", "avx2", "avx3"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace tenon::provider
