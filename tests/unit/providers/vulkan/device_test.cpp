// The vulkan provider as a device: streams, events, batches, staging, faults, and failures of the driver.
#include <gtest/gtest.h>

#include <link.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>
#include <set>
#include <stdexcept>
#include <thread>

#include "tests/unit/providers/vulkan/fixture.h"

namespace tenon::testing {
namespace {

std::vector<int32_t> random_words(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<int32_t> words(count);
  for (int32_t& word : words) word = static_cast<int32_t>(random() | 1U);
  return words;
}

TEST(VulkanDevice, MovesBytesAtOddOffsets) {
  fresh_shim();
  Device device;
  ep_memory* a = device.allocate(4096);
  ep_memory* b = device.allocate(4096);
  const std::string sent = "seventeen bytes..";
  std::string received(sent.size(), '?');
  EXPECT_EQ(device.ops.upload(device.stream, {a, 13}, sent.data(), sent.size(), nullptr), EP_STATUS_OK);
  EXPECT_EQ(device.ops.copy(device.stream, {b, 101}, {a, 13}, sent.size(), nullptr), EP_STATUS_OK);
  EXPECT_EQ(device.ops.download(device.stream, received.data(), {b, 101}, sent.size(), nullptr), EP_STATUS_OK);
  EXPECT_EQ(device.ops.stream_synchronize(device.stream, nullptr), EP_STATUS_OK);
  EXPECT_EQ(received, sent);
}

// More bytes than are staged at once, and not a multiple of a staging block.
TEST(VulkanDevice, MovesMoreThanItStagesAtOnce) {
  fresh_shim();
  Device device;
  const size_t count = (size_t{90} << 20) / 4 + 3;
  ep_memory* memory = device.allocate(count * 4);
  const std::vector<int32_t> sent = random_words(count, 5);
  EXPECT_EQ(device.upload({memory, 0}, sent), EP_STATUS_OK);
  EXPECT_EQ(device.download({memory, 0}, count), sent);
  EXPECT_LE(device.plugin.host.reported_device_memory(), int64_t{256} << 20);
  device.ops.device_trim(device.handle);
  EXPECT_LE(device.plugin.host.reported_device_memory(), int64_t{1} << 20);
}

// The host fills memory of the pool for transfers itself, so it is not staged a second time.
TEST(VulkanDevice, CopiesFromThePoolForTransfersWithoutStaging) {
  fresh_shim();
  Device device;
  ep_device_info info{};
  info.struct_size = sizeof info;
  info.struct_type = EP_STRUCT_DEVICE_INFO;
  ASSERT_EQ(device.plugin.ops.device_info(device.plugin.ops.plugin, 0, &info, nullptr), EP_STATUS_OK);
  ASSERT_EQ(info.pool_count, 2u);
  constexpr uint64_t wanted = EP_POOL_FLAG_HOST_VISIBLE | EP_POOL_FLAG_COHERENT | EP_POOL_FLAG_STAGING;
  EXPECT_EQ(info.pools[1].flags & wanted, wanted);
  const size_t count = (size_t{4} << 20) / 4;
  const std::vector<int32_t> sent = random_words(count, 6);
  ep_memory *pinned = nullptr, *memory = device.allocate(count * 4);
  void* address = nullptr;
  ASSERT_EQ(device.ops.memory_allocate(device.handle, 1, count * 4, &pinned, nullptr), EP_STATUS_OK);
  ASSERT_EQ(device.ops.memory_map(device.handle, pinned, &address, nullptr), EP_STATUS_OK);
  std::memcpy(address, sent.data(), count * 4);
  const int64_t before = device.plugin.host.reported_device_memory();
  EXPECT_EQ(device.ops.copy(device.stream, {memory, 0}, {pinned, 0}, count * 4, nullptr), EP_STATUS_OK);
  EXPECT_EQ(device.ops.stream_synchronize(device.stream, nullptr), EP_STATUS_OK);
  EXPECT_EQ(device.plugin.host.reported_device_memory(), before);
  EXPECT_EQ(device.download({memory, 0}, count), sent);
  device.ops.memory_free(device.handle, pinned);
  ep_memory* none = nullptr;
  EXPECT_EQ(device.ops.memory_allocate(device.handle, 2, 64, &none, nullptr), EP_STATUS_INVALID_ARGUMENT);
}

TEST(VulkanDevice, SubmitsAThousandDependentOperationsInTwentyBatches) {
  ShimControl& shim = fresh_shim();
  Device device;
  ep_memory* memory = device.allocate(64);
  ep_primitive* add = device.binary(EP_BINARY_add, 4, true);
  device.upload({memory, 0}, {1, 2, 3, 4});
  shim.submissions = 0;
  for (int i = 0; i < 1000; ++i) {
    ASSERT_EQ(device.run(add, {memory, 0}, {memory, 0}, {}, 3), EP_STATUS_OK);
  }
  EXPECT_EQ(device.download({memory, 0}, 4), (std::vector<int32_t>{3001, 3002, 3003, 3004}));
  EXPECT_LE(shim.submissions, 20u);
  EXPECT_GE(shim.submissions, 1u);
}

TEST(VulkanDevice, StartsNothingBeforeItIsAskedTo) {
  ShimControl& shim = fresh_shim();
  Device device;
  ep_memory* memory = device.allocate(64);
  ep_primitive* add = device.binary(EP_BINARY_add, 4, true);
  Event event(device);
  device.upload({memory, 0}, {1, 2, 3, 4});
  device.run(add, {memory, 0}, {memory, 0}, {}, 1);
  EXPECT_EQ(device.ops.event_record(event.handle, device.stream, nullptr), EP_STATUS_OK);
  EXPECT_EQ(shim.submissions, 0u) << "recording an event must not flush";
  EXPECT_EQ(device.ops.stream_flush(device.stream, nullptr), EP_STATUS_OK);
  EXPECT_EQ(shim.submissions, 1u);
  EXPECT_EQ(device.ops.stream_flush(device.stream, nullptr), EP_STATUS_OK);
  EXPECT_EQ(shim.submissions, 1u) << "there was nothing to flush";
  EXPECT_EQ(device.ops.event_host_wait(event.handle, UINT64_MAX, nullptr), EP_STATUS_OK);
}

TEST(VulkanDevice, AQueryFlushesAndTheEventHappens) {
  ShimControl& shim = fresh_shim();
  Device device;
  ep_memory* memory = device.allocate(64);
  Event event(device);
  EXPECT_EQ(device.ops.event_query(event.handle, nullptr), EP_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(device.ops.event_host_wait(event.handle, 1, nullptr), EP_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(device.ops.stream_wait_event(device.stream, event.handle, nullptr), EP_STATUS_INVALID_ARGUMENT);
  int32_t received[4] = {};
  device.upload({memory, 0}, {5, 6, 7, 8});
  device.ops.download(device.stream, received, {memory, 0}, sizeof received, nullptr);
  device.ops.event_record(event.handle, device.stream, nullptr);
  ep_error* untouched = nullptr;
  ep_status status = EP_STATUS_BUSY;
  while ((status = device.ops.event_query(event.handle, &untouched)) == EP_STATUS_BUSY) std::this_thread::yield();
  EXPECT_EQ(status, EP_STATUS_OK);
  EXPECT_EQ(untouched, nullptr);
  EXPECT_EQ(shim.submissions, 1u);
  EXPECT_EQ(received[3], 8) << "a download is finished when its event is seen";
}

TEST(VulkanDevice, AnEventOnAnIdleStreamHasHappened) {
  fresh_shim();
  Device device;
  Event event(device);
  device.ops.event_record(event.handle, device.stream, nullptr);
  EXPECT_EQ(device.ops.event_query(event.handle, nullptr), EP_STATUS_OK);
}

// If the host has seen the second stream's event, it has also seen the work that the stream waited for: the first
// stream's download.
TEST(VulkanDevice, AnEventCoversWhatItsStreamWaitedFor) {
  fresh_shim();
  Device device;
  SecondStream other(device);
  ep_memory* memory = device.allocate(64);
  int32_t received[2] = {};
  Event first(device);
  Event second(device);
  device.upload({memory, 0}, {11, 12});
  device.ops.download(device.stream, received, {memory, 0}, sizeof received, nullptr);
  device.ops.event_record(first.handle, device.stream, nullptr);
  EXPECT_EQ(device.ops.stream_wait_event(other.handle, first.handle, nullptr), EP_STATUS_OK);
  device.ops.event_record(second.handle, other.handle, nullptr);
  EXPECT_EQ(device.ops.event_host_wait(second.handle, UINT64_MAX, nullptr), EP_STATUS_OK);
  EXPECT_EQ(received[0], 11);
  EXPECT_EQ(received[1], 12);
  device.ops.stream_synchronize(device.stream, nullptr);
}

TEST(VulkanDevice, StreamsThatWaitForEachOtherInTurnKeepOrder) {
  fresh_shim();
  Device device;
  SecondStream other(device);
  ep_memory* memory = device.allocate(64);
  ep_primitive* add = device.binary(EP_BINARY_add, 4, true);
  ep_primitive* mul = device.binary(EP_BINARY_mul, 4, true);
  Event here(device);
  Event there(device);
  device.upload({memory, 0}, {1, 2, 3, 4});
  std::vector<int32_t> expected = {1, 2, 3, 4};
  for (int i = 0; i < 50; ++i) {
    device.run(mul, {memory, 0}, {memory, 0}, {}, 3);
    device.ops.event_record(here.handle, device.stream, nullptr);
    device.ops.stream_wait_event(other.handle, here.handle, nullptr);
    device.run(add, {memory, 0}, {memory, 0}, {}, 7, 1, other.handle);
    device.ops.event_record(there.handle, other.handle, nullptr);
    device.ops.stream_wait_event(device.stream, there.handle, nullptr);
    for (int32_t& value : expected) {
      value = static_cast<int32_t>(static_cast<uint32_t>(value) * 3 + 7);
    }
  }
  EXPECT_EQ(device.download({memory, 0}, 4), expected);
  device.ops.stream_synchronize(other.handle, nullptr);
}

TEST(VulkanDevice, ThreadsRecordOnStreamsOfTheirOwn) {
  fresh_shim();
  Device device;
  ep_primitive* add = device.binary(EP_BINARY_add, 4, true);
  std::vector<ep_memory*> blocks;
  for (int i = 0; i < 3; ++i) blocks.push_back(device.allocate(64));
  std::vector<std::thread> threads;
  std::vector<std::vector<int32_t>> results(3, std::vector<int32_t>(4));
  for (size_t i = 0; i < 3; ++i) {
    threads.emplace_back([&, i] {
      SecondStream own(device);
      const auto start = static_cast<int32_t>(i);
      device.upload({blocks[i], 0}, {start, start, start, start}, own.handle);
      for (int step = 0; step < 300; ++step) device.run(add, {blocks[i], 0}, {blocks[i], 0}, {}, 2, 1, own.handle);
      device.ops.download(own.handle, results[i].data(), {blocks[i], 0}, 16, nullptr);
      device.ops.stream_synchronize(own.handle, nullptr);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(results[i], std::vector<int32_t>(4, static_cast<int32_t>(600 + i)));
}

TEST(VulkanDevice, DeliversFaultsInLaunchOrderWithTheirTags) {
  fresh_shim();
  Device device;
  ep_memory* memory = device.allocate(256);
  ep_primitive* div = device.binary(EP_BINARY_div, 4, false);
  device.upload({memory, 0}, {7, INT32_MIN, 9, 10});
  device.upload({memory, 16}, {2, -1, 0, 5});
  device.upload({memory, 32}, {1, 2, 0, 0});
  device.upload({memory, 48}, {1, 1, 1, 1});
  EXPECT_EQ(device.run(div, {memory, 64}, {memory, 0}, {memory, 16}, 0, 70), EP_STATUS_OK);
  EXPECT_EQ(device.run(div, {memory, 80}, {memory, 0}, {memory, 48}, 0, 71), EP_STATUS_OK);
  EXPECT_EQ(device.run(div, {memory, 96}, {memory, 0}, {memory, 32}, 0, 72), EP_STATUS_OK);
  EXPECT_EQ(device.download({memory, 64}, 4), (std::vector<int32_t>{3, INT32_MIN, 0, 2}));
  ep_fault fault{};
  ASSERT_EQ(device.ops.stream_take_fault(device.stream, &fault, nullptr), EP_STATUS_OK);
  EXPECT_EQ(fault.tag, 70u);
  EXPECT_EQ(fault.code, EP_FAULT_DIVISION_BY_ZERO);
  EXPECT_EQ(fault.operand, 2);
  EXPECT_EQ(fault.value, 0);
  ASSERT_EQ(device.ops.stream_take_fault(device.stream, &fault, nullptr), EP_STATUS_OK);
  EXPECT_EQ(fault.tag, 72u);
  EXPECT_EQ(fault.code, EP_FAULT_DIVISION_BY_ZERO);
  EXPECT_EQ(fault.value, 0);
  EXPECT_EQ(device.ops.stream_take_fault(device.stream, &fault, nullptr), EP_STATUS_NOT_FOUND);
  EXPECT_EQ(device.download({memory, 96}, 4), (std::vector<int32_t>{7, INT32_MIN / 2, 0, 0}));
}

TEST(VulkanDevice, SaysWhatTheDriverDoesNotGive) {
  fresh_shim();
  Device device;
  ep_memory* memory = nullptr;
  ep_error* error = nullptr;
  EXPECT_EQ(device.ops.memory_allocate(device.handle, 0, UINT64_C(1) << 60, &memory, &error),
            EP_STATUS_OUT_OF_DEVICE_MEMORY);
  EXPECT_EQ(memory, nullptr);
  EXPECT_NE(device.plugin.host.sentence().find("1152921504606846976"), std::string::npos);
}

TEST(VulkanDevice, AFailedAllocationLeavesEverythingAsItWas) {
  ShimControl& shim = fresh_shim();
  Device device;
  ep_memory* memory = nullptr;
  ep_error* error = nullptr;
  shim.allocations_until_full = 0;
  EXPECT_EQ(device.ops.memory_allocate(device.handle, 0, 4096, &memory, &error), EP_STATUS_OUT_OF_DEVICE_MEMORY);
  EXPECT_EQ(device.plugin.host.sentence(), "vkAllocateMemory answered VK_ERROR_OUT_OF_DEVICE_MEMORY (-2).");
  shim.allocations_until_full = 1;
  memory = device.allocate(4096);
  EXPECT_EQ(device.upload({memory, 0}, {1, 2}), EP_STATUS_OUT_OF_DEVICE_MEMORY) << "there is no room for staging";
  shim.allocations_until_full = -1;
  EXPECT_EQ(device.upload({memory, 0}, {3, 4}), EP_STATUS_OK);
  EXPECT_EQ(device.download({memory, 0}, 2), (std::vector<int32_t>{3, 4}));
}

TEST(VulkanDevice, ALostDeviceStaysLostAndComesDownCleanly) {
  ShimControl& shim = fresh_shim();
  {
    Device device;
    SecondStream other(device);
    ep_memory* memory = device.allocate(64);
    ep_primitive* add = device.binary(EP_BINARY_add, 4, true);
    Event event(device);
    device.upload({memory, 0}, {1, 2, 3, 4});
    EXPECT_EQ(device.ops.stream_synchronize(device.stream, nullptr), EP_STATUS_OK);
    shim.submissions_until_lost = 0;
    EXPECT_EQ(device.run(add, {memory, 0}, {memory, 0}, {}, 1), EP_STATUS_OK);
    device.ops.event_record(event.handle, device.stream, nullptr);
    ep_error* error = nullptr;
    EXPECT_EQ(device.ops.stream_flush(device.stream, &error), EP_STATUS_DEVICE_LOST);
    EXPECT_NE(device.plugin.host.sentence().find("is lost: vkQueueSubmit answered VK_ERROR_DEVICE_LOST"),
              std::string::npos)
        << device.plugin.host.sentence();
    EXPECT_EQ(device.ops.event_query(event.handle, &error), EP_STATUS_DEVICE_LOST);
    EXPECT_EQ(device.ops.event_host_wait(event.handle, UINT64_MAX, &error), EP_STATUS_DEVICE_LOST);
    EXPECT_EQ(device.ops.stream_synchronize(other.handle, &error), EP_STATUS_DEVICE_LOST);
    EXPECT_EQ(device.run(add, {memory, 0}, {memory, 0}, {}, 1, 1, other.handle), EP_STATUS_DEVICE_LOST);
    ep_memory* more = nullptr;
    EXPECT_EQ(device.ops.memory_allocate(device.handle, 0, 64, &more, &error), EP_STATUS_DEVICE_LOST);
  }
  EXPECT_EQ(shim.live_memory, 0u);
  fresh_shim();
  Device again;
  ep_memory* memory = again.allocate(64);
  again.upload({memory, 0}, {9});
  EXPECT_EQ(again.download({memory, 0}, 1), std::vector<int32_t>{9});
}

TEST(VulkanDevice, HoldsNothingAfterShutdown) {
  ShimControl& shim = fresh_shim();
  Plugin plugin;
  uint32_t count = 0;
  ASSERT_EQ(plugin.ops.device_count(plugin.ops.plugin, &count, nullptr), EP_STATUS_OK);
  {
    Device device;
    ep_memory* memory = device.allocate(64);
    device.upload({memory, 0}, {1});
    device.binary(EP_BINARY_add, 4, true);
    EXPECT_GT(device.plugin.host.held(), 0);
  }
  plugin.ops.shutdown(plugin.ops.plugin);
  plugin.ops.shutdown = nullptr;
  EXPECT_EQ(plugin.host.held(), 0);
  EXPECT_EQ(shim.live_memory, 0u);
}

TEST(VulkanDevice, WithoutNarrowStorageItRefusesNarrowTypesAndKeepsTheRest) {
  fresh_shim();
  Device device(Settings{{"features", "baseline"}});
  ep_memory* memory = device.allocate(64);
  device.upload({memory, 0}, {5, 6, 7, 8});
  device.run(device.binary(EP_BINARY_mul, 4, true), {memory, 16}, {memory, 0}, {}, -2);
  EXPECT_EQ(device.download({memory, 16}, 4), (std::vector<int32_t>{-10, -12, -14, -16}));
  ep_primitive_desc desc{};
  desc.kind = EP_PRIMITIVE_fill;
  desc.operand_count = 1;
  desc.operands[0] = {EP_ROLE_DST, EP_DTYPE_f16, 1, 0, 0, {4}, {1}};
  ep_support_info info{};
  info.struct_size = sizeof info;
  ep_error* error = nullptr;
  EXPECT_EQ(device.ops.primitive_support(device.handle, &desc, &info, &error), EP_STATUS_UNSUPPORTED);
  EXPECT_EQ(device.plugin.host.sentence(), "glsl: f16 needs storageBuffer8BitAccess and storageBuffer16BitAccess.");
}

TEST(VulkanDevice, ThreadsThatWantOnePipelineCompileItOnce) {
  ShimControl& shim = fresh_shim();
  Device device;
  const auto create = [&](int32_t op) {
    ep_primitive_desc desc = provider::descriptor(
        EP_PRIMITIVE_unary,
        {provider::dense(EP_ROLE_DST, EP_DTYPE_f32, {64}), provider::dense(EP_ROLE_SRC, EP_DTYPE_f32, {64})});
    desc.attributes.unary.op = op;
    ep_primitive_info info{};
    info.struct_size = sizeof info;
    info.struct_type = EP_STRUCT_PRIMITIVE_INFO;
    ep_primitive* primitive = nullptr;
    EXPECT_EQ(device.ops.primitive_create(device.handle, &desc, &primitive, &info, nullptr), EP_STATUS_OK);
    device.ops.primitive_destroy(device.handle, primitive);
  };
  shim.pipelines = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      for (int32_t op : {EP_UNARY_exp, EP_UNARY_log}) create((i & 1) != 0 ? op : EP_UNARY_exp + EP_UNARY_log - op);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(shim.pipelines, 2u);
  device.ops.device_trim(device.handle);
  create(EP_UNARY_exp);
  EXPECT_EQ(shim.pipelines, 3u);
}

TEST(VulkanDevice, ACompileThatFailsSaysSoAndIsTriedAgain) {
  ShimControl& shim = fresh_shim();
  Device device;
  ep_primitive_desc desc = provider::descriptor(EP_PRIMITIVE_unary, {provider::dense(EP_ROLE_DST, EP_DTYPE_f32, {64}),
                                                                     provider::dense(EP_ROLE_SRC, EP_DTYPE_f32, {64})});
  desc.attributes.unary.op = EP_UNARY_exp;
  ep_primitive_info info{};
  info.struct_size = sizeof info;
  info.struct_type = EP_STRUCT_PRIMITIVE_INFO;
  ep_primitive* primitive = nullptr;
  ep_error* error = nullptr;
  shim.pipelines_result = -1;  // VK_ERROR_OUT_OF_HOST_MEMORY
  EXPECT_EQ(device.ops.primitive_create(device.handle, &desc, &primitive, &info, &error), EP_STATUS_OUT_OF_HOST_MEMORY);
  const std::string sentence = device.plugin.host.sentence();
  EXPECT_NE(sentence.find(" cannot compile map1_f32"), std::string::npos) << sentence;
  EXPECT_TRUE(sentence.ends_with(": vkCreateComputePipelines answered VK_ERROR_OUT_OF_HOST_MEMORY (-1).")) << sentence;
  EXPECT_EQ(primitive, nullptr);
  shim.pipelines_result = 0;
  shim.pipelines = 0;
  EXPECT_EQ(device.ops.primitive_create(device.handle, &desc, &primitive, &info, &error), EP_STATUS_OK);
  EXPECT_EQ(shim.pipelines, 1u);
  device.ops.primitive_destroy(device.handle, primitive);
}

// Kernel drivers reset a device that is busy with one submission for several seconds.
TEST(VulkanDevice, FindsThePipelinesThatAnEarlierLifeHasMade) {
  std::map<std::string, std::string> kept;
  for (const uint32_t life : {1u, 2u, 3u}) {
    ShimControl& shim = fresh_shim();
    shim.cache_value = 1000 + life;
    Device device;
    EXPECT_EQ(shim.cache_found, 0u) << "the host of this life knows nothing yet";
    device.plugin.host.put_blobs(kept);
    ep_device_ops ops{};
    ops.struct_size = sizeof ops;
    ops.struct_type = EP_STRUCT_DEVICE_OPS;
    ep_device* second = nullptr;
    ASSERT_EQ(device.plugin.ops.device_open(device.plugin.ops.plugin, 0, &second, &ops, nullptr), EP_STATUS_OK);
    EXPECT_EQ(shim.cache_found, life == 1 ? 0u : 1000 + life - 1);
    ops.device_close(second);
    EXPECT_EQ(device.plugin.host.blobs(), kept) << "a device that made no pipeline keeps none";
    device.binary(EP_BINARY_add, 16, false);
    kept = device.plugin.host.blobs();
    ASSERT_EQ(kept.size(), 1u);
    EXPECT_NE(kept.begin()->first.find("driver "), std::string::npos) << "the key names the driver";
  }
}

TEST(VulkanDevice, AMatrixOfMuchWorkGoesInManySubmissions) {
  ShimControl& shim = fresh_shim();
  Device device(Settings{{"work", "1"}});
  constexpr int64_t m = 250;
  constexpr int64_t n = 190;
  constexpr int64_t k = 63;
  ep_primitive* matmul =
      device.create(provider::descriptor(EP_PRIMITIVE_matmul, {provider::dense(EP_ROLE_DST, EP_DTYPE_i32, {m, n}),
                                                               provider::dense(EP_ROLE_SRC, EP_DTYPE_i32, {m, k}),
                                                               provider::dense(EP_ROLE_SRC_B, EP_DTYPE_i32, {k, n})}));
  ep_memory* a = device.allocate(m * k * 4);
  ep_memory* b = device.allocate(k * n * 4);
  ep_memory* c = device.allocate(m * n * 4);
  const std::vector<int32_t> x = random_words(m * k, 23);
  const std::vector<int32_t> y = random_words(k * n, 24);
  device.upload({a, 0}, x);
  device.upload({b, 0}, y);
  shim.submissions = 0;
  EXPECT_EQ(device.launch(matmul, {{c, 0}, {a, 0}, {b, 0}}), EP_STATUS_OK);
  EXPECT_EQ(shim.submissions, 3u) << "12 tiles of 64 x 64, 4 at a time";
  std::vector<int32_t> expected(m * n);
  for (int64_t row = 0; row < m; ++row) {
    for (int64_t column = 0; column < n; ++column) {
      uint32_t sum = 0;
      for (int64_t i = 0; i < k; ++i) {
        sum += static_cast<uint32_t>(x[static_cast<size_t>(row * k + i)]) *
               static_cast<uint32_t>(y[static_cast<size_t>(i * n + column)]);
      }
      expected[static_cast<size_t>(row * n + column)] = static_cast<int32_t>(sum);
    }
  }
  EXPECT_EQ(device.download({c, 0}, m * n), expected);
}

// One launch has more matrices than one dispatch takes. Each dispatch is a submission of its own, and parameters of
// other launches lie in between.
TEST(VulkanDevice, MatricesOfOneLaunchMayGoInManySubmissions) {
  ShimControl& shim = fresh_shim();
  Device device(Settings{{"batch", "1"}, {"work", "1"}});
  constexpr int64_t batches = 2 * 85 + 5;
  const ep_operand_desc dst = provider::dense(EP_ROLE_DST, EP_DTYPE_i32, {batches, 1, 1});
  const ep_operand_desc src = provider::dense(EP_ROLE_SRC, EP_DTYPE_i32, {batches, 1, 2});
  const ep_operand_desc src_b = provider::dense(EP_ROLE_SRC_B, EP_DTYPE_i32, {batches, 2, 1});
  ep_primitive* matmul = device.create(provider::descriptor(EP_PRIMITIVE_matmul, {dst, src, src_b}));
  ep_memory* a = device.allocate(batches * 8);
  ep_memory* b = device.allocate(batches * 8);
  ep_memory* c = device.allocate(batches * 4);
  const std::vector<int32_t> x = random_words(batches * 2, 21);
  const std::vector<int32_t> y = random_words(batches * 2, 22);
  device.upload({a, 0}, x);
  device.upload({b, 0}, y);
  shim.submissions = 0;
  EXPECT_EQ(device.launch(matmul, {{c, 0}, {a, 0}, {b, 0}}), EP_STATUS_OK);
  EXPECT_EQ(shim.submissions, 3u);
  std::vector<int32_t> expected(batches);
  for (size_t i = 0; i < expected.size(); ++i) {
    const auto word = [](int32_t value) { return static_cast<uint32_t>(value); };
    expected[i] = static_cast<int32_t>(word(x[2 * i]) * word(y[2 * i]) + word(x[2 * i + 1]) * word(y[2 * i + 1]));
  }
  EXPECT_EQ(device.download({c, 0}, batches), expected);
}

// --- messages on a machine without Vulkan ---

std::string count_failure(Settings settings, std::string* remedy = nullptr) {
  Plugin plugin(std::move(settings));
  uint32_t count = 77;
  ep_error* error = nullptr;
  EXPECT_NE(plugin.ops.device_count(plugin.ops.plugin, &count, &error), EP_STATUS_OK);
  EXPECT_EQ(count, 77u);
  if (remedy != nullptr) *remedy = plugin.host.remedy();
  return plugin.host.sentence();
}

TEST(VulkanUnplugged, NamesTheLoaderThatIsMissing) {
  std::string remedy;
  const std::string sentence = count_failure({{"library", "libvulkan_absent.so.9"}}, &remedy);
  EXPECT_EQ(sentence.find("The Vulkan loader cannot be opened: libvulkan_absent.so.9: "), 0u) << sentence;
  EXPECT_NE(remedy.find("libvulkan1"), std::string::npos);
}

TEST(VulkanUnplugged, NamesALibraryThatIsNoLoader) {
  const std::string sentence = count_failure({{"library", "libc.so.6"}});
  EXPECT_NE(sentence.find("libc.so.6 has no symbol vkGetInstanceProcAddr"), std::string::npos) << sentence;
}

TEST(VulkanUnplugged, SaysThatNoDriverWorks) {
  fresh_shim().create_instance_result = -9;  // VK_ERROR_INCOMPATIBLE_DRIVER
  const std::string sentence = count_failure({});
  EXPECT_NE(sentence.find("found no driver that works (vkCreateInstance answered VK_ERROR_INCOMPATIBLE_DRIVER)"),
            std::string::npos)
      << sentence;
}

std::set<std::string> loaded_libraries() {
  std::set<std::string> paths;
  const auto note = [](dl_phdr_info* info, size_t, void* out) {
    static_cast<std::set<std::string>*>(out)->emplace(info->dlpi_name);
    return 0;
  };
  dl_iterate_phdr(note, &paths);
  return paths;
}

// A process can load NVIDIA's driver only a limited number of times.
TEST(VulkanUnplugged, ASecondLifeFindsTheDriversLoaded) {
  fresh_shim();
  const auto libraries_of_a_life = [] {
    const Plugin plugin;
    uint32_t count = 0;
    EXPECT_EQ(plugin.ops.device_count(plugin.ops.plugin, &count, nullptr), EP_STATUS_OK) << plugin.host.sentence();
    return loaded_libraries();
  };
  libraries_of_a_life();
  const std::set<std::string> between = loaded_libraries();
  EXPECT_EQ(libraries_of_a_life(), between);
}

TEST(VulkanUnplugged, NoDeviceIsAnAnswer) {
  fresh_shim().no_devices = 1;
  Plugin plugin;
  uint32_t count = 77;
  EXPECT_EQ(plugin.ops.device_count(plugin.ops.plugin, &count, nullptr), EP_STATUS_OK);
  EXPECT_EQ(count, 0u);
}

std::string unusable_reason() {
  Plugin plugin;
  ep_device_info info{};
  info.struct_size = sizeof info;
  info.struct_type = EP_STRUCT_DEVICE_INFO;
  EXPECT_EQ(plugin.ops.device_info(plugin.ops.plugin, 0, &info, nullptr), EP_STATUS_OK);
  ep_device* device = nullptr;
  ep_device_ops ops{};
  ops.struct_size = sizeof ops;
  ep_error* error = nullptr;
  EXPECT_EQ(plugin.ops.device_open(plugin.ops.plugin, 0, &device, &ops, &error), EP_STATUS_NOT_FOUND);
  EXPECT_EQ(plugin.host.sentence(), std::string(info.unusable_reason.data, info.unusable_reason.size));
  return plugin.host.sentence();
}

TEST(VulkanUnplugged, AnUnusableDeviceSaysWhy) {
  fresh_shim().old_driver = 1;
  EXPECT_NE(unusable_reason().find("cannot be used: its driver speaks Vulkan 1.1; 1.2 is needed."), std::string::npos);
  fresh_shim().no_addresses = 1;
  EXPECT_NE(unusable_reason().find("its driver does not offer bufferDeviceAddress."), std::string::npos);
}

TEST(VulkanUnplugged, RefusesSettingsItDoesNotKnow) {
  fresh_shim();
  EXPECT_EQ(count_failure({{"validation", "maybe"}}),
            "The setting validation of provider vulkan is 'maybe'; it may be 'on' or 'off'.");
  EXPECT_EQ(count_failure({{"batch", "0"}}),
            "The setting batch of provider vulkan is '0'; it must be a number of at least 1.");
}

}  // namespace
}  // namespace tenon::testing
