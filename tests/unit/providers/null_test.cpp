// The null provider, which computes nothing.
#include <gtest/gtest.h>

#include <cstring>

#include "tests/unit/providers/provider_fixture.h"

namespace tenon::provider {
namespace {

TEST(NullProvider, CopiesThroughItsMemory) {
  OpenProvider null("null");
  ep_memory* a = nullptr;
  ep_memory* b = nullptr;
  ASSERT_EQ(null.ops.memory_allocate(null.device, 0, 64, &a, nullptr), EP_STATUS_OK);
  ASSERT_EQ(null.ops.memory_allocate(null.device, 0, 64, &b, nullptr), EP_STATUS_OK);
  const int32_t sent[4] = {3, 1, 4, 1};
  int32_t received[4] = {};
  EXPECT_EQ(null.ops.upload(null.stream, {a, 16}, sent, sizeof sent, nullptr), EP_STATUS_OK);
  EXPECT_EQ(null.ops.copy(null.stream, {b, 8}, {a, 16}, sizeof sent, nullptr), EP_STATUS_OK);
  EXPECT_EQ(null.ops.download(null.stream, received, {b, 8}, sizeof sent, nullptr), EP_STATUS_OK);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(received[i], sent[i]);
  null.ops.memory_free(null.device, a);
  null.ops.memory_free(null.device, b);
}

TEST(NullProvider, ItsMemoryIsTheHostsAndItSaysSo) {
  OpenProvider null("null");
  ep_device_info info{};
  info.struct_size = sizeof info;
  info.struct_type = EP_STRUCT_DEVICE_INFO;
  ASSERT_EQ(null.plugin.device_info(null.plugin.plugin, 0, &info, nullptr), EP_STATUS_OK);
  ASSERT_EQ(info.pool_count, 1u);
  EXPECT_EQ(info.pools[0].flags, EP_POOL_FLAG_HOST_VISIBLE | EP_POOL_FLAG_COHERENT | EP_POOL_FLAG_HOST_CACHED);
  ep_memory* memory = nullptr;
  void* address = nullptr;
  ASSERT_EQ(null.ops.memory_allocate(null.device, 0, 64, &memory, nullptr), EP_STATUS_OK);
  ASSERT_EQ(null.ops.memory_map(null.device, memory, &address, nullptr), EP_STATUS_OK);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(address) % info.pools[0].minimum_alignment, 0u);
  const int32_t sent[4] = {2, 7, 1, 8};
  EXPECT_EQ(null.ops.upload(null.stream, {memory, 0}, sent, sizeof sent, nullptr), EP_STATUS_OK);
  EXPECT_EQ(std::memcmp(address, sent, sizeof sent), 0);
  null.ops.memory_free(null.device, memory);
}

TEST(NullProvider, EventsHaveHappenedOnceRecorded) {
  OpenProvider null("null");
  ep_event* event = nullptr;
  ASSERT_EQ(null.ops.event_create(null.device, &event, nullptr), EP_STATUS_OK);
  EXPECT_EQ(null.ops.event_query(event, nullptr), EP_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(null.ops.stream_wait_event(null.stream, event, nullptr), EP_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(null.ops.event_record(event, null.stream, nullptr), EP_STATUS_OK);
  EXPECT_EQ(null.ops.event_query(event, nullptr), EP_STATUS_OK);
  EXPECT_EQ(null.ops.event_host_wait(event, 0, nullptr), EP_STATUS_OK);
  null.ops.event_destroy(null.device, event);
}

TEST(NullProvider, RefusesEveryPrimitiveWithAReason) {
  OpenProvider null("null");
  const ep_primitive_desc desc = descriptor(EP_PRIMITIVE_fill, {dense(EP_ROLE_DST, EP_DTYPE_f32, {4})});
  ep_error* error = nullptr;
  ep_support_info info{};
  info.struct_size = sizeof info;
  EXPECT_EQ(null.ops.primitive_support(null.device, &desc, &info, &error), EP_STATUS_UNSUPPORTED);
  EXPECT_NE(null.host.sentence().find("fill"), std::string::npos) << null.host.sentence();
}

TEST(NullProvider, HoldsNothingAfterShutdown) {
  TestHost* host = nullptr;
  int64_t held = -1;
  {
    OpenProvider null("null");
    host = &null.host;
    EXPECT_GT(host->held(), 0);
    null.ops.stream_destroy(null.device, null.stream);
    null.stream = nullptr;
    null.ops.device_close(null.device);
    null.plugin.shutdown(null.plugin.plugin);
    held = host->held();
    null.plugin.shutdown = [](ep_plugin*) {};
    null.ops.device_close = [](ep_device*) {};
  }
  EXPECT_EQ(held, 0);
}

}  // namespace
}  // namespace tenon::provider
