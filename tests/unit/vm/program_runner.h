// Runs Programs on a Machine against their replay, and looks for a smaller one that fails alike.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "tests/unit/vm/machine.h"
#include "tests/unit/vm/program.h"

namespace tenon::testing {

struct RunReport {
  std::string mismatch;         // empty: as the replay says
  bool failed_call = false;     // a call returned an error that no instruction asked for (a failure that was injected)
  uint64_t errors = 0;          // buffers that came out poisoned, and errors that only synchronize told of
  uint64_t reused_pending = 0;  // blocks handed out while work on them was pending
};

// `may_fail`: errors of calls are expected; results are then not compared, only that all is well afterwards.
RunReport run_program(Machine& machine, const Program& program, bool may_fail = false);

// Leaves instructions out of `program` as long as `fails(program)`.
Program shrink(Program program, const std::function<bool(const Program&)>& fails);

// Of the programs drawn from the seeds below `seeds`, the first that does not end as its replay, made smaller, and how;
// empty if all do. `reset` goes before each try of a smaller one.
std::string first_failure(
    Machine& machine, uint64_t seeds, const std::function<void()>& reset = [] {}, uint64_t* reused_pending = nullptr);

// How many the environment asks for (RANDOM_PROGRAMS).
uint64_t random_programs(uint64_t usual);

}  // namespace tenon::testing
