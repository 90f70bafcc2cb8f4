// Devices as the fake driver describes them, memory, and leaks.
#include <cstring>
#include <thread>

#include "tests/unit/providers/cuda/fixture.h"

namespace tenon::provider::cuda {
namespace {

ep_device_info info_of(OpenProvider& provider, uint32_t index) {
  ep_device_info info{};
  info.struct_size = sizeof info;
  info.struct_type = EP_STRUCT_DEVICE_INFO;
  EXPECT_EQ(provider.plugin.device_info(provider.plugin.plugin, index, &info, nullptr), EP_STATUS_OK);
  return info;
}

std::string text(ep_string value) { return {value.data, static_cast<size_t>(value.size)}; }

TEST_F(FakeCuda, DescribesEachDevice) {
  uint32_t count = 0;
  ASSERT_EQ(cuda().plugin.device_count(cuda().plugin.plugin, &count, nullptr), EP_STATUS_OK);
  EXPECT_EQ(count, 2U);
  const ep_device_info info = info_of(cuda(), 1);
  EXPECT_EQ(text(info.name), "Fake GPU 1");
  EXPECT_EQ(text(info.unusable_reason), "");
  EXPECT_NE(text(info.fingerprint).find("sm_90, driver 13.0"), std::string::npos) << text(info.fingerprint);
  EXPECT_EQ(info.device_class, EP_DEVICE_CLASS_DISCRETE);
  EXPECT_EQ(info.flags & EP_DEVICE_FLAG_SYNCHRONOUS, 0U);
  EXPECT_EQ(info.uuid[0], 16);
  EXPECT_EQ(info.uuid[15], 31);
  EXPECT_EQ(info.pci[1], 0x82);
  EXPECT_EQ(info.threads, 4U * 2048U);
  EXPECT_EQ(info.pools[0].flags, EP_POOL_FLAG_DEVICE_LOCAL);
  EXPECT_EQ(info.pools[0].size, fake().memory.load());
  EXPECT_EQ(info.pools[0].minimum_alignment, 256U);
  EXPECT_NE(info.pools[1].flags & EP_POOL_FLAG_HOST_VISIBLE, 0U);
}

TEST_F(FakeCuda, RefusesADeviceThatIsNotThere) {
  ep_device* device = nullptr;
  ep_device_ops ops{};
  ops.struct_size = sizeof ops;
  ops.struct_type = EP_STRUCT_DEVICE_OPS;
  ep_error* error = nullptr;
  EXPECT_EQ(cuda().plugin.device_open(cuda().plugin.plugin, 7, &device, &ops, &error), EP_STATUS_NOT_FOUND);
  EXPECT_EQ(cuda().host.sentence(), "cuda has 2 devices; there is no device 7.");
  EXPECT_EQ(device, nullptr);
}

// Blocks of both allocators are aligned and can be freed.
TEST_F(FakeCuda, AllocatesFromEitherAllocator) {
  EXPECT_NE(block(1000), nullptr);
  EXPECT_EQ(fake().allocated.load(), 1000);
  for (const bool there : {false, true}) {
    close();
    fake().pools = there;
    fake().pools_work = false;
    provider_ = std::make_unique<OpenProvider>("cuda");
    ep_memory* memory = block(3000);
    uint64_t address = 0;
    ASSERT_EQ(cuda().ops.memory_native_handle(cuda().device, memory, &address, nullptr), EP_STATUS_OK);
    EXPECT_EQ(address % 256, 0U);
  }
}

TEST_F(FakeCuda, SaysWhatIsFreeWhenMemoryIsOut) {
  ep_memory* memory = nullptr;
  ep_error* error = nullptr;
  EXPECT_EQ(cuda().ops.memory_allocate(cuda().device, 0, uint64_t{1} << 40, &memory, &error),
            EP_STATUS_OUT_OF_DEVICE_MEMORY);
  EXPECT_EQ(cuda().host.sentence(), "Fake GPU 0 has no block of 1099511627776 bytes: 268435456 of 268435456 are free.");
  EXPECT_EQ(cuda().ops.memory_allocate(cuda().device, 0, UINT64_MAX, &memory, &error), EP_STATUS_OUT_OF_DEVICE_MEMORY);
  EXPECT_EQ(cuda().ops.memory_allocate(cuda().device, 2, 16, &memory, &error), EP_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(memory, nullptr);
}

// Memory that was just freed is available, even if the driver has not processed the free yet.
TEST_F(FakeCuda, AllocatesWhatWasJustFreed) {
  fake().delay_us = 3000;
  fake().memory = 1 << 20;
  const uint64_t most = fake().memory.load() * 3 / 4;
  for (int round = 0; round < 20; ++round) {
    ep_memory* memory = nullptr;
    ASSERT_EQ(cuda().ops.memory_allocate(cuda().device, 0, most, &memory, nullptr), EP_STATUS_OK) << round;
    cuda().ops.memory_free(cuda().device, memory);
  }
  cuda().ops.device_trim(cuda().device);
  EXPECT_EQ(fake().allocated.load(), 0);
}

TEST_F(FakeCuda, MapsPinnedMemoryAlone) {
  ep_memory* pinned = nullptr;
  ASSERT_EQ(cuda().ops.memory_allocate(cuda().device, 1, 64, &pinned, nullptr), EP_STATUS_OK);
  void* pointer = nullptr;
  ASSERT_EQ(cuda().ops.memory_map(cuda().device, pinned, &pointer, nullptr), EP_STATUS_OK);
  const uint32_t sent[4] = {3, 1, 4, 1};
  std::memcpy(pointer, sent, sizeof sent);
  ep_memory* memory = block(64);
  EXPECT_EQ(cuda().ops.copy(cuda().stream, {memory, 16}, {pinned, 0}, sizeof sent, nullptr), EP_STATUS_OK);
  EXPECT_EQ(get<uint32_t>(memory, 8)[4], 3U);
  ep_error* error = nullptr;
  EXPECT_EQ(cuda().ops.memory_map(cuda().device, memory, &pointer, &error), EP_STATUS_UNSUPPORTED);
  cuda().ops.memory_free(cuda().device, pinned);
}

TEST_F(FakeCuda, AcceptsNullWhereThereIsNothingToFree) {
  cuda().ops.memory_free(cuda().device, nullptr);
  cuda().ops.event_destroy(cuda().device, nullptr);
  cuda().ops.stream_destroy(cuda().device, nullptr);
  cuda().ops.primitive_destroy(cuda().device, nullptr);
  cuda().ops.device_close(nullptr);
}

// After a call a thread has the same context as before: here, none.
TEST_F(FakeCuda, LeavesNoContextBehind) {
  std::thread other([this] {
    ep_memory* memory = block(256);
    ep_event* one = event();
    EXPECT_EQ(contexts_of_this_thread(), 0U);
    EXPECT_EQ(cuda().ops.event_record(one, cuda().stream, nullptr), EP_STATUS_OK);
    wait(one);
    ep_error* error = nullptr;
    ep_memory* none = nullptr;
    cuda().ops.memory_allocate(cuda().device, 0, UINT64_MAX, &none, &error);
    const ep_primitive_desc fill = descriptor(EP_PRIMITIVE_fill, {dense(EP_ROLE_DST, EP_DTYPE_f32, {64})});
    EXPECT_EQ(launch(fill, {memory}, {{EP_DTYPE_f32, 0, {.f64 = 1.5}}}), EP_STATUS_OK);
    EXPECT_EQ(contexts_of_this_thread(), 0U);
  });
  other.join();
}

TEST_F(FakeCuda, StaysLostOnceLost) {
  ep_memory* memory = block(64);
  ep_event* one = event();
  ASSERT_EQ(cuda().ops.event_record(one, cuda().stream, nullptr), EP_STATUS_OK);
  fake().lost = CUDA_ERROR_ILLEGAL_ADDRESS;
  ep_error* error = nullptr;
  EXPECT_EQ(cuda().ops.copy(cuda().stream, {memory, 0}, {memory, 32}, 16, &error), EP_STATUS_DEVICE_LOST);
  EXPECT_EQ(
      cuda().host.sentence(),
      "Fake GPU 0 was lost while copying: CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access was encountered).");
  fake().lost = 0;
  EXPECT_EQ(cuda().ops.event_query(one, &error), EP_STATUS_DEVICE_LOST);
  EXPECT_EQ(cuda().ops.event_host_wait(one, 1000, &error), EP_STATUS_DEVICE_LOST);
  EXPECT_EQ(cuda().ops.stream_synchronize(cuda().stream, &error), EP_STATUS_DEVICE_LOST);
  ep_memory* none = nullptr;
  EXPECT_EQ(cuda().ops.memory_allocate(cuda().device, 0, 16, &none, &error), EP_STATUS_DEVICE_LOST);
  EXPECT_EQ(contexts_of_this_thread(), 0U);
}

// These error numbers have no name in the oldest headers.
TEST_F(FakeCuda, ErrorsOfNewerDriversLoseTheDeviceToo) {
  for (const int contained : {226, 721}) {
    close();
    provider_ = std::make_unique<OpenProvider>("cuda");
    fake().lost = contained;
    EXPECT_EQ(cuda().ops.stream_synchronize(cuda().stream, nullptr), EP_STATUS_DEVICE_LOST) << contained;
    fake().lost = 0;
    EXPECT_EQ(cuda().ops.stream_synchronize(cuda().stream, nullptr), EP_STATUS_DEVICE_LOST) << "it stays lost";
  }
}

TEST_F(FakeCuda, SaysThatCudaDoesNotSurviveAFork) {
  fake().lost = CUDA_ERROR_NOT_INITIALIZED;
  ep_error* error = nullptr;
  EXPECT_EQ(cuda().ops.stream_synchronize(cuda().stream, &error), EP_STATUS_DEVICE_LOST);
  EXPECT_EQ(cuda().host.remedy(), "CUDA does not survive a fork: open the device in the process that uses it.");
  fake().lost = 0;
}

// When a program exits, the driver may end before us. Then there is nothing to wait for, and nothing can be submitted.
TEST_F(FakeCuda, WaitsForNothingOfADriverThatHasEnded) {
  ep_memory* memory = block(64);
  ep_event* one = event();
  ASSERT_EQ(cuda().ops.event_record(one, cuda().stream, nullptr), EP_STATUS_OK);
  fake().lost = CUDA_ERROR_DEINITIALIZED;
  ep_error* error = nullptr;
  EXPECT_EQ(cuda().ops.event_query(one, &error), EP_STATUS_OK);
  EXPECT_EQ(cuda().ops.event_host_wait(one, UINT64_MAX, &error), EP_STATUS_OK);
  EXPECT_EQ(cuda().ops.stream_synchronize(cuda().stream, &error), EP_STATUS_OK);
  EXPECT_EQ(cuda().ops.copy(cuda().stream, {memory, 0}, {memory, 32}, 16, &error), EP_STATUS_DEVICE_LOST);
  fake().lost = 0;
}

// If kernels cannot be loaded because memory is exhausted or the device is lost, the provider must not choose another
// implementation.
TEST_F(FakeCuda, KernelsThatCannotBeLoadedSayWhy) {
  ep_primitive_desc desc =
      descriptor(EP_PRIMITIVE_unary, {dense(EP_ROLE_DST, EP_DTYPE_f32, {8}), dense(EP_ROLE_SRC, EP_DTYPE_f32, {8})});
  desc.attributes.unary.op = EP_UNARY_relu;
  fake().fail_module = CUDA_ERROR_OUT_OF_MEMORY;
  EXPECT_EQ(launch(desc, {nullptr, nullptr}), EP_STATUS_OUT_OF_DEVICE_MEMORY);
  EXPECT_EQ(cuda().host.sentence(), "kernel: unary_relu_f32 of unary cannot be loaded: CUDA_ERROR_OUT_OF_MEMORY.");
  fake().fail_module = CUDA_ERROR_NO_BINARY_FOR_GPU;
  EXPECT_EQ(launch(desc, {nullptr, nullptr}), EP_STATUS_UNSUPPORTED);
  ep_memory* memory = block(32);
  EXPECT_EQ(launch(desc, {memory, memory}), EP_STATUS_OK);
  desc.attributes.unary.op = EP_UNARY_exp;
  fake().lost = CUDA_ERROR_ILLEGAL_ADDRESS;
  EXPECT_EQ(launch(desc, {memory, memory}), EP_STATUS_DEVICE_LOST);
  fake().lost = 0;
  EXPECT_EQ(launch(desc, {memory, memory}), EP_STATUS_DEVICE_LOST);
}

TEST_F(FakeCuda, HoldsNothingOfTheHostAfterShutdown) {
  TestHost& host = cuda().host;
  OpenProvider& one = cuda();
  one.ops.stream_destroy(one.device, one.stream);
  one.ops.device_close(one.device);
  one.plugin.shutdown(one.plugin.plugin);
  EXPECT_EQ(host.held(), 0);
  one.ops.stream_destroy = [](ep_device*, ep_stream*) {};
  one.ops.stream_synchronize = [](ep_stream*, ep_error**) -> ep_status { return EP_STATUS_OK; };
  one.ops.device_close = [](ep_device*) {};
  one.plugin.shutdown = [](ep_plugin*) {};
}

}  // namespace
}  // namespace tenon::provider::cuda
