// Chains of epilogues on f32 products: an activation before a residual, and after it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "primitives/text/format.h"
#include "tests/unit/providers/provider_fixture.h"

namespace tenon::provider {
namespace {

enum class Step { relu, tanh, add };
using Chain = std::vector<Step>;

ep_primitive_desc then(ep_primitive_desc desc, const Chain& chain) {
  for (const Step step : chain) {
    ep_epilogue& epilogue = desc.epilogues[desc.epilogue_count];
    if (step != Step::add) {
      epilogue = {1, step == Step::relu ? EP_UNARY_relu : EP_UNARY_tanh, 0, 4};
    } else {
      const int32_t role = EP_ROLE_EPILOGUE_0 + static_cast<int32_t>(desc.epilogue_count);
      desc.operands[desc.operand_count] = desc.operands[0];
      desc.operands[desc.operand_count++].role = role;
      epilogue = {2, EP_BINARY_add, role, 0};
    }
    ++desc.epilogue_count;
  }
  return desc;
}

std::string name_of(const Chain& chain) {
  std::string text;
  for (const Step step : chain) text += step == Step::relu ? " relu" : step == Step::tanh ? " tanh" : " add";
  return text;
}

// The chain in double, on the result `value` at `at` in memory; `operands` are all operands.
double after(const ep_primitive_desc& desc, const Chain& chain, const std::vector<std::vector<float>>& operands,
             double value, size_t at) {
  size_t next = desc.operand_count - static_cast<size_t>(std::count(chain.begin(), chain.end(), Step::add));
  for (const Step step : chain) {
    if (step == Step::relu) value = value < 0 ? 0 : value;
    if (step == Step::tanh) value = std::tanh(value);
    if (step == Step::add) value += static_cast<double>(operands[next++][at]);
  }
  return value;
}

struct Product {
  std::string name;
  ep_primitive_desc desc;
};

Product matmul(int64_t m, int64_t n, int64_t k) {
  return {fmt::format("matmul {} {} {}", m, n, k),
          descriptor(EP_PRIMITIVE_matmul,
                     {dense(EP_ROLE_DST, EP_DTYPE_f32, {m, n}), dense(EP_ROLE_SRC, EP_DTYPE_f32, {m, k}),
                      dense(EP_ROLE_SRC_B, EP_DTYPE_f32, {k, n})})};
}

Product convolution(int64_t channels, int64_t size, int64_t kernel, int64_t groups, bool channels_last) {
  const auto image = [&](int32_t role) {
    if (!channels_last) return dense(role, EP_DTYPE_f32, {1, channels, size, size});
    return strided(role, EP_DTYPE_f32, {1, channels, size, size},
                   {channels * size * size, 1, size * channels, channels});
  };
  Product product{
      fmt::format("convolution {} {} {} {} {}", channels, size, kernel, groups, channels_last ? "last" : "first"),
      descriptor(EP_PRIMITIVE_convolution,
                 {image(EP_ROLE_DST), image(EP_ROLE_SRC),
                  dense(EP_ROLE_WEIGHT, EP_DTYPE_f32, {channels, channels / groups, kernel, kernel})})};
  ep_convolution_attributes& attributes = product.desc.attributes.convolution;
  attributes.spatial_rank = 2;
  attributes.groups = groups;
  for (int i = 0; i < 2; ++i) {
    attributes.stride[i] = attributes.dilation[i] = 1;
    attributes.pad_low[i] = attributes.pad_high[i] = kernel / 2;
  }
  return product;
}

LaunchResult launch(OpenProvider& cpu, const ep_primitive_desc& desc, std::vector<std::vector<float>>* operands) {
  std::vector<void*> addresses;
  for (std::vector<float>& operand : *operands) addresses.push_back(operand.data());
  std::vector<ep_scalar> scalars(6);
  for (ep_scalar& scalar : scalars) scalar.dtype = EP_DTYPE_f32;
  return run_once(cpu, desc, addresses, scalars);
}

// The product alone is tested elsewhere, so it is the input of the chain in double.
void expect_chain(OpenProvider& cpu, const Product& product, const Chain& chain, const std::string& simd) {
  const std::string label = fmt::format("{}{} on {}", product.name, name_of(chain), simd);
  const ep_primitive_desc desc = then(product.desc, chain);
  std::mt19937 generator(7);
  std::vector<std::vector<float>> operands;
  for (uint32_t i = 0; i < desc.operand_count; ++i) {
    operands.push_back(random_floats(extent(desc.operands[i]), &generator));
    if (i > 2) operands.back()[5] = std::numeric_limits<float>::quiet_NaN();
    if (i > 2) operands.back()[6] = 1e-41F;
  }
  operands[1][0] = std::numeric_limits<float>::quiet_NaN();
  std::vector<std::vector<float>> bare(operands.begin(), operands.begin() + 3);
  const LaunchResult alone = launch(cpu, product.desc, &bare);
  ASSERT_EQ(alone.status, EP_STATUS_OK) << label << ": " << cpu.host.sentence();
  const LaunchResult run = launch(cpu, desc, &operands);
  ASSERT_EQ(run.status, EP_STATUS_OK) << label << ": " << cpu.host.sentence();
  EXPECT_NE(run.implementation, "plain") << label;
  for (size_t at = 0; at < bare[0].size(); ++at) {
    const double wanted = after(desc, chain, operands, static_cast<double>(bare[0][at]), at);
    if (std::isnan(wanted)) {
      ASSERT_TRUE(std::isnan(operands[0][at])) << label << " at " << at;
    } else {
      ASSERT_NEAR(operands[0][at], wanted, 2e-5 * (1 + std::fabs(wanted))) << label << " at " << at;
    }
  }
}

TEST(Epilogues, AddResidualsBeforeAndAfterActivations) {
  const std::vector<Product> products = {matmul(5, 7, 3),
                                         matmul(1, 700, 300),
                                         matmul(77, 131, 90),
                                         convolution(32, 13, 3, 1, false),
                                         convolution(32, 13, 3, 1, true),
                                         convolution(24, 13, 1, 1, false),
                                         convolution(24, 13, 1, 1, true),
                                         convolution(19, 14, 3, 19, false),
                                         convolution(19, 14, 3, 19, true)};
  const Chain chains[] = {{Step::relu, Step::add},
                          {Step::tanh, Step::add, Step::relu},
                          {Step::add, Step::tanh, Step::add},
                          {Step::relu, Step::add, Step::add}};
  for (const std::string simd : {"baseline", "avx2", "avx3"}) {
    const std::unique_ptr<OpenProvider> cpu = open_on_target(simd);
    if (cpu == nullptr) continue;
    for (const Product& product : products) {
      for (const Chain& chain : chains) expect_chain(*cpu, product, chain, simd);
    }
  }
}

// A long product is computed in tiles, which have gaps between their rows.
TEST(Epilogues, OfALongProductReachEveryTile) {
  OpenProvider cpu("cpu");
  constexpr int64_t m = 256, n = 4500, k = 8192;
  const ep_primitive_desc desc = then(matmul(m, n, k).desc, {Step::relu, Step::add});
  std::vector<std::vector<float>> operands;
  for (uint32_t i = 0; i < desc.operand_count; ++i) {
    operands.emplace_back(static_cast<size_t>(extent(desc.operands[i])), 1.0F);
  }
  for (size_t i = 0; i < operands[1].size(); ++i) operands[1][i] = (i / k) % 2 == 0 ? -0.5F : 0.25F;
  for (size_t i = 0; i < operands[3].size(); ++i) operands[3][i] = static_cast<float>(i % 91);
  const LaunchResult run = launch(cpu, desc, &operands);
  ASSERT_EQ(run.status, EP_STATUS_OK) << cpu.host.sentence();
  for (size_t i = 0; i < operands[0].size(); ++i) {
    const float product = (i / n) % 2 == 0 ? 0.0F : 0.25F * k;
    ASSERT_EQ(operands[0][i], product + static_cast<float>(i % 91)) << i;
  }
}

}  // namespace
}  // namespace tenon::provider
