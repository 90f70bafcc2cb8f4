// Casts and RMS norms whose results are too large for the cache and are written past it, and sums of columns that are
// read row by row, on every dispatch target.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "sdk/provider/descriptor.h"
#include "sdk/provider/float_formats.h"
#include "tests/unit/providers/provider_fixture.h"

namespace tenon::provider {
namespace {

struct alignas(64) Line {
  unsigned char bytes[64];
};

class PastCache : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    cpu_ = open_on_target(GetParam());
    if (cpu_ == nullptr) GTEST_SKIP() << "this processor or build has no " << GetParam();
  }

  // Casts `count` elements at `src` to `dst` in one launch.
  void cast(int32_t to, void* dst, int32_t from, const void* src, int64_t count) {
    const ep_primitive_desc desc =
        descriptor(EP_PRIMITIVE_copy, {dense(EP_ROLE_DST, to, {count}), dense(EP_ROLE_SRC, from, {count})});
    ASSERT_EQ(run_once(*cpu_, desc, {dst, const_cast<void*>(src)}, {}).status, EP_STATUS_OK) << cpu_->host.sentence();
  }

  std::unique_ptr<OpenProvider> cpu_;
};

// An f16 NaN without the other payload bits: elements at the ends of a row lose them, vectors keep them.
uint16_t one_nan(uint16_t half) {
  return (half & 0x7fffU) > 0x7c00U ? static_cast<uint16_t>((half & 0x8000U) | 0x7e00U) : half;
}

struct Types {
  int32_t from, to;
};

// Pieces of 64 K elements stay in the cache; tests/cases compares such casts with the reference. The bits of
// the sources are random, so they contain NaN, infinities and numbers beyond every limit.
TEST_P(PastCache, CastsHaveTheBitsOfCastsInPieces) {
  constexpr Types all[] = {{EP_DTYPE_u8, EP_DTYPE_f32},   {EP_DTYPE_i8, EP_DTYPE_f32},  {EP_DTYPE_f16, EP_DTYPE_f32},
                           {EP_DTYPE_bf16, EP_DTYPE_f32}, {EP_DTYPE_f32, EP_DTYPE_f16}, {EP_DTYPE_f32, EP_DTYPE_bf16},
                           {EP_DTYPE_f32, EP_DTYPE_i32},  {EP_DTYPE_f32, EP_DTYPE_u8},  {EP_DTYPE_f64, EP_DTYPE_f32},
                           {EP_DTYPE_i64, EP_DTYPE_f32}};
  for (const Types& types : all) {
    const auto size = static_cast<int64_t>(dtype_size(types.to)), width = static_cast<int64_t>(dtype_size(types.from));
    const int64_t count = (int64_t{16} << 20) / size + 12'345;
    std::vector<unsigned char> src(static_cast<size_t>((count + 1) * width));
    std::mt19937 generator(11);
    std::vector<uint16_t> halves(65'521);  // repeated
    for (uint16_t& half : halves) {
      half = static_cast<uint16_t>(generator());
      if (types.from == EP_DTYPE_f16) half = one_nan(half);
    }
    for (size_t i = 0; i < src.size(); i += 2 * halves.size())
      std::memcpy(src.data() + i, halves.data(), std::min(2 * halves.size(), src.size() - i));
    const unsigned char* from = src.data() + width;
    std::vector<unsigned char> wanted(static_cast<size_t>(count * size));
    constexpr int64_t piece = 65'536;
    for (int64_t i = 0; i < count; i += piece)
      cast(types.to, wanted.data() + i * size, types.from, from + i * width, std::min(piece, count - i));
    for (const int64_t start : {0, 5}) {  // elements next to a multiple of 64 bytes
      std::vector<Line> lines(static_cast<size_t>((count + 16) * size / 64 + 1), Line{});
      unsigned char* dst = lines.front().bytes + start * size;
      dst[count * size] = 0xA5;
      cast(types.to, dst, types.from, from, count);
      const auto wrong = std::mismatch(wanted.begin(), wanted.end(), dst).first - wanted.begin();
      EXPECT_EQ(wrong / size, count) << "the first other element, from dtype " << types.from << " to " << types.to
                                     << ", start " << start;
      EXPECT_EQ(dst[count * size], 0xA5) << "an element too many";
    }
  }
}

// Every lane holds NaN in some steps and a number in others. The bits equal those of converting each number alone.
TEST_P(PastCache, CastsToF16HaveTheBitsOfOneElement) {
  constexpr int64_t count = 40'003;
  std::vector<float> src(count);
  std::mt19937 generator(16);
  for (float& value : src) {
    const uint32_t bits = generator();
    value = std::bit_cast<float>(generator() % 50 == 0 ? bits | 0x7f800000U : (bits & 0x8fffffffU) + 0x34000000U);
  }
  for (int64_t i = 128; i < 256; ++i) src[static_cast<size_t>(i)] = i % 2 == 0 ? INFINITY : -INFINITY;
  std::vector<uint16_t> dst(count, 0x1234);
  cast(EP_DTYPE_f16, dst.data(), EP_DTYPE_f32, src.data(), count);
  for (int64_t i = 0; i < count; ++i) {
    const float value = src[static_cast<size_t>(i)];
    ASSERT_EQ(dst[static_cast<size_t>(i)], F16::from_f32(value)) << "element " << i << ", " << value;
  }
}

// The elements lie `step` apart, so none of the paths for neighbours applies to the source.
TEST_P(PastCache, CastsOfStridedSources) {
  constexpr int64_t step = 3, count = (int64_t{4} << 20) + 77;
  std::vector<uint8_t> src(static_cast<size_t>(count * step));
  std::mt19937 generator(12);
  for (uint8_t& value : src) value = static_cast<uint8_t>(generator());
  std::vector<float> dst(static_cast<size_t>(count), -1);
  const ep_primitive_desc desc = descriptor(EP_PRIMITIVE_copy, {dense(EP_ROLE_DST, EP_DTYPE_f32, {count}),
                                                                strided(EP_ROLE_SRC, EP_DTYPE_u8, {count}, {step})});
  ASSERT_EQ(run_once(*cpu_, desc, {dst.data(), src.data()}, {}).status, EP_STATUS_OK) << cpu_->host.sentence();
  int64_t wrong = 0;
  for (int64_t i = 0; i < count; ++i)
    wrong += dst[static_cast<size_t>(i)] != static_cast<float>(src[static_cast<size_t>(i * step)]);
  EXPECT_EQ(wrong, 0);
}

// From four million elements on, rows are read whole: blocks of columns that end within a vector, columns beyond a
// block, and rows with gaps between them. Sums of small integers are exact, so every order of addition gives the same.
TEST_P(PastCache, SumsOfColumnsReadRowByRow) {
  struct Shape {
    int64_t rows, columns, stride;
  };
  for (const Shape& shape :
       {Shape{5501, 771, 771}, Shape{1031, 4099, 4099}, Shape{16'411, 259, 300}, Shape{280'001, 15, 15}}) {
    const auto [rows, columns, stride] = shape;
    std::vector<float> src(static_cast<size_t>(rows * stride)), dst(static_cast<size_t>(columns), -1);
    std::mt19937 generator(13);
    for (float& value : src) value = static_cast<float>(generator() % 64) - 20;
    std::vector<double> wanted(static_cast<size_t>(columns), 0);
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t j = 0; j < columns; ++j)
        wanted[static_cast<size_t>(j)] += static_cast<double>(src[static_cast<size_t>(row * stride + j)]);
    }
    ep_primitive_desc desc =
        descriptor(EP_PRIMITIVE_reduce, {dense(EP_ROLE_DST, EP_DTYPE_f32, {1, columns}),
                                         strided(EP_ROLE_SRC, EP_DTYPE_f32, {rows, columns}, {stride, 1})});
    desc.attributes.reduce.op = EP_REDUCE_sum;
    desc.attributes.reduce.axes = 1;
    ASSERT_EQ(run_once(*cpu_, desc, {dst.data(), src.data()}, {}).status, EP_STATUS_OK) << cpu_->host.sentence();
    for (int64_t j = 0; j < columns; ++j) {
      ASSERT_EQ(static_cast<double>(dst[static_cast<size_t>(j)]), wanted[static_cast<size_t>(j)])
          << rows << " x " << columns << ", column " << j;
    }
  }
}

// Rows of whole vectors, and rows that end within one, so that each row begins at another offset in a line.
TEST_P(PastCache, RmsNorm) {
  for (const int64_t length : {784, 777}) {
    const int64_t rows = (int64_t{17} << 20) / 4 / length;
    std::vector<float> src(static_cast<size_t>(rows * length)), scale(static_cast<size_t>(length));
    std::mt19937 generator(14);
    for (float& value : src) value = static_cast<float>(generator() % 2048) / 256 - 4;
    for (float& value : scale) value = static_cast<float>(generator() % 256) / 128;
    std::vector<Line> lines(src.size() / 16 + 1, Line{});
    ep_primitive_desc desc = descriptor(EP_PRIMITIVE_rms_norm, {dense(EP_ROLE_DST, EP_DTYPE_f32, {rows, length}),
                                                                dense(EP_ROLE_SRC, EP_DTYPE_f32, {rows, length}),
                                                                dense(EP_ROLE_SCALE, EP_DTYPE_f32, {length})});
    desc.attributes.rms_norm.axis = 1;
    ep_scalar eps{};
    eps.dtype = EP_DTYPE_f32;
    eps.value.f64 = 1e-5;
    const LaunchResult result = run_once(*cpu_, desc, {lines.data(), src.data(), scale.data()}, {eps});
    ASSERT_EQ(result.status, EP_STATUS_OK) << cpu_->host.sentence();
    const auto* dst = reinterpret_cast<const float*>(lines.data());
    for (int64_t row = 0; row < rows; ++row) {
      const float* from = src.data() + row * length;
      double squares = 0;
      for (int64_t i = 0; i < length; ++i) squares += static_cast<double>(from[i]) * static_cast<double>(from[i]);
      const double factor = 1 / std::sqrt(squares / static_cast<double>(length) + 1e-5);
      int64_t wrong = 0;
      for (int64_t i = 0; i < length; ++i) {
        const double wanted =
            static_cast<double>(from[i]) * factor * static_cast<double>(scale[static_cast<size_t>(i)]);
        wrong += !(std::abs(static_cast<double>(dst[row * length + i]) - wanted) <= 1e-5 * std::abs(wanted));
      }
      ASSERT_EQ(wrong, 0) << "row " << row << " of " << length;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Target, PastCache, testing::Values("baseline", "avx2", "avx3"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace tenon::provider
