// Segments on the asynchronous fake: order, faults, refusals, memory, constants, cancellation. Their launches compute
// dst = 31*a + b + tag.
#include "core/vm/segment.h"

#include <gtest/gtest.h>

#include <chrono>
#include <random>
#include <string>
#include <thread>

#include "core/vm/engine.h"
#include "core/vm/vm.h"
#include "tests/unit/vm/host_device.h"
#include "tests/unit/vm/machines.h"

namespace tenon::testing {
namespace {

using vm::SegmentAddress;

constexpr uint64_t kBytes = kWords * 4;

uint32_t mixed(uint32_t a, uint32_t b, int64_t tag) { return 31 * a + b + static_cast<uint32_t>(tag); }

class AsyncSegments : public Machines {
 protected:
  // The arguments of a launch other than its addresses.
  struct How {
    int64_t tag = 1;
    int64_t how = fakes::kMixRuns;
    uint64_t scratch = 0;
    SegmentAddress workspace = {};
  };

  void add(vm::SegmentBuilder* builder, SegmentAddress dst, SegmentAddress a, SegmentAddress b, How how) {
    const SegmentAddress operands[] = {dst, a, b};
    ep_scalar scalars[2] = {{EP_DTYPE_i64, 0, {}}, {EP_DTYPE_i64, 0, {}}};
    scalars[0].value.i64 = how.tag;
    scalars[1].value.i64 = how.how;
    const NodeName name{{"mix"}, vm::kNoInputs, {}, fmt::format("node {} (/mix)", ++nodes_)};
    vm::SegmentLaunch launch;
    launch.primitive = std::move(machine.primitive(0, kWords, how.scratch)).value();
    launch.operands = operands;
    launch.scalars = scalars;
    launch.workspace = how.workspace;
    launch.name = &name;
    const Status status = builder->add(launch);
    ASSERT_TRUE(status.ok()) << status.message();
  }

  // `length` launches in a row, alternating between two addresses of a block. Bindings: input, output, block. Launch i
  // has tag i, and launch `odd` gets `how`.
  std::shared_ptr<const vm::Segment> chain(int64_t length, int64_t odd = -1, int64_t how = fakes::kMixRuns,
                                           uint64_t scratch = 0) {
    nodes_ = 0;
    vm::SegmentBuilder builder(machine.device(0), 3, nullptr);
    for (int64_t i = 0; i < length; ++i) {
      const SegmentAddress src =
          i == 0 ? SegmentAddress::binding(0, 0) : SegmentAddress::binding(2, static_cast<uint64_t>(i % 2) * 64);
      const SegmentAddress dst = i + 1 == length ? SegmentAddress::binding(1, 0)
                                                 : SegmentAddress::binding(2, static_cast<uint64_t>((i + 1) % 2) * 64);
      add(&builder, dst, src, src, {i, i == odd ? how : fakes::kMixRuns, scratch, {}});
    }
    return builder.finish();
  }
  static uint32_t chained(int64_t length, uint32_t value) {
    for (int64_t i = 0; i < length; ++i) value = mixed(value, value, i);
    return value;
  }

  StorageHandle block(uint64_t bytes = 2 * kBytes) {
    return StorageHandle(std::move(Storage::make_aligned(machine.device(0), bytes)).value());
  }
  Status run(const vm::Segment& segment, Storage* input, Storage* output, uint16_t stream = 0) {
    const StorageHandle scratch = block();
    const vm::Operand bindings[] = {{input, 0, false, false}, {output, 0, true, true}, {scratch.get(), 0, true, true}};
    return vm::run({&segment, bindings, stream});
  }
  void expect_words(Storage* storage, uint32_t wanted) {
    const auto words = machine.download(storage);
    ASSERT_TRUE(words.ok()) << words.status().message();
    EXPECT_EQ(words.value(), std::vector<uint32_t>(kWords, wanted));
  }

 private:
  int nodes_ = 0;
};

TEST_F(AsyncSegments, AreOneInstructionOfAllTheirLaunches) {
  const auto segment = chain(50);
  const StorageHandle a = filled(0, 3), b = filled(0, 0);
  const uint64_t before = machine.device(0)->queue->stream(0).submitted.load();
  ASSERT_TRUE(run(*segment, a.get(), b.get()).ok());
  EXPECT_EQ(machine.device(0)->queue->stream(0).submitted.load(), before + 1);
  expect_words(b.get(), chained(50, 3));
  EXPECT_EQ(fakes::async_control().launches.load(), 50u);
}

TEST_F(AsyncSegments, WaitForWhatWritesTheirInputsAndAreWaitedFor) {
  const auto segment = chain(10);
  fakes::async_control().delay_us = 300;
  for (uint32_t round = 0; round < 50; ++round) {
    const StorageHandle a = filled(0, round), b = filled(0, 0), c = filled(0, 0), d = filled(0, 0);
    ASSERT_TRUE(mix(c.get(), a.get(), a.get(), 2).ok());
    ASSERT_TRUE(run(*segment, c.get(), b.get(), 1).ok());
    ASSERT_TRUE(mix(d.get(), b.get(), b.get(), 0).ok());
    ASSERT_TRUE(machine.upload(c.get(), 0, std::vector<uint32_t>(kWords, 5)).ok())
        << "a write waits for the run's read";
    const uint32_t wanted = chained(10, mixed(round, round, 1));
    expect_words(b.get(), wanted);
    expect_words(d.get(), mixed(wanted, wanted, 1));
    expect_words(c.get(), 5);
  }
}

TEST_F(AsyncSegments, ThatMeetBadDataNameTheLaunchAndPoisonWhatTheyWrite) {
  const StorageHandle a = filled(0, 3), b = filled(0, 4), c = filled(0, 4);
  const auto segment = chain(20, 12, fakes::kMixFaults);
  ASSERT_TRUE(run(*segment, a.get(), b.get()).ok());
  ASSERT_TRUE(mix(c.get(), b.get(), b.get(), 1).ok());
  const auto words = machine.download(c.get());
  EXPECT_EQ(words.status().code(), Code::invalid_argument);
  EXPECT_EQ(words.status().message(),
            "mix: index 77 is out of range for an axis of length 7.\nwhile running mix() on async:0\n"
            "while running node 13 (/mix) on async:0");
  ASSERT_TRUE(run(*chain(20), a.get(), b.get()).ok()) << "a run that overwrites heals";
  expect_words(b.get(), chained(20, 3));
  EXPECT_TRUE(vm::synchronize(machine.device(0)).ok()) << "it was reported by the read";
}

// Tags count launches, and there are fewer instructions: a fault must still find its instruction.
TEST_F(AsyncSegments, DoNotMisleadTheFaultsOfTheirNeighbours) {
  const auto sound = chain(7);
  for (int faulty = 0; faulty < 6; ++faulty) {
    SCOPED_TRACE(faulty);
    std::vector<StorageHandle> results;
    const StorageHandle a = filled(0, 3);
    fakes::async_control().hold = true;
    for (int i = 0; i < 6; ++i) {
      results.push_back(block(kBytes));
      const int64_t how = i == faulty ? fakes::kMixFaults : fakes::kMixRuns;
      Storage* result = results.back().get();
      ASSERT_TRUE((i % 2 == 0 ? run(*chain(5, 4, how), a.get(), result) : mix(result, a.get(), a.get(), 0, how)).ok());
      ASSERT_TRUE(run(*sound, a.get(), block(kBytes).get()).ok());
    }
    fakes::async_control().hold = false;
    for (int i = 0; i < 6; ++i) EXPECT_EQ(machine.download(results[static_cast<size_t>(i)].get()).ok(), i != faulty);
    static_cast<void>(vm::synchronize(machine.device(0)));
  }
}

TEST_F(AsyncSegments, StopAtALaunchThatIsRefused) {
  const StorageHandle a = filled(0, 3), b = filled(0, 4);
  ASSERT_TRUE(run(*chain(20, 12, fakes::kMixRefused), a.get(), b.get()).ok());
  const auto words = machine.download(b.get());
  EXPECT_EQ(words.status().code(), Code::internal);
  EXPECT_NE(words.status().message().find("node 13 (/mix)"), std::string::npos) << words.status().message();
  EXPECT_EQ(fakes::async_control().launches.load(), 13u) << "later ones are not launched";
  ASSERT_TRUE(run(*chain(20), a.get(), b.get()).ok());
  expect_words(b.get(), chained(20, 3));
}

TEST_F(AsyncSegments, OfAPoisonedInputAreSkipped) {
  const StorageHandle a = filled(0, 3), b = filled(0, 4), c = filled(0, 4);
  ASSERT_TRUE(mix(b.get(), a.get(), a.get(), 0, fakes::kMixFaults).ok());
  ASSERT_TRUE(run(*chain(4), b.get(), c.get(), 1).ok());
  EXPECT_EQ(machine.download(c.get()).status().code(), Code::invalid_argument);
  const uint64_t launches = fakes::async_control().launches.load();
  ASSERT_TRUE(run(*chain(4), b.get(), c.get(), 1).ok());
  EXPECT_FALSE(machine.download(c.get()).ok());
  EXPECT_EQ(fakes::async_control().launches.load(), launches) << "the poison was known";
}

TEST_F(AsyncSegments, CountScratchAsDirtyAfterAFailure) {
  const StorageHandle a = filled(0, 3), b = filled(0, 4);
  for (const int64_t how : {fakes::kMixFaults, fakes::kMixRefused}) {
    ASSERT_TRUE(run(*chain(6, 3, how, 64), a.get(), b.get()).ok());
    EXPECT_FALSE(machine.download(b.get()).ok());
    machine.settle();
    EXPECT_EQ(machine.device(0)->queue->stream(0).clean_scratch, 0u);
    ASSERT_TRUE(run(*chain(6, -1, 0, 64), a.get(), b.get()).ok());
    expect_words(b.get(), chained(6, 3));
  }
}

TEST_F(AsyncSegments, TakeWorkspaceFromTheirBlocks) {
  vm::SegmentBuilder builder(machine.device(0), 3, nullptr);
  for (int64_t i = 0; i < 3; ++i) {
    add(&builder, SegmentAddress::binding(1, 0), SegmentAddress::binding(i == 0 ? 0 : 1, 0),
        SegmentAddress::binding(0, 0), {i, fakes::kMixRuns, 0, SegmentAddress::binding(2, 256)});
  }
  const auto segment = builder.finish();
  const StorageHandle a = filled(0, 3), b = filled(0, 4), memory = block(512);
  const vm::Operand bindings[] = {{a.get(), 0, false, false}, {b.get(), 0, true, true}, {memory.get(), 0, true, true}};
  const uint64_t allocations = fakes::async_control().allocations.load();
  ASSERT_TRUE(vm::run({segment.get(), bindings, 0}).ok());
  expect_words(b.get(), mixed(mixed(mixed(3, 3, 0), 3, 1), 3, 2));
  EXPECT_EQ(fakes::async_control().allocations.load(), allocations) << "a run allocates nothing";
}

// The block of each run takes two thirds of the device: the next run gets its block when the previous run is done.
TEST_F(AsyncSegments, WaitForMemoryBeforeTheirFirstLaunch) {
  const auto segment = chain(30);
  const StorageHandle a = filled(0, 3);
  std::vector<StorageHandle> results;
  for (int i = 0; i < 5; ++i) results.push_back(filled(0, 0));
  machine.settle();
  fakes::async_control().delay_us = 500;
  std::thread release = held_for(std::chrono::milliseconds(20));
  for (const StorageHandle& result : results) {
    const StorageHandle large = block(uint64_t{600} << 10);
    const vm::Operand bindings[] = {
        {a.get(), 0, false, false}, {result.get(), 0, true, true}, {large.get(), 0, true, true}};
    ASSERT_TRUE(vm::run({segment.get(), bindings, 0}).ok());
  }
  release.join();
  for (const StorageHandle& result : results) expect_words(result.get(), chained(30, 3));
  const auto refused = Storage::make_aligned(machine.device(0), uint64_t{2} << 20);
  EXPECT_EQ(refused.status().code(), Code::out_of_device_memory);
}

TEST_F(AsyncSegments, RunOnManyThreadsAndStreamsAtOnceEachWithBlocksOfItsOwn) {
  const auto segment = chain(12);
  fakes::async_control().delay_us = 100;
  std::vector<std::thread> threads;
  for (uint32_t thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      for (uint32_t round = 0; round < 30; ++round) {
        const uint32_t value = thread * 1000 + round;
        const StorageHandle a = filled(0, value), b = filled(0, 0);
        ASSERT_TRUE(run(*segment, a.get(), b.get(), static_cast<uint16_t>(thread % 3)).ok());
        expect_words(b.get(), chained(12, value));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(AsyncSegments, RunInSynchronousModeGiveTheirErrorAtTheCall) {
  const StorageHandle a = filled(0, 3), b = filled(0, 4);
  vm::synchronous_mode = true;
  const Status faulted = run(*chain(20, 12, fakes::kMixFaults), a.get(), b.get());
  vm::synchronous_mode = false;
  EXPECT_EQ(faulted.code(), Code::invalid_argument);
  EXPECT_TRUE(vm::synchronize(machine.device(0)).ok()) << "it was reported";
}

// --- constants ---

class ConstantSegments : public AsyncSegments {
 protected:
  // output = 31 * constant 1 + constant 0 + 1
  std::shared_ptr<const vm::Segment> of(StorageHandle first, StorageHandle second) {
    std::vector<StorageOwner> storages;
    storages.emplace_back(first.release());
    storages.emplace_back(second.release());
    vm::SegmentBuilder builder(machine.device(0), 1, std::make_shared<vm::Constants>(std::move(storages)));
    add(&builder, SegmentAddress::binding(0, 0), SegmentAddress::constant(1, 0), SegmentAddress::constant(0, 0), {});
    return builder.finish();
  }
  Status run_to(const vm::Segment& segment, Storage* output, uint16_t stream = 0) {
    const vm::Operand binding(output, 0, true, true);
    return vm::run({&segment, std::span(&binding, 1), stream});
  }
};

TEST_F(ConstantSegments, WaitForTheWritesOfConstants) {
  fakes::async_control().delay_us = 500;
  for (uint32_t round = 0; round < 30; ++round) {
    StorageHandle a = filled(0, round), b = filled(0, 0), c = filled(0, 0);
    ASSERT_TRUE(mix(b.get(), a.get(), a.get(), 2).ok());
    const auto segment = of(std::move(a), std::move(b));
    ASSERT_TRUE(run_to(*segment, c.get(), 1).ok());
    expect_words(c.get(), mixed(mixed(round, round, 1), round, 1));
    ASSERT_TRUE(run_to(*segment, c.get(), 0).ok());
    expect_words(c.get(), mixed(mixed(round, round, 1), round, 1));
  }
}

TEST_F(ConstantSegments, HaveThePoisonOfConstants) {
  for (const bool known : {false, true}) {
    StorageHandle a = filled(0, 1), b = filled(0, 0), c = filled(0, 0);
    ASSERT_TRUE(mix(b.get(), a.get(), a.get(), 2, fakes::kMixFaults).ok());
    if (known) machine.settle();
    const auto segment = of(std::move(a), std::move(b));
    for (int run = 0; run < 2; ++run) {
      ASSERT_TRUE(run_to(*segment, c.get(), 1).ok());
      EXPECT_EQ(machine.download(c.get()).status().code(), Code::invalid_argument);
    }
    machine.settle();
  }
}

// Constants without other owners live until the run that reads them has ended.
TEST_F(ConstantSegments, KeepTheBlocksOfConstantsUntilTheirRunsEnd) {
  for (uint32_t round = 0; round < 20; ++round) {
    const StorageHandle result = filled(0, 0);
    auto segment = of(filled(0, round), filled(0, 7));
    machine.settle();
    fakes::async_control().hold = true;
    ASSERT_TRUE(run_to(*segment, result.get(), 2).ok());
    segment = nullptr;
    std::vector<StorageHandle> others;
    for (int i = 0; i < 8; ++i) others.push_back(filled(0, 99));
    fakes::async_control().hold = false;
    expect_words(result.get(), mixed(7, round, 1));
  }
}

// --- against a replay ---

// Random segments and single launches, on three streams, over few buffers. The replay uses only the order of the calls.
TEST_F(AsyncSegments, OfRandomProgramsEqualTheirReplay) {
  constexpr size_t kBuffers = 5;
  for (uint64_t seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    fakes::async_control().seed = seed + 1;
    fakes::async_control().delay_us = seed % 3 == 0 ? 200 : 0;
    std::vector<StorageHandle> buffers;
    std::vector<uint32_t> wanted;
    for (uint32_t i = 0; i < kBuffers; ++i) buffers.push_back(filled(0, wanted.emplace_back(i)));
    for (int step = 0; step < 12; ++step) {
      const auto stream = static_cast<uint16_t>(random() % 3);
      const size_t to = random() % kBuffers, from = random() % kBuffers;
      if (random() % 2 == 0) {
        ASSERT_TRUE(mix(buffers[to].get(), buffers[from].get(), buffers[from].get(), stream).ok());
        wanted[to] = mixed(wanted[from], wanted[from], 1);
        continue;
      }
      const auto length = static_cast<int64_t>(1 + random() % 20);
      const auto segment = chain(length);
      const StorageHandle memory = block();
      const vm::Operand bindings[] = {{buffers[from].get(), 0, false, false},
                                      {buffers[to].get(), 0, true, to != from},
                                      {memory.get(), 0, true, true}};
      ASSERT_TRUE(vm::run({segment.get(), bindings, stream}).ok());
      wanted[to] = chained(length, wanted[from]);
    }
    for (size_t i = 0; i < kBuffers; ++i) expect_words(buffers[i].get(), wanted[i]);
    ASSERT_EQ(machine.violation(), "");
  }
}

// --- cancellation ---

TEST_F(AsyncSegments, ThatAreCancelledPoisonWhatTheyCouldHaveWritten) {
  const StorageHandle a = filled(0, 3), b = filled(0, 4);
  machine.settle();
  const Cancellation cancellation;
  fakes::async_control().hold = true;
  {
    const CancellationScope scope(cancellation);
    cancellation.cancel();
    ASSERT_TRUE(run(*chain(5), a.get(), b.get()).ok());
  }
  fakes::async_control().hold = false;
  const Status status = machine.download(b.get()).status();
  EXPECT_EQ(status.code(), Code::cancelled);
  EXPECT_NE(status.message().find("The program cancelled this run before launch 1 of 5."), std::string::npos)
      << status.message();
  EXPECT_EQ(fakes::async_control().launches.load(), 0u);
  ASSERT_TRUE(run(*chain(5), a.get(), b.get()).ok());
  expect_words(b.get(), chained(5, 3));
}

// Ten launches on a synchronous device, which write one binding.
class SyncSegments : public ::testing::Test {
 protected:
  SyncSegments() {
    host_.state()->ops.primitive_launch = [](ep_primitive*, ep_stream*, const ep_launch*, ep_fault*, ep_error**) {
      if (++launches == 3 && cancelling != nullptr) cancelling->cancel();
      return ep_status{EP_STATUS_OK};
    };
    host_.state()->ops.primitive_destroy = [](ep_device*, ep_primitive*) {};
    out_ = StorageHandle(std::move(Storage::make(host_.state(), 64)).value());
    launches = 0;
  }

  Status run(uint64_t scratch_bytes) { return run(scratch_bytes, out_.get()); }
  Status run(uint64_t scratch_bytes, Storage* out) {
    auto* primitive = new Primitive;
    primitive->device = host_.state();
    primitive->scratch_bytes = scratch_bytes;
    vm::SegmentBuilder builder(host_.state(), 1, nullptr);
    const SegmentAddress address = SegmentAddress::binding(0, 0);
    for (int i = 0; i < 10; ++i) {
      const NodeName name{{"mix"}, vm::kNoInputs, {}, fmt::format("node {}", i)};
      EXPECT_TRUE(builder.add({primitive, std::span(&address, 1), nullptr, {}, {}, &name}).ok());
    }
    primitive->release();
    const vm::Operand binding(out, 0, true, true);
    return vm::run({builder.finish().get(), std::span(&binding, 1), 0});
  }
  Status result() { return vm::settle(out_.get(), false, false); }

  static inline int launches = 0;
  static inline const Cancellation* cancelling = nullptr;  // by the third launch
  HostDevice host_;
  StorageHandle out_;
};

TEST_F(SyncSegments, EndBetweenTwoLaunchesWhenTheyAreCancelled) {
  const Cancellation cancellation;
  cancelling = &cancellation;
  const CancellationScope scope(cancellation);
  const Status status = run(0);
  cancelling = nullptr;
  EXPECT_EQ(status.code(), Code::cancelled);
  EXPECT_EQ(launches, 3);
  EXPECT_NE(status.message().find("before launch 4 of 10"), std::string::npos) << status.message();
  EXPECT_NE(status.message().find("node 3"), std::string::npos) << status.message();
  EXPECT_EQ(result().code(), Code::cancelled) << "the result is poisoned";
}

TEST_F(SyncSegments, RefuseMemoryOfADeviceThatWasOpenedAgain) {
  HostDevice again;
  const StorageHandle out(std::move(Storage::make(again.state(), 64)).value());
  const Status status = run(0, out.get());
  EXPECT_EQ(status.code(), Code::invalid_argument);
  EXPECT_EQ(status.message(), "Binding 0 of a run on host:0 is memory of host:0, which was opened again.");
  EXPECT_EQ(status.remedy(), "Prepare the program again.");
  EXPECT_EQ(launches, 0);
}

TEST_F(SyncSegments, ThatFindNoScratchHaveLaunchedNothingAndPoisonNothing) {
  host_.state()->opened->ops.memory_allocate = [](ep_device*, uint32_t, uint64_t, ep_memory**, ep_error**) {
    return ep_status{EP_STATUS_OUT_OF_DEVICE_MEMORY};
  };
  EXPECT_EQ(run(uint64_t{8} << 20).code(), Code::out_of_device_memory);
  EXPECT_EQ(launches, 0);
  EXPECT_TRUE(result().ok());
}

}  // namespace
}  // namespace tenon::testing
