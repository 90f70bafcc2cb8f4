// Cases of the asynchronous skeleton that the conformance kit cannot cause: failing work, and more faults than are
// kept.
#include <gtest/gtest.h>

#include <atomic>
#include <cfenv>
#include <stdexcept>
#include <thread>
#include <vector>

#include "sdk/app/examples/async_provider/skeleton.h"
#include "tests/unit/ep_api/host.h"

namespace {

class Skeleton : public testing::Test {
 protected:
  void SetUp() override {
    plugin_.struct_size = sizeof plugin_;
    plugin_.struct_type = EP_STRUCT_PLUGIN_OPS;
    ASSERT_EQ(ep_plugin_query_v0(&host_.table, &plugin_, &error_), EP_STATUS_OK) << host_.sentence;
    ops_.struct_size = sizeof ops_;
    ops_.struct_type = EP_STRUCT_DEVICE_OPS;
    ASSERT_EQ(plugin_.device_open(plugin_.plugin, 0, &device_, &ops_, &error_), EP_STATUS_OK) << host_.sentence;
    stream_ = stream();
    ASSERT_EQ(ops_.event_create(device_, &event_, &error_), EP_STATUS_OK);
    ASSERT_EQ(ops_.memory_allocate(device_, 0, 64, &memory_, &error_), EP_STATUS_OK);
  }

  void TearDown() override {
    ops_.memory_free(device_, memory_);
    ops_.event_destroy(device_, event_);
    ops_.stream_destroy(device_, stream_);
    ops_.device_close(device_);
    plugin_.shutdown(plugin_.plugin);
    EXPECT_EQ(host_.held, 0) << "bytes still held by the plug-in";
  }

  ep_stream* stream() {
    ep_stream* made = nullptr;
    const ep_stream_desc desc{sizeof desc, EP_STRUCT_STREAM_DESC, nullptr, EP_STREAM_COMPUTE, 0, 0};
    EXPECT_EQ(ops_.stream_create(device_, &desc, &made, &error_), EP_STATUS_OK) << host_.sentence;
    return made;
  }

  static constexpr uint64_t for_ever = UINT64_MAX;
  tenon::unit::Host host_;
  ep_error* error_ = nullptr;
  ep_plugin_ops plugin_{};
  ep_device_ops ops_{};
  ep_device* device_ = nullptr;
  ep_stream* stream_ = nullptr;
  ep_event* event_ = nullptr;
  ep_memory* memory_ = nullptr;
};

TEST_F(Skeleton, WorkThatFailsIsDeviceLostForEveryWaitAndEverySubmission) {
  ep_stream* other = stream();
  stream_->submit([] { throw std::runtime_error("the bus is gone"); });
  EXPECT_EQ(ops_.stream_synchronize(stream_, &error_), EP_STATUS_DEVICE_LOST);
  EXPECT_EQ(host_.sentence, "Work on the device failed; the contents of its memory are unknown.");
  float value = 1;
  for (ep_stream* each : {stream_, other}) {
    EXPECT_EQ(ops_.upload(each, {memory_, 0}, &value, 4, nullptr), EP_STATUS_DEVICE_LOST);
    EXPECT_EQ(ops_.download(each, &value, {memory_, 0}, 4, nullptr), EP_STATUS_DEVICE_LOST);
    EXPECT_EQ(ops_.copy(each, {memory_, 0}, {memory_, 32}, 4, nullptr), EP_STATUS_DEVICE_LOST);
    EXPECT_EQ(ops_.event_record(event_, each, nullptr), EP_STATUS_DEVICE_LOST);
    EXPECT_EQ(ops_.stream_synchronize(each, nullptr), EP_STATUS_DEVICE_LOST);
  }
  EXPECT_EQ(value, 1);
  ops_.stream_destroy(device_, other);
}

TEST_F(Skeleton, AWaitForAnEventBehindFailedWorkEndsWithDeviceLost) {
  std::atomic<bool> go{false};
  stream_->submit([&] {
    while (!go) std::this_thread::yield();
    throw std::runtime_error("the bus is gone");
  });
  bool ran = false;
  stream_->submit([&] { ran = true; });
  ASSERT_EQ(ops_.event_record(event_, stream_, &error_), EP_STATUS_OK);
  EXPECT_EQ(ops_.event_query(event_, &error_), EP_STATUS_BUSY);
  EXPECT_EQ(ops_.event_host_wait(event_, 1000, &error_), EP_STATUS_TIMEOUT);
  EXPECT_EQ(error_, nullptr);
  go = true;
  EXPECT_EQ(ops_.event_host_wait(event_, for_ever, &error_), EP_STATUS_DEVICE_LOST);
  EXPECT_EQ(ops_.event_query(event_, &error_), EP_STATUS_DEVICE_LOST);
  EXPECT_EQ(ops_.stream_wait_event(stream_, event_, &error_), EP_STATUS_DEVICE_LOST);
  EXPECT_EQ(ops_.stream_synchronize(stream_, &error_), EP_STATUS_DEVICE_LOST);
  EXPECT_FALSE(ran) << "work behind failed work ran";
}

TEST_F(Skeleton, PastItsRoomTheLastFaultIsMarkedAndTheRestDropped) {
  constexpr uint64_t met = 300, kept = 256;
  stream_->submit([&] {
    for (uint64_t tag = 1; tag <= met; ++tag) stream_->report({tag, EP_FAULT_INDEX_OUT_OF_RANGE, 2, 9, 4, 0});
  });
  ASSERT_EQ(ops_.stream_synchronize(stream_, &error_), EP_STATUS_OK);
  ep_fault fault{};
  for (uint64_t tag = 1; tag <= kept; ++tag) {
    ASSERT_EQ(ops_.stream_take_fault(stream_, &fault, &error_), EP_STATUS_OK);
    EXPECT_EQ(fault.tag, tag);
    EXPECT_EQ(fault.flags, tag == kept ? EP_FAULT_FLAG_OVERFLOW : 0u) << tag;
  }
  EXPECT_EQ(ops_.stream_take_fault(stream_, &fault, &error_), EP_STATUS_NOT_FOUND);
  EXPECT_EQ(error_, nullptr);
}

// Both streams are blocked, so the wait runs after the event was recorded again behind work that is blocked longer.
TEST_F(Skeleton, AStreamWaitsForThePointThatTheEventHeldAtTheCall) {
  std::atomic<int> stage{0};
  const auto hold_until = [&](int wanted) {
    return [&stage, wanted] {
      while (stage < wanted) std::this_thread::yield();
    };
  };
  ep_stream* other = stream();
  ep_event* done = nullptr;
  ASSERT_EQ(ops_.event_create(device_, &done, &error_), EP_STATUS_OK);
  other->submit(hold_until(1));
  stream_->submit(hold_until(1));
  bool first = false, seen = false;
  stream_->submit([&] { first = true; });
  ASSERT_EQ(ops_.event_record(event_, stream_, &error_), EP_STATUS_OK);
  ASSERT_EQ(ops_.stream_wait_event(other, event_, &error_), EP_STATUS_OK);
  other->submit([&] { seen = first; });
  ASSERT_EQ(ops_.event_record(done, other, &error_), EP_STATUS_OK);
  stream_->submit(hold_until(2));
  ASSERT_EQ(ops_.event_record(event_, stream_, &error_), EP_STATUS_OK);
  stage = 1;
  EXPECT_EQ(ops_.event_host_wait(done, 10'000'000'000, &error_), EP_STATUS_OK) << "it waited for the later point";
  EXPECT_EQ(ops_.event_query(event_, &error_), EP_STATUS_BUSY);
  stage = 2;
  for (ep_stream* each : {stream_, other}) EXPECT_EQ(ops_.stream_synchronize(each, &error_), EP_STATUS_OK);
  EXPECT_TRUE(seen) << "it did not wait";
  ops_.event_destroy(device_, done);
  ops_.stream_destroy(device_, other);
}

TEST_F(Skeleton, AWorkerRoundsToNearestWhateverTheThreadThatStartedItDoes) {
  const ep_stream_desc desc{sizeof desc, EP_STRUCT_STREAM_DESC, nullptr, EP_STREAM_COPY, 1, 0};
  const int before = std::fegetround();
  std::fesetround(FE_UPWARD);
  ep_stream started(device_, desc);
  int rounding = FE_DOWNWARD;
  started.submit([&] { rounding = std::fegetround(); });
  EXPECT_EQ(ops_.stream_synchronize(&started, &error_), EP_STATUS_OK);
  EXPECT_EQ(std::fegetround(), FE_UPWARD);
  std::fesetround(before);
  EXPECT_EQ(rounding, FE_TONEAREST);
}

// A chain of many streams: each adds its number to the sum after the stream before it, ordered only by events.
TEST_F(Skeleton, EventsOrderManyStreamsAndOutliveThem) {
  std::vector<ep_stream*> streams;
  for (int i = 0; i < 8; ++i) streams.push_back(stream());
  int sum = 0;
  constexpr int rounds = 200;
  ASSERT_EQ(ops_.event_record(event_, stream_, &error_), EP_STATUS_OK);
  for (int round = 0; round < rounds; ++round) {
    for (ep_stream* each : streams) {
      ASSERT_EQ(ops_.stream_wait_event(each, event_, &error_), EP_STATUS_OK);
      each->submit([&] { ++sum; });
      ASSERT_EQ(ops_.event_record(event_, each, &error_), EP_STATUS_OK);
    }
  }
  ASSERT_EQ(ops_.event_host_wait(event_, for_ever, &error_), EP_STATUS_OK);
  EXPECT_EQ(sum, rounds * 8);
  for (ep_stream* each : streams) ops_.stream_destroy(device_, each);
  EXPECT_EQ(ops_.event_query(event_, &error_), EP_STATUS_OK);
  EXPECT_EQ(ops_.stream_wait_event(stream_, event_, &error_), EP_STATUS_OK);
  EXPECT_EQ(ops_.stream_synchronize(stream_, &error_), EP_STATUS_OK);
}

}  // namespace
