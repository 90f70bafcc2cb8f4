// Order without data dependences, the errors of all devices, and transfers in both directions.
#include <atomic>

#include "core/vm/engine.h"
#include "tests/unit/vm/machines.h"

namespace tenon::testing {
namespace {

using std::chrono::milliseconds;

class Orders : public Machines {
 protected:
  // True if stream `index` of device 0 has launched everything that was submitted to it.
  bool launched_all(uint16_t index) {
    vm::DeviceQueue& queue = *machine.device(0)->queue;
    std::this_thread::sleep_for(milliseconds(20));
    return queue.stream(index).launched.load() == queue.stream(index).submitted.load();
  }
};

TEST_F(Orders, AStreamWaitsForAnotherStream) {
  StorageHandle a = filled(0, 3);
  StorageHandle b = std::move(machine.allocate(0, kWords)).value();
  StorageHandle c = std::move(machine.allocate(0, kWords)).value();
  machine.settle();
  std::thread release = held_for(milliseconds(60));
  ASSERT_TRUE(mix(b.get(), a.get(), a.get(), 0).ok());
  const uint64_t before = fakes::async_control().device_waits;
  ASSERT_TRUE(mix(c.get(), a.get(), a.get(), 2).ok());
  EXPECT_TRUE(launched_all(2));
  EXPECT_EQ(fakes::async_control().device_waits, before) << "the data asks for no wait";
  ASSERT_TRUE(vm::wait_stream(machine.device(0), 2, machine.device(0), 0).ok());
  EXPECT_TRUE(launched_all(2)) << "the device waits, not the host";
  EXPECT_EQ(fakes::async_control().device_waits, before + 1);
  release.join();
  EXPECT_EQ(machine.download(c.get()).value()[0], 97u);
}

TEST_F(Orders, AStreamWaitsForAStreamOfAnotherDevice) {
  StorageHandle a = filled(0, 3);
  StorageHandle b = filled(1, 4);
  machine.settle();
  std::thread release = held_for(milliseconds(60));
  ASSERT_TRUE(machine.mix(1, 0, {b.get(), 0}, {b.get(), 0}, {b.get(), 0}, kWords, 1, fakes::kMixRuns, false).ok());
  ASSERT_TRUE(vm::wait_stream(machine.device(0), 2, machine.device(1), 0).ok());
  ASSERT_TRUE(mix(a.get(), a.get(), a.get(), 2).ok());
  EXPECT_FALSE(launched_all(2)) << "the host waits before it launches";
  release.join();
  EXPECT_EQ(machine.download(a.get()).value()[0], 97u);
  EXPECT_EQ(vm::wait_stream(machine.device(0), 63, machine.device(1), 0).code(), Code::invalid_argument);
  EXPECT_EQ(vm::wait_stream(machine.device(0), 0, machine.device(1), 63).code(), Code::invalid_argument);
}

// A function on the host observes the order: its stream waits for it.
TEST_F(Orders, ABarrierIsBetweenAllStreams) {
  StorageHandle a = filled(0, 3);
  StorageHandle b = std::move(machine.allocate(0, kWords)).value();
  AsyncMachine& mapped = AsyncMachine::mapped();
  StorageHandle c = std::move(mapped.allocate(0, kWords)).value();
  StorageHandle d = std::move(mapped.allocate(0, kWords)).value();
  ASSERT_TRUE(mapped.upload(c.get(), 0, std::vector<uint32_t>(kWords, 3)).ok());
  mapped.settle();
  for (const bool with_barrier : {false, true}) {
    std::atomic<bool> ran{false};
    std::thread release = held_for(milliseconds(80));
    ASSERT_TRUE(mapped.mix(0, 0, {d.get(), 0}, {c.get(), 0}, {c.get(), 0}, kWords, 1, fakes::kMixRuns, true).ok());
    if (with_barrier) {
      ASSERT_TRUE(vm::barrier(mapped.device(0)).ok());
    }
    ASSERT_TRUE(mapped.access({c.get(), 0}, kWords, true, false, [&](uint32_t*) { ran = true; }).ok());
    std::this_thread::sleep_for(milliseconds(40));
    EXPECT_EQ(ran, !with_barrier);
    release.join();
    mapped.settle();
    EXPECT_TRUE(ran);
  }
}

TEST_F(Orders, SynchronizeOfAllDevicesTellsTheErrorOfTheEarliestCall) {
  StorageHandle a = filled(0, 3);
  StorageHandle b = filled(1, 4);
  machine.settle();
  ASSERT_TRUE(machine.mix(1, 0, {b.get(), 0}, {b.get(), 0}, {b.get(), 0}, kWords, 1, fakes::kMixFaults, false).ok());
  ASSERT_TRUE(mix(a.get(), a.get(), a.get(), 0, fakes::kMixRefused).ok());
  EXPECT_EQ(vm::synchronize_all().code(), Code::invalid_argument);
  EXPECT_EQ(vm::synchronize_all().code(), Code::internal);
  EXPECT_TRUE(vm::synchronize_all().ok());
}

TEST_F(Orders, ADownloadDoesNotStandBehindUploads) {
  StorageHandle a = filled(0, 3);
  StorageHandle b = filled(0, 4);
  machine.settle();
  vm::DeviceQueue& queue = *machine.device(0)->queue;
  std::thread release = held_for(milliseconds(10));
  ASSERT_TRUE(machine.upload(b.get(), 0, std::vector<uint32_t>(kWords, 5)).ok());
  EXPECT_NE(&queue.download_stream(), &queue.upload_stream());
  release.join();
  machine.settle();
  EXPECT_EQ(machine.download(a.get()).value()[0], 3u);
  EXPECT_EQ(machine.download(b.get()).value()[0], 5u);
}

TEST_F(Orders, ALargeUploadReturnsBeforeItIsDoneAndItsSourceMayBeUsedAgain) {
  for (AsyncMachine* on : {&machine, &AsyncMachine::mapped()}) {
    constexpr uint64_t words = 60'000;
    StorageHandle a = std::move(on->allocate(0, words)).value();
    machine.settle();
    std::vector<uint32_t> source(words);
    for (uint64_t i = 0; i < words; ++i) source[i] = static_cast<uint32_t>(i * 2654435761u);
    const std::vector<uint32_t> wanted = source;
    fakes::async_control().hold = true;
    std::thread last_resort([] {
      for (int i = 0; i < 2000 && fakes::async_control().hold; ++i) std::this_thread::sleep_for(milliseconds(1));
      fakes::async_control().hold = false;
    });
    ASSERT_TRUE(on->upload(a.get(), 0, source).ok());
    EXPECT_TRUE(fakes::async_control().hold) << "the upload waited for the device";
    std::fill(source.begin(), source.end(), 0xdead);
    fakes::async_control().hold = false;
    last_resort.join();
    EXPECT_EQ(on->download(a.get()).value(), wanted);
  }
}

TEST_F(Orders, UploadsInFlightHoldABoundedNumberOfBytes) {
  constexpr uint64_t words = 128 * 1024;  // half a MiB
  constexpr int bound = static_cast<int>(vm::InFlight::kMost / (words * 4));
  StorageHandle a = std::move(machine.allocate(0, words)).value();
  const std::vector<uint32_t> source(words, 7);
  machine.settle();
  fakes::async_control().hold = true;
  std::atomic<int> uploads{0};
  std::thread uploader([&] {
    for (int i = 0; i < bound + 8; ++i, ++uploads) EXPECT_TRUE(machine.upload(a.get(), 0, source).ok());
  });
  for (int i = 0; i < 5000 && uploads < bound; ++i) std::this_thread::sleep_for(milliseconds(1));
  std::this_thread::sleep_for(milliseconds(50));
  EXPECT_EQ(uploads, bound);
  fakes::async_control().hold = false;
  uploader.join();
  EXPECT_EQ(machine.download(a.get()).value()[words - 1], 7u);
}

TEST_F(Orders, PinnedMemoryIsUsedAgainAndGivenBack) {
  AsyncMachine& mapped = AsyncMachine::mapped();
  vm::StagingPool& pool = mapped.device(0)->queue->staging;
  mapped.settle();
  pool.trim();
  EXPECT_EQ(pool.held(), 0u);
  StorageHandle a = std::move(mapped.allocate(0, 40'000)).value();
  for (uint32_t i = 0; i < 20; ++i) {
    ASSERT_TRUE(mapped.upload(a.get(), 0, std::vector<uint32_t>(40'000, i)).ok());
    mapped.settle();
    EXPECT_EQ(pool.held(), uint64_t{256} << 10) << "one block of the next power of two";
  }
  EXPECT_EQ(mapped.download(a.get()).value()[39'999], 19u);
  vm::trim_staging(mapped.device(0));
  EXPECT_EQ(pool.held(), 0u);
}

// If the pinned pool has no memory left, plain memory takes its place.
TEST_F(Orders, AnUploadWorksWithoutPinnedMemory) {
  AsyncMachine& mapped = AsyncMachine::mapped();
  mapped.settle();
  mapped.device(0)->queue->staging.trim();
  StorageHandle a = std::move(mapped.allocate(0, 40'000)).value();
  fakes::async_control().fail_allocation = 0;
  ASSERT_TRUE(mapped.upload(a.get(), 0, std::vector<uint32_t>(40'000, 5)).ok());
  EXPECT_EQ(fakes::async_control().fail_allocation, -1) << "it was asked for";
  EXPECT_EQ(mapped.download(a.get()).value()[39'999], 5u);
  EXPECT_EQ(mapped.device(0)->queue->staging.held(), 0u);
  mapped.device(0)->queue->staging.trim();
}

}  // namespace
}  // namespace tenon::testing
