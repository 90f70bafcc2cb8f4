#include "core/compile/program.h"

#include <algorithm>

#include "core/autograd/autograd.h"
#include "core/compile/recorded_function.h"
#include "core/ops/ops.h"
#include "primitives/text/format.h"

namespace tenon::compilation {
namespace {

// Tensors like `examples` that share no memory, so that each becomes an input of its own.
TensorList apart(const std::string& name, const TensorList& examples) {
  TensorList made;
  for (size_t i = 0; i < examples.size(); ++i) {
    if (!examples[i].defined()) {
      throw Error(Subject{name}, Code::invalid_argument, fmt::format("argument {} is an undefined tensor.", i));
    }
    made.push_back(empty(examples[i].dims(), examples[i].dtype(), examples[i].device()));
  }
  return made;
}

void refuse_effects(const std::string& name, const RecordedFunction& recording) {
  if (!recording.writes.empty()) {
    const Argument& written = recording.arguments[recording.writes.front().argument];
    const bool own = written.of == RootOf::input;
    throw Error(
        Code::unsupported,
        own ? fmt::format("{}: it writes its argument {}, but a standalone program cannot write tensors.", name,
                          written.input)
            : fmt::format(
                  "{}: it writes a tensor from outside of shape {}, but a standalone program cannot write tensors.",
                  name, written.tensor.dims()),
        own ? "Let the function write into a clone() of the tensor."
            : "Call eval() on the module first: batch norms update their statistics in training.");
  }
  const auto leaves = [](const SlotUpdate& update) { return update.kind != SlotUpdate::keep; };
  if (std::any_of(recording.slots.begin(), recording.slots.end(), leaves)) {
    throw Error(Subject{name}, Code::unsupported,
                "it leaves gradients on tensors, but a standalone program has no such state.",
                "Remove the call of backward() from the function.");
  }
  if (recording.global) {
    throw Error(Subject{name}, Code::unsupported, "it uses global tensors, but a standalone program runs on one rank.",
                "Pass whole tensors to the function: to_local() of tensors that are whole on every rank.");
  }
  if (recording.drawn != 0) {
    throw Error(Subject{name}, Code::unsupported, "it draws random numbers, but a standalone program has no generator.",
                "Call eval() on the module first: dropout draws random numbers only in training.");
  }
}

}  // namespace

graph::Graph record_program(const std::function<TensorList(const TensorList&)>& function, const std::string& name,
                            const TensorList& examples, const std::function<bool(const OpInfo&)>& lacks) {
  const NoGrad scope;
  CompileOptions options;
  options.name = name;
  const TensorList inputs = apart(name, examples);
  Taken taken = record(function, options, inputs, {}, nullptr, Writes::kept, lacks);
  RecordedFunction& recording = *taken.recording;
  refuse_effects(name, recording);
  graph::Graph program = std::move(recording.recorded);
  const std::vector<graph::ValueId> all(program.inputs().begin(), program.inputs().end());
  std::vector<graph::ValueId> own, outputs;
  for (const ResultSource& result : recording.results) {
    switch (result.kind) {
      case ResultSource::output: outputs.push_back(program.outputs()[result.index]); break;
      case ResultSource::argument: outputs.push_back(all[result.index]); break;
      case ResultSource::outside: outputs.push_back(program.add_constant(result.tensor)); break;
    }
  }
  program.set_outputs(std::move(outputs));
  for (size_t i = 0; i < recording.arguments.size(); ++i) {
    if (recording.arguments[i].of == RootOf::input) {
      own.push_back(all[i]);
      continue;
    }
    program.replace(all[i], program.add_constant(recording.arguments[i].tensor));
  }
  program.keep_inputs(std::move(own));
  return program;
}

SymDim ProgramSizes::resolve(SymDim size) { return arena_.resolve(size); }

SymDims ProgramSizes::resolve(const SymDims& sizes) {
  SymDims resolved;
  for (const SymDim each : sizes) resolved.push_back(arena_.resolve(each));
  return resolved;
}

const symbolic::Node& ProgramSizes::node(SymDim size) const { return arena_.node(size); }

bool ProgramSizes::is_natural(SymDim size) const { return arena_.range(size).lo >= 0; }

int64_t ProgramSizes::fix(SymDim given) {
  const SymDim size = arena_.resolve(given);
  if (size.is_number()) return size.number();
  const symbolic::Node node = arena_.node(size);
  switch (node.kind) {
    case symbolic::Kind::symbol: arena_.assume({Relation::eq, size, arena_.hint(size).value()}); break;
    case symbolic::Kind::sum:
      for (const symbolic::Term& term : node.terms) {
        for (const symbolic::Factor& factor : term.monomial) fix(arena_.atom(factor.atom));
      }
      break;
    default: fix(node.a); fix(node.b);
  }
  return arena_.resolve(size).number();
}

}  // namespace tenon::compilation
