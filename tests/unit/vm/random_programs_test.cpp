// Runs random programs on two asynchronous devices with three streams each, and compares them with a sequential replay.
// RANDOM_PROGRAMS: their number (10,000; 1,000 in sanitizer builds).
#include <gtest/gtest.h>

#include <array>

#include "core/vm/engine.h"
#include "core/vm/rules.h"
#include "tests/unit/vm/async_machine.h"
#include "tests/unit/vm/layout_machine.h"
#include "tests/unit/vm/program_runner.h"

namespace tenon::testing {
namespace {

#if EP_SANITIZER_OF_THIS_BUILD != EP_SANITIZER_NONE
constexpr uint64_t kPrograms = 1000;
constexpr bool kSanitized = true;
constexpr uint64_t kInjected = 3;
#else
constexpr uint64_t kPrograms = 10000;
constexpr bool kSanitized = false;
constexpr uint64_t kInjected = 12;
#endif

uint64_t programs() { return random_programs(kPrograms); }

class RandomPrograms : public ::testing::Test {
 protected:
  void SetUp() override {
    for (AsyncMachine* machine : machines()) {
      machine->settle();
      for (int i = 0; i < kDevices; ++i) machine->device(i)->allocator->trim();
    }
    fakes::async_control().reset();
    fakes::async_control().delay_us = 20;
  }
  void TearDown() override {
    vm::rules = ~uint32_t{0};
    vm::synchronous_mode = false;
    vm::pinned_from = ~uint64_t{0};
    for (AsyncMachine* machine : machines()) machine->settle();
    fakes::async_control().reset();
  }

  static std::array<AsyncMachine*, 3> machines() {
    return {&AsyncMachine::get(), &AsyncMachine::peers(), &AsyncMachine::mapped()};
  }

  static std::string first_failure(AsyncMachine& machine, uint64_t seeds, uint64_t* reused) {
    const auto reset = [] {
      fakes::async_control().reset();
      fakes::async_control().delay_us = 20;
    };
    return testing::first_failure(machine, seeds, reset, reused);
  }

  static void compare_all(const char* mode, uint64_t count) {
    uint64_t reused = 0;
    const std::string failure = first_failure(AsyncMachine::get(), count, &reused);
    EXPECT_TRUE(failure.empty()) << failure;
    const fakes::AsyncControl& control = fakes::async_control();
    std::printf(
        "%s: %llu programs, %llu launches; overlapped streams %llu, reused pending blocks %llu, failed late %llu\n",
        mode, static_cast<unsigned long long>(count), static_cast<unsigned long long>(control.launches.load()),
        static_cast<unsigned long long>(control.overlaps.load()), static_cast<unsigned long long>(reused),
        static_cast<unsigned long long>(control.faults.load()));
  }
};

TEST_F(RandomPrograms, TextParsesBack) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const Program program = draw_program(seed);
    EXPECT_TRUE(is_valid(program)) << print(program);
    const std::optional<Program> parsed = parse(print(program));
    ASSERT_TRUE(parsed.has_value());
    EXPECT_EQ(*parsed, program);
  }
}

TEST_F(RandomPrograms, EqualTheirReplayWhenAsynchronous) { compare_all("async", programs()); }

TEST_F(RandomPrograms, EqualTheirReplayWhenSynchronous) {
  vm::synchronous_mode = true;
  compare_all("sync", programs() / 5);  // sync mode has one order, for every choice of delays
}

TEST_F(RandomPrograms, EqualTheirReplayOnADeviceThatBatches) {
  fakes::async_control().lazy = true;
  uint64_t reused = 0;
  const std::string failure = first_failure(AsyncMachine::get(), programs() / 20, &reused);
  EXPECT_TRUE(failure.empty()) << failure;
}

// The fake reads sources as early as a provider may.
TEST_F(RandomPrograms, EqualTheirReplayWhereDevicesCopyFromEachOther) {
  uint64_t reused = 0;
  std::string failure = first_failure(AsyncMachine::peers(), programs() / 10, &reused);
  EXPECT_TRUE(failure.empty()) << failure;
  fakes::async_control().early = true;
  for (uint64_t seed = 0; seed < programs() / 10 && failure.empty(); ++seed) {
    failure = run_program(AsyncMachine::peers(), draw_program(seed)).mismatch;
  }
  EXPECT_TRUE(failure.empty()) << failure;
  EXPECT_GT(fakes::async_control().peer_copies.load(), 0u);
}

// Contents move into layouts of the device and back between instructions, including images. Some programs have failing
// launches: a value that no launch wrote is never read.
TEST_F(RandomPrograms, EqualTheirReplayWhereValuesLieInLayouts) {
  LayoutMachine::prepare();
  LayoutMachine& machine = LayoutMachine::get();
  const auto reset = [] {
    fakes::async_control().reset();
    fakes::async_control().delay_us = 20;
    LayoutMachine::prepare();
  };
  const std::string failure = testing::first_failure(machine, programs() / 5, reset);
  EXPECT_TRUE(failure.empty()) << failure;
  const fakes::AsyncControl& control = fakes::async_control();
  EXPECT_GT(machine.stirred(), 0u);
  EXPECT_GT(control.opaque_reads.load(), machine.read_in_layouts() / 2);
  std::printf("layouts: %llu programs, %llu buffers stirred, %llu values read and %llu written by the device\n",
              static_cast<unsigned long long>(programs() / 5), static_cast<unsigned long long>(machine.stirred()),
              static_cast<unsigned long long>(control.opaque_reads.load()),
              static_cast<unsigned long long>(control.opaque_writes.load()));
  machine.settle();
}

// Functions get the memory itself, and uploads use the device's pool for transfers.
TEST_F(RandomPrograms, EqualTheirReplayWhereTheHostReachesTheMemory) {
  vm::pinned_from = 16;
  uint64_t reused = 0;
  const std::string failure = first_failure(AsyncMachine::mapped(), programs() / 10, &reused);
  EXPECT_TRUE(failure.empty()) << failure;
  EXPECT_GT(AsyncMachine::mapped().device(0)->queue->staging.held(), 0u);
}

// Without the wait between devices a peer copy reads data that is not there yet.
TEST_F(RandomPrograms, APeerCopyThatDoesNotWaitIsNoticed) {
  if (kSanitized) GTEST_SKIP() << "the run races, which the sanitizer reports first";
  vm::rules = ~static_cast<uint32_t>(vm::kWaitBetweenDevices);
  bool noticed = false;
  for (uint64_t seed = 0; seed < 10000 && !noticed; ++seed) {
    noticed = !run_program(AsyncMachine::peers(), draw_program(seed)).mismatch.empty();
  }
  EXPECT_TRUE(noticed);
}

// Tests the harness: without any one of the rules, some program fails.
class WithoutRule : public RandomPrograms, public ::testing::WithParamInterface<vm::Rule> {
 protected:
  static bool notices(uint64_t seeds) {
    for (uint64_t seed = 0; seed < seeds; ++seed) {
      if (!run_program(AsyncMachine::get(), draw_program(seed)).mismatch.empty()) return true;
    }
    return false;
  }
};

TEST_P(WithoutRule, AProgramFails) {
  const bool races = (GetParam() & (vm::kPoison | vm::kHeal)) == 0;
  if (kSanitized && races) GTEST_SKIP() << "without this rule the run races, which the sanitizer reports first";
  EXPECT_FALSE(notices(20));
  vm::rules = ~static_cast<uint32_t>(GetParam());
  EXPECT_TRUE(notices(10000));
}

TEST_P(WithoutRule, AProgramFailsByItsResultAlone) {
  const bool races = (GetParam() & (vm::kPoison | vm::kHeal)) == 0;
  if (kSanitized && races) GTEST_SKIP() << "without this rule the run races, which the sanitizer reports first";
  fakes::async_control().shadow = false;
  fakes::async_control().delay_us = 200;
  EXPECT_FALSE(notices(20));
  vm::rules = ~static_cast<uint32_t>(GetParam());
  EXPECT_TRUE(notices(10000));
}

INSTANTIATE_TEST_SUITE_P(Rules, WithoutRule,
                         ::testing::Values(vm::kWaitBetweenStreams, vm::kWaitBetweenDevices, vm::kWriteAfterRead,
                                           vm::kWaitBeforeReuse, vm::kPoison, vm::kHeal));

// Each allocation and each launch of some programs fails in turn. Each failure is an error, and the next program runs.
TEST_F(RandomPrograms, SurviveEachFailedAllocation) {
  fakes::AsyncControl& control = fakes::async_control();
  uint64_t failures = 0;
  for (uint64_t seed = 0; seed < kInjected; ++seed) {
    const Program program = draw_program(seed);
    for (int64_t nth = 0; nth < 100; ++nth) {
      for (int i = 0; i < kDevices; ++i) AsyncMachine::get().device(i)->allocator->trim();
      control.fail_allocation = nth;
      control.fail_count = 1000;
      const RunReport report = run_program(AsyncMachine::get(), program, true);
      const bool reached = control.fail_allocation.load() == 0;
      control.fail_allocation = -1;
      control.failed_allocations = 0;
      EXPECT_EQ(report.mismatch, "");
      if (!reached) break;
      failures += report.failed_call;
    }
    EXPECT_EQ(run_program(AsyncMachine::get(), program).mismatch, "");
  }
  EXPECT_GT(failures, 0u);
}

TEST_F(RandomPrograms, SurviveEachFailedLaunch) {
  fakes::AsyncControl& control = fakes::async_control();
  for (uint64_t seed = 0; seed < kInjected; ++seed) {
    const Program program = draw_program(seed);
    for (int64_t nth = 0; nth < 100; ++nth) {
      control.fail_launch = nth;
      control.fail_count = 1;
      const RunReport report = run_program(AsyncMachine::get(), program, true);
      EXPECT_EQ(report.mismatch, "");
      const bool reached = control.fail_launch.load() == -1;
      control.fail_launch = -1;
      if (!reached) break;
      EXPECT_GT(report.errors, 0u) << "launch " << nth << " of seed " << seed << " failed and nobody was told";
    }
    EXPECT_EQ(run_program(AsyncMachine::get(), program).mismatch, "");
  }
}

}  // namespace
}  // namespace tenon::testing
