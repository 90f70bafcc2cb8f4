#include "core/ops/op_call.h"

namespace tenon {
namespace {

thread_local constinit Interpreter* chosen = nullptr;

}  // namespace

Interpreter& current_interpreter() {
  if (chosen != nullptr) [[likely]]
    return *chosen;
  return *(chosen = &eager_interpreter());
}

bool Interpreter::keeps(const OpInfo&) const { return false; }

void compose(const OpCall& call, Interpreter& below) {
  const InterpreterScope scope(below);
  call.op->compose(call);
}

InterpreterScope::InterpreterScope(Interpreter& interpreter) : previous_(chosen) { chosen = &interpreter; }
InterpreterScope::~InterpreterScope() { chosen = previous_; }

}  // namespace tenon
