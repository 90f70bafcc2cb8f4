#include "core/ops/composite.h"
#include "core/ops/op_call.h"
#include "primitives/text/format.h"

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

void composite::rethrow_as(std::string_view op, const Error& error) {
  const std::string& text = error.status().message();
  const bool named =
      text.starts_with(op) && text.size() > op.size() && (text[op.size()] == ':' || text[op.size()] == '(');
  if (named) throw error;
  throw Error(Status(error.code(), fmt::format("{}: {}", op, text), error.status().remedy()));
}

}  // namespace tenon
