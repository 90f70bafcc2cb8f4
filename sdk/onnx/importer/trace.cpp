#include "sdk/onnx/importer/trace.h"

#include <algorithm>
#include <map>

#include "core/graph/recorder.h"
#include "core/graph/signature.h"
#include "core/ops/functors/half.h"
#include "core/ops/ops.h"
#include "primitives/text/format.h"
#include "sdk/onnx/importer/text_nodes.h"
#include "sdk/onnx/translate/translator.h"

namespace tenon::onnx {
namespace {

// Values for dynamic dims during the check of a model: multiples of common strides and windows. An error that occurs
// with both values and has the same reason is taken to occur with any size. All other errors are left to the run, which
// knows the sizes.
constexpr int64_t kProbeDims[] = {64, 32};

std::string types_of(const ParsedModel& parsed, const Node& node, std::span<const Value> values) {
  std::string text;
  for (int32_t value : node.inputs) {
    text += text.empty() ? "" : ", ";
    if (value < 0) {
      text += "-";
    } else if (const Value& known = values[static_cast<size_t>(value)]; known.defined()) {
      text += to_string(known);
    } else if (const auto found = parsed.declared.find(value); found != parsed.declared.end()) {
      text += to_string(found->second);
    } else {
      text += "?";
    }
  }
  return text;
}

// The recorder's input for `info`. A dynamic dim becomes `dynamic`, and *exact becomes false.
Tensor probe_input(graph::Recorder* recorder, const ValueInfo& info, int64_t dynamic, bool* exact) {
  Dims dims;
  for (const Dim& dim : info.dims) {
    *exact = *exact && dim.value >= 0;
    dims.push_back(dim.value >= 0 ? dim.value : dynamic);
  }
  if (!checked_count(dims))
    throw Error(Code::invalid_argument, fmt::format("Input '{}' has an impossible shape.", info.name));
  return recorder->input(info.dtype, dims);
}

// The result of recording every node with one value for all dynamic dims.
struct Probe {
  bool exact = true;                    // no dim was dynamic
  std::map<size_t, Status> failures;    // indexed by node
  std::map<size_t, std::string> types;  // by node: input types of the failed nodes
};

bool all_constant(const ParsedModel& parsed, const std::vector<int32_t>& values) {
  return std::all_of(values.begin(), values.end(),
                     [&](int32_t value) { return value < 0 || parsed.is_constant(value); });
}

// True if the recorder knows the elements of all tensors of `value`.
bool all_known(graph::Recorder& recorder, const Value& value) {
  if (value.is_tensor()) return recorder.host_value_known(value.tensor());
  if (value.kind() == Value::Kind::map) return all_known(recorder, value.keys()) && all_known(recorder, value.values());
  if (value.kind() != Value::Kind::sequence) return true;
  return std::all_of(value.elements().begin(), value.elements().end(),
                     [&](const Value& element) { return all_known(recorder, element); });
}

bool has_graph(const Node& node) {
  return std::any_of(node.attributes.begin(), node.attributes.end(),
                     [](const auto& attribute) { return attribute.second.graph != nullptr; });
}

void settle_node(ParsedModel* parsed, const Node& node) {
  graph::Recorder recorder(parsed->device);
  InterpreterScope scope(recorder);
  try {
    apply_node(*parsed, node, &parsed->constants);
  } catch (const Error&) {
    return;  // the check of the model reports the error
  } catch (const UnknownValue&) {
    return;
  }
  const bool known = std::all_of(node.outputs.begin(), node.outputs.end(), [&](int32_t value) {
    return value < 0 || all_known(recorder, parsed->constants[static_cast<size_t>(value)]);
  });
  if (known) return;
  for (int32_t value : node.outputs) {
    if (value >= 0) parsed->constants[static_cast<size_t>(value)] = Value();
  }
}

Probe probe(const ParsedModel& parsed, int64_t dynamic) {
  Probe result;
  graph::Recorder recorder(parsed.device, {.check_support = true});
  InterpreterScope scope(recorder);
  std::vector<Value> values = parsed.constants;
  for (size_t i = 0; i < parsed.inputs.size(); ++i) {
    if (parsed.inputs[i].kind != Value::Kind::tensor || !parsed.inputs[i].has_shape || parsed.inputs[i].optional)
      continue;
    values[static_cast<size_t>(parsed.input_values[i])] =
        probe_input(&recorder, parsed.inputs[i], dynamic, &result.exact);
  }
  for (size_t i = 0; i < parsed.nodes.size(); ++i) {
    const Node& node = parsed.nodes[i];
    if (node.translator == nullptr || is_settled(parsed, node)) continue;
    try {
      apply_node(parsed, node, &values);
    } catch (const UnknownValue&) {
      // The node needs elements that are not known, or reads the result of a refused node. Its attributes are checked
      // already.
    } catch (const Error& error) {
      if (error.code() != Code::unsupported && error.code() != Code::invalid_argument) throw;
      result.failures.emplace(i, error.status());
      result.types.emplace(i, types_of(parsed, node, values));
    }
  }
  for (size_t i = 0; i < parsed.outputs.size(); ++i) {
    check_output_type(parsed, i, type_of(values[static_cast<size_t>(parsed.output_values[i])]));
  }
  return result;
}

ValueList translated(const ParsedModel& parsed, NodeContext& context, const std::vector<Value>& values) {
  const Node& node = context.node();
  if (has_text(node, values)) {
    const Translator* of_text = find_text_translator(node);
    if (of_text != nullptr) return of_text->translate_values(context);
    if (node.translator->translate_values == nullptr) return move_text(parsed, node, values);
  }
  if (node.translator->translate_values != nullptr) return node.translator->translate_values(context);
  TensorList tensors = node.translator->translate(context);
  return {std::make_move_iterator(tensors.begin()), std::make_move_iterator(tensors.end())};
}

using functors::is_half;

// Runs the translator; if the first input is f16 or bf16, inputs of these types are converted to f32.
ValueList translated_wide(const ParsedModel& parsed, NodeContext& context, std::vector<Value>* values) {
  const DType dtype = context.dtype(0);
  std::vector<std::pair<size_t, Value>> narrow;
  for (const int32_t input : context.node().inputs) {
    if (input < 0) continue;
    Value& value = (*values)[static_cast<size_t>(input)];
    if (!value.is_tensor() || !is_half(value.tensor().dtype())) continue;
    narrow.emplace_back(static_cast<size_t>(input), value);
    value = Value(cast(value.tensor(), DType::f32));
  }
  const auto restore = [&] {
    for (auto& [input, value] : narrow) (*values)[input] = std::move(value);
  };
  ValueList results;
  try {
    results = translated(parsed, context, *values);
  } catch (...) {
    restore();
    throw;
  }
  restore();
  for (Value& result : results) {
    if (result.defined() && result.tensor().dtype() == DType::f32) result = Value(cast(result.tensor(), dtype));
  }
  return results;
}

}  // namespace

void apply_node(const ParsedModel& parsed, const Node& node, std::vector<Value>* values) {
  // Nodes after refused nodes are applied only during the check of a model.
  if (node.translator == nullptr) throw UnknownValue(node.outputs.empty() ? -1 : node.outputs[0]);
  const std::string& name = parsed.labels[node.label];
  const LabelScope scope(name);
  const PrecisionScope precision(parsed.precision);
  try {
    NodeContext context(parsed, node, values);
    context.check_rules();
    const bool is_wide = node.translator->wide && context.has(0) && is_half(context.dtype(0));
    ValueList results = is_wide ? translated_wide(parsed, context, values) : translated(parsed, context, *values);
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] < 0) continue;
      if (i >= results.size() || !results[i].defined())
        context.unsupported(fmt::format("output {} cannot be computed", i));
      (*values)[static_cast<size_t>(node.outputs[i])] = std::move(results[i]);
    }
  } catch (const Error& error) {
    throw Error(with_label(error.status(), name, parsed.device.spelling()));
  }
}

std::vector<Value> initial_values(const ParsedModel& parsed, std::span<const Value> inputs) {
  std::vector<Value> values = parsed.constants;
  for (size_t i = 0; i < inputs.size(); ++i) values[static_cast<size_t>(parsed.input_values[i])] = inputs[i];
  return values;
}

bool is_settled(const ParsedModel& parsed, const Node& node) { return all_constant(parsed, node.outputs); }

void settle_constants(ParsedModel* parsed) {
  // A loop may run for any time, so nodes with graphs are not computed at load.
  for_each_node(parsed->nodes, [&](const Node& node) {
    if (node.translator != nullptr && !has_graph(node) && all_constant(*parsed, node.inputs)) settle_node(parsed, node);
  });
  std::vector<bool> read(parsed->constants.size(), false);
  const auto mark = [&](const std::vector<int32_t>& values) {
    for (int32_t value : values) {
      if (value >= 0) read[static_cast<size_t>(value)] = true;
    }
  };
  for_each_node(parsed->nodes, [&](const Node& node) {
    if (!is_settled(*parsed, node)) mark(node.inputs);
    mark(node.outputs);  // keep the values of a settled node, or it would run again
    for_each_graph(node, [&](const Subgraph& graph) { mark(graph.outputs); });
  });
  mark(parsed->output_values);
  for (size_t value = 0; value < read.size(); ++value) {
    if (!read[value]) parsed->constants[value] = Value();
  }
}

namespace {

// One name per axis: the symbol of a dynamic dim, else empty. All dims of an input without a shape are dynamic.
std::vector<std::string> symbols_of(const ValueInfo& info, const Tensor& given, DynamicDims dims, bool one_size) {
  std::vector<std::string> symbols(static_cast<size_t>(given.rank()));
  const bool declared = info.has_shape && info.dims.size() == symbols.size();
  for (size_t axis = 0; axis < symbols.size() && dims == DynamicDims::open; ++axis) {
    if (declared && info.dims[axis].value == given.dims()[static_cast<int64_t>(axis)]) continue;
    const bool named = one_size && declared && !info.dims[axis].name.empty();
    symbols[axis] = named ? info.dims[axis].name : fmt::format("{}.{}", info.name, axis);
  }
  return symbols;
}

}  // namespace

RecordedGraph record_graph(const ParsedModel& parsed, std::span<const Tensor> inputs, const std::vector<bool>& by_value,
                           DynamicDims dims, bool one_size) {
  graph::Recorder recorder(parsed.device);
  InterpreterScope scope(recorder);
  std::vector<uint32_t> graph_inputs;
  std::vector<int32_t> nodes{-1};
  std::vector<Tensor> given(inputs.begin(), inputs.end());
  for (size_t i = 0; i < given.size(); ++i) {
    if (by_value[i]) continue;
    const std::vector<std::string> symbols = symbols_of(parsed.inputs[i], given[i], dims, one_size);
    given[i] = recorder.input(given[i].dtype(), given[i].dims(), symbols, parsed.inputs[i].name);
    graph_inputs.push_back(static_cast<uint32_t>(i));
  }
  std::vector<Value> values = initial_values(parsed, ValueList(given.begin(), given.end()));
  for (size_t i = 0; i < parsed.nodes.size(); ++i) {
    const Node& node = parsed.nodes[i];
    if (is_settled(parsed, node)) continue;
    recorder.label(parsed.labels[i]);
    nodes.push_back(static_cast<int32_t>(i));
    apply_node(parsed, node, &values);
  }
  TensorList outputs;
  for (int32_t value : parsed.output_values) outputs.push_back(values[static_cast<size_t>(value)].tensor());
  std::vector<Tensor> constants(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (by_value[i]) constants[i] = inputs[i];
  }
  return {recorder.finish(outputs), std::move(graph_inputs), std::move(nodes), by_value, std::move(constants)};
}

std::optional<RecordedModel> prepare_model(const RecordedGraph& recorded, std::span<const Tensor> inputs,
                                           const graph::PrepareOptions& options) {
  TensorList taken;
  for (uint32_t i : recorded.inputs) taken.push_back(inputs[i]);
  symbolic::Values sizes(recorded.graph.arena());
  if (!graph::why_not(recorded.graph, taken, &sizes).empty()) return std::nullopt;
  RecordedModel model;
  model.graph = std::make_shared<const graph::Executable>(graph::prepare(recorded.graph, &sizes, options));
  model.graph_inputs = recorded.inputs;
  model.nodes = recorded.nodes;
  model.nodes.resize(model.graph->labels->size(), -1);
  return model;
}

void find_refusals(const ParsedModel& parsed, std::vector<std::string>* refusals) {
  const Probe first = probe(parsed, kProbeDims[0]);
  const bool unsure = !first.exact && !first.failures.empty();
  const Probe second = unsure ? probe(parsed, kProbeDims[1]) : first;
  for (const auto& [i, status] : first.failures) {
    const Node& node = parsed.nodes[i];
    const auto again = second.failures.find(i);
    // The arguments of a refused call show the probe values of dynamic dims, so only the reasons are compared.
    const bool sure =
        first.exact || (again != second.failures.end() && again->second.parts().reason == status.parts().reason);
    if (!sure) continue;
    if (status.code() != Code::unsupported && first.exact) throw Error(status);
    refusals->push_back(fmt::format("{}: {} (version {}) of {}: {}", label(node), node.op_type, node.version,
                                    first.types.at(i), status.sentence()));
  }
}

std::vector<uint64_t> input_dependences(const ParsedModel& parsed) {
  std::vector<uint64_t> bits(parsed.names.size(), 0);
  for (size_t i = 0; i < parsed.input_values.size(); ++i) {
    bits[static_cast<size_t>(parsed.input_values[i])] = uint64_t{1} << std::min<size_t>(i, 63);
  }
  for (const Node& node : parsed.nodes) {
    if (node.translator != nullptr && node.translator->reads_shapes_only) continue;
    uint64_t all = 0;
    for (int32_t value : node.inputs) all |= value < 0 ? 0 : bits[static_cast<size_t>(value)];
    for (int32_t value : node.captures) all |= bits[static_cast<size_t>(value)];
    const auto depend = [&](const std::vector<int32_t>& values) {
      for (int32_t value : values) {
        if (value >= 0) bits[static_cast<size_t>(value)] = all;
      }
    };
    depend(node.outputs);
    for_each_graph(node, [&](const Subgraph& graph) { depend(graph.made); });
  }
  return bits;
}

}  // namespace tenon::onnx
