#include "tests/unit/vm/program_runner.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <set>
#include <thread>

namespace tenon::testing {
namespace {

// What a thread found out; merged afterwards.
struct Found {
  std::map<int, StorageHandle> buffers;
  Outcome outcome;
  Status unexpected;
  uint64_t reused_pending = 0;
};

class Runner {
 public:
  Runner(const Program& program, const std::map<int, StorageHandle>* shared, Found* found)
      : program_(program), shared_(shared), found_(*found) {}

  void run(int thread, size_t from, size_t to) {
    for (size_t i = from; i < to && found_.unexpected.ok(); ++i) {
      if (program_.instructions[i].thread == thread) found_.unexpected = step(i);
    }
  }

  BufferState state_of(int buffer) {
    BufferState state;
    const Result<std::vector<uint32_t>> words = Machine::get().download(storage(buffer));
    state.poisoned = !words.ok();
    if (words.ok()) state.words = words.value();
    return state;
  }

 private:
  Storage* storage(int buffer) const {
    const auto own = found_.buffers.find(buffer);
    return own != found_.buffers.end() ? own->second.get() : shared_->at(buffer).get();
  }

  Status step(size_t index) {
    const Instruction& one = program_.instructions[index];
    Machine& machine = Machine::get();
    switch (one.kind) {
      case Instruction::make: return make(one);
      case Instruction::mix: {
        const bool whole =
            one.words * 4 == static_cast<int64_t>(storage(one.dst)->bytes) && one.a != one.dst && one.b != one.dst;
        return asked_for(machine.mix(device_of(one.dst), one.stream, view(one.dst, one.dst_first),
                                     view(one.a, one.a_first), view(one.b, one.b_first), one.words, one.tag, one.how,
                                     whole));
      }
      case Instruction::copy: {
        vm::set_current_stream(storage(one.dst)->device, static_cast<uint16_t>(one.stream));
        const bool whole = one.words * 4 == static_cast<int64_t>(storage(one.dst)->bytes);
        return asked_for(machine.copy(view(one.dst, one.dst_first), view(one.a, one.a_first), one.words, whole));
      }
      case Instruction::drop: found_.buffers.erase(one.dst); return Status();
      case Instruction::read: found_.outcome[static_cast<int>(index)] = state_of(one.dst); return Status();
    }
    return Status();
  }

  // In TENON_VM=sync an instruction returns the error that poisons its outputs.
  static Status asked_for(const Status& status) {
    const bool known =
        status.code() == Code::fault || status.message().find("asked for a refusal") != std::string::npos;
    return known ? Status() : status;
  }

  Status make(const Instruction& one) {
    TENON_ASSIGN_OR_RETURN(StorageHandle made, Machine::get().allocate(one.device, static_cast<uint64_t>(one.words)));
    found_.reused_pending += made->reads.empty() ? 0 : 1;
    Storage* storage = made.get();
    found_.buffers[one.dst] = std::move(made);
    if (one.tag < 0) return Status();
    return Machine::get().upload(storage, 0, seeded_words(one.tag, one.words));
  }

  int device_of(int buffer) const { return storage(buffer)->device == Machine::get().device(0) ? 0 : 1; }
  Machine::View view(int buffer, int64_t first) const { return {storage(buffer), static_cast<uint64_t>(first)}; }

  const Program& program_;
  const std::map<int, StorageHandle>* shared_;
  Found& found_;
};

std::string describe(int key, const BufferState& state, const BufferState& wanted) {
  std::string text =
      key >= 0 ? "read at line " + std::to_string(key + 1) : "buffer " + std::to_string(-1 - key) + " at the end";
  if (state.poisoned != wanted.poisoned) {
    return text + (state.poisoned ? " is poisoned and should not be" : " should be poisoned and is not");
  }
  for (size_t i = 0; i < state.words.size(); ++i) {
    if (state.words[i] == wanted.words[i]) continue;
    return text + ": word " + std::to_string(i) + " is " + std::to_string(state.words[i]) + " and should be " +
           std::to_string(wanted.words[i]);
  }
  return text;
}

std::string compare(const Outcome& outcome, const Outcome& wanted) {
  for (const auto& [key, state] : wanted) {
    const auto found = outcome.find(key);
    if (found == outcome.end()) return "no result for " + std::to_string(key);
    if (!(found->second == state)) return describe(key, found->second, state);
  }
  return {};
}

// Where the instructions of threads other than the first begin: what stands before is shared.
size_t end_of_prologue(const Program& program) {
  size_t end = 0;
  while (end < program.instructions.size() && program.instructions[end].kind == Instruction::make &&
         program.instructions[end].dst < 4 && program.instructions[end].thread == 0) {
    ++end;
  }
  return end;
}

}  // namespace

RunReport run_program(const Program& program, bool may_fail) {
  if (!program.instructions.empty() && program.instructions.front().words > 8000) {
    for (int i = 0; i < kDevices; ++i) Machine::get().device(i)->allocator->trim();
  }
  std::set<int> threads;
  for (const Instruction& one : program.instructions) threads.insert(one.thread);
  const std::map<int, StorageHandle> none;
  const size_t prologue = end_of_prologue(program);
  const size_t count = program.instructions.size();
  Found shared;
  Runner(program, &none, &shared).run(0, 0, prologue);
  std::map<int, Found> found;
  for (int thread : threads) found[thread];
  const auto body = [&](int thread) { Runner(program, &shared.buffers, &found[thread]).run(thread, prologue, count); };
  if (shared.unexpected.ok()) {
    std::vector<std::thread> others;
    for (int thread : threads) {
      if (thread != 0) others.emplace_back(body, thread);
    }
    if (threads.contains(0)) body(0);
    for (std::thread& other : others) other.join();
  }

  RunReport report;
  Outcome outcome = std::move(shared.outcome);
  Status unexpected = shared.unexpected;
  for (auto& [thread, one] : found) {
    outcome.merge(one.outcome);
    report.reused_pending += one.reused_pending;
    if (unexpected.ok()) unexpected = one.unexpected;
    shared.buffers.merge(one.buffers);
  }
  report.failed_call = !unexpected.ok();
  if (unexpected.ok()) {
    Runner reader(program, &none, &shared);
    for (const auto& [buffer, handle] : shared.buffers) outcome[-1 - buffer] = reader.state_of(buffer);
  }
  for (const auto& [key, state] : outcome) report.errors += state.poisoned;
  shared.buffers.clear();
  report.errors += Machine::get().settle();
  report.mismatch = fakes::async_control().violation();
  for (int i = 0; i < kDevices; ++i) {
    const uint64_t live = Machine::get().device(i)->allocator->stats().live - Machine::get().scratch_bytes(i);
    if (report.mismatch.empty() && live != 0) report.mismatch = std::to_string(live) + " bytes leaked";
  }
  if (report.mismatch.empty() && !unexpected.ok() && !may_fail) report.mismatch = unexpected.message();
  if (report.mismatch.empty() && unexpected.ok() && !may_fail) report.mismatch = compare(outcome, replay(program));
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

}  // namespace tenon::testing
