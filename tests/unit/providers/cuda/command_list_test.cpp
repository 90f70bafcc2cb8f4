// Command lists as graphs of the fake driver.
#include <cstring>

#include "tests/unit/providers/cuda/fixture.h"

namespace tenon::provider::cuda {
namespace {

constexpr int64_t kCount = 64;

class CudaLists : public FakeCuda {
 protected:
  static ep_primitive_desc division() {
    ep_primitive_desc desc = descriptor(
        EP_PRIMITIVE_binary, {dense(EP_ROLE_DST, EP_DTYPE_i32, {kCount}), dense(EP_ROLE_SRC, EP_DTYPE_i32, {kCount}),
                              dense(EP_ROLE_SRC_B, EP_DTYPE_i32, {kCount})});
    desc.attributes.binary.op = EP_BINARY_div;
    return desc;
  }
  ep_status begin() {
    ep_command_list_desc desc{};
    desc.struct_size = sizeof desc;
    desc.struct_type = EP_STRUCT_COMMAND_LIST_DESC;
    return cuda().ops.command_list_begin(cuda().stream, &desc, nullptr);
  }
  ep_status end(ep_command_list** list) {
    ep_command_list_info info{};
    info.struct_size = sizeof info;
    info.struct_type = EP_STRUCT_COMMAND_LIST_INFO;
    ep_error* error = nullptr;
    return cuda().ops.command_list_end(cuda().stream, list, &info, &error);
  }
  ep_status replay(ep_command_list* list, uint64_t tag) {
    ep_command_list_replay_desc desc{};
    desc.tag = tag;
    return cuda().ops.command_list_replay(list, cuda().stream, &desc, nullptr);
  }
  ep_status copy(ep_memory* dst, ep_memory* src) {
    return cuda().ops.copy(cuda().stream, {dst, 0}, {src, 0}, kCount * 4, nullptr);
  }
  ep_status synchronize() { return cuda().ops.stream_synchronize(cuda().stream, nullptr); }
  // Records a copy of `from` to `to`, and the division of `to` by `divisor`.
  ep_command_list* record(ep_memory* result, ep_memory* to, ep_memory* from, ep_memory* divisor) {
    ep_command_list* list = nullptr;
    EXPECT_EQ(begin(), EP_STATUS_OK);
    EXPECT_EQ(copy(to, from), EP_STATUS_OK);
    EXPECT_EQ(launch(division(), {result, to, divisor}, {}, 77), EP_STATUS_OK);
    EXPECT_EQ(end(&list), EP_STATUS_OK);
    return list;
  }
  ep_status take(ep_fault* fault) {
    ep_error* error = nullptr;
    return cuda().ops.stream_take_fault(cuda().stream, fault, &error);
  }
};

// When the second replay has begun, the faults of the first one are still there, each under its own tag.
TEST_F(CudaLists, AReplayIsOneLaunchOfAGraphAndNamesTheCallThatMetBadData) {
  ep_memory* from = with(std::vector<int32_t>(kCount, 12));
  ep_memory* divisor = with(std::vector<int32_t>(kCount, 0));
  ep_memory *to = block(kCount * 4), *result = block(kCount * 4);
  ep_command_list* list = record(result, to, from, divisor);
  const uint64_t launches = fake().launches.load();
  fake().delay_us = 500;
  for (const uint64_t tag : {5, 6}) {
    ASSERT_EQ(replay(list, tag), EP_STATUS_OK);
    ASSERT_EQ(synchronize(), EP_STATUS_OK);
  }
  for (const uint64_t tag : {5, 6}) {
    ep_fault fault{};
    ASSERT_EQ(take(&fault), EP_STATUS_OK);
    EXPECT_EQ(fault.tag, tag);
    EXPECT_EQ(fault.code, EP_FAULT_DIVISION_BY_ZERO);
    EXPECT_EQ(EP_FAULT_NODE(fault.flags), 1u);
  }
  const std::vector<int32_t> good(kCount, 4);
  put(divisor, good.data(), kCount * 4);
  ASSERT_EQ(replay(list, 7), EP_STATUS_OK);
  EXPECT_EQ(get<int32_t>(result, kCount), std::vector<int32_t>(kCount, 3));
  ep_fault none{};
  EXPECT_EQ(take(&none), EP_STATUS_NOT_FOUND) << "the third replay met no bad data";
  EXPECT_EQ(fake().launches.load(), launches);
  EXPECT_EQ(fake().graph_launches.load(), 3u);
  cuda().ops.command_list_destroy(cuda().device, list);
}

TEST_F(CudaLists, ARecordingThatFailsKeepsNothingAndTheStreamGoesOn) {
  ep_memory* from = with(std::vector<int32_t>(kCount, 12));
  ep_memory* to = block(kCount * 4);
  ASSERT_EQ(launch(division(), {to, from, from}), EP_STATUS_OK);  // loads the kernel
  ASSERT_EQ(synchronize(), EP_STATUS_OK);
  const int64_t objects = fake().objects.load(), pinned = fake().pinned.load();
  ep_command_list* list = nullptr;
  ASSERT_EQ(begin(), EP_STATUS_OK);
  ASSERT_EQ(copy(to, from), EP_STATUS_OK);
  fake().fail_launch = CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
  EXPECT_NE(launch(division(), {to, from, from}), EP_STATUS_OK);
  EXPECT_EQ(end(&list), EP_STATUS_UNSUPPORTED);
  EXPECT_EQ(cuda().host.sentence(), "A recorded call has failed.");
  for (const auto& [result, wanted] : {std::pair{CUDA_ERROR_NOT_SUPPORTED, EP_STATUS_UNSUPPORTED},
                                       std::pair{CUDA_ERROR_OUT_OF_MEMORY, EP_STATUS_OUT_OF_DEVICE_MEMORY}}) {
    ASSERT_EQ(begin(), EP_STATUS_OK);
    ASSERT_EQ(copy(to, from), EP_STATUS_OK);
    fake().fail_graph = result;
    EXPECT_EQ(end(&list), wanted);
  }
  EXPECT_EQ(list, nullptr);
  EXPECT_EQ(fake().objects.load(), objects);
  EXPECT_EQ(fake().pinned.load(), pinned);
  ASSERT_EQ(copy(to, from), EP_STATUS_OK);
  EXPECT_EQ(get<int32_t>(to, kCount), std::vector<int32_t>(kCount, 12));
}

// The host copies within pinned memory, and a graph cannot repeat that.
TEST_F(CudaLists, ACopyWithinPinnedMemoryIsNotRecorded) {
  ep_memory *pinned = nullptr, *other = nullptr;
  ASSERT_EQ(cuda().ops.memory_allocate(cuda().device, 1, 4096, &pinned, nullptr), EP_STATUS_OK);
  ASSERT_EQ(cuda().ops.memory_allocate(cuda().device, 1, 4096, &other, nullptr), EP_STATUS_OK);
  ep_command_list* list = nullptr;
  ASSERT_EQ(begin(), EP_STATUS_OK);
  EXPECT_EQ(copy(pinned, other), EP_STATUS_UNSUPPORTED);
  EXPECT_EQ(end(&list), EP_STATUS_UNSUPPORTED);
  cuda().ops.memory_free(cuda().device, pinned);
  cuda().ops.memory_free(cuda().device, other);
}

}  // namespace
}  // namespace tenon::provider::cuda
