// The CPU provider as a device: its memory, its settings, its faults, what it holds.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <stdexcept>

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

TEST(CpuProvider, NamesEveryRefusalOfItsList) {
  OpenProvider cpu("cpu");
  ep_primitive_desc desc = descriptor(
      EP_PRIMITIVE_matmul, {dense(EP_ROLE_DST, EP_DTYPE_bool, {2, 2}), dense(EP_ROLE_SRC, EP_DTYPE_bool, {2, 2}),
                            dense(EP_ROLE_SRC_B, EP_DTYPE_bool, {2, 2})});
  ep_support_info info{};
  info.struct_size = sizeof info;
  ep_error* error = nullptr;
  EXPECT_EQ(cpu.ops.primitive_support(cpu.device, &desc, &info, &error), EP_STATUS_UNSUPPORTED);
  EXPECT_EQ(cpu.host.sentence(), "onednn: operand 0 is bool, not f32; plain: no matmul on bool.");
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

TEST(CpuProvider, TellsOfADivisionThatOverflows) {
  OpenProvider cpu("cpu");
  ep_primitive_desc desc =
      descriptor(EP_PRIMITIVE_binary, {dense(EP_ROLE_DST, EP_DTYPE_i32, {2}), dense(EP_ROLE_SRC, EP_DTYPE_i32, {2}),
                                       dense(EP_ROLE_SRC_B, EP_DTYPE_i32, {2})});
  desc.attributes.binary.op = EP_BINARY_div;
  int32_t x[2] = {7, INT32_MIN};
  int32_t y[2] = {2, -1};
  int32_t dst[2] = {-5, -5};
  const LaunchResult result = run_once(cpu, desc, {dst, x, y});
  EXPECT_EQ(result.status, EP_STATUS_FAULT);
  EXPECT_EQ(result.fault.code, EP_FAULT_INTEGER_OVERFLOW);
  EXPECT_EQ(result.fault.value, -1);
  EXPECT_EQ(dst[0], 3);
  EXPECT_EQ(dst[1], 0);
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
