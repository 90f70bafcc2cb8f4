// The random programs of tests/unit/vm on one provider: two devices with three streams each, against the same programs
// replayed one instruction after the other. RANDOM_PROGRAMS: how many (1,000).
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

}  // namespace
}  // namespace tenon::testing
