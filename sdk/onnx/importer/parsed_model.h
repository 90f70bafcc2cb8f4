// ParsedModel: a model file as checked nodes over numbered values, with its weights as tensors. Immutable after
// reading.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/tensor/labels.h"
#include "core/tensor/tensor.h"
#include "sdk/onnx/importer/kept.h"
#include "sdk/onnx/onnx.h"
#include "sdk/onnx/tensors/tensor_data.h"

namespace tenon::onnx {

struct Schema;
struct Subgraph;
struct Translator;

struct Attribute {
  enum class Kind : uint8_t { number, integer, text, numbers, integers, texts, tensor, graph, other };
  Kind kind = Kind::other;
  float f = 0;
  int64_t i = 0;
  std::string s;
  std::vector<float> floats;
  std::vector<int64_t> ints;
  std::vector<std::string> strings;
  Tensor tensor;      // on the host
  Value text_tensor;  // for kind tensor: a tensor of strings, which `tensor` cannot hold
  std::shared_ptr<Subgraph> graph;
};

// "a float" or "a list of ints", for messages.
std::string_view attribute_kind_name(Attribute::Kind kind);

struct Node {
  int32_t position = 0;  // position in the graph; for a node of a function, the position of the calling node
  std::string inside;    // "the body of node 4 (Loop)"; empty outside the graphs of attributes
  std::string name, op_type, domain;
  int64_t version = 0;            // opset version of the node's domain; of ai.onnx for a copied operator
                                  // (copied_version)
  std::vector<int32_t> inputs;    // value numbers; -1: absent
  std::vector<int32_t> outputs;   // value numbers; -1: the output is unused
  std::vector<int32_t> captures;  // values of outer graphs that the graphs of this node read
  size_t label = 0;               // index into ParsedModel::labels
  std::map<std::string, Attribute, std::less<>> attributes;
  const Schema* schema = nullptr;          // NULL: unknown operator
  const Translator* translator = nullptr;  // NULL: not translated
  mutable Kept kept;                       // what the translator built from the attributes
};

// The graph of an attribute: a branch, or the body of a loop. All values of a model are numbered together, so its nodes
// can read values of outer graphs by their numbers.
struct Subgraph {
  std::vector<Node> nodes;
  std::vector<int32_t> inputs, outputs;
  std::vector<int32_t> made;  // the inputs of the graph, and the results of its nodes
  std::vector<ValueInfo> input_infos, output_infos;
};

// "node 14 (/encoder/MatMul)"
std::string label(const Node& node);
// A label that always names the operator: "node 14 (MatMul)" for a node without a name.
std::string label_with_operator(const Node& node);

// The part of a parsed model that its copies share.
struct ReadModel {
  std::vector<std::string> names;   // indexed by value
  std::vector<Value> constants;     // by value: weights and values computed only from weights; else undefined
  std::vector<int32_t> drop_after;  // by value: the last node that reads it; -1: keep it to the end
  std::vector<Node> nodes;          // in an order in which they can run
  std::vector<int32_t> input_values, default_values, output_values;
  std::vector<ValueInfo> inputs, defaults, outputs;  // defaults: inputs that have an initialiser
  std::map<int32_t, ValueInfo> declared;             // by value: declared inputs and outputs of the file
  ModelInfo info;
  Device device;
  Precision precision = Precision::stated;

  bool is_constant(int32_t value) const { return constants[static_cast<size_t>(value)].defined(); }
  // True if all inputs and outputs are tensors of numbers.
  bool takes_and_gives_tensors() const;
};

struct ParsedModel : ReadModel {
  Labels labels;  // from name_nodes: labels of `nodes` in order, then of the nodes in their graphs
};

// Calls `visit(graph)` for the graphs of a node, but not for graphs inside them.
template <class Visit>
void for_each_graph(const Node& node, Visit visit) {
  for (const auto& [name, attribute] : node.attributes) {
    if (attribute.graph != nullptr) visit(*attribute.graph);
  }
}

// Calls `visit(node)` for `nodes` and for all nodes in their graphs, outer ones first.
template <class Nodes, class Visit>
void for_each_node(Nodes& nodes, Visit visit) {
  for (auto& node : nodes) {
    visit(node);
    for (auto& [name, attribute] : node.attributes) {
      if (attribute.graph != nullptr) for_each_node(attribute.graph->nodes, visit);
    }
  }
}

// Integer tensors of at most this many elements stay on the host, because they are usually shapes, axes or indices.
constexpr int64_t kHostElements = 1024;
bool stays_on_host(DType dtype, int64_t elements);

// Throws invalid_argument: "The model is malformed: <what>."
[[noreturn]] void malformed(const std::string& what);

// Decodes and checks `bytes`, the content of `files.model` if that is given. A well-formed part that cannot run (an
// operator without a translator, a value that is not a tensor) adds a line to `refusals`. A model with refusals cannot
// run; it only serves to find further refusals.
ParsedModel parse_model(std::string_view bytes, TensorFiles files, Device device, std::vector<std::string>* refusals);

// Checks the element types that are known without running: inputs against ONNX's rules for the operator, outputs
// against their declared types. Errors: invalid_argument.
void check_types(const ParsedModel& parsed);

// The TypeId of the value (schema/); 0 if it is not known.
int32_t type_of(const Value& value);
int32_t type_of(const ValueInfo& info);
// Checks that output i of the parsed model has the declared type. `made` is its type as a TypeId; 0: not known.
void check_output_type(const ParsedModel& parsed, size_t i, int32_t made);

// Fills `captures` of the node and of the nodes in its graphs.
void find_captures(Node* node);

// Fills `labels` for the current nodes.
void name_nodes(ParsedModel* parsed);

// Fills `drop_after` for the current nodes.
void find_last_uses(ParsedModel* parsed);

}  // namespace tenon::onnx
