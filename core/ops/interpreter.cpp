#include "core/device/call_context.h"
#include "core/ops/composite.h"
#include "core/ops/op_call.h"
#include "core/tensor/recording.h"
#include "primitives/accuracy/accuracy.h"
#include "primitives/text/format.h"

namespace tenon {
namespace {

// Not exported, so that it can be inlined.
Interpreter* current() {
  Interpreter* interpreter = call_context.interpreter;
  if (interpreter == nullptr) [[likely]]
    interpreter = process_interpreter.load(std::memory_order_acquire);
  return interpreter;
}

}  // namespace

Interpreter& current_interpreter() { return *current(); }

void submit(const OpCall& call) { current()->apply(call); }

bool Interpreter::keeps(const OpInfo&) const { return false; }

void compose(const OpCall& call, Interpreter& below) {
  const InterpreterScope scope(below);
  const PrecisionScope precision(call.precision);
  const SpreadValue* value = values_elsewhere.load(std::memory_order_relaxed) ? value_elsewhere(call) : nullptr;
  value == nullptr ? call.op->compose(call) : value->compose(call);
}

const SpreadValue* value_elsewhere(const OpCall& call) {
  for (const Tensor* input : call.inputs) {
    const SpreadValue* value = input == nullptr ? nullptr : spread_value(*input);
    if (value != nullptr) return value;
  }
  for (const Tensor& output : call.outputs) {
    if (const SpreadValue* value = spread_value(output)) return value;
  }
  return nullptr;
}

InterpreterScope::InterpreterScope(Interpreter& interpreter) : previous_(call_context.interpreter) {
  call_context.interpreter = &interpreter;
}
InterpreterScope::~InterpreterScope() { call_context.interpreter = previous_; }

std::string_view precision_name(Precision precision) {
  return precision == Precision::stated ? "stated" : tier_name(static_cast<Tier>(precision));
}

Result<Precision> precision_from_name(std::string_view name) {
  std::string names;
  for (Precision each : precisions) {
    if (name == precision_name(each)) return each;
    names += (names.empty() ? "" : each == Precision::full ? " or " : ", ") + std::string(precision_name(each));
  }
  return Status(Code::invalid_argument, fmt::format("precision: '{}' is unknown; it may be {}.", name, names));
}

Precision current_precision() { return demanded_precision; }

PrecisionScope::PrecisionScope(Precision precision) : previous_(demanded_precision) { demanded_precision = precision; }
PrecisionScope::~PrecisionScope() { demanded_precision = previous_; }

void composite::rethrow_as(std::string_view op, const Error& error) {
  const std::string_view subject = error.status().parts().subject;
  if (subject == op) throw;
  const bool is_in_place_form = op.ends_with('_') && subject == op.substr(0, op.size() - 1);
  throw Error(is_in_place_form ? error.status().with_subject(op) : error.status().with_caller(op));
}

}  // namespace tenon
