// Reductions and softmax in blocks of 16 bytes, on every device: every length, aligned or not, compared with double.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "tests/unit/providers/vulkan/fixture.h"

namespace tenon::testing {
namespace {

using provider::dense;
using provider::descriptor;
using provider::strided;

constexpr uint64_t src_at = 4096;
constexpr uint64_t dst_at = uint64_t{1} << 20;
constexpr uint64_t scratch_at = uint64_t{2} << 20;

class Rows {
 public:
  explicit Rows(Device& device) : device_(device), memory_(device.allocate(uint64_t{3} << 20)) {}

  // The result of a kernel for `src`, with both operands `shift` words after a multiple of 256. Checks that the kernel
  // writes nothing else.
  std::vector<int32_t> run(const ep_primitive_desc& desc, const std::vector<int32_t>& src, size_t results,
                           uint64_t shift) {
    std::vector<int32_t> around(results + 16, 0x7fedcba9);
    device_.upload({memory_, src_at + 4 * shift}, src);
    device_.upload({memory_, dst_at - 32 + 4 * shift}, around);
    ep_primitive* primitive = device_.create(desc);
    ep_buffer operands[] = {{memory_, dst_at + 4 * shift}, {memory_, src_at + 4 * shift}};
    ep_launch launch{};
    launch.operands = operands;
    launch.operand_count = 2;
    launch.workspace = {memory_, scratch_at};
    EXPECT_EQ(device_.ops.primitive_launch(primitive, device_.stream, &launch, nullptr, nullptr), EP_STATUS_OK);
    std::vector<int32_t> found = device_.download({memory_, dst_at - 32 + 4 * shift}, around.size());
    for (size_t i = 0; i < 8; ++i) {
      EXPECT_EQ(found[i], 0x7fedcba9);
      EXPECT_EQ(found[found.size() - 1 - i], 0x7fedcba9);
    }
    return {found.begin() + 8, found.end() - 8};
  }

 private:
  Device& device_;
  ep_memory* memory_;
};

ep_primitive_desc sum_of(int32_t dtype, int64_t rows, int64_t length, int64_t stride) {
  ep_primitive_desc desc = descriptor(EP_PRIMITIVE_reduce, {dense(EP_ROLE_DST, dtype, {rows, 1}),
                                                            strided(EP_ROLE_SRC, dtype, {rows, length}, {stride, 1})});
  desc.attributes.reduce.op = EP_REDUCE_sum;
  desc.attributes.reduce.axes = 2;
  return desc;
}

TEST(VulkanRows, AddEveryLengthAtEveryOffset) {
  fresh_shim();
  Device device(Settings{{"packs", "on"}});
  Rows rows(device);
  std::mt19937 random(41);
  for (int64_t length : {1, 2, 15, 16, 17, 31, 66, 127, 384, 385, 1000, 1023, 4097, 20000}) {
    const int64_t stride = (length + 3) / 4 * 4;
    std::vector<int32_t> src(3 * stride);
    for (int32_t& one : src) one = static_cast<int32_t>(random());
    for (uint64_t shift : {0, 1, 2}) {
      const std::vector<int32_t> found = rows.run(sum_of(EP_DTYPE_i32, 3, length, stride), src, 3, shift);
      for (int64_t row = 0; row < 3; ++row) {
        uint32_t expected = 0;
        for (int64_t i = 0; i < length; ++i) expected += static_cast<uint32_t>(src[row * stride + i]);
        EXPECT_EQ(static_cast<uint32_t>(found[row]), expected) << length << " elements, " << shift << " words past";
      }
    }
  }
}

// Some of these are long enough to be added in parts. The axes are not adjacent, so they are walked separately.
TEST(VulkanRows, AddOverAxesThatLieApart) {
  fresh_shim();
  Device device;
  Rows rows(device);
  std::mt19937 random(44);
  for (int64_t length : {5, 700, 16384}) {
    const int64_t kept[] = {3, 2};
    const int64_t inner = 4;
    ep_primitive_desc desc =
        descriptor(EP_PRIMITIVE_reduce, {dense(EP_ROLE_DST, EP_DTYPE_i32, {1, kept[0], 1, kept[1]}),
                                         dense(EP_ROLE_SRC, EP_DTYPE_i32, {length / inner, kept[0], inner, kept[1]})});
    desc.attributes.reduce.op = EP_REDUCE_sum;
    desc.attributes.reduce.axes = 1 | 4;
    std::vector<int32_t> src(static_cast<size_t>(length / inner * kept[0] * inner * kept[1]));
    for (int32_t& one : src) one = static_cast<int32_t>(random());
    std::vector<uint32_t> expected(6);
    for (size_t i = 0; i < src.size(); ++i) {
      const size_t row = i / static_cast<size_t>(inner * kept[1]) % 3;
      expected[row * 2 + i % 2] += static_cast<uint32_t>(src[i]);
    }
    const std::vector<int32_t> found = rows.run(desc, src, 6, 0);
    EXPECT_EQ(std::vector<uint32_t>(found.begin(), found.end()), expected) << length << " elements in a row";
  }
}

TEST(VulkanRows, GiveTheSameBitsWhereverTheyLie) {
  fresh_shim();
  Device device(Settings{{"packs", "on"}});
  Rows rows(device);
  std::mt19937 random(42);
  std::uniform_real_distribution<float> values(-2, 2);
  std::vector<int32_t> src(4 * 5000);
  for (int32_t& one : src) one = std::bit_cast<int32_t>(values(random));
  const ep_primitive_desc desc = sum_of(EP_DTYPE_f32, 4, 4999, 5000);
  const std::vector<int32_t> aligned = rows.run(desc, src, 4, 0);
  EXPECT_EQ(rows.run(desc, src, 4, 1), aligned);
  EXPECT_EQ(rows.run(desc, src, 4, 3), aligned);
}

// For n elements that are `stride` apart.
std::vector<double> softmax(const float* x, int64_t n, int64_t stride, bool log) {
  double greatest = -std::numeric_limits<double>::infinity();
  const auto at = [&](int64_t i) { return x[i * stride]; };
  for (int64_t i = 0; i < n; ++i) greatest = std::isnan(at(i)) ? at(i) : std::max<double>(greatest, at(i));
  std::vector<double> result(n);
  double total = 0;
  for (int64_t i = 0; i < n; ++i) total += result[i] = std::exp(at(i) - greatest);
  for (int64_t i = 0; i < n; ++i) result[i] = log ? at(i) - greatest - std::log(total) : result[i] / total;
  return result;
}

// The number of elements of a row, `stride` apart in `found`, that differ from `expected` by more than `bound`.
int count_wrong(const int32_t* found, int64_t stride, const std::vector<double>& expected, double bound) {
  int wrong = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    const auto got = std::bit_cast<float>(found[static_cast<int64_t>(i) * stride]);
    const bool near = std::abs(got - expected[i]) <= 4e-6 * std::abs(expected[i]) + bound;
    wrong += std::isfinite(expected[i]) ? !near : !(std::isnan(expected[i]) ? std::isnan(got) : got == expected[i]);
  }
  return wrong;
}

// Rows in registers and rows that are read twice, some with values that are not finite.
TEST(VulkanRows, TakeTheSoftmaxOfEveryLength) {
  fresh_shim();
  Device device(Settings{{"packs", "on"}});
  Rows rows(device);
  std::mt19937 random(43);
  std::uniform_real_distribution<float> values(-20, 20);
  constexpr float infinite = std::numeric_limits<float>::infinity();
  for (int64_t length : {1, 3, 16, 63, 384, 385, 3072, 3073, 5000, 16383, 32768, 32769}) {
    const int64_t stride = (length + 3) / 4 * 4;
    std::vector<float> src(5 * stride);
    for (float& one : src) one = values(random);
    for (int64_t i = 0; i < length; ++i)
      src[stride + i] = static_cast<float>(i) / 128;  // the maximum grows along the row
    for (int64_t i = 0; i < length - 1; ++i) src[2 * stride + i] = -infinite;
    src[3 * stride + length / 2] = infinite;
    src[4 * stride + length / 3] = std::nanf("");
    ep_primitive_desc desc =
        descriptor(EP_PRIMITIVE_softmax, {strided(EP_ROLE_DST, EP_DTYPE_f32, {5, length}, {stride, 1}),
                                          strided(EP_ROLE_SRC, EP_DTYPE_f32, {5, length}, {stride, 1})});
    desc.attributes.softmax.axis = 1;
    std::vector<int32_t> bits(src.size());
    std::transform(src.begin(), src.end(), bits.begin(), [](float one) { return std::bit_cast<int32_t>(one); });
    for (uint64_t shift : {0, 1}) {
      const std::vector<int32_t> found = rows.run(desc, bits, 4 * stride + length, shift);
      for (int64_t row = 0; row < 5; ++row) {
        const std::vector<double> expected = softmax(&src[row * stride], length, 1, false);
        EXPECT_EQ(count_wrong(&found[row * stride], 1, expected, 1.2e-38), 0)
            << "row " << row << " of " << length << ", " << shift << " words past";
      }
    }
  }
}

// Columns, each of which is held by one invocation, and the logarithm.
TEST(VulkanRows, TakeTheLogarithmOfTheSoftmaxOfColumns) {
  fresh_shim();
  Device device(Settings{{"packs", "on"}});
  Rows rows(device);
  std::mt19937 random(45);
  std::uniform_real_distribution<float> values(-20, 20);
  for (int64_t length : {4, 30, 40}) {
    const int64_t columns = 70;
    std::vector<int32_t> src(static_cast<size_t>(length * columns));
    for (int32_t& one : src) one = std::bit_cast<int32_t>(values(random));
    ep_primitive_desc desc = descriptor(EP_PRIMITIVE_softmax, {dense(EP_ROLE_DST, EP_DTYPE_f32, {length, columns}),
                                                               dense(EP_ROLE_SRC, EP_DTYPE_f32, {length, columns})});
    desc.attributes.softmax.axis = 0;
    desc.attributes.softmax.log = 1;
    const std::vector<int32_t> found = rows.run(desc, src, src.size(), 0);
    for (int64_t column = 0; column < columns; ++column) {
      const auto* from = reinterpret_cast<const float*>(&src[column]);
      EXPECT_EQ(count_wrong(&found[column], columns, softmax(from, length, columns, true), 4e-6), 0)
          << "column " << column << " of " << length;
    }
  }
}

}  // namespace
}  // namespace tenon::testing
