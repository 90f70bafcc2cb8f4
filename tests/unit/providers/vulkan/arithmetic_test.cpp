// Kernels that must be more exact than Vulkan promises: division and square root, compared with the processor's in
// double precision, and f16, compared with conversions in integers.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>

#include "sdk/provider/float_formats.h"
#include "tests/unit/providers/vulkan/fixture.h"

namespace tenon::testing {
namespace {

using provider::dense;

constexpr size_t count = size_t{1} << 21;

float float_of(int32_t bits) { return std::bit_cast<float>(bits); }

// Random bits, every special value, and the ends of every range.
std::vector<int32_t> random_floats(uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<int32_t> bits(count);
  for (int32_t& one : bits) one = static_cast<int32_t>(random());
  constexpr uint32_t edges[] = {0x0U,        0x1U,        0x7fffffU,   0x800000U,   0x800001U,
                                0x3f7fffffU, 0x3f800000U, 0x3f800001U, 0x477fefffU, 0x477ff000U,
                                0x7f7fffffU, 0x7f800000U, 0x7fc00000U};
  for (int32_t& one : bits) {
    if (random() % 16 == 0) one = static_cast<int32_t>(edges[random() % std::size(edges)] | (random() & 0x80000000U));
    if (random() % 16 == 0) one = static_cast<int32_t>(static_cast<uint32_t>(one) & 0x807fffffU);  // denormal
  }
  return bits;
}

int64_t differences(const std::vector<int32_t>& found, const std::vector<float>& expected) {
  int64_t different = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    const bool both_nan = std::isnan(expected[i]) && std::isnan(float_of(found[i]));
    different += both_nan || found[i] == std::bit_cast<int32_t>(expected[i]) ? 0 : 1;
  }
  return different;
}

TEST(VulkanArithmetic, DividesAsIeeeDoes) {
  fresh_shim();
  Device device;
  ep_memory* memory = device.allocate(3 * count * 4);
  const std::vector<int32_t> x = random_floats(21);
  const std::vector<int32_t> y = random_floats(22);
  device.upload({memory, 0}, x);
  device.upload({memory, count * 4}, y);
  ep_primitive_desc desc = provider::descriptor(
      EP_PRIMITIVE_binary, {dense(EP_ROLE_DST, EP_DTYPE_f32, {count}), dense(EP_ROLE_SRC, EP_DTYPE_f32, {count}),
                            dense(EP_ROLE_SRC_B, EP_DTYPE_f32, {count})});
  desc.attributes.binary.op = EP_BINARY_div;
  ASSERT_EQ(device.launch(device.create(desc), {{memory, 2 * count * 4}, {memory, 0}, {memory, count * 4}}),
            EP_STATUS_OK);
  std::vector<float> expected(count);
  std::transform(x.begin(), x.end(), y.begin(), expected.begin(),
                 [](int32_t a, int32_t b) { return static_cast<float>(double{float_of(a)} / double{float_of(b)}); });
  EXPECT_EQ(differences(device.download({memory, 2 * count * 4}, count), expected), 0);
}

TEST(VulkanArithmetic, TakesRootsAsIeeeDoes) {
  fresh_shim();
  Device device;
  ep_memory* memory = device.allocate(2 * count * 4);
  const std::vector<int32_t> x = random_floats(23);
  device.upload({memory, 0}, x);
  ep_primitive_desc desc = provider::descriptor(
      EP_PRIMITIVE_unary, {dense(EP_ROLE_DST, EP_DTYPE_f32, {count}), dense(EP_ROLE_SRC, EP_DTYPE_f32, {count})});
  desc.attributes.unary.op = EP_UNARY_sqrt;
  ASSERT_EQ(device.launch(device.create(desc), {{memory, count * 4}, {memory, 0}}), EP_STATUS_OK);
  std::vector<float> expected(count);
  std::transform(x.begin(), x.end(), expected.begin(),
                 [](int32_t a) { return static_cast<float>(std::sqrt(double{float_of(a)})); });
  EXPECT_EQ(differences(device.download({memory, count * 4}, count), expected), 0);
}

ep_primitive_desc cast(int32_t to, int32_t from, int64_t n) {
  return provider::descriptor(EP_PRIMITIVE_copy, {dense(EP_ROLE_DST, to, {n}), dense(EP_ROLE_SRC, from, {n})});
}

TEST(VulkanArithmetic, WidensEveryHalf) {
  fresh_shim();
  Device device;
  constexpr size_t halves = 65536;
  ep_memory* memory = device.allocate(6 * halves);
  std::vector<int32_t> pairs(halves / 2);
  for (size_t i = 0; i < pairs.size(); ++i) pairs[i] = static_cast<int32_t>((2 * i + 1) << 16 | 2 * i);
  device.upload({memory, 0}, pairs);
  ASSERT_EQ(device.launch(device.create(cast(EP_DTYPE_f32, EP_DTYPE_f16, halves)), {{memory, 2 * halves}, {memory, 0}}),
            EP_STATUS_OK);
  std::vector<float> expected(halves);
  for (size_t i = 0; i < halves; ++i) expected[i] = provider::F16::to_f32(static_cast<uint32_t>(i));
  EXPECT_EQ(differences(device.download({memory, 2 * halves}, halves), expected), 0);
}

// Every f16, the midpoint to the next one, the floats next to the midpoint, and random bits.
TEST(VulkanArithmetic, RoundsToHalvesOnce) {
  fresh_shim();
  Device device;
  ep_memory* memory = device.allocate(6 * count);
  std::vector<int32_t> x = random_floats(24);
  for (uint32_t half = 0; half < 65536; ++half) {
    const auto bits = std::bit_cast<uint32_t>(provider::F16::to_f32(half));
    const auto next = std::bit_cast<uint32_t>(provider::F16::to_f32((half + 1) & 0xffffU));
    const uint32_t middle =
        std::bit_cast<uint32_t>((float_of(static_cast<int32_t>(bits)) + float_of(static_cast<int32_t>(next))) / 2);
    const uint32_t around[] = {bits, bits + 1, bits - 1, middle, middle + 1, middle - 1};
    for (size_t i = 0; i < 6; ++i) x[6 * half + i] = static_cast<int32_t>(around[i]);
  }
  device.upload({memory, 0}, x);
  ASSERT_EQ(device.launch(device.create(cast(EP_DTYPE_f16, EP_DTYPE_f32, count)), {{memory, 4 * count}, {memory, 0}}),
            EP_STATUS_OK);
  const std::vector<int32_t> found = device.download({memory, 4 * count}, count / 2);
  int64_t different = 0;
  for (size_t i = 0; i < count; ++i) {
    const uint32_t half = static_cast<uint32_t>(found[i / 2]) >> (i % 2 * 16) & 0xffffU;
    different += half == provider::F16::from_f32(float_of(x[i])) ? 0 : 1;
  }
  EXPECT_EQ(different, 0);
}

}  // namespace
}  // namespace tenon::testing
