// The Khronos validation layer, synchronisation included, is silent unless a test breaks an order on purpose.
#include <gtest/gtest.h>

#include <stdexcept>

#include "tests/unit/providers/vulkan/fixture.h"

namespace tenon::testing {
namespace {

// Runs transfers and kernels on two streams, with a fault and a trim. Returns the messages of the layer.
std::vector<std::string> complaints(Settings settings) {
  settings["validation"] = "on";
  Device device(settings);
  ep_memory* a = device.allocate(1024);
  ep_memory* b = device.allocate(1024);
  ep_stream* other = nullptr;
  ep_event* event = nullptr;
  device.ops.stream_create(device.handle, &kComputeStream, &other, nullptr);
  device.ops.event_create(device.handle, &event, nullptr);
  ep_primitive* div = device.binary(EP_BINARY_div, 8, true);
  ep_primitive* add = device.binary(EP_BINARY_add, 8, false);
  for (int round = 0; round < 3; ++round) {
    device.upload({a, 0}, {1, 2, 3, 4, 5, 6, 7, 8});
    device.ops.copy(device.stream, {b, 0}, {a, 0}, 32, nullptr);
    device.ops.copy(device.stream, {a, 64}, {b, 0}, 32, nullptr);
    device.run(add, {a, 128}, {a, 64}, {a, 0}, 0);
    device.ops.event_record(event, device.stream, nullptr);
    device.ops.stream_wait_event(other, event, nullptr);
    device.run(div, {b, 256}, {a, 128}, {}, round, 1, other);
    device.ops.copy(other, {b, 512}, {b, 256}, 32, nullptr);
    device.ops.stream_synchronize(other, nullptr);
    (void)device.download({b, 512}, 8);
    device.ops.device_trim(device.handle);
  }
  device.ops.event_destroy(device.handle, event);
  device.ops.stream_destroy(device.handle, other);
  return device.plugin.host.errors_logged();
}

bool has_layer() {
  try {
    Device device(Settings{{"validation", "on"}});
    return true;
  } catch (const std::runtime_error& error) {
    std::printf("skipped: %s\n", error.what());
    return false;
  }
}

TEST(VulkanValidation, IsSilent) {
  fresh_shim();
  if (!has_layer()) GTEST_SKIP() << "no validation layer (vulkan-validationlayers)";
  EXPECT_EQ(complaints({}), std::vector<std::string>());
}

TEST(VulkanValidation, FindsAnOrderThatIsLeftOut) {
  fresh_shim();
  if (!has_layer()) GTEST_SKIP() << "no validation layer (vulkan-validationlayers)";
  const std::vector<std::string> found = complaints({{"barriers", "off"}});
  ASSERT_FALSE(found.empty());
  EXPECT_NE(found.front().find("SYNC-HAZARD"), std::string::npos) << found.front();
}

}  // namespace
}  // namespace tenon::testing
