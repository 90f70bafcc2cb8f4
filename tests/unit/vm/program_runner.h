// Runs Programs on a Machine, compares them with their replay, and shrinks failing ones.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "tests/unit/vm/machine.h"
#include "tests/unit/vm/program.h"

namespace tenon::testing {

struct RunReport {
  std::string mismatch;         // empty: equal to the replay
  bool failed_call = false;     // a call returned an error that came from an injected failure
  uint64_t errors = 0;          // buffers that ended poisoned, and errors that only synchronize reported
  uint64_t reused_pending = 0;  // blocks handed out while work on them was pending
};

// With `may_fail`, calls may fail. Results are then not compared; only the state at the end is checked.
RunReport run_program(Machine& machine, const Program& program, bool may_fail = false);

// Removes instructions from `program` as long as `fails(program)` holds.
Program shrink(Program program, const std::function<bool(const Program&)>& fails);

// Draws programs from the seeds below `seeds`. Returns the first that differs from its replay, shrunk, and the
// difference. Returns an empty string if none differs. `reset` runs before each smaller program.
std::string first_failure(
    Machine& machine, uint64_t seeds, const std::function<void()>& reset = [] {}, uint64_t* reused_pending = nullptr);

// The number of programs given by RANDOM_PROGRAMS.
uint64_t random_programs(uint64_t usual);

}  // namespace tenon::testing
