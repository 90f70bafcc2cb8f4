// Properties of a card that a software device lacks, simulated by the shim: its own memory, many queues, and a counter
// that jumps to its maximum.
#include <gtest/gtest.h>

#include "tests/unit/providers/vulkan/fixture.h"

namespace tenon::testing {
namespace {

TEST(VulkanCard, OperandsThatTheHostDoesNotSeeAreCopiedToAndFro) {
  ShimControl& shim = fresh_shim();
  shim.discrete = 1;
  {
    Device device;
    ep_memory* memory = device.allocate(64);
    void* host = nullptr;
    ep_error* error = nullptr;
    EXPECT_EQ(device.ops.memory_map(device.handle, memory, &host, &error), EP_STATUS_UNSUPPORTED);
    device.upload({memory, 0}, {5, 6, 7, 8});
    device.run(device.binary(EP_BINARY_mul, 4, true), {memory, 16}, {memory, 0}, {}, -2);
    EXPECT_EQ(device.download({memory, 16}, 4), (std::vector<int32_t>{-10, -12, -14, -16}));
  }
  EXPECT_EQ(shim.live_memory, 0u);
}

// Other processes may occupy the 256 MiB window through which the host writes a card's memory.
TEST(VulkanCard, ParametersGoElsewhereWhereTheWindowIsFull) {
  ShimControl& shim = fresh_shim();
  shim.discrete = 1;
  shim.window_full = 1;
  {
    Device device;
    ep_memory* memory = device.allocate(64);
    device.upload({memory, 0}, {5, 6, 7, 0});
    device.run(device.binary(EP_BINARY_div, 2, false), {memory, 16}, {memory, 0}, {memory, 8}, 0, 31);
    EXPECT_EQ(device.download({memory, 16}, 1), (std::vector<int32_t>{0}));
    ep_fault fault{};
    ASSERT_EQ(device.ops.stream_take_fault(device.stream, &fault, nullptr), EP_STATUS_OK);
    EXPECT_EQ(fault.tag, 31u);
  }
  EXPECT_EQ(shim.live_memory, 0u);
}

TEST(VulkanCard, ACounterAheadOfItsStreamIsALostDevice) {
  ShimControl& shim = fresh_shim();
  {
    Device device;
    ep_memory* memory = device.allocate(64);
    std::vector<int32_t> received(4, -1);
    ep_error* error = nullptr;
    device.upload({memory, 0}, {1, 2, 3, 4});
    EXPECT_EQ(device.ops.download(device.stream, received.data(), {memory, 0}, 16, &error), EP_STATUS_OK);
    shim.counters_run_away = 1;
    EXPECT_EQ(device.ops.stream_synchronize(device.stream, &error), EP_STATUS_DEVICE_LOST);
    EXPECT_EQ(received, std::vector<int32_t>(4, -1)) << "what was not computed is not handed over";
    EXPECT_EQ(device.ops.stream_synchronize(device.stream, &error), EP_STATUS_DEVICE_LOST);
  }
  EXPECT_EQ(shim.live_memory, 0u);
}

// Streams on different queues wait for each other's semaphores.
TEST(VulkanCard, StreamsOnManyQueuesKeepOrder) {
  ShimControl& shim = fresh_shim();
  shim.discrete = 1;
  {
    Device device;
    SecondStream other(device);
    ep_memory* memory = device.allocate(64);
    ep_primitive* add = device.binary(EP_BINARY_add, 4, true);
    ep_primitive* mul = device.binary(EP_BINARY_mul, 4, true);
    Event here(device);
    Event there(device);
    device.upload({memory, 0}, {1, 2, 3, 4});
    std::vector<int32_t> expected = {1, 2, 3, 4};
    shim.submissions = 0;
    for (int i = 0; i < 20; ++i) {
      device.run(mul, {memory, 0}, {memory, 0}, {}, 3);
      device.ops.event_record(here.handle, device.stream, nullptr);
      device.ops.stream_wait_event(other.handle, here.handle, nullptr);
      device.run(add, {memory, 0}, {memory, 0}, {}, 7, 1, other.handle);
      device.ops.event_record(there.handle, other.handle, nullptr);
      device.ops.stream_wait_event(device.stream, there.handle, nullptr);
      for (int32_t& value : expected) value = static_cast<int32_t>(static_cast<uint32_t>(value) * 3 + 7);
    }
    EXPECT_EQ(device.download({memory, 0}, 4), expected);
    EXPECT_GE(shim.submissions, 40u) << "each wait ends a batch";
    device.ops.stream_synchronize(other.handle, nullptr);
  }
  EXPECT_EQ(shim.live_memory, 0u);
}

TEST(VulkanCard, StreamsOfALostDeviceDoNotKeepEachOther) {
  ShimControl& shim = fresh_shim();
  shim.discrete = 1;
  {
    Device device;
    SecondStream other(device);
    ep_memory* memory = device.allocate(64);
    Event here(device);
    Event there(device);
    device.upload({memory, 0}, {1, 2, 3, 4});
    device.ops.event_record(here.handle, device.stream, nullptr);
    device.ops.stream_wait_event(other.handle, here.handle, nullptr);
    device.upload({memory, 0}, {5}, other.handle);
    device.ops.event_record(there.handle, other.handle, nullptr);
    device.ops.stream_wait_event(device.stream, there.handle, nullptr);
    shim.submissions_until_lost = 0;
    ep_error* error = nullptr;
    EXPECT_EQ(device.ops.stream_flush(device.stream, &error), EP_STATUS_DEVICE_LOST);
  }
  EXPECT_EQ(shim.live_memory, 0u);
}

TEST(VulkanCard, LayeredDriversAreAskedFor) {
  ShimControl& shim = fresh_shim();
  Device device;
  EXPECT_EQ(shim.instance_flags, 1u) << "VK_INSTANCE_CREATE_ENUMERATE_PORTABILITY_BIT_KHR";
}

}  // namespace
}  // namespace tenon::testing
