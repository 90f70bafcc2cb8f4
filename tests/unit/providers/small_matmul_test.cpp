// Small products, which our own kernels compute, compared with double-precision loops on every dispatch target: every
// width of a tile, and padded, transposed and repeated operands.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "primitives/text/format.h"
#include "tests/unit/providers/provider_fixture.h"

namespace tenon::provider {
namespace {

struct Layouts {
  const char* name;
  int64_t batch, m, n, k;
  std::vector<int64_t> dst, src, src_b, bias;  // strides; an empty bias means none
};

// Row-major, with rows that are `pad` elements longer than necessary.
Layouts padded(int64_t m, int64_t n, int64_t k, int64_t pad) {
  return {"padded", 1, m, n, k, {m * (n + pad), n + pad, 1}, {m * (k + pad), k + pad, 1}, {k * (n + pad), n + pad, 1},
          {}};
}

std::vector<Layouts> all_layouts() {
  std::vector<Layouts> all;
  for (int64_t n : {1, 3, 4, 7, 8, 16, 31, 32, 47, 48, 64, 117}) {
    for (int64_t m : {1, 2, 5, 9, 16}) all.push_back(padded(m, n, 11, (n + m) % 3));
  }
  all.push_back({"transposed src", 1, 13, 20, 9, {260, 20, 1}, {117, 1, 13}, {180, 20, 1}, {}});
  all.push_back({"spread src", 1, 5, 20, 9, {100, 20, 1}, {200, 40, 3}, {180, 20, 1}, {}});
  all.push_back({"repeated src", 1, 5, 20, 9, {100, 20, 1}, {0, 0, 1}, {180, 20, 1}, {}});
  all.push_back({"batch of one src_b", 4, 6, 18, 10, {108, 18, 1}, {60, 10, 1}, {0, 18, 1}, {}});
  all.push_back({"batch inside rows", 3, 6, 18, 10, {18, 54, 1}, {10, 30, 1}, {180, 18, 1}, {}});
  all.push_back({"bias per column", 2, 6, 19, 10, {114, 19, 1}, {60, 10, 1}, {190, 19, 1}, {0, 0, 1}});
  all.push_back({"bias of dst's shape", 2, 6, 19, 10, {114, 19, 1}, {60, 10, 1}, {190, 19, 1}, {114, 19, 1}});
  return all;
}

std::vector<float> random_floats(int64_t count, std::mt19937& generator) {
  std::uniform_real_distribution<float> values(-2.0F, 2.0F);
  std::vector<float> floats(static_cast<size_t>(count));
  for (float& value : floats) value = values(generator);
  return floats;
}

class SmallMatmul : public testing::TestWithParam<const char*> {
 protected:
  // Runs `one`, optionally with relu. The poisoned gaps of DST must not change.
  void compare(OpenProvider& cpu, const Layouts& one, bool relu) {
    const std::string label = fmt::format("{} {} x {}", one.name, one.m, one.n);
    std::vector<ep_operand_desc> operands{strided(EP_ROLE_DST, EP_DTYPE_f32, {one.batch, one.m, one.n}, one.dst),
                                          strided(EP_ROLE_SRC, EP_DTYPE_f32, {one.batch, one.m, one.k}, one.src),
                                          strided(EP_ROLE_SRC_B, EP_DTYPE_f32, {one.batch, one.k, one.n}, one.src_b)};
    if (!one.bias.empty()) operands.push_back(strided(EP_ROLE_BIAS, EP_DTYPE_f32, {one.batch, one.m, one.n}, one.bias));
    ep_primitive_desc desc = descriptor(EP_PRIMITIVE_matmul, operands);
    std::vector<ep_scalar> scalars(6);
    for (ep_scalar& scalar : scalars) scalar.dtype = EP_DTYPE_f32;
    if (relu) then_relu(&desc);
    std::mt19937 generator(11);
    std::vector<std::vector<float>> values;
    std::vector<void*> addresses;
    for (const ep_operand_desc& operand : operands) values.push_back(random_floats(extent(operand), generator));
    std::fill(values[0].begin(), values[0].end(), std::nanf("7"));
    for (std::vector<float>& value : values) addresses.push_back(value.data());
    const LaunchResult run = run_once(cpu, desc, addresses, scalars);
    ASSERT_EQ(run.status, EP_STATUS_OK) << label << ": " << cpu.host.sentence();
    ASSERT_EQ(run.implementation, "simd") << label;
    size_t written = 0;
    for (int64_t batch = 0; batch < one.batch; ++batch) {
      for (int64_t i = 0; i < one.m; ++i) {
        for (int64_t j = 0; j < one.n; ++j, ++written) {
          const auto at = [&](size_t operand, const std::vector<int64_t>& strides, int64_t row, int64_t column) {
            return values[operand][static_cast<size_t>(batch * strides[0] + row * strides[1] + column * strides[2])];
          };
          double wanted = one.bias.empty() ? 0 : at(3, one.bias, i, j);
          for (int64_t p = 0; p < one.k; ++p)
            wanted += static_cast<double>(at(1, one.src, i, p)) * at(2, one.src_b, p, j);
          if (relu) wanted = std::max(wanted, 0.0);
          ASSERT_NEAR(at(0, one.dst, i, j), wanted, 2e-5) << label << " at " << batch << ", " << i << ", " << j;
        }
      }
    }
    size_t poisoned = 0;
    for (float value : values[0]) poisoned += std::isnan(value);
    EXPECT_EQ(poisoned + written, values[0].size()) << label << ": it wrote between rows";
  }
};

TEST_P(SmallMatmul, EqualsDoubleLoops) {
  const std::unique_ptr<OpenProvider> cpu = open_on_target(GetParam());
  if (cpu == nullptr) GTEST_SKIP() << "this processor or build has no " << GetParam();
  for (const Layouts& one : all_layouts()) compare(*cpu, one, false);
}

TEST_P(SmallMatmul, RunsEpiloguesOverTheResult) {
  const std::unique_ptr<OpenProvider> cpu = open_on_target(GetParam());
  if (cpu == nullptr) GTEST_SKIP() << "this processor or build has no " << GetParam();
  for (const Layouts& one : {padded(5, 20, 9, 0), padded(16, 64, 64, 0)}) compare(*cpu, one, true);
}

INSTANTIATE_TEST_SUITE_P(Target, SmallMatmul, testing::Values("baseline", "avx2", "avx3"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace tenon::provider
