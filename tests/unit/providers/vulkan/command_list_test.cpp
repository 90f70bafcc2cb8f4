// Command lists of the vulkan provider: replays in the order of their streams, faults, and failed recordings.
#include <gtest/gtest.h>

#include "tests/unit/providers/vulkan/fixture.h"

namespace tenon::testing {
namespace {

ep_status begin(Device& device, uint32_t bindings = 0) {
  ep_binding range{};
  ep_command_list_desc desc{};
  desc.struct_size = sizeof desc;
  desc.struct_type = EP_STRUCT_COMMAND_LIST_DESC;
  desc.bindings = &range;
  desc.binding_count = bindings;
  ep_error* error = nullptr;
  return device.ops.command_list_begin(device.stream, &desc, &error);
}

ep_status end(Device& device, ep_command_list** list) {
  ep_command_list_info info{};
  info.struct_size = sizeof info;
  info.struct_type = EP_STRUCT_COMMAND_LIST_INFO;
  ep_error* error = nullptr;
  return device.ops.command_list_end(device.stream, list, &info, &error);
}

ep_status replay(Device& device, ep_command_list* list, ep_stream* stream, uint64_t tag) {
  ep_command_list_replay_desc desc{};
  desc.tag = tag;
  return device.ops.command_list_replay(list, stream, &desc, nullptr);
}

// The quotient of memory at 0 by memory at 16 is written to 64, and copied from there to 80.
ep_command_list* record_division(Device& device, ep_memory* memory) {
  ep_primitive* div = device.binary(EP_BINARY_div, 4, false);
  ep_command_list* list = nullptr;
  EXPECT_EQ(begin(device), EP_STATUS_OK);
  EXPECT_EQ(device.run(div, {memory, 64}, {memory, 0}, {memory, 16}, 0, 70), EP_STATUS_OK);
  EXPECT_EQ(device.ops.copy(device.stream, {memory, 80}, {memory, 64}, 16, nullptr), EP_STATUS_OK);
  EXPECT_EQ(end(device, &list), EP_STATUS_OK);
  return list;
}

// The faults of the first replay are taken after those of the third, each once and under its own tag.
TEST(VulkanLists, EachReplayHasItsOwnFaults) {
  fresh_shim();
  Device device;
  ep_memory* memory = device.allocate(256);
  ep_command_list* list = record_division(device, memory);
  device.upload({memory, 0}, {7, 8, 9, 10});
  for (const uint64_t tag : {5, 6, 7}) {
    device.upload({memory, 16}, tag == 6 ? std::vector<int32_t>{1, 2, 3, 5} : std::vector<int32_t>{1, 0, 3, 5});
    ASSERT_EQ(replay(device, list, device.stream, tag), EP_STATUS_OK);
    EXPECT_EQ(device.download({memory, 80}, 4), (std::vector<int32_t>{7, tag == 6 ? 4 : 0, 3, 2}));
  }
  for (const uint64_t tag : {5, 7}) {
    ep_fault fault{};
    ASSERT_EQ(device.ops.stream_take_fault(device.stream, &fault, nullptr), EP_STATUS_OK);
    EXPECT_EQ(fault.tag, tag);
    EXPECT_EQ(fault.code, EP_FAULT_DIVISION_BY_ZERO);
    EXPECT_EQ(EP_FAULT_NODE(fault.flags), 0u);
  }
  ep_fault none{};
  EXPECT_EQ(device.ops.stream_take_fault(device.stream, &none, nullptr), EP_STATUS_NOT_FOUND);
  device.ops.command_list_destroy(device.handle, list);
}

// Uploads, replays and launches follow each other on one stream, without a wait between them.
TEST(VulkanLists, ReplaysFollowTheWorkBeforeThemAndPrecedeTheWorkAfter) {
  fresh_shim();
  Device device;
  ep_memory* memory = device.allocate(256);
  ep_primitive* add = device.binary(EP_BINARY_add, 4, true);
  std::vector<ep_command_list*> lists;
  for (int i = 0; i < 20; ++i) {  // one replay each, because none is known to be done in between
    ep_command_list* list = nullptr;
    ASSERT_EQ(begin(device), EP_STATUS_OK);
    for (int step = 0; step < 3; ++step) device.run(add, {memory, 0}, {memory, 0}, {}, 1, 1);
    ASSERT_EQ(end(device, &list), EP_STATUS_OK);
    lists.push_back(list);
  }
  device.upload({memory, 0}, {0, 1, 2, 3});
  for (ep_command_list* list : lists) {
    device.run(add, {memory, 0}, {memory, 0}, {}, 10, 1);
    ASSERT_EQ(replay(device, list, device.stream, 3), EP_STATUS_OK);
  }
  EXPECT_EQ(device.download({memory, 0}, 4), (std::vector<int32_t>{260, 261, 262, 263}));
  for (ep_command_list* list : lists) device.ops.command_list_destroy(device.handle, list);
}

TEST(VulkanLists, BindingsAreRefusedAndTheStreamGoesOn) {
  fresh_shim();
  Device device;
  ep_memory* memory = device.allocate(256);
  EXPECT_EQ(begin(device, 1), EP_STATUS_UNSUPPORTED);
  EXPECT_EQ(device.plugin.host.sentence(),
            "A recorded command buffer has fixed addresses, so bindings are not supported.");
  ep_command_list* list = nullptr;
  EXPECT_EQ(end(device, &list), EP_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(device.upload({memory, 0}, {3, 4}), EP_STATUS_OK);
  EXPECT_EQ(device.download({memory, 0}, 2), (std::vector<int32_t>{3, 4}));
}

// The recording needs memory for its parameters, and there is none.
TEST(VulkanLists, ARecordingThatFailsGivesNoListAndTheStreamGoesOn) {
  ShimControl& shim = fresh_shim();
  Device device;
  ep_memory* memory = device.allocate(256);
  ep_primitive* div = device.binary(EP_BINARY_div, 4, false);
  ep_command_list* list = nullptr;
  ASSERT_EQ(begin(device), EP_STATUS_OK);
  shim.allocations_until_full = 0;
  EXPECT_NE(device.run(div, {memory, 64}, {memory, 0}, {memory, 16}, 0, 70), EP_STATUS_OK);
  shim.allocations_until_full = -1;
  EXPECT_EQ(end(device, &list), EP_STATUS_UNSUPPORTED);
  EXPECT_EQ(device.plugin.host.sentence(), "A recorded call has failed.");
  EXPECT_EQ(list, nullptr);
  list = record_division(device, memory);
  device.upload({memory, 0}, {7, 8, 9, 10});
  device.upload({memory, 16}, {1, 2, 3, 5});
  ASSERT_EQ(replay(device, list, device.stream, 1), EP_STATUS_OK);
  EXPECT_EQ(device.download({memory, 80}, 4), (std::vector<int32_t>{7, 4, 3, 2}));
  device.ops.command_list_destroy(device.handle, list);
}

}  // namespace
}  // namespace tenon::testing
