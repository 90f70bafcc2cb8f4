#include "tests/unit/vm/program_runner.h"

#include <cstdlib>

#include "primitives/text/format.h"
#include "tests/unit/vm/performance.h"

namespace tenon::testing {
namespace {

std::string describe(int key, const BufferState& state, const BufferState& wanted) {
  std::string text = key >= 0 ? fmt::format("read at line {}", key + 1) : fmt::format("buffer {} at the end", -1 - key);
  if (state.poisoned != wanted.poisoned) {
    return text + (state.poisoned ? " is poisoned and should not be" : " should be poisoned and is not");
  }
  for (size_t i = 0; i < state.words.size(); ++i) {
    if (state.words[i] == wanted.words[i]) continue;
    return fmt::format("{}: word {} is {} and should be {}", text, i, state.words[i], wanted.words[i]);
  }
  return text;
}

std::string compare(const Outcome& outcome, const Outcome& wanted) {
  for (const auto& [key, state] : wanted) {
    const auto found = outcome.find(key);
    if (found == outcome.end()) return fmt::format("no result for {}", key);
    if (!(found->second == state)) return describe(key, found->second, state);
  }
  return {};
}

// In TENON_VM=sync an instruction returns the error that poisons its outputs.
Status unless_asked_for(Instruction::Kind kind, const Status& status) {
  const bool computes = kind == Instruction::mix || kind == Instruction::copy || kind == Instruction::access;
  const bool known =
      status.code() == Code::invalid_argument || status.message().find("asked for a refusal") != std::string::npos;
  return computes && known ? Status() : status;
}

// The resources that `machine` still holds after all work has ended and all buffers are gone.
std::string leak(const Machine& machine) {
  for (int i = 0; i < kDevices; ++i) {
    const uint64_t live = machine.device(i)->allocator->stats().live - machine.scratch_bytes(i);
    if (live != 0) return fmt::format("{} bytes leaked", live);
  }
  return {};
}

}  // namespace

RunReport run_program(Machine& machine, const Program& program, bool may_fail) {
  if (!program.instructions.empty() && program.instructions.front().words > 8000) {
    for (int i = 0; i < kDevices; ++i) machine.device(i)->allocator->trim();
  }
  Performance performance = perform(program, machine, unless_asked_for);
  const Status& stopped = performance.stopped;
  performance.buffers.clear();
  RunReport report;
  report.failed_call = !stopped.ok();
  report.reused_pending = performance.reused_pending;
  for (const auto& [key, state] : performance.outcome) report.errors += state.poisoned;
  report.errors += machine.settle();
  report.mismatch = machine.violation();
  if (report.mismatch.empty()) report.mismatch = leak(machine);
  if (report.mismatch.empty() && !may_fail) {
    report.mismatch = stopped.ok() ? compare(performance.outcome, replay(program)) : stopped.message();
  }
  return report;
}

Program shrink(Program program, const std::function<bool(const Program&)>& fails) {
  for (size_t chunk = program.instructions.size() / 2; chunk > 0;) {
    bool smaller = false;
    for (size_t at = 0; at + chunk <= program.instructions.size();) {
      Program candidate = program;
      const auto first = candidate.instructions.begin() + static_cast<std::ptrdiff_t>(at);
      candidate.instructions.erase(first, first + static_cast<std::ptrdiff_t>(chunk));
      if (is_valid(candidate) && fails(candidate)) {
        program = std::move(candidate);
        smaller = true;
      } else {
        ++at;
      }
    }
    if (!smaller || chunk > 1) chunk /= 2;
  }
  return program;
}

std::string first_failure(Machine& machine, uint64_t seeds, const std::function<void()>& reset,
                          uint64_t* reused_pending) {
  for (uint64_t seed = 0; seed < seeds; ++seed) {
    const Program program = draw_program(seed);
    const RunReport report = run_program(machine, program);
    if (reused_pending != nullptr) *reused_pending += report.reused_pending;
    if (report.mismatch.empty()) continue;
    const Program small = shrink(program, [&](const Program& candidate) {
      reset();
      for (int run = 0; run < 3; ++run) {
        if (!run_program(machine, candidate).mismatch.empty()) return true;
      }
      return false;
    });
    return fmt::format("seed {}: {}\n{}", seed, report.mismatch, print(small));
  }
  return {};
}

uint64_t random_programs(uint64_t usual) {
  const char* text = std::getenv("RANDOM_PROGRAMS");
  return text != nullptr ? std::strtoull(text, nullptr, 10) : usual;
}

}  // namespace tenon::testing
