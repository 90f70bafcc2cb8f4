// The random programs of tests/unit/vm on the cuda provider, on a GPU or on the fake driver: two devices with three
// streams each, against the same programs replayed one instruction after the other. RANDOM_PROGRAMS: how many (1,000).
#include <gtest/gtest.h>

#include <cstdlib>

#include "core/vm/engine.h"
#include "tests/unit/vm/program_runner.h"

namespace tenon::testing {
namespace {

uint64_t programs() {
  const char* text = std::getenv("RANDOM_PROGRAMS");
  return text != nullptr ? std::strtoull(text, nullptr, 10) : 1000;
}

std::string first_failure(uint64_t seeds) {
  for (uint64_t seed = 0; seed < seeds; ++seed) {
    const Program program = draw_program(seed);
    const RunReport report = run_program(program);
    if (report.mismatch.empty()) continue;
    const Program small = shrink(program, [](const Program& candidate) {
      for (int run = 0; run < 3; ++run) {
        if (!run_program(candidate).mismatch.empty()) return true;
      }
      return false;
    });
    return "seed " + std::to_string(seed) + ": " + report.mismatch + "\n" + print(small);
  }
  return {};
}

TEST(CudaPrograms, EqualTheirReplayWhenAsynchronous) { EXPECT_EQ(first_failure(programs()), ""); }

TEST(CudaPrograms, EqualTheirReplayWhenSynchronous) {
  vm::synchronous_mode = true;
  EXPECT_EQ(first_failure(programs() / 10), "");
  vm::synchronous_mode = false;
}

}  // namespace
}  // namespace tenon::testing
