#include "sdk/onnx/importer/parsed_model.h"

#include <algorithm>
#include <set>

#include "primitives/text/format.h"
#include "primitives/text/visible.h"
#include "sdk/onnx/schema/schema.h"

namespace tenon::onnx {
namespace {

TypeId type_of_kind(Value::Kind kind) {
  if (kind == Value::Kind::strings) return kStringType;
  if (kind == Value::Kind::map) return kMapType;
  return kind == Value::Kind::sequence ? kSequenceType : kind == Value::Kind::optional ? kOptionalType : 0;
}

void declare_inputs(const Subgraph& graph, std::vector<TypeId>* types) {
  for (size_t i = 0; i < graph.inputs.size(); ++i)
    (*types)[static_cast<size_t>(graph.inputs[i])] = type_of(graph.input_infos[i]);
}

}  // namespace

int32_t type_of(const ValueInfo& info) {
  if (info.optional) return kOptionalType;
  return info.kind == Value::Kind::tensor ? type_id(info.dtype) : type_of_kind(info.kind);
}

int32_t type_of(const Value& value) {
  return value.is_tensor() ? type_id(value.tensor().dtype()) : type_of_kind(value.kind());
}

void malformed(const std::string& what) {
  throw Error(Code::invalid_argument, fmt::format("The model is malformed: {}.", what));
}

void check_types(const ParsedModel& parsed) {
  std::vector<TypeId> types(parsed.names.size(), 0);
  for (size_t value = 0; value < types.size(); ++value) types[value] = type_of(parsed.constants[value]);
  for (size_t i = 0; i < parsed.inputs.size(); ++i)
    types[static_cast<size_t>(parsed.input_values[i])] = type_of(parsed.inputs[i]);
  for_each_node(parsed.nodes, [&](const Node& node) {
    for_each_graph(node, [&](const Subgraph& graph) { declare_inputs(graph, &types); });
    if (node.schema == nullptr) return;
    std::vector<TypeId> inputs;
    for (int32_t value : node.inputs) inputs.push_back(value < 0 ? 0 : types[static_cast<size_t>(value)]);
    const std::string broken = broken_types(*node.schema, node, inputs);
    if (!broken.empty()) malformed(fmt::format("{}: {}: {}", label(node), node.op_type, broken));
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] >= 0)
        types[static_cast<size_t>(node.outputs[i])] = output_type(*node.schema, node, inputs, i);
    }
  });
  for (size_t i = 0; i < parsed.outputs.size(); ++i)
    check_output_type(parsed, i, types[static_cast<size_t>(parsed.output_values[i])]);
}

void check_output_type(const ParsedModel& parsed, size_t i, int32_t made) {
  const TypeId declared = type_of(parsed.outputs[i]);
  // An optional that holds a value is that value, so any type may stand for it.
  if (declared == 0 || made == 0 || declared == made || declared == kOptionalType || made == kOptionalType) return;
  malformed(fmt::format("its output {} is declared as {}, but the nodes make {}", quoted(parsed.outputs[i].name),
                        type_name(declared), type_name(made)));
}

bool ReadModel::takes_and_gives_tensors() const {
  const auto is_tensor = [](const ValueInfo& info) { return info.kind == Value::Kind::tensor && !info.optional; };
  return std::all_of(inputs.begin(), inputs.end(), is_tensor) && std::all_of(outputs.begin(), outputs.end(), is_tensor);
}

void find_captures(Node* node) {
  std::set<int32_t> captures;
  for (auto& [name, attribute] : node->attributes) {
    if (attribute.graph == nullptr) continue;
    Subgraph& graph = *attribute.graph;
    const auto note = [&](int32_t value) {
      if (value >= 0 && !std::binary_search(graph.made.begin(), graph.made.end(), value)) captures.insert(value);
    };
    for (Node& inner : graph.nodes) {
      find_captures(&inner);
      std::for_each(inner.inputs.begin(), inner.inputs.end(), note);
      std::for_each(inner.captures.begin(), inner.captures.end(), note);
    }
    std::for_each(graph.outputs.begin(), graph.outputs.end(), note);
  }
  node->captures.assign(captures.begin(), captures.end());
}

void name_nodes(ParsedModel* parsed) {
  parsed->labels = Labels();
  const auto name = [&](Node& node) {
    node.label = parsed->labels.size();
    parsed->labels.add(label_with_operator(node));
  };
  for (Node& node : parsed->nodes) name(node);
  for (Node& node : parsed->nodes) {
    for (auto& [attribute_name, attribute] : node.attributes) {
      if (attribute.graph != nullptr) for_each_node(attribute.graph->nodes, name);
    }
  }
}

void find_last_uses(ParsedModel* parsed) {
  parsed->drop_after.assign(parsed->names.size(), -1);
  for (size_t i = 0; i < parsed->nodes.size(); ++i) {
    const Node& node = parsed->nodes[i];
    for (const std::vector<int32_t>* values : {&node.outputs, &node.inputs, &node.captures}) {
      for (int32_t value : *values) {
        if (value >= 0) parsed->drop_after[static_cast<size_t>(value)] = static_cast<int32_t>(i);
      }
    }
  }
  for (int32_t value : parsed->output_values) parsed->drop_after[static_cast<size_t>(value)] = -1;
}

std::string_view attribute_kind_name(Attribute::Kind kind) {
  switch (kind) {
    case Attribute::Kind::number: return "a float";
    case Attribute::Kind::integer: return "an int";
    case Attribute::Kind::text: return "a string";
    case Attribute::Kind::numbers: return "a list of floats";
    case Attribute::Kind::integers: return "a list of ints";
    case Attribute::Kind::texts: return "a list of strings";
    case Attribute::Kind::tensor: return "a tensor";
    case Attribute::Kind::graph: return "a graph";
    case Attribute::Kind::other: break;
  }
  return "a type or a list of tensors or graphs";
}

std::string label(const Node& node) {
  return fmt::format("node {}{}{}", node.position, node.name.empty() ? "" : fmt::format(" ({})", node.name),
                     node.inside.empty() ? "" : fmt::format(" in {}", node.inside));
}

std::string label_with_operator(const Node& node) {
  return node.name.empty() ? fmt::format("{} ({})", label(node), node.op_type) : label(node);
}

bool stays_on_host(DType dtype, int64_t elements) {
  return elements <= kHostElements && (dtype == DType::i64 || dtype == DType::i32 || dtype == DType::boolean);
}

}  // namespace tenon::onnx
