#include "tests/e2e/faults/explanation.h"

#include <map>
#include <set>

#include "primitives/text/format.h"

namespace tenon::testing {

std::string explain(const Program& program, const Outcome& outcome) {
  if (outcome == replay(program)) return {};
  for (size_t i = 0; i < program.instructions.size(); ++i) {
    if (outcome == replay(program, static_cast<int>(i))) return {};
  }
  for (const auto& [key, state] : outcome) {
    if (key < 0 && outcome == replay(program, key)) return {};
  }
  return "no one instruction that fails explains the outcome";
}

std::string explain_lost(const Program& program, const Outcome& outcome, int lost) {
  const Outcome wanted = replay(program);
  std::map<int, bool> tainted;  // by buffer: the lost device may have written it
  std::set<int> doubtful;       // keys of the outcome
  for (size_t i = 0; i < program.instructions.size(); ++i) {
    const Instruction& one = program.instructions[i];
    if (one.kind == Instruction::make) tainted[one.dst] = one.device == lost;
    if (one.kind == Instruction::mix) tainted[one.dst] = tainted[one.dst] || tainted[one.a] || tainted[one.b];
    if (one.kind == Instruction::copy) tainted[one.dst] = tainted[one.dst] || tainted[one.a];
    const bool sees = one.kind == Instruction::read || (one.kind == Instruction::access && (one.how & kWrites) == 0);
    if (sees && tainted[one.dst]) doubtful.insert(static_cast<int>(i));
  }
  for (const auto& [buffer, taint] : tainted) {
    if (taint) doubtful.insert(-1 - buffer);
  }
  for (const auto& [key, state] : wanted) {
    const auto found = outcome.find(key);
    const bool there = found != outcome.end() && !found->second.poisoned;
    if (there && (state.poisoned || found->second.words != state.words))
      return fmt::format("a wrong number at {}", key);
    if (!there && !state.poisoned && !doubtful.contains(key))
      return fmt::format("an error on the healthy device at {}", key);
  }
  return {};
}

}  // namespace tenon::testing
