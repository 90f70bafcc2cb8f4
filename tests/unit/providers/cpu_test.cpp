// The cpu provider as a device: its memory, its settings, its faults, and the resources that it holds.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <stdexcept>

#include "primitives/text/format.h"
#include "tests/unit/providers/provider_fixture.h"

namespace tenon::provider {
namespace {

TEST(CpuProvider, MapsLargeBlocksAtHugePages) {
  OpenProvider cpu("cpu");
  for (uint64_t size : {UINT64_C(1), UINT64_C(4097), UINT64_C(2) << 20, (UINT64_C(5) << 20) + 3}) {
    ep_memory* memory = nullptr;
    void* address = nullptr;
    uint64_t handle = 0;
    ASSERT_EQ(cpu.ops.memory_allocate(cpu.device, 0, size, &memory, nullptr), EP_STATUS_OK);
    ASSERT_EQ(cpu.ops.memory_map(cpu.device, memory, &address, nullptr), EP_STATUS_OK);
    ASSERT_EQ(cpu.ops.memory_native_handle(cpu.device, memory, &handle, nullptr), EP_STATUS_OK);
    EXPECT_EQ(handle, reinterpret_cast<uint64_t>(address));
    EXPECT_EQ(handle % (size >= (2 << 20) ? 2 << 20 : 256), 0u) << size;
    std::memset(address, 1, size);
    cpu.ops.memory_free(cpu.device, memory);
  }
}

TEST(CpuProvider, RefusesWhatTheSystemDoesNotHave) {
  OpenProvider cpu("cpu");
  ep_memory* memory = nullptr;
  ep_error* error = nullptr;
  EXPECT_EQ(cpu.ops.memory_allocate(cpu.device, 0, UINT64_C(1) << 60, &memory, &error), EP_STATUS_OUT_OF_DEVICE_MEMORY);
  EXPECT_EQ(memory, nullptr);
  EXPECT_NE(cpu.host.sentence().find("1152921504606846976"), std::string::npos) << cpu.host.sentence();
}

TEST(CpuProvider, RefusesAnUnknownSimdSetting) {
  try {
    OpenProvider cpu("cpu", {{"simd", "mmx"}});
    FAIL() << "it opened";
  } catch (const std::runtime_error& error) {
    EXPECT_NE(std::string(error.what()).find("'mmx'"), std::string::npos) << error.what();
  }
}

constexpr float nan_value = std::numeric_limits<float>::quiet_NaN();
constexpr float infinity = std::numeric_limits<float>::infinity();

// A product of `values` with ones, so that each of 16 columns or channels holds `values`, and an epilogue.
struct Product {
  const char* name;
  ep_primitive_desc desc;
};

std::vector<Product> products(int64_t count) {
  const int32_t f32 = EP_DTYPE_f32;
  Product matmul{"matmul", descriptor(EP_PRIMITIVE_matmul,
                                      {dense(EP_ROLE_DST, f32, {count, 16}), dense(EP_ROLE_SRC, f32, {count, 1}),
                                       dense(EP_ROLE_SRC_B, f32, {1, 16})})};
  Product convolution{"convolution", descriptor(EP_PRIMITIVE_convolution, {dense(EP_ROLE_DST, f32, {1, 16, count, 1}),
                                                                           dense(EP_ROLE_SRC, f32, {1, 1, count, 1}),
                                                                           dense(EP_ROLE_WEIGHT, f32, {16, 1, 1, 1})})};
  ep_convolution_attributes& attributes = convolution.desc.attributes.convolution;
  attributes.spatial_rank = 2;
  attributes.groups = 1;
  for (int axis = 0; axis < 2; ++axis) attributes.stride[axis] = attributes.dilation[axis] = 1;
  return {matmul, convolution};
}

// The result of the element-wise primitive for the epilogue on `values`.
std::vector<float> by_row(OpenProvider& cpu, const ep_epilogue& epilogue, std::vector<float> values, ep_scalar a,
                          ep_scalar b) {
  const int64_t count = static_cast<int64_t>(values.size());
  std::vector<float> results(values.size(), 4711.0F);
  std::vector<ep_operand_desc> operands{dense(EP_ROLE_DST, EP_DTYPE_f32, {count}),
                                        dense(EP_ROLE_SRC, EP_DTYPE_f32, {count})};
  std::vector<void*> addresses{results.data(), values.data()};
  std::vector<float> second(values.size(), static_cast<float>(a.value.f64));
  if (epilogue.arity == 2) {
    operands.push_back(dense(EP_ROLE_SRC_B, EP_DTYPE_f32, {count}));
    addresses.push_back(second.data());
  }
  ep_primitive_desc desc = descriptor(epilogue.arity == 1 ? EP_PRIMITIVE_unary : EP_PRIMITIVE_binary, operands);
  (epilogue.arity == 1 ? desc.attributes.unary.op : desc.attributes.binary.op) = epilogue.op;
  EXPECT_EQ(run_once(cpu, desc, addresses, {a, b}).status, EP_STATUS_OK);
  return results;
}

TEST(CpuProvider, ComputesEpiloguesAsTheirRowsSayWithNanAndInfinityToo) {
  OpenProvider cpu("cpu");
  std::vector<float> values{nan_value, infinity, -infinity, 0.0F, 1.5F, -2.25F, 88.0F, -104.0F, 1e-41F, 3e38F};
  std::vector<float> ones(16, 1.0F);
  const int64_t count = static_cast<int64_t>(values.size());
  std::vector<ep_scalar> scalars(6);
  for (ep_scalar& scalar : scalars) scalar.dtype = EP_DTYPE_f32;
  scalars[4].value.f64 = 0.25;
  scalars[5].value.f64 = 1.75;
  std::vector<ep_epilogue> epilogues;
  for (int32_t op = EP_UNARY_neg; op <= EP_UNARY_shrink; ++op) epilogues.push_back({1, op, 0, 4});
  for (int32_t op : {EP_BINARY_add, EP_BINARY_sub, EP_BINARY_mul, EP_BINARY_div, EP_BINARY_maximum, EP_BINARY_minimum})
    epilogues.push_back({2, op, 0, 4});
  int fused = 0;
  for (Product& product : products(count)) {
    for (const ep_epilogue& epilogue : epilogues) {
      const std::string label = fmt::format("{} arity {} op {}", product.name, epilogue.arity, epilogue.op);
      product.desc.epilogue_count = 1;
      product.desc.epilogues[0] = epilogue;
      std::vector<float> results(values.size() * 16, 4711.0F);
      const LaunchResult run = run_once(cpu, product.desc, {results.data(), values.data(), ones.data()}, scalars);
      if (run.status == EP_STATUS_UNSUPPORTED) continue;
      ASSERT_EQ(run.status, EP_STATUS_OK) << label << ": " << cpu.host.sentence();
      fused += run.implementation == "onednn";
      const std::vector<float> wanted = by_row(cpu, epilogue, values, scalars[4], scalars[5]);
      for (int64_t i = 0; i < count; ++i) {
        for (int64_t column = 0; column < 16; ++column) {
          const float got = results[static_cast<size_t>(product.desc.kind == EP_PRIMITIVE_matmul ? i * 16 + column
                                                                                                 : column * count + i)];
          const float want = wanted[static_cast<size_t>(i)];
          if (std::isnan(want)) {
            EXPECT_TRUE(std::isnan(got)) << label << " of " << values[static_cast<size_t>(i)] << " is " << got;
          } else {
            EXPECT_FLOAT_EQ(got, want) << label << " of " << values[static_cast<size_t>(i)];
          }
        }
      }
    }
  }
  EXPECT_GE(fused, 12) << "the epilogues that models have are fused";
}

TEST(CpuProvider, RefusesAnEpilogueByItsName) {
  OpenProvider cpu("cpu");
  std::vector<float> values{1.0F, 2.0F}, ones(16, 1.0F), results(32);
  const std::pair<ep_epilogue, const char*> refused[] = {{{1, EP_UNARY_isnan, 0, 4}, "isnan"},
                                                         {{2, EP_BINARY_lt, 0, 4}, "lt"}};
  for (Product& product : products(2)) {
    for (const auto& [epilogue, name] : refused) {
      product.desc.epilogue_count = 1;
      product.desc.epilogues[0] = epilogue;
      const LaunchResult run = run_once(cpu, product.desc, {results.data(), values.data(), ones.data()}, {});
      EXPECT_EQ(run.status, EP_STATUS_UNSUPPORTED) << product.name;
      EXPECT_NE(cpu.host.sentence().find(fmt::format("epilogue {} on f32", name)), std::string::npos)
          << cpu.host.sentence();
    }
  }
}

// If oneDNN multiplies bf16, the provider refuses an epilogue that oneDNN lacks instead of using a slow loop. The host
// then runs the product and the epilogue separately.
TEST(CpuProvider, AnEpilogueOverBf16MakesNoProductSlow) {
  OpenProvider cpu("cpu");
  ep_primitive_desc desc = descriptor(
      EP_PRIMITIVE_matmul, {dense(EP_ROLE_DST, EP_DTYPE_bf16, {64, 64}), dense(EP_ROLE_SRC, EP_DTYPE_bf16, {64, 64}),
                            dense(EP_ROLE_SRC_B, EP_DTYPE_bf16, {64, 64})});
  std::vector<uint16_t> dst(64 * 64, 0), src(64 * 64, 0x3f80), src_b(64 * 64, 0x4000);  // 1 and 2
  const std::vector<void*> addresses{dst.data(), src.data(), src_b.data()};
  const std::string alone = run_once(cpu, desc, addresses).implementation;
  desc.epilogue_count = 1;
  desc.epilogues[0] = {1, EP_UNARY_square, 0, 4};
  const LaunchResult square = run_once(cpu, desc, addresses);
  EXPECT_EQ(square.implementation, alone);
  for (const uint16_t element : dst) ASSERT_EQ(element, 0x4680);  // 128 * 128
  desc.epilogues[0] = {1, EP_UNARY_gelu, 0, 4};
  const LaunchResult gelu = run_once(cpu, desc, addresses);
  EXPECT_EQ(gelu.status, alone == "onednn" ? EP_STATUS_UNSUPPORTED : EP_STATUS_OK) << cpu.host.sentence();
}

TEST(CpuProvider, TakesAnyStrideOfAnAxisOfLengthOne) {
  OpenProvider cpu("cpu");
  const ep_primitive_desc desc =
      descriptor(EP_PRIMITIVE_matmul, {dense(EP_ROLE_DST, EP_DTYPE_f32, {64, 64, 128}),
                                       strided(EP_ROLE_SRC, EP_DTYPE_f32, {64, 64, 1}, {64, 1, 64}),
                                       strided(EP_ROLE_SRC_B, EP_DTYPE_f32, {64, 1, 128}, {0, 128, 1})});
  std::vector<float> dst(64 * 64 * 128, nan_value), src(64 * 64), src_b(128);
  for (size_t i = 0; i < src.size(); ++i) src[i] = static_cast<float>(i % 91) - 40.5F;
  for (size_t i = 0; i < src_b.size(); ++i) src_b[i] = static_cast<float>(i % 17) + 0.25F;
  const LaunchResult run = run_once(cpu, desc, {dst.data(), src.data(), src_b.data()});
  ASSERT_EQ(run.status, EP_STATUS_OK) << cpu.host.sentence();
  EXPECT_EQ(run.implementation, "onednn");
  for (size_t i = 0; i < dst.size(); ++i) ASSERT_FLOAT_EQ(dst[i], src[i / 128] * src_b[i % 128]) << i;
}

TEST(CpuProvider, NamesEveryRefusalOfItsList) {
  OpenProvider cpu("cpu");
  ep_primitive_desc desc = descriptor(
      EP_PRIMITIVE_matmul, {dense(EP_ROLE_DST, EP_DTYPE_bool, {2, 2}), dense(EP_ROLE_SRC, EP_DTYPE_bool, {2, 2}),
                            dense(EP_ROLE_SRC_B, EP_DTYPE_bool, {2, 2})});
  ep_support_info info{};
  info.struct_size = sizeof info;
  ep_error* error = nullptr;
  EXPECT_EQ(cpu.ops.primitive_support(cpu.device, &desc, &info, &error), EP_STATUS_UNSUPPORTED);
  EXPECT_EQ(
      cpu.host.sentence(),
      "bf16: the program does not permit tier relaxed; vector: bool; simd: operand 0 is bool, not f32; batch: no "
      "matmul on bool; packed: the second "
      "matrix is not constant; onednn: bool, "
      "not f32 or bf16; widened: blocks read scattered matrices of bool in place; "
      "blocks: no matmul on bool; bytes: bool by bool, not bytes by bytes; weights: bool to bool, not f32 to f32; "
      "plain: no matmul on bool.");
  desc.kind = 4711;
  EXPECT_EQ(cpu.ops.primitive_support(cpu.device, &desc, &info, &error), EP_STATUS_UNSUPPORTED);
  EXPECT_NE(cpu.host.sentence().find("4711"), std::string::npos) << cpu.host.sentence();
}

TEST(CpuProvider, TellsOfAnIndexOutOfRange) {
  OpenProvider cpu("cpu");
  ep_primitive_desc desc = descriptor(
      EP_PRIMITIVE_gather, {dense(EP_ROLE_DST, EP_DTYPE_f32, {3, 2}), dense(EP_ROLE_SRC, EP_DTYPE_f32, {4, 2}),
                            dense(EP_ROLE_INDICES, EP_DTYPE_i64, {3})});
  desc.attributes.gather.mode = EP_GATHER_SLICES;
  float src[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  float dst[6] = {-1, -1, -1, -1, -1, -1};
  int64_t indices[3] = {3, 9, -4};
  const LaunchResult result = run_once(cpu, desc, {dst, src, indices});
  EXPECT_EQ(result.status, EP_STATUS_FAULT);
  EXPECT_EQ(result.fault.code, EP_FAULT_INDEX_OUT_OF_RANGE);
  EXPECT_EQ(result.fault.operand, 2);
  EXPECT_EQ(result.fault.value, 9);
  EXPECT_EQ(result.fault.limit, 4);
  EXPECT_EQ(result.fault.tag, 77u);
  EXPECT_EQ(dst[0], 7);
  EXPECT_EQ(dst[4], 1);
}

TEST(CpuProvider, TellsOfADivisionByZeroAndWrapsTheLeastInteger) {
  OpenProvider cpu("cpu");
  ep_primitive_desc desc =
      descriptor(EP_PRIMITIVE_binary, {dense(EP_ROLE_DST, EP_DTYPE_i32, {2}), dense(EP_ROLE_SRC, EP_DTYPE_i32, {2}),
                                       dense(EP_ROLE_SRC_B, EP_DTYPE_i32, {2})});
  desc.attributes.binary.op = EP_BINARY_div;
  int32_t x[2] = {7, INT32_MIN};
  int32_t y[2] = {0, -1};
  int32_t dst[2] = {-5, -5};
  const LaunchResult result = run_once(cpu, desc, {dst, x, y});
  EXPECT_EQ(result.status, EP_STATUS_FAULT);
  EXPECT_EQ(result.fault.code, EP_FAULT_DIVISION_BY_ZERO);
  EXPECT_EQ(result.fault.value, 0);
  EXPECT_EQ(dst[0], 0);
  EXPECT_EQ(dst[1], INT32_MIN);
}

TEST(CpuProvider, HoldsNothingAfterAPrimitiveIsDestroyed) {
  OpenProvider cpu("cpu");
  const int64_t before = cpu.host.held();
  ep_primitive_desc desc = descriptor(
      EP_PRIMITIVE_matmul, {dense(EP_ROLE_DST, EP_DTYPE_f32, {8, 8}), dense(EP_ROLE_SRC, EP_DTYPE_f32, {8, 8}),
                            dense(EP_ROLE_SRC_B, EP_DTYPE_f32, {8, 8})});
  std::vector<float> values(64, 1.0f);
  std::vector<float> result(64);
  EXPECT_EQ(run_once(cpu, desc, {result.data(), values.data(), values.data()}).status, EP_STATUS_OK);
  EXPECT_EQ(result[0], 8.0f);
  EXPECT_EQ(cpu.host.held(), before);
}

}  // namespace
}  // namespace tenon::provider
