// Runs the random programs of tests/unit/vm on one provider, on two devices with three streams each, and compares them
// with a sequential replay. RANDOM_PROGRAMS: how many (1,000).
#include <gtest/gtest.h>

#include "core/vm/engine.h"
#include "tests/unit/providers/programs/provider_machine.h"
#include "tests/unit/vm/program_runner.h"

namespace tenon::testing {
namespace {

constexpr uint64_t kPrograms = 1000;

TEST(ProviderPrograms, EqualTheirReplayWhenAsynchronous) {
  EXPECT_EQ(first_failure(provider_machine(), random_programs(kPrograms)), "");
}

TEST(ProviderPrograms, EqualTheirReplayWhenSynchronous) {
  vm::synchronous_mode = true;
  EXPECT_EQ(first_failure(provider_machine(), random_programs(kPrograms) / 10), "");
  vm::synchronous_mode = false;
}

// It must not matter whether the division by zero retires before or after the submission of the read.
TEST(ProviderPrograms, AnErrorThatItsReaderWasGivenIsNotGivenAgain) {
  Machine& machine = provider_machine();
  machine.settle();
  for (int round = 0; round < 20; ++round) {
    StorageHandle a = std::move(machine.allocate(0, 16)).value();
    StorageHandle b = std::move(machine.allocate(0, 16)).value();
    ASSERT_TRUE(machine.upload(a.get(), 0, seeded_words(round, 16)).ok());
    ASSERT_TRUE(machine.mix(0, 0, {b.get(), 0}, {a.get(), 0}, {a.get(), 0}, 16, 1, fakes::kMixFaults, true).ok());
    const vm::Stream& stream = machine.device(0)->queue->stream(0);
    const Ticket last = round % 2 == 0 ? stream.ticket(stream.submitted.load()) : Ticket();
    EXPECT_TRUE(vm::wait(last).ok());
    EXPECT_EQ(machine.download(b.get()).status().code(), Code::invalid_argument);
    const Status again = vm::synchronize(machine.device(0));
    EXPECT_TRUE(again.ok()) << "round " << round << ": " << again.message();
  }
}

}  // namespace
}  // namespace tenon::testing
