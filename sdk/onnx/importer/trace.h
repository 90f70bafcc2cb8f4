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

// How to run one signature: a recorded graph prepared for it or, without a graph, node after node.
struct RecordedModel {
  std::shared_ptr<const graph::Executable> graph;
  std::vector<uint32_t> graph_inputs;         // numbers of the model's inputs that are inputs of the graph
  std::vector<int32_t> nodes;                 // by label of the graph: index into ParsedModel::nodes; -1: none or
                                              // several
  std::shared_ptr<const RecordedGraph> from;  // the recording that it was prepared from
};

// Applies the translator of `node` to `values` and stores the results there.
// Errors: those of the ops with "  while running node 14 (...) on cpu:0"; UnknownValue.
void apply_node(const ParsedModel& parsed, const Node& node, std::vector<Value>* values);

// The values before the first node: the weights, and `inputs` in the order of the parsed model.
std::vector<Value> initial_values(const ParsedModel& parsed, std::span<const Value> inputs);

// True if the outputs of the node depend only on weights and are known.
bool is_settled(const ParsedModel& parsed, const Node& node);

// Computes the nodes that depend only on weights, and frees weights that no other node reads.
void settle_constants(ParsedModel* parsed);

// A recording of the model. It serves every signature that its guards allow.
struct RecordedGraph {
  graph::Graph graph;
  std::vector<uint32_t> inputs;  // numbers of the model's inputs that are inputs of the graph
  std::vector<int32_t> nodes;    // by label of the graph, as in RecordedModel
  std::vector<bool> by_value;    // by input: true if it is a constant of the graph
  std::vector<Tensor> values;    // the constant inputs
};

// How a recording treats dynamic dims: as symbols of the graph, or as the numbers that the inputs have.
enum class DynamicDims : uint8_t { open, numbers };

// Records `parsed` with the shapes of `inputs`; for open dims they are hints. Input i becomes a constant if
// by_value[i]. If `one_size`, dims of one name become one symbol. Errors: those of the ops; UnknownValue.
RecordedGraph record_graph(const ParsedModel& parsed, std::span<const Tensor> inputs, const std::vector<bool>& by_value,
                           DynamicDims dims, bool one_size);
// Prepares `recorded` for `inputs`; nothing if its guards do not allow them.
std::optional<RecordedModel> prepare_model(const RecordedGraph& recorded, std::span<const Tensor> inputs,
                                           const graph::PrepareOptions& options);

// Finds the nodes that cannot run, without running them: records every node and asks the device about its ops. This is
// done with two values for dynamic dims; a failure with only one of them is ignored. Adds a line per refused node.
// Errors: a node that cannot work although all shapes are known.
void find_refusals(const ParsedModel& parsed, std::vector<std::string>* refusals);

// By value: the inputs whose elements it depends on (bit i; inputs from 63 on share bit 63).
std::vector<uint64_t> input_dependences(const ParsedModel& parsed);

}  // namespace tenon::onnx
