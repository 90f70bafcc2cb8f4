// Rows so large in number that kernels write their results past the cache, on a different path. Compares softmax and
// layer norm with double-precision loops on every dispatch target, with some rows of NaN and infinity, and transposed
// copies with a loop over positions.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "primitives/text/format.h"
#include "sdk/provider/descriptor.h"
#include "tests/unit/providers/provider_fixture.h"

namespace tenon::provider {
namespace {

struct alignas(64) Line {
  float values[16];
};

struct Rows {
  int64_t count;
  int64_t length;
  std::vector<float> src, wanted;
  std::vector<Line> lines;  // the result, aligned like blocks of devices

  float* dst() { return lines.front().values; }
};

using Loop = void (*)(const float* src, float* wanted, int64_t n);

void softmax_loop(const float* src, float* wanted, int64_t n) {
  const double most = *std::max_element(src, src + n);
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += std::exp(src[i] - most);
  for (int64_t i = 0; i < n; ++i) wanted[i] = static_cast<float>(std::exp(src[i] - most) / sum);
}

void log_softmax_loop(const float* src, float* wanted, int64_t n) {
  const double most = *std::max_element(src, src + n);
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += std::exp(src[i] - most);
  for (int64_t i = 0; i < n; ++i) wanted[i] = static_cast<float>(src[i] - most - std::log(sum));
}

void layer_norm_loop(const float* src, float* wanted, int64_t n) {
  double mean = 0, variance = 0;
  for (int64_t i = 0; i < n; ++i) mean += src[i] / static_cast<double>(n);
  for (int64_t i = 0; i < n; ++i) variance += (src[i] - mean) * (src[i] - mean) / static_cast<double>(n);
  for (int64_t i = 0; i < n; ++i) wanted[i] = static_cast<float>((src[i] - mean) / std::sqrt(variance + 1e-5));
}

// At least 17 MB of rows of `length`. The first, the middle and the last row contain a value that makes the whole row
// NaN. With `peaks`, one element of each third row is so large that its exponential overflows; its position moves from
// the last one on.
Rows make_rows(int64_t length, Loop loop, bool peaks) {
  Rows rows{(int64_t{17} << 20) / 4 / length + 3, length, {}, {}, {}};
  const auto elements = static_cast<size_t>(rows.count * length);
  rows.src.resize(elements);
  rows.lines.resize(elements / 16 + 1);
  std::fill_n(rows.dst(), elements, 4711.0F);
  rows.wanted.resize(elements);
  std::mt19937 generator(7);
  std::uniform_real_distribution<float> values(-9.0F, 9.0F);
  for (float& value : rows.src) value = values(generator);
  for (int64_t row = 0; peaks && row < rows.count; row += 3) {
    rows.src[static_cast<size_t>((row + 1) * length - 1 - row / 3 % length)] = 200.0F;
  }
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const int64_t special[] = {0, rows.count / 2, rows.count - 1};
  rows.src[static_cast<size_t>(special[1] * length + 5)] = std::numeric_limits<float>::infinity();
  rows.src[static_cast<size_t>(special[0] * length + 1)] = rows.src[static_cast<size_t>(special[2] * length + 2)] = nan;
  for (int64_t row = 0; row < rows.count; ++row) {
    float* wanted = rows.wanted.data() + row * length;
    loop(rows.src.data() + row * length, wanted, length);
    if (std::find(special, special + 3, row) != special + 3) std::fill_n(wanted, length, nan);
  }
  return rows;
}

std::string first_difference(Rows& rows, double absolute) {
  for (size_t i = 0; i < rows.wanted.size(); ++i) {
    const double got = rows.dst()[i], want = rows.wanted[i];
    const bool equal = std::isnan(want) ? std::isnan(got) : std::fabs(got - want) <= 1e-5 * std::fabs(want) + absolute;
    if (!equal) {
      const auto length = static_cast<size_t>(rows.length);
      return fmt::format("element [{}, {}] is {} and must be {}", i / length, i % length, got, want);
    }
  }
  return "";
}

class LargeRows : public testing::TestWithParam<const char*> {
 protected:
  void compare(int32_t kind, int64_t length, bool log, Loop loop, double absolute) {
    const std::unique_ptr<OpenProvider> cpu = open_on_target(GetParam());
    if (cpu == nullptr) GTEST_SKIP() << "this processor or build has no " << GetParam();
    Rows rows = make_rows(length, loop, kind == EP_PRIMITIVE_softmax);
    ep_primitive_desc desc = descriptor(kind, {dense(EP_ROLE_DST, EP_DTYPE_f32, {rows.count, length}),
                                               dense(EP_ROLE_SRC, EP_DTYPE_f32, {rows.count, length})});
    std::vector<ep_scalar> scalars;
    if (kind == EP_PRIMITIVE_softmax) {
      desc.attributes.softmax.axis = 1;
      desc.attributes.softmax.log = log ? 1 : 0;
    } else {
      desc.attributes.layer_norm.axis = 1;
      scalars.resize(1);
      scalars[0].dtype = EP_DTYPE_f32;
      scalars[0].value.f64 = 1e-5;
    }
    ASSERT_EQ(run_once(*cpu, desc, {rows.dst(), rows.src.data()}, scalars).status, EP_STATUS_OK)
        << cpu->host.sentence();
    EXPECT_EQ(first_difference(rows, absolute), "") << "rows of " << length;
  }
};

TEST_P(LargeRows, SoftmaxOfWholeVectors) { compare(EP_PRIMITIVE_softmax, 784, false, softmax_loop, 0); }
TEST_P(LargeRows, SoftmaxOfShortRows) { compare(EP_PRIMITIVE_softmax, 16, false, softmax_loop, 0); }
TEST_P(LargeRows, SoftmaxWithARest) { compare(EP_PRIMITIVE_softmax, 777, false, softmax_loop, 0); }
TEST_P(LargeRows, SoftmaxOfLongRows) { compare(EP_PRIMITIVE_softmax, 5008, false, softmax_loop, 0); }
TEST_P(LargeRows, LogSoftmax) { compare(EP_PRIMITIVE_softmax, 784, true, log_softmax_loop, 1e-6); }
TEST_P(LargeRows, LayerNorm) { compare(EP_PRIMITIVE_layer_norm, 784, false, layer_norm_loop, 1e-6); }

// How many elements of `dst`, rows by columns, differ from those of its transpose `src`.
template <class T>
int64_t misplaced(const void* dst, const void* src, int64_t rows, int64_t columns) {
  const T* got = static_cast<const T*>(dst);
  int64_t wrong = 0;
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) wrong += *got++ != static_cast<const T*>(src)[j * rows + i];
  }
  return wrong;
}

// Lines of 64 bytes of the result are written past the cache, the rest is not: rows and columns are not multiples of
// tiles.
TEST_P(LargeRows, TransposedCopies) {
  const std::unique_ptr<OpenProvider> cpu = open_on_target(GetParam());
  if (cpu == nullptr) GTEST_SKIP() << "this processor or build has no " << GetParam();
  for (const int32_t dtype : {EP_DTYPE_u8, EP_DTYPE_f16, EP_DTYPE_f32, EP_DTYPE_f64}) {
    const auto size = static_cast<int64_t>(dtype_size(dtype));
    for (const int64_t odd : {int64_t{0}, 16 / size + 1}) {  // without and with rows that are aligned
      const int64_t columns = 64 / size * 87 + odd, rows = ((int64_t{17} << 20) / size / columns | 63) + 24;
      std::vector<Line> lines(static_cast<size_t>(rows * columns * size / 64 + 1));
      std::vector<uint64_t> src(static_cast<size_t>(rows * columns * size / 8 + 1));
      std::mt19937_64 generator(9);
      for (uint64_t& word : src) word = generator();
      std::memset(lines.data(), 0xEE, lines.size() * 64);
      const ep_primitive_desc desc = descriptor(
          EP_PRIMITIVE_copy,
          {dense(EP_ROLE_DST, dtype, {rows, columns}), strided(EP_ROLE_SRC, dtype, {rows, columns}, {1, rows})});
      ASSERT_EQ(run_once(*cpu, desc, {lines.data(), src.data()}, {}).status, EP_STATUS_OK) << cpu->host.sentence();
      const auto count = size == 1   ? misplaced<uint8_t>
                         : size == 2 ? misplaced<uint16_t>
                         : size == 4 ? misplaced<uint32_t>
                                     : misplaced<uint64_t>;
      const int64_t wrong = count(lines.data(), src.data(), rows, columns);
      EXPECT_EQ(wrong, 0) << "elements of " << size << " bytes, " << rows << " x " << columns;
    }
  }
}

// How many elements differ from those of `src`, transposed in each of two planes, or from the poison between rows.
template <class T>
int64_t misplaced_in_planes(const Line* lines, const std::vector<uint64_t>& from, int64_t rows, int64_t columns,
                            int64_t dst_stride, int64_t src_stride) {
  const T* got = reinterpret_cast<const T*>(lines);
  const T* src = reinterpret_cast<const T*>(from.data());
  T poison;
  std::memset(&poison, 0xEE, sizeof poison);
  int64_t wrong = 0;
  for (int64_t plane = 0; plane < 2; ++plane, src += columns * src_stride) {
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < dst_stride; ++j) wrong += *got++ != (j < columns ? src[j * src_stride + i] : poison);
    }
  }
  return wrong;
}

// The columns of the source are a multiple of 256 elements apart, so lines are written past the cache in strips. The
// last strip and the last line are not whole.
TEST_P(LargeRows, TransposedCopiesInStrips) {
  const std::unique_ptr<OpenProvider> cpu = open_on_target(GetParam());
  if (cpu == nullptr) GTEST_SKIP() << "this processor or build has no " << GetParam();
  for (const int32_t dtype : {EP_DTYPE_u8, EP_DTYPE_f16, EP_DTYPE_f32, EP_DTYPE_f64}) {
    const auto size = static_cast<int64_t>(dtype_size(dtype));
    for (const int64_t odd : {0, 3}) {  // columns in addition to whole lines
      const int64_t rows = 128 * 5 + 16 / size + 1, src_stride = 256 * 3;
      const int64_t columns = (int64_t{17} << 20) / size / rows / 2 / 64 * 64 + odd, dst_stride = columns - odd + 64;
      std::vector<Line> lines(static_cast<size_t>(2 * rows * dst_stride * size / 64));
      std::vector<uint64_t> src(static_cast<size_t>(2 * columns * src_stride * size / 8));
      std::mt19937_64 generator(10);
      for (uint64_t& word : src) word = generator();
      std::memset(lines.data(), 0xEE, lines.size() * 64);
      const ep_primitive_desc desc = descriptor(
          EP_PRIMITIVE_copy, {strided(EP_ROLE_DST, dtype, {2, rows, columns}, {rows * dst_stride, dst_stride, 1}),
                              strided(EP_ROLE_SRC, dtype, {2, rows, columns}, {columns * src_stride, 1, src_stride})});
      ASSERT_EQ(run_once(*cpu, desc, {lines.data(), src.data()}, {}).status, EP_STATUS_OK) << cpu->host.sentence();
      const auto count = size == 1   ? misplaced_in_planes<uint8_t>
                         : size == 2 ? misplaced_in_planes<uint16_t>
                         : size == 4 ? misplaced_in_planes<uint32_t>
                                     : misplaced_in_planes<uint64_t>;
      EXPECT_EQ(count(lines.data(), src, rows, columns, dst_stride, src_stride), 0)
          << "elements of " << size << " bytes, " << columns << " columns";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Target, LargeRows, testing::Values("baseline", "avx2", "avx3"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace tenon::provider
