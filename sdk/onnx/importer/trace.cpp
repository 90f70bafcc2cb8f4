#include "sdk/onnx/importer/trace.h"

#include <algorithm>
#include <map>

#include "core/graph/recorder.h"
#include "core/ops/ops.h"
#include "sdk/onnx/translate/translator.h"

namespace tenon::onnx {
namespace {

// What dynamic dims are taken to be when a model is checked: multiples of the strides and windows that models have. An
// error that names neither number is an error whatever the number.
constexpr int64_t kProbeDims[] = {64, 32};

std::string types_of(const Program& program, const Node& node, std::span<const Tensor> values) {
  std::string text;
  for (int32_t value : node.inputs) {
    text += text.empty() ? "" : ", ";
    if (value < 0) {
      text += "-";
    } else if (const Tensor& tensor = values[static_cast<size_t>(value)]; tensor.defined()) {
      text += std::string(dtype_name(tensor.dtype())) + tenon::to_string(tensor.dims());
    } else if (const auto found = program.declared.find(value); found != program.declared.end()) {
      text += to_string(found->second);
    } else {
      text += "?";
    }
  }
  return text;
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

// The recorder's input for `info`, dynamic dims being `dynamic`; exact is cleared where there are some.
Tensor probe_input(graph::Recorder* recorder, const ValueInfo& info, int64_t dynamic, bool* exact) {
  Dims dims;
  for (const Dim& dim : info.dims) {
    *exact = *exact && dim.value >= 0;
    dims.push_back(dim.value >= 0 ? dim.value : dynamic);
  }
  if (!checked_count(dims)) throw Error(Code::invalid_argument, "Input '" + info.name + "' has an impossible shape.");
  return recorder->input({info.dtype, dims, contiguous_strides(dims)});
}

// What came of recording every node with dynamic dims of one number.
struct Probe {
  bool exact = true;                    // there were no dynamic dims
  std::map<size_t, Status> failures;    // by node
  std::map<size_t, std::string> types;  // of the inputs of those nodes
};

bool all_constant(const Program& program, const std::vector<int32_t>& values) {
  return std::all_of(values.begin(), values.end(),
                     [&](int32_t value) { return value < 0 || program.is_constant(value); });
}

void settle_node(Program* program, const Node& node) {
  graph::Recorder recorder(program->device);
  InterpreterScope scope(recorder);
  try {
    apply_node(*program, node, &program->constants);
  } catch (const Error&) {
    return;  // found again, and told, when the model is checked
  } catch (const UnknownValue&) {
    return;
  }
  const bool known = std::all_of(node.outputs.begin(), node.outputs.end(), [&](int32_t value) {
    return value < 0 || recorder.host_value_known(program->constants[static_cast<size_t>(value)]);
  });
  if (known) return;
  for (int32_t value : node.outputs) {
    if (value >= 0) program->constants[static_cast<size_t>(value)] = Tensor();
  }
}

Probe probe(const Program& program, int64_t dynamic) {
  Probe result;
  graph::Recorder recorder(program.device, {.check_support = true});
  InterpreterScope scope(recorder);
  std::vector<Tensor> values = program.constants;
  for (size_t i = 0; i < program.inputs.size(); ++i) {
    if (program.inputs[i].dtype == DType::none || !program.inputs[i].has_shape) continue;
    values[static_cast<size_t>(program.input_values[i])] =
        probe_input(&recorder, program.inputs[i], dynamic, &result.exact);
  }
  for (size_t i = 0; i < program.nodes.size(); ++i) {
    const Node& node = program.nodes[i];
    if (node.translator == nullptr || is_settled(program, node)) continue;
    try {
      apply_node(program, node, &values);
    } catch (const UnknownValue&) {
      // Depends on elements, or on what another refused node would make: its own check was by its attributes.
    } catch (const Error& error) {
      if (error.code() != Code::unsupported && error.code() != Code::invalid_argument) throw;
      result.failures.emplace(i, error.status());
      result.types.emplace(i, types_of(program, node, values));
    }
  }
  for (size_t i = 0; i < program.outputs.size(); ++i) {
    const Tensor& made = values[static_cast<size_t>(program.output_values[i])];
    check_output_type(program, i, made.defined() ? made.dtype() : DType::none);
  }
  return result;
}

}  // namespace

void apply_node(const Program& program, const Node& node, std::vector<Tensor>* values) {
  try {
    NodeContext context(program, node, *values);
    context.check_types();
    TensorList results = node.translator->translate(context);
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] < 0) continue;
      if (i >= results.size() || !results[i].defined())
        context.unsupported("output " + std::to_string(i) + " cannot be computed");
      (*values)[static_cast<size_t>(node.outputs[i])] = std::move(results[i]);
    }
  } catch (const Error& error) {
    throw Error(error.status().with_context("  while running " + label_with_operator(node) + " on " +
                                            program.device.spelling()));
  }
}

std::vector<Tensor> initial_values(const Program& program, std::span<const Tensor> inputs) {
  std::vector<Tensor> values = program.constants;
  for (size_t i = 0; i < inputs.size(); ++i) values[static_cast<size_t>(program.input_values[i])] = inputs[i];
  return values;
}

bool is_settled(const Program& program, const Node& node) { return all_constant(program, node.outputs); }

void settle_constants(Program* program) {
  for (const Node& node : program->nodes) {
    if (node.translator != nullptr && all_constant(*program, node.inputs)) settle_node(program, node);
  }
  std::vector<bool> read(program->constants.size(), false);
  for (const Node& node : program->nodes) {
    if (is_settled(*program, node)) continue;
    for (int32_t value : node.inputs) {
      if (value >= 0) read[static_cast<size_t>(value)] = true;
    }
  }
  for (int32_t value : program->output_values) read[static_cast<size_t>(value)] = true;
  for (const Node& node : program->nodes) {
    // What a settled node makes must stay, or the node would be run again.
    for (int32_t value : node.outputs) {
      if (value >= 0) read[static_cast<size_t>(value)] = true;
    }
  }
  for (size_t value = 0; value < read.size(); ++value) {
    if (!read[value]) program->constants[value] = Tensor();
  }
}

Plan record_plan(const Program& program, std::span<const Tensor> inputs, const std::vector<bool>& by_value) {
  Plan plan;
  graph::Recorder recorder(program.device);
  InterpreterScope scope(recorder);
  std::vector<Tensor> given(inputs.begin(), inputs.end());
  for (size_t i = 0; i < given.size(); ++i) {
    if (by_value[i]) continue;
    given[i] = recorder.input({given[i].dtype(), given[i].dims(), contiguous_strides(given[i].dims())});
    plan.recorded.push_back(static_cast<uint32_t>(i));
  }
  std::vector<Tensor> values = initial_values(program, given);
  plan.nodes.push_back(-1);
  for (size_t i = 0; i < program.nodes.size(); ++i) {
    const Node& node = program.nodes[i];
    if (is_settled(program, node)) continue;
    recorder.label(label_with_operator(node));
    plan.nodes.push_back(static_cast<int32_t>(i));
    apply_node(program, node, &values);
  }
  TensorList outputs;
  for (int32_t value : program.output_values) outputs.push_back(values[static_cast<size_t>(value)]);
  plan.graph = std::make_shared<const graph::Graph>(recorder.finish(outputs));
  return plan;
}

void find_refusals(const Program& program, std::vector<std::string>* refusals) {
  const Probe first = probe(program, kProbeDims[0]);
  const bool unsure =
      !first.exact && std::any_of(first.failures.begin(), first.failures.end(),
                                  [](const auto& failure) { return failure.second.code() == Code::invalid_argument; });
  const Probe second = unsure ? probe(program, kProbeDims[1]) : first;
  for (const auto& [i, status] : first.failures) {
    const Node& node = program.nodes[i];
    const auto again = second.failures.find(i);
    const bool sure = first.exact || (again != second.failures.end() && again->second.message() == status.message());
    if (status.code() != Code::unsupported && !sure) continue;
    if (status.code() != Code::unsupported && first.exact) throw Error(status);
    refusals->push_back(label(node) + ": " + node.op_type + " (version " + std::to_string(node.version) + ") of " +
                        first.types.at(i) + ": " + first_line(status.message()));
  }
}

std::vector<uint64_t> input_dependences(const Program& program) {
  std::vector<uint64_t> bits(program.names.size(), 0);
  for (size_t i = 0; i < program.input_values.size(); ++i) {
    bits[static_cast<size_t>(program.input_values[i])] = uint64_t{1} << std::min<size_t>(i, 63);
  }
  for (const Node& node : program.nodes) {
    if (node.translator != nullptr && node.translator->reads_shapes_only) continue;
    uint64_t all = 0;
    for (int32_t value : node.inputs) all |= value < 0 ? 0 : bits[static_cast<size_t>(value)];
    for (int32_t value : node.outputs) {
      if (value >= 0) bits[static_cast<size_t>(value)] = all;
    }
  }
  return bits;
}

}  // namespace tenon::onnx
