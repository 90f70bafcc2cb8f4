// Command lists on the asynchronous fake, which checks the order of everything it runs and what a list still uses.
#include "core/vm/command_list.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <thread>

#include "core/tensor/device.h"
#include "core/vm/engine.h"
#include "core/vm/vm.h"
#include "loader/loader.h"
#include "tests/unit/vm/machines.h"

namespace tenon::testing {
namespace {

using Address = decltype(vm::SegmentLaunch::workspace);
using List = std::shared_ptr<vm::CommandList>;

constexpr uint64_t kBytes = kWords * 4;
constexpr int kStreamsUsed[] = {0, 2};

// Bindings: input, output, block. The input and the output move, the block stays.
class CommandLists : public Machines {
 protected:
  // `length` launches in a row, alternating between two ranges of the block. Launch i adds its number; launch `odd`
  // gets `how`.
  std::shared_ptr<const vm::Segment> chain(AsyncMachine& on, int64_t length, int64_t odd = -1,
                                           int64_t how = fakes::kMixRuns, uint64_t scratch = 0) {
    vm::SegmentBuilder builder(on.device(0), 3, nullptr);
    for (int64_t i = 0; i < length; ++i) {
      const auto part = [](int64_t turn) { return Address::binding(2, static_cast<uint64_t>(turn % 2) * kBytes); };
      const Address src = i == 0 ? Address::binding(0, 0) : part(i);
      const Address operands[] = {i + 1 == length ? Address::binding(1, 0) : part(i + 1), src, src};
      ep_scalar scalars[2] = {{EP_DTYPE_i64, 0, {}}, {EP_DTYPE_i64, 0, {}}};
      scalars[0].value.i64 = i;
      scalars[1].value.i64 = i == odd ? how : fakes::kMixRuns;
      const NodeName name{{"mix"}, vm::kNoInputs, {}, fmt::format("node {} (/mix)", i + 1)};
      vm::SegmentLaunch launch;
      launch.primitive = std::move(on.primitive(0, kWords, scratch)).value();
      launch.operands = operands;
      launch.scalars = scalars;
      launch.name = &name;
      EXPECT_TRUE(builder.add(launch).ok());
    }
    return builder.finish();
  }
  static uint32_t chained(int64_t length, uint32_t value) {
    for (int64_t i = 0; i < length; ++i) value = 32 * value + static_cast<uint32_t>(i);
    return value;
  }

  static StorageHandle block(AsyncMachine& on, uint64_t bytes = 2 * kBytes) {
    return StorageHandle(std::move(Storage::make_aligned(on.device(0), bytes)).value());
  }
  Result<List> record(std::shared_ptr<const vm::Segment> segment, Storage* input, Storage* output, Storage* inner) {
    const vm::CommandList::Binding bindings[] = {
        {{input, 0, false, false}, kBytes}, {{output, 0, true, true}, kBytes}, {{inner, 0, true, true}, 0}};
    return vm::CommandList::record(std::move(segment), bindings);
  }
  static Status run(const List& list, Storage* input, Storage* output, Storage* inner, int stream = 0) {
    const vm::Operand bindings[] = {{input, 0, false, false}, {output, 0, true, true}, {inner, 0, true, true}};
    return list->run(bindings, static_cast<uint16_t>(stream));
  }
  void expect_words(Storage* storage, uint32_t wanted) {
    const auto words = machine.download(storage);
    ASSERT_TRUE(words.ok()) << words.status().message();
    EXPECT_EQ(words.value(), std::vector<uint32_t>(kWords, wanted));
  }
  // A word of the device's memory, poisoned or not. Nothing is in flight.
  uint32_t word_at(ep_buffer buffer) {
    const DeviceState* device = machine.device(0);
    const ep_device_ops& ops = device->ops;
    const ep_stream_desc desc{sizeof desc, EP_STRUCT_STREAM_DESC, nullptr, EP_STREAM_COPY, 0, 0};
    ep_stream* stream = nullptr;
    uint32_t word = 0;
    EXPECT_EQ(ops.stream_create(device->handle, &desc, &stream, nullptr), EP_STATUS_OK);
    EXPECT_EQ(ops.download(stream, &word, buffer, sizeof word, nullptr), EP_STATUS_OK);
    EXPECT_EQ(ops.stream_synchronize(stream, nullptr), EP_STATUS_OK);
    ops.stream_destroy(device->handle, stream);
    return word;
  }
  void wait() { ASSERT_TRUE(vm::synchronize(machine.device(0)).ok()); }
};

TEST_F(CommandLists, GiveWhatTheirLaunchesGiveWithoutLaunchingThem) {
  for (const bool bindings : {true, false}) {
    SCOPED_TRACE(bindings ? "bindings" : "fixed addresses");
    fakes::async_control().bindings = bindings;
    const StorageHandle inner = block(machine), first = filled(0, 3), last = filled(0, 4);
    const Result<List> list = record(chain(machine, 20), first.get(), last.get(), inner.get());
    ASSERT_TRUE(list.ok()) << list.status().message();
    const uint64_t launches = fakes::async_control().launches.load();
    fakes::async_control().delay_us = 200;
    for (uint32_t round = 0; round < 30; ++round) {
      const StorageHandle a = filled(0, round), b = filled(0, 0);
      ASSERT_TRUE(run(list.value(), a.get(), b.get(), inner.get(), kStreamsUsed[round % 2]).ok());
      expect_words(b.get(), chained(20, round));
      expect_words(a.get(), round);
    }
    EXPECT_EQ(fakes::async_control().launches.load(), launches) << "nothing was launched";
    EXPECT_EQ(list.value()->replays(), 30u);
    EXPECT_GT(list.value()->bytes(), 0u);
  }
}

TEST_F(CommandLists, WaitForWhatWritesTheirInputsAndAreWaitedFor) {
  const StorageHandle inner = block(machine), first = filled(0, 3), last = filled(0, 4);
  const List list = std::move(record(chain(machine, 5), first.get(), last.get(), inner.get())).value();
  fakes::async_control().delay_us = 300;
  for (uint32_t round = 0; round < 30; ++round) {
    const StorageHandle a = filled(0, round), b = filled(0, 0), c = filled(0, 0), d = filled(0, 0);
    ASSERT_TRUE(mix(c.get(), a.get(), a.get(), 2).ok());
    ASSERT_TRUE(run(list, c.get(), b.get(), inner.get(), 2).ok());
    ASSERT_TRUE(mix(d.get(), b.get(), b.get(), 0).ok());
    ASSERT_TRUE(machine.upload(c.get(), 0, std::vector<uint32_t>(kWords, 5)).ok()) << "it waits for the replay's read";
    const uint32_t wanted = chained(5, 32 * round + 1);
    expect_words(b.get(), wanted);
    expect_words(d.get(), 32 * wanted + 1);
    expect_words(c.get(), 5);
  }
}

TEST_F(CommandLists, RunPlainlyWhileAReplayIsInFlight) {
  const StorageHandle inner = block(machine), first = filled(0, 3), last = filled(0, 4);
  const List list = std::move(record(chain(machine, 6), first.get(), last.get(), inner.get())).value();
  fakes::async_control().hold = true;
  std::vector<StorageHandle> results;
  for (int i = 0; i < 4; ++i) {
    results.push_back(block(machine, kBytes));
    ASSERT_TRUE(run(list, first.get(), results.back().get(), inner.get(), kStreamsUsed[i % 2]).ok());
  }
  EXPECT_EQ(list->replays(), 1u) << "the first run is not done";
  fakes::async_control().hold = false;
  for (const StorageHandle& result : results) expect_words(result.get(), chained(6, 3));
  wait();
  ASSERT_TRUE(run(list, first.get(), results[0].get(), inner.get()).ok());
  EXPECT_EQ(list->replays(), 2u);
  expect_words(results[0].get(), chained(6, 3));
}

TEST_F(CommandLists, AFaultOfAReplayNamesTheLaunchAndPoisonsWhatItWrites) {
  for (const bool bindings : {true, false}) {
    SCOPED_TRACE(bindings ? "bindings" : "fixed addresses");
    fakes::async_control().bindings = bindings;
    const StorageHandle inner = block(machine), a = filled(0, 3), b = filled(0, 4), c = filled(0, 4);
    const List bad =
        std::move(record(chain(machine, 20, 12, fakes::kMixFaults, 64), a.get(), b.get(), inner.get())).value();
    const List good = std::move(record(chain(machine, 20, -1, 0, 64), a.get(), b.get(), inner.get())).value();
    for (int round = 0; round < 3; ++round) {
      ASSERT_TRUE(run(bad, a.get(), b.get(), inner.get()).ok());
      ASSERT_TRUE(mix(c.get(), b.get(), b.get(), 1).ok());
      const auto words = machine.download(c.get());
      EXPECT_EQ(words.status().code(), Code::invalid_argument);
      EXPECT_EQ(words.status().message(),
                "mix: index 77 is out of range for an axis of length 7.\nwhile running mix() on async:0\n"
                "while running node 13 (/mix) on async:0");
      wait();
      ASSERT_TRUE(run(good, a.get(), b.get(), inner.get()).ok()) << "a run that overwrites heals";
      expect_words(b.get(), chained(20, 3));
    }
    EXPECT_EQ(bad->replays(), 3u);
  }
}

// A launch adds the first word of its scratch to its result; a fault leaves a 1 there.
TEST_F(CommandLists, RunOnScratchThatIsZeroEvenAfterAFault) {
  const StorageHandle inner = block(machine), a = filled(0, 3), b = filled(0, 4);
  const List list =
      std::move(record(chain(machine, 3, 2, fakes::kMixFaults, 64), a.get(), b.get(), inner.get())).value();
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(run(list, a.get(), b.get(), inner.get()).ok());
    EXPECT_FALSE(vm::synchronize(machine.device(0)).ok());
    EXPECT_EQ(word_at(inner->block.at(kBytes)), chained(1, 3));
  }
  EXPECT_EQ(list->replays(), 3u);
}

TEST_F(CommandLists, AreDestroyedWhenTheirLastReplayWasSeenDone) {
  const StorageHandle inner = block(machine), a = filled(0, 3), b = filled(0, 4);
  List list = std::move(record(chain(machine, 4), a.get(), b.get(), inner.get())).value();
  EXPECT_EQ(fakes::async_control().command_lists.load(), 1);
  wait();
  fakes::async_control().hold = true;
  ASSERT_TRUE(run(list, a.get(), b.get(), inner.get()).ok());
  list.reset();
  EXPECT_EQ(fakes::async_control().command_lists.load(), 1) << "its replay is in flight";
  fakes::async_control().hold = false;
  expect_words(b.get(), chained(4, 3));
  wait();
  EXPECT_EQ(fakes::async_control().command_lists.load(), 0);
}

TEST_F(CommandLists, KeepTheMemoryThatStaysAndGiveItBack) {
  wait();
  const uint64_t before = machine.device(0)->allocator->stats().live;
  {
    StorageHandle inner = block(machine, 64 * kBytes);
    Storage* const address = inner.get();
    const StorageHandle a = filled(0, 3), b = filled(0, 4);
    const List list = std::move(record(chain(machine, 4, -1, 0, 64), a.get(), b.get(), inner.get())).value();
    inner.reset();
    EXPECT_GE(machine.device(0)->allocator->stats().live, before + 64 * kBytes) << "the list keeps the block";
    ASSERT_TRUE(run(list, a.get(), b.get(), address).ok());
    expect_words(b.get(), chained(4, 3));
    wait();
  }
  EXPECT_EQ(machine.device(0)->allocator->stats().live, before);
}

TEST_F(CommandLists, ADeviceThatRefusesIsAReasonAndNoList) {
  const StorageHandle inner = block(machine), a = filled(0, 3), b = filled(0, 4);
  const auto refused = [&](int64_t how) {
    const Result<List> list = record(chain(machine, 4, 2, how), a.get(), b.get(), inner.get());
    EXPECT_FALSE(list.ok());
    EXPECT_EQ(fakes::async_control().command_lists.load(), 0);
    return list.ok() ? Status() : list.status();
  };
  fakes::async_control().begin_answer = EP_STATUS_UNSUPPORTED;
  EXPECT_EQ(refused(fakes::kMixRuns).code(), Code::unsupported);
  fakes::async_control().begin_answer = EP_STATUS_OUT_OF_DEVICE_MEMORY;
  EXPECT_EQ(refused(fakes::kMixRuns).code(), Code::out_of_device_memory);
  fakes::async_control().begin_answer = EP_STATUS_OK;
  fakes::async_control().end_answer = EP_STATUS_UNSUPPORTED;
  EXPECT_EQ(refused(fakes::kMixRuns).code(), Code::unsupported);
  fakes::async_control().end_answer = EP_STATUS_OK;
  const Status status = refused(fakes::kMixRefused);
  EXPECT_NE(status.message().find("while running node 3 (/mix) on async:0"), std::string::npos) << status.message();
  const List list = std::move(record(chain(machine, 4), a.get(), b.get(), inner.get())).value();
  ASSERT_TRUE(run(list, a.get(), b.get(), inner.get()).ok()) << "the stream records as before";
  expect_words(b.get(), chained(4, 3));
}

TEST_F(CommandLists, AReplayThatIsRefusedFailsAndTheNextOneRuns) {
  const StorageHandle inner = block(machine), a = filled(0, 3), b = filled(0, 4);
  const List list = std::move(record(chain(machine, 4), a.get(), b.get(), inner.get())).value();
  fakes::async_control().fail_replay = 0;
  ASSERT_TRUE(run(list, a.get(), b.get(), inner.get()).ok());
  const auto words = machine.download(b.get());
  EXPECT_EQ(words.status().code(), Code::out_of_device_memory);
  EXPECT_NE(words.status().message().find("replay: this replay was told to find no room."), std::string::npos)
      << words.status().message();
  static_cast<void>(vm::synchronize(machine.device(0)));
  ASSERT_TRUE(run(list, a.get(), b.get(), inner.get()).ok());
  expect_words(b.get(), chained(4, 3));
}

TEST_F(CommandLists, RefuseOtherMemoryForWhatStays) {
  const StorageHandle inner = block(machine), other = block(machine), a = filled(0, 3), b = filled(0, 4);
  const List list = std::move(record(chain(machine, 4), a.get(), b.get(), inner.get())).value();
  EXPECT_EQ(run(list, a.get(), b.get(), other.get()).message(),
            "Binding 2 of a command list has a fixed address, but the run gives other memory.");
}

TEST_F(CommandLists, OfARetiredDeviceSayThatItIsGone) {
  loader::register_provider("listed", fakes::async_query);
  AsyncMachine on("listed");
  ASSERT_TRUE(on.open().ok());
  List list;
  {
    const StorageHandle a = std::move(on.allocate(0, kWords)).value(), b = std::move(on.allocate(0, kWords)).value();
    vm::SegmentBuilder builder(on.device(0), 2, nullptr);
    const Address operands[] = {Address::binding(1, 0), Address::binding(0, 0), Address::binding(0, 0)};
    const ep_scalar scalars[2] = {{EP_DTYPE_i64, 0, {}}, {EP_DTYPE_i64, 0, {}}};
    const NodeName name{{"mix"}, vm::kNoInputs, {}, ""};
    vm::SegmentLaunch launch;
    launch.primitive = std::move(on.primitive(0, kWords)).value();
    launch.operands = operands;
    launch.scalars = scalars;
    launch.name = &name;
    ASSERT_TRUE(builder.add(launch).ok());
    const vm::CommandList::Binding bindings[] = {{{a.get(), 0, false, false}, kBytes},
                                                 {{b.get(), 0, true, true}, kBytes}};
    list = std::move(vm::CommandList::record(builder.finish(), bindings)).value();
    launch.primitive->release();
  }
  vm::destroy_command_lists(on.device(0));
  EXPECT_EQ(fakes::async_control().command_lists.load(), 0);
  const StorageHandle a = std::move(on.allocate(0, kWords)).value(), b = std::move(on.allocate(0, kWords)).value();
  const vm::Operand bindings[] = {{a.get(), 0, false, false}, {b.get(), 0, true, true}};
  EXPECT_EQ(list->run(bindings, 0).message(), "The provider of listed:0 was retired.");
}

// Two lists and plain launches on two streams, by two threads, with faults, refusals and concurrent runs: each result
// is right or an error, and after each error the next run is right.
TEST_F(CommandLists, AreRightUnderFaultsWhoeverRunsThem) {
  fakes::async_control().delay_us = 60;
  std::atomic<int> right{0}, failed{0};
  const auto work = [&](uint64_t seed) {
    std::mt19937_64 random(seed);
    const StorageHandle inner = block(machine), first = filled(0, 1), last = filled(0, 1);
    const List good = std::move(record(chain(machine, 6, -1, 0, 64), first.get(), last.get(), inner.get())).value();
    const List bad =
        std::move(record(chain(machine, 6, 3, fakes::kMixFaults), first.get(), last.get(), inner.get())).value();
    // Faulty launches have no scratch: their leftovers in a stream's scratch stay until the fault is seen.
    for (int round = 0; round < 200; ++round) {
      const auto value = static_cast<uint32_t>(random());
      const int stream = kStreamsUsed[random() % 2];
      const bool faulty = random() % 5 == 0;
      const StorageHandle a = filled(0, value), b = filled(0, 0);
      if (random() % 16 == 0) fakes::async_control().fail_replay = 0;
      EXPECT_TRUE(run(faulty ? bad : good, a.get(), b.get(), inner.get(), stream).ok());
      if (random() % 2 == 0) continue;  // the next run starts while this one is in flight
      const auto words = machine.download(b.get());
      EXPECT_FALSE(faulty && words.ok());
      if (words.ok()) {
        EXPECT_EQ(words.value(), std::vector<uint32_t>(kWords, chained(6, value)));
      }
      (words.ok() ? right : failed).fetch_add(1);
    }
  };
  std::thread other(work, 7);
  work(11);
  other.join();
  fakes::async_control().fail_replay = -1;
  static_cast<void>(vm::synchronize(machine.device(0)));
  EXPECT_GT(right.load(), 50);
  EXPECT_GT(failed.load(), 10);
}

}  // namespace
}  // namespace tenon::testing
