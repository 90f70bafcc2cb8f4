// Walks the nodes of a parsed model and applies their translators, for real or under a recorder.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "sdk/onnx/importer/node_context.h"
#include "sdk/onnx/importer/parsed_model.h"

namespace tenon::onnx {

// How a model runs for one signature: by the graph that was recorded for it, or, without a graph, node after node.
struct Recording {
  std::vector<int64_t> signature;
  std::shared_ptr<const graph::Graph> graph;
  std::vector<uint32_t> graph_inputs;  // the model's inputs that are inputs of the graph
  std::vector<int32_t> nodes;          // by label of the graph: position in ParsedModel::nodes
};

// Applies the translator of `node` to `values` and stores its results there.
// Errors: those of the ops with "  while running node 14 (...) on cpu:0"; UnknownValue.
void apply_node(const ParsedModel& parsed, const Node& node, std::vector<Tensor>* values);

// The values of `parsed` before its first node: weights, and `inputs` in its order.
std::vector<Tensor> initial_values(const ParsedModel& parsed, std::span<const Tensor> inputs);

// True if the node has nothing left to do: its outputs follow from weights alone and are known.
bool is_settled(const ParsedModel& parsed, const Node& node);

// Computes what follows from weights alone, once, and frees weights that then nobody reads.
void settle_constants(ParsedModel* parsed);

// Records `parsed` for inputs of these shapes. Inputs i with by_value[i] are taken as constants.
// Errors: those of the ops; UnknownValue.
Recording record_model(const ParsedModel& parsed, std::span<const Tensor> inputs, const std::vector<bool>& by_value);

// Looks for what cannot run without running it: every node is recorded and its ops are put before the device. Dynamic
// dims are taken to be one number, then another; what goes wrong for one of them only is not judged. Appends a line per
// node that is refused. Errors: a node that cannot work, all shapes being known.
void find_refusals(const ParsedModel& parsed, std::vector<std::string>* refusals);

// By value: the inputs (bit i, those from 63 on share bit 63) whose elements it depends on.
std::vector<uint64_t> input_dependences(const ParsedModel& parsed);

}  // namespace tenon::onnx
