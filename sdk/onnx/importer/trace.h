// Tracing: walks the nodes of a parsed model and applies their translators, eagerly or under a recorder.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/graph/execute/executable.h"
#include "core/graph/passes/passes.h"
#include "sdk/onnx/importer/node_context.h"
#include "sdk/onnx/importer/parsed_model.h"

namespace tenon::onnx {

struct RecordedGraph;

// The way to run one signature: a recorded graph that was prepared for it, or (without a graph) node after node.
struct RecordedModel {
  std::vector<int64_t> signature;
  std::shared_ptr<const graph::Executable> graph;
  std::vector<uint32_t> graph_inputs;         // the model's inputs that are inputs of the graph
  std::vector<int32_t> nodes;                 // by label of the graph: index into ParsedModel::nodes; -1: many, or none
  std::shared_ptr<const RecordedGraph> from;  // what it was prepared from
};

// Applies the translator of `node` to `values` and stores the results there.
// Errors: those of the ops with "  while running node 14 (...) on cpu:0"; UnknownValue.
void apply_node(const ParsedModel& parsed, const Node& node, std::vector<Value>* values);

// The values before the first node: the weights, and `inputs` in the order of the parsed model.
std::vector<Value> initial_values(const ParsedModel& parsed, std::span<const Value> inputs);

// True if the outputs of the node follow from weights alone and are known.
bool is_settled(const ParsedModel& parsed, const Node& node);

// Computes once what follows from weights alone, and frees weights that no other node reads.
void settle_constants(ParsedModel* parsed);

// A recording of the model, which serves every signature that its guards allow.
struct RecordedGraph {
  graph::Graph graph;
  std::vector<uint32_t> inputs;  // the model's inputs that are inputs of the graph
  std::vector<int32_t> nodes;    // by label of the graph, as above
  std::vector<bool> by_value;    // the inputs that are constants of the graph
  std::vector<Tensor> values;    // those inputs
};

// Whether the dynamic dims of a model are symbols of its graph, or the numbers that the inputs have.
enum class DynamicDims : uint8_t { open, numbers };

// Records `parsed` for inputs of these shapes, which are the hints of open dims. Input i is a constant if by_value[i].
// Dims of one name are one symbol if `one_size`. Errors: those of the ops; UnknownValue.
RecordedGraph record_graph(const ParsedModel& parsed, std::span<const Tensor> inputs, const std::vector<bool>& by_value,
                           DynamicDims dims, bool one_size);
// The steps of `recorded` for `inputs`, if its guards allow them; else nothing.
std::optional<RecordedModel> prepare_model(const RecordedGraph& recorded, std::span<const Tensor> inputs,
                                           const graph::PrepareOptions& options);

// Finds what cannot run, without running it: records every node and asks the device about its ops. Dynamic dims get one
// number and then another; a failure with only one of them is not judged. Adds a line per refused node. Errors: a node
// that cannot work although all shapes are known.
void find_refusals(const ParsedModel& parsed, std::vector<std::string>* refusals);

// By value: the set of inputs whose elements it depends on (bit i; inputs from 63 on share bit 63).
std::vector<uint64_t> input_dependences(const ParsedModel& parsed);

}  // namespace tenon::onnx
