// The promises of the machine, one at a time, on the asynchronous fake.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <thread>

#include "core/vm/engine.h"
#include "loader/log/log.h"
#include "tests/unit/vm/host_device.h"
#include "tests/unit/vm/machines.h"

namespace tenon::testing {
namespace {

TEST_F(Machines, ReadingALateFaultThrowsItsInstructionAndDevice) {
  StorageHandle a = filled(0, 3);
  StorageHandle b = filled(0, 4);
  ASSERT_TRUE(mix(b.get(), a.get(), a.get(), 0, fakes::kMixFaults).ok());
  const auto words = machine.download(b.get());
  ASSERT_FALSE(words.ok());
  EXPECT_EQ(words.status().code(), Code::invalid_argument);
  EXPECT_NE(words.status().message().find("mix: index 77 is out of range for an axis of length 7"), std::string::npos)
      << words.status().message();
  EXPECT_NE(words.status().message().find("on async:0"), std::string::npos) << words.status().message();
  EXPECT_TRUE(vm::synchronize(machine.device(0)).ok()) << "it was reported by the read";
}

TEST_F(Machines, SynchronizeReturnsTheFirstUnreportedErrorOnce) {
  StorageHandle a = filled(0, 3);
  StorageHandle b = filled(0, 4);
  ASSERT_TRUE(mix(b.get(), a.get(), a.get(), 0, fakes::kMixRefused).ok());
  ASSERT_TRUE(mix(a.get(), b.get(), b.get(), 2).ok()) << "reading poison in an instruction is not an error of the call";
  const Status first = vm::synchronize(machine.device(0));
  EXPECT_EQ(first.code(), Code::internal);
  EXPECT_TRUE(vm::synchronize(machine.device(0)).ok());
  EXPECT_FALSE(machine.download(a.get()).ok());
}

// It must not matter whether the failure is known before the read is submitted or while the read waits.
TEST_F(Machines, AnErrorThatItsReaderWasGivenIsNotGivenAgain) {
  StorageHandle a = filled(0, 3);
  for (const bool retired_before_the_read : {false, true}) {
    StorageHandle b = filled(0, 4);
    fakes::async_control().hold = !retired_before_the_read;
    ASSERT_TRUE(mix(b.get(), a.get(), a.get(), 0, fakes::kMixFaults).ok());
    if (retired_before_the_read) {
      const vm::Stream& stream = machine.device(0)->queue->stream(0);
      while (!stream.done(stream.submitted.load())) std::this_thread::yield();
    }
    std::thread release([] {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      fakes::async_control().hold = false;
    });
    EXPECT_EQ(machine.download(b.get()).status().code(), Code::invalid_argument);
    release.join();
    const Status again = vm::synchronize(machine.device(0));
    EXPECT_TRUE(again.ok()) << (retired_before_the_read ? "retired before the read: " : "pending at the read: ")
                            << again.message();
  }
}

// Also if the call itself returns the error, and if a host tensor holds the poison.
TEST_F(Machines, InSynchronousModeTheCallThatReadsPoisonIsTheReader) {
  StorageHandle a = filled(0, 3);
  StorageHandle b = filled(0, 4);
  StorageHandle there = filled(1, 4);
  ASSERT_TRUE(mix(b.get(), a.get(), a.get(), 0, fakes::kMixFaults).ok());
  const vm::Stream& stream = machine.device(0)->queue->stream(0);
  while (!stream.done(stream.submitted.load())) std::this_thread::yield();
  vm::synchronous_mode = true;
  EXPECT_EQ(machine.copy({there.get(), 0}, {b.get(), 0}, kWords, true).code(), Code::invalid_argument);
  vm::synchronous_mode = false;
  EXPECT_TRUE(vm::synchronize(machine.device(0)).ok());
}

// The later submission, on another stream, fails first. synchronize() still returns the error of the earlier one first.
TEST_F(Machines, SynchronizeTellsErrorsInTheOrderOfSubmission) {
  StorageHandle a = filled(0, 3);
  StorageHandle b = std::move(machine.allocate(0, kWords)).value();
  StorageHandle c = std::move(machine.allocate(0, kWords)).value();
  machine.settle();
  fakes::async_control().hold = true;
  ASSERT_TRUE(mix(b.get(), a.get(), a.get(), 0, fakes::kMixFaults).ok());
  ASSERT_TRUE(mix(c.get(), a.get(), a.get(), 2, fakes::kMixRefused).ok());
  std::thread release([] {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    fakes::async_control().hold = false;
  });
  EXPECT_EQ(vm::wait({machine.device(0)->queue->stream(2).ticket(machine.device(0)->queue->stream(2).submitted.load())})
                .code(),
            Code::ok);
  EXPECT_EQ(vm::synchronize(machine.device(0)).code(), Code::invalid_argument);
  release.join();
  EXPECT_EQ(vm::synchronize(machine.device(0)).code(), Code::internal);
  EXPECT_TRUE(vm::synchronize(machine.device(0)).ok());
}

TEST(Unreported, ALossThatWasToldIsNotAddedByWhatWasSubmittedBefore) {
  vm::Unreported unreported;
  const Status loss(Code::device_lost, "the device fell off the bus.");
  unreported.add(loss, 7);
  unreported.add(loss, 3);
  EXPECT_EQ(unreported.first_sequence(), 3u);
  unreported.told(loss, 9);
  EXPECT_TRUE(unreported.empty());
  unreported.add(loss, 8);
  EXPECT_TRUE(unreported.empty()) << "submitted before the loss was told";
  unreported.add(loss, 10);
  EXPECT_FALSE(unreported.empty()) << "submitted to a device that was known to be lost";
}

TEST(Unreported, OfTooManyTheEarliestSubmissionsAreKept) {
  vm::Unreported unreported;
  for (uint64_t i = 100; i > 0; --i) unreported.add(Status(Code::invalid_argument, std::to_string(i)), i);
  EXPECT_EQ(unreported.dropped(), 36u);
  for (uint64_t i = 1; i <= 64; ++i) EXPECT_EQ(unreported.take_first().message(), std::to_string(i));
  EXPECT_TRUE(unreported.empty());
}

TEST_F(Machines, AWholeOverwriteHealsAndAPartialOneDoesNot) {
  StorageHandle a = filled(0, 3);
  StorageHandle b = filled(0, 4);
  ASSERT_TRUE(mix(b.get(), a.get(), a.get(), 0, fakes::kMixFaults).ok());
  ASSERT_TRUE(machine.upload(b.get(), 4, {1, 2}).ok());
  EXPECT_FALSE(machine.download(b.get()).ok());
  ASSERT_TRUE(mix(b.get(), a.get(), a.get(), 1).ok());
  const auto words = machine.download(b.get());
  ASSERT_TRUE(words.ok()) << words.status().message();
  EXPECT_EQ(words.value(), std::vector<uint32_t>(kWords, 3 * 32 + 1));
}

// A copy between devices is a download and an upload. The upload must receive the download's failure, however old it
// is.
TEST_F(Machines, AStagedUploadKnowsThatItsDownloadFailed) {
  vm::Staging* staging = vm::Staging::make(kWords * 4);
  staging->failure = Status(Code::device_lost, "copy: the device fell off the bus.");
  StorageHandle b = filled(1, 4);
  const vm::Operand dst{b.get(), 0, true, true};
  vm::Request up;
  up.policy = vm::Policy::upload;
  up.stream = &machine.device(1)->queue->stream(1);
  up.op = &vm::kUpload;
  up.operands = std::span(&dst, 1);
  up.bytes = kWords * 4;
  up.host = staging->data;
  up.staging = staging;
  ASSERT_TRUE(vm::submit(up).ticket);
  const auto words = machine.download(b.get());
  ASSERT_FALSE(words.ok());
  EXPECT_EQ(words.status().code(), Code::device_lost);
}

TEST_F(Machines, RepeatedWaitsBetweenStreamsVanish) {
  StorageHandle a = filled(0, 3);
  std::vector<StorageHandle> outputs;
  fakes::async_control().delay_us = 500;
  StorageHandle b = std::move(machine.allocate(0, kWords)).value();
  ASSERT_TRUE(mix(b.get(), a.get(), a.get(), 0).ok());
  machine.settle();
  const uint64_t before = fakes::async_control().device_waits;
  ASSERT_TRUE(mix(b.get(), a.get(), a.get(), 0).ok());
  for (int i = 0; i < 20; ++i) {
    outputs.push_back(std::move(machine.allocate(0, kWords)).value());
    ASSERT_TRUE(mix(outputs.back().get(), b.get(), b.get(), 2).ok());
  }
  machine.settle();
  EXPECT_LE(fakes::async_control().device_waits - before, 1u);
}

TEST_F(Machines, ManyMoreInstructionsThanTheRingHolds) {
  StorageHandle a = filled(0, 3);
  StorageHandle b = filled(0, 4);
  for (int i = 0; i < 20000; ++i)
    ASSERT_TRUE(mix(i % 2 ? a.get() : b.get(), i % 2 ? b.get() : a.get(), a.get(), i % 3).ok());
  EXPECT_TRUE(machine.download(a.get()).ok());
}

TEST_F(Machines, DownloadWaitsOnlyForWhatItReads) {
  StorageHandle a = filled(0, 3);
  machine.settle();
  EXPECT_EQ(machine.download(a.get()).value()[0], 3u);
  EXPECT_FALSE(a->busy_for_read() && !vm::settle(a.get(), true, false).ok());
  EXPECT_FALSE(a->busy_for_read()) << "once settled, the inline path is fast again";
}

TEST_F(Machines, TheDeleterOfBorrowedMemoryRunsWhenNothingUsesIt) {
  StorageHandle a = filled(0, 3);
  StorageHandle owner = filled(0, 9);
  std::atomic<int> deleted{0};
  Storage* borrowed = Storage::borrow(machine.device(0), owner->block, kWords * 4, [&] { ++deleted; });
  machine.settle();
  fakes::async_control().delay_us = 2000;
  for (int i = 0; i < 30; ++i) ASSERT_TRUE(mix(a.get(), borrowed, borrowed, 0).ok());
  borrowed->release_tensor();
  machine.settle();
  while (deleted == 0) std::this_thread::yield();
  EXPECT_EQ(deleted, 1);
  EXPECT_EQ(machine.download(a.get()).value()[0], 9u * 32 + 1);
}

TEST_F(Machines, SynchronousModeReturnsTheErrorAtTheCall) {
  StorageHandle a = filled(0, 3);
  StorageHandle b = filled(0, 4);
  vm::synchronous_mode = true;
  EXPECT_EQ(mix(b.get(), a.get(), a.get(), 0, fakes::kMixFaults).code(), Code::invalid_argument);
  EXPECT_TRUE(mix(b.get(), a.get(), a.get(), 0).ok());
  vm::synchronous_mode = false;
}

TEST_F(Machines, AStreamThatIsNotThereIsRefused) {
  StorageHandle a = filled(0, 3);
  const Status status = mix(a.get(), a.get(), a.get(), 40);
  EXPECT_EQ(status.code(), Code::invalid_argument);
  EXPECT_NE(status.message().find("stream 40"), std::string::npos) << status.message();
}

TEST_F(Machines, CopiesBetweenTwoDevicesCarryPoison) {
  StorageHandle a = filled(0, 3);
  StorageHandle b = filled(1, 4);
  ASSERT_TRUE(mix(a.get(), a.get(), a.get(), 0, fakes::kMixFaults).ok());
  ASSERT_TRUE(machine.copy({b.get(), 0}, {a.get(), 0}, kWords, true).ok());
  const auto words = machine.download(b.get());
  ASSERT_FALSE(words.ok());
  EXPECT_EQ(words.status().code(), Code::invalid_argument);
}

TEST_F(Machines, ScratchIsZeroedOnceAndAgainAfterAnError) {
  StorageHandle a = filled(0, 3);
  StorageHandle b = filled(0, 4);
  const auto run = [&](int64_t how) {
    EXPECT_TRUE(machine.mix(0, 0, {b.get(), 0}, {a.get(), 0}, {a.get(), 0}, kWords, 1, how, true, {0, 256}).ok());
    const auto words = machine.download(b.get());
    return words.ok() ? words.value()[0] - (3 * 32 + 1) : 1000;
  };
  EXPECT_EQ(run(fakes::kMixRuns), 0u) << "memory of the fake is not zero by itself";
  EXPECT_EQ(run(fakes::kMixSoils), 0u);
  EXPECT_EQ(run(fakes::kMixRuns), 1u) << "nobody zeroes between launches without an error";
  EXPECT_EQ(run(fakes::kMixFaults), 1000u);
  EXPECT_EQ(run(fakes::kMixSoils), 0u);
  EXPECT_EQ(run(fakes::kMixRefused), 1000u);
  EXPECT_EQ(run(fakes::kMixRuns), 0u);
}

TEST_F(Machines, ATransferOfNoBytesIsNoInstruction) {
  StorageHandle a = filled(0, 3);
  StorageHandle b = filled(0, 4);
  machine.settle();
  vm::DeviceQueue& queue = *machine.device(0)->queue;
  const auto submitted = [&] {
    uint64_t sum = 0;
    for (uint16_t i = 0; i < queue.stream_count(); ++i) sum += queue.stream(i).submitted.load();
    return sum;
  };
  const uint64_t before = submitted();
  uint32_t word = 7;
  EXPECT_TRUE(vm::upload({a.get(), 0, true, false}, &word, 0, {}).ok());
  EXPECT_TRUE(vm::copy({a.get(), 0, true, false}, {b.get(), 0, false, false}, 0, {}).ok());
  EXPECT_TRUE(vm::download(&word, {b.get(), 0, false, false}, 0).ok());
  EXPECT_EQ(submitted(), before);
  EXPECT_EQ(word, 7u);
}

TEST_F(Machines, WhatIsPendingIsToldWithWhatItWaitsFor) {
  vm::DeviceQueue& queue = *machine.device(0)->queue;
  StorageHandle a = filled(0, 3);
  StorageHandle b = filled(0, 4);
  machine.settle();
  EXPECT_EQ(queue.pending_text(), "nothing is pending");
  std::atomic<bool> let{false};
  ASSERT_TRUE(machine.access({a.get(), 0}, kWords, true, true, [&](uint32_t*) { let.wait(false); }).ok());
  ASSERT_TRUE(mix(b.get(), a.get(), a.get(), 0).ok());
  const std::string text = queue.pending_text();
  let = true;
  let.notify_all();
  machine.settle();
  const uint64_t number = queue.stream(0).submitted.load();
  EXPECT_NE(text.find(fmt::format("async:0 stream 0: instruction {} (mix) is queued, 0 more behind it, instruction {} "
                                  "waits for instruction ",
                                  number, number)),
            std::string::npos)
      << text;
}

// A primitive that needs more scratch than the one before may get the same block.
TEST_F(Machines, ScratchIsZeroedToTheEndOfItsBlock) {
  StorageHandle a = filled(0, 3);
  StorageHandle b = filled(0, 4);
  DeviceState* device = machine.device(0);
  vm::Stream& stream = device->queue->stream(0);
  const auto run = [&](uint64_t scratch) {
    EXPECT_TRUE(
        machine.mix(0, 0, {b.get(), 0}, {a.get(), 0}, {a.get(), 0}, kWords, 1, fakes::kMixRuns, true, {0, scratch})
            .ok());
    machine.settle();
  };
  run(64);
  const uint64_t size = machine.scratch_bytes(0);
  ASSERT_GT(size, 64u);
  std::vector<char> bytes(size, 1);
  ASSERT_EQ(device->ops.upload(stream.handle, stream.scratch.at(0), bytes.data(), size, nullptr), EP_STATUS_OK);
  ASSERT_EQ(device->ops.stream_synchronize(stream.handle, nullptr), EP_STATUS_OK);
  vm::release_scratch(device);
  run(64);
  run(size);
  ASSERT_EQ(machine.scratch_bytes(0), size);
  ASSERT_EQ(device->ops.download(stream.handle, bytes.data(), stream.scratch.at(0), size, nullptr), EP_STATUS_OK);
  ASSERT_EQ(device->ops.stream_synchronize(stream.handle, nullptr), EP_STATUS_OK);
  EXPECT_EQ(std::count(bytes.begin(), bytes.end(), 0), static_cast<int64_t>(size));
}

// A retired device releases its scratch, because held memory would make it busy.
TEST_F(Machines, ScratchThatIsGivenBackIsMadeAndZeroedAnew) {
  StorageHandle a = filled(0, 3);
  StorageHandle b = filled(0, 4);
  const auto run = [&](int64_t how) {
    EXPECT_TRUE(machine.mix(0, 0, {b.get(), 0}, {a.get(), 0}, {a.get(), 0}, kWords, 1, how, true, {0, 256}).ok());
    const auto words = machine.download(b.get());
    return words.ok() ? words.value()[0] - (3 * 32 + 1) : 1000;
  };
  EXPECT_EQ(run(fakes::kMixSoils), 0u);
  machine.settle();
  const uint64_t held = machine.scratch_bytes(0);
  const uint64_t live = machine.device(0)->allocator->stats().live;
  EXPECT_GE(held, 256u);
  vm::release_scratch(machine.device(0));
  EXPECT_EQ(machine.scratch_bytes(0), 0u);
  EXPECT_EQ(machine.device(0)->allocator->stats().live, live - held);
  EXPECT_EQ(run(fakes::kMixRuns), 0u);
  HostDevice host;
  vm::release_scratch(host.state());  // a device without streams has none
}

TEST_F(Machines, WorkspaceIsUsedAgainInStreamOrder) {
  fakes::async_control().delay_us = 300;
  StorageHandle a = filled(0, 3);
  std::vector<StorageHandle> outputs;
  for (int i = 0; i < 60; ++i) outputs.push_back(std::move(machine.allocate(0, kWords)).value());
  machine.settle();
  const uint64_t waits = fakes::async_control().device_waits;
  const uint64_t bytes = fakes::async_control().allocated_bytes;
  const auto run = [&](int i, int stream) {
    return machine.mix(0, stream, {outputs[i].get(), 0}, {a.get(), 0}, {a.get(), 0}, kWords, i, fakes::kMixRuns, true,
                       {64 * 1024, 0});
  };
  for (int i = 0; i < 30; ++i) ASSERT_TRUE(run(i, 0).ok());
  EXPECT_LE(fakes::async_control().allocated_bytes - bytes, uint64_t{256} * 1024) << "thirty blocks would be 1.9 MiB";
  machine.settle();
  EXPECT_EQ(fakes::async_control().device_waits, waits) << "in one stream nothing waits";
  for (int i = 30; i < 60; ++i) ASSERT_TRUE(run(i, i % 3).ok());
  for (uint32_t i = 0; i < 60; ++i) EXPECT_EQ(machine.download(outputs[i].get()).value()[5], 3 * 32 + i);
}

TEST_F(Machines, AFaultBufferThatOverflowedPoisonsAllSinceTheLastEvent) {
  StorageHandle a = filled(0, 3);
  StorageHandle before = filled(0, 4);
  ASSERT_TRUE(mix(before.get(), a.get(), a.get(), 0).ok());
  machine.settle();
  std::vector<StorageHandle> outputs;
  for (int i = 0; i < 10; ++i) outputs.push_back(std::move(machine.allocate(0, kWords)).value());
  StorageHandle other = std::move(machine.allocate(0, kWords)).value();
  fakes::async_control().hold = true;
  ASSERT_TRUE(mix(other.get(), a.get(), a.get(), 2).ok());
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(mix(outputs[i].get(), a.get(), a.get(), 0, i == 0 ? fakes::kMixOverflows : fakes::kMixRuns).ok());
  }
  const vm::Stream& stream = machine.device(0)->queue->stream(0);
  while (stream.launched.load() != stream.submitted.load()) std::this_thread::yield();
  fakes::async_control().hold = false;
  for (int i = 0; i < 10; ++i)
    EXPECT_EQ(machine.download(outputs[i].get()).status().code(), Code::invalid_argument) << i;
  EXPECT_TRUE(machine.download(before.get()).ok()) << "its event had been seen";
  EXPECT_TRUE(machine.download(other.get()).ok()) << "another stream lost count of nothing";
}

TEST_F(Machines, ALongWaitSaysWhatIsPendingOnWhat) {
  StorageHandle a = filled(0, 3);
  StorageHandle b = filled(0, 4);
  StorageHandle c = filled(0, 5);
  machine.settle();
  std::mutex mutex;
  std::string said;
  loader::set_log_sink([&](loader::LogLevel, std::string_view, std::string_view message) {
    std::lock_guard lock(mutex);
    said += message;
    fakes::async_control().hold = false;
  });
  const int64_t usual = vm::report_after_ms.exchange(1);
  fakes::async_control().hold = true;
  EXPECT_TRUE(mix(b.get(), a.get(), a.get(), 0).ok());
  EXPECT_TRUE(mix(c.get(), b.get(), b.get(), 2).ok());
  EXPECT_TRUE(machine.download(c.get()).ok());
  vm::report_after_ms = usual;
  loader::set_log_sink({});
  std::lock_guard lock(mutex);
  EXPECT_NE(said.find("waiting since"), std::string::npos) << said;
  EXPECT_NE(said.find("async:0 stream 0: instruction"), std::string::npos) << said;
  EXPECT_NE(said.find("(mix) is launched"), std::string::npos) << said;
}

// Copies to and from a synchronous device: the tickets belong to the asynchronous device, on storages without their
// own.
class BesideAHost : public Machines {
 protected:
  StorageHandle on_host(uint32_t value) {
    StorageHandle handle(std::move(Storage::make(host.state(), kWords * 4)).value());
    EXPECT_TRUE(machine.upload(handle.get(), 0, std::vector<uint32_t>(kWords, value)).ok());
    return handle;
  }
  void TearDown() override {
    Machines::TearDown();
    EXPECT_EQ(host.state()->allocator->stats().live, 0u);
  }

  HostDevice host;
};

TEST_F(BesideAHost, TheHostReadsWhatTheDeviceComputed) {
  StorageHandle a = filled(0, 3);
  StorageHandle here = on_host(1);
  fakes::async_control().delay_us = 3000;
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(mix(a.get(), a.get(), a.get(), 0).ok());
  uint32_t wanted = 3;
  for (int i = 0; i < 10; ++i) wanted = 32 * wanted + 1;
  ASSERT_TRUE(machine.copy({here.get(), 0}, {a.get(), 0}, kWords, true).ok());
  EXPECT_EQ(machine.download(here.get()).value(), std::vector<uint32_t>(kWords, wanted));
  EXPECT_FALSE(here->busy_for_read());
}

TEST_F(BesideAHost, TheHostOverwritesOnlyWhatTheDeviceHasRead) {
  StorageHandle a = filled(0, 3);
  fakes::async_control().delay_us = 3000;
  for (uint32_t i = 0; i < 20; ++i) {
    StorageHandle here = on_host(i);
    StorageHandle there = std::move(machine.allocate(0, kWords)).value();
    ASSERT_TRUE(machine.copy({there.get(), 0}, {here.get(), 0}, kWords, true).ok());
    ASSERT_TRUE(machine.upload(here.get(), 0, std::vector<uint32_t>(kWords, 1000)).ok());
    EXPECT_EQ(machine.download(there.get()).value(), std::vector<uint32_t>(kWords, i));
  }
}

TEST_F(BesideAHost, AHostBlockDroppedWhilePendingIsNotReusedTooEarly) {
  fakes::async_control().delay_us = 3000;
  std::vector<StorageHandle> there;
  for (uint32_t i = 0; i < 50; ++i) {
    there.push_back(std::move(machine.allocate(0, kWords)).value());
    const StorageHandle here = on_host(i);
    ASSERT_TRUE(machine.copy({there.back().get(), 0}, {here.get(), 0}, kWords, true).ok());
  }
  for (uint32_t i = 0; i < 50; ++i) {
    EXPECT_EQ(machine.download(there[i].get()).value(), std::vector<uint32_t>(kWords, i));
  }
}

TEST_F(BesideAHost, PoisonReachesTheHostAndIsHealedThere) {
  StorageHandle a = filled(0, 3);
  StorageHandle here = on_host(1);
  ASSERT_TRUE(mix(a.get(), a.get(), a.get(), 0, fakes::kMixFaults).ok());
  ASSERT_TRUE(machine.copy({here.get(), 0}, {a.get(), 0}, kWords, true).ok());
  EXPECT_EQ(vm::settle(here.get(), false, false).code(), Code::invalid_argument);
  EXPECT_EQ(machine.download(here.get()).status().code(), Code::invalid_argument);
  ASSERT_TRUE(machine.upload(here.get(), 0, std::vector<uint32_t>(kWords, 8)).ok());
  EXPECT_EQ(machine.download(here.get()).value(), std::vector<uint32_t>(kWords, 8));
}

}  // namespace
}  // namespace tenon::testing
