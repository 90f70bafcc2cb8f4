// Convolutions of one spatial dim with channels first and stride 1, on every dispatch target, against sums in double:
// lines that end within a vector, channels that end within a tile, pads on one side and on both, dilations, several
// images, residuals and relu.
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
  int64_t count, in, out, length, taps, dilation, low, high;
  bool finishes;  // a residual is added, then relu
  int64_t results() const { return length + low + high - (taps - 1) * dilation; }
};

class Lines : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    cpu_ = open_on_target(GetParam());
    if (cpu_ == nullptr) GTEST_SKIP() << "this processor or build has no " << GetParam();
  }

  void check(const Sizes& s) {
    SCOPED_TRACE(testing::Message() << s.count << " x " << s.in << " to " << s.out << " channels of " << s.length
                                    << ", " << s.taps << " taps " << s.dilation << " apart, pads " << s.low << " and "
                                    << s.high);
    const int64_t results = s.results();
    Numbers src = random_floats(s.count * s.in * s.length, &generator_),
            weight = random_floats(s.out * s.in * s.taps, &generator_), bias = random_floats(s.out, &generator_);
    Numbers other = random_floats(s.count * s.out * results, &generator_);
    Numbers dst(other.size(), NAN);
    ep_primitive_desc desc =
        descriptor(EP_PRIMITIVE_convolution, {dense(EP_ROLE_DST, EP_DTYPE_f32, {s.count, s.out, results}),
                                              dense(EP_ROLE_SRC, EP_DTYPE_f32, {s.count, s.in, s.length}),
                                              dense(EP_ROLE_WEIGHT, EP_DTYPE_f32, {s.out, s.in, s.taps}),
                                              dense(EP_ROLE_BIAS, EP_DTYPE_f32, {s.out})});
    ep_convolution_attributes& attributes = desc.attributes.convolution;
    attributes.spatial_rank = 1;
    attributes.groups = 1;
    attributes.stride[0] = 1;
    attributes.dilation[0] = s.dilation;
    attributes.pad_low[0] = s.low;
    attributes.pad_high[0] = s.high;
    std::vector<void*> operands{dst.data(), src.data(), weight.data(), bias.data()};
    if (s.finishes) {
      then_add_residual(&desc);
      desc.epilogues[desc.epilogue_count++] = {1, EP_UNARY_relu, 0, 0};
      operands.push_back(other.data());
    }
    ASSERT_EQ(run_once(*cpu_, desc, operands).status, EP_STATUS_OK) << cpu_->host.sentence();
    const auto number = [](const Numbers& of, int64_t i) { return static_cast<double>(of[static_cast<size_t>(i)]); };
    for (int64_t line = 0; line < s.count * s.out; ++line) {
      const int64_t image = line / s.out, o = line % s.out;
      for (int64_t x = 0; x < results; ++x) {
        double sum = number(bias, o);
        for (int64_t c = 0; c < s.in; ++c) {
          for (int64_t t = 0; t < s.taps; ++t) {
            const int64_t from = x - s.low + t * s.dilation;
            if (from < 0 || from >= s.length) continue;
            sum += number(src, (image * s.in + c) * s.length + from) * number(weight, (o * s.in + c) * s.taps + t);
          }
        }
        if (s.finishes) sum = std::max(sum + number(other, line * results + x), 0.0);
        ASSERT_NEAR(number(dst, line * results + x), sum, 1e-6 * static_cast<double>(s.in * s.taps + 2))
            << "line " << line << ", " << x;
      }
    }
  }

  std::mt19937 generator_{41};
  std::unique_ptr<OpenProvider> cpu_;
};

TEST_P(Lines, OfManySizes) {
  for (const bool finishes : {false, true}) {
    check({1, 1, 1, 32, 1, 1, 0, 0, finishes});
    check({2, 5, 11, 131, 3, 1, 1, 1, finishes});
    check({1, 3, 9, 70, 4, 3, 12, 5, finishes});
    check({3, 16, 8, 63, 2, 1, 0, 3, finishes});
    check({1, 32, 17, 1000, 3, 1, 1, 1, finishes});
    check({1, 300, 20, 97, 5, 2, 4, 4, finishes});
    check({2, 7, 4, 40, 9, 7, 60, 60, finishes});  // results that depend only on pads
    check({1, 700, 13, 50, 1, 1, 0, 0, finishes});
  }
}

INSTANTIATE_TEST_SUITE_P(Target, Lines, testing::Values("baseline", "avx2", "avx3"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace tenon::provider
