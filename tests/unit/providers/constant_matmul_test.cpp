// Products with a constant matrix, which is packed once, compared with double-precision loops on every dispatch target:
// one row and more, sums of every length that is split differently, matrices in other layouts, f32 and bf16.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "primitives/text/format.h"
#include "tests/unit/providers/provider_fixture.h"

namespace tenon::provider {
namespace {

struct Product {
  int64_t m, n, k;
  bool transposed;  // the matrix is stored by columns
  bool bias;
};

// Numbers with few bits, so that bf16 represents them exactly.
float drawn(std::mt19937& generator) { return static_cast<float>(static_cast<int>(generator() % 31) - 15) / 8; }

uint16_t to_bf16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return static_cast<uint16_t>(bits >> 16);
}
float from_bf16(uint16_t value) {
  const uint32_t bits = static_cast<uint32_t>(value) << 16;
  float result;
  std::memcpy(&result, &bits, sizeof result);
  return result;
}

struct Operand {
  std::vector<float> floats;
  std::vector<uint16_t> halves;

  Operand(int64_t count, int32_t dtype, std::mt19937& generator) : floats(static_cast<size_t>(count)) {
    for (float& value : floats) value = drawn(generator);
    if (dtype != EP_DTYPE_bf16) return;
    for (const float value : floats) halves.push_back(to_bf16(value));
  }
  void* address() { return halves.empty() ? static_cast<void*>(floats.data()) : halves.data(); }
  float at(int64_t i) const {
    return halves.empty() ? floats[static_cast<size_t>(i)] : from_bf16(halves[static_cast<size_t>(i)]);
  }
};

class ConstantMatmul : public testing::TestWithParam<const char*> {
 protected:
  static void compare(OpenProvider& cpu, const Product& one, int32_t dtype, bool relu) {
    const std::string label = fmt::format("{} x {} x {}{}{} of dtype {}", one.m, one.k, one.n,
                                          one.transposed ? ", transposed" : "", one.bias ? ", bias" : "", dtype);
    const std::vector<int64_t> order = one.transposed ? std::vector<int64_t>{1, one.k} : std::vector<int64_t>{one.n, 1};
    std::vector<ep_operand_desc> operands{strided(EP_ROLE_DST, dtype, {one.m, one.n}, {one.n, 1}),
                                          strided(EP_ROLE_SRC, dtype, {one.m, one.k}, {one.k, 1}),
                                          strided(EP_ROLE_SRC_B, dtype, {one.k, one.n}, order)};
    operands[2].flags = EP_OPERAND_FLAG_CONSTANT;
    if (one.bias) operands.push_back(strided(EP_ROLE_BIAS, dtype, {one.m, one.n}, {0, 1}));
    ep_primitive_desc desc = descriptor(EP_PRIMITIVE_matmul, operands);
    std::vector<ep_scalar> scalars(6);
    for (ep_scalar& scalar : scalars) scalar.dtype = EP_DTYPE_f32;
    if (relu) then_relu(&desc);
    std::mt19937 generator(17);
    Operand dst(one.m * one.n, dtype, generator), src(one.m * one.k, dtype, generator);
    Operand matrix(one.k * one.n, dtype, generator), bias(one.n, dtype, generator);
    for (float& value : dst.floats) value = std::nanf("7");
    for (uint16_t& value : dst.halves) value = 0x7fc1;
    std::vector<void*> addresses{dst.address(), src.address(), matrix.address()};
    if (one.bias) addresses.push_back(bias.address());
    const LaunchResult run = run_once(cpu, desc, addresses, scalars);
    ASSERT_EQ(run.status, EP_STATUS_OK) << label << ": " << cpu.host.sentence();
    for (int64_t i = 0; i < one.m; ++i) {
      for (int64_t j = 0; j < one.n; ++j) {
        double wanted = one.bias ? bias.at(j) : 0;
        for (int64_t p = 0; p < one.k; ++p) {
          wanted +=
              static_cast<double>(src.at(i * one.k + p)) * matrix.at(one.transposed ? j * one.k + p : p * one.n + j);
        }
        if (relu) wanted = std::max(wanted, 0.0);
        // The products are exact, and so are their sums in f32 up to 2^24 / 64.
        const double bound = dtype == EP_DTYPE_bf16 ? std::abs(wanted) / 256 : 1e-6 * (std::abs(wanted) + 1);
        ASSERT_NEAR(dst.at(i * one.n + j), wanted, bound)
            << label << " at " << i << ", " << j << " by " << run.implementation;
      }
    }
  }
};

TEST_P(ConstantMatmul, EqualsDoubleLoops) {
  const std::unique_ptr<OpenProvider> cpu = open_on_target(GetParam());
  if (cpu == nullptr) GTEST_SKIP() << "this processor or build has no " << GetParam();
  for (const int32_t dtype : {EP_DTYPE_f32, EP_DTYPE_bf16}) {
    for (const int64_t m : {1, 2, 5, 16, 33}) {
      for (const int64_t n : {1, 31, 64, 100}) {
        compare(*cpu, {m, n, 70, (m + n) % 2 == 0, n == 31}, dtype, false);
      }
    }
    for (const int64_t k : {1, 64, 3072, 3073, 4100}) {
      for (const int64_t m : {1, 3, 17}) compare(*cpu, {m, 48, k, (m + k) % 2 == 0, m == 3}, dtype, false);
    }
    for (const int64_t k : {71, 513, 1027}) {
      for (const int64_t n : {45, 85, 128}) compare(*cpu, {1, n, k, false, n == 85}, dtype, false);
    }
  }
}

TEST_P(ConstantMatmul, RunsEpiloguesOverTheResult) {
  const std::unique_ptr<OpenProvider> cpu = open_on_target(GetParam());
  if (cpu == nullptr) GTEST_SKIP() << "this processor or build has no " << GetParam();
  for (const int64_t k : {96, 3100}) compare(*cpu, {16, 80, k, false, true}, EP_DTYPE_f32, true);
}

INSTANTIATE_TEST_SUITE_P(Target, ConstantMatmul, testing::Values("baseline", "avx2", "avx3"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace tenon::provider
