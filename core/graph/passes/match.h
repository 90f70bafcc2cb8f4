// Helpers of passes that match patterns in a graph. Internal to core/graph/passes.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <optional>
#include <vector>

#include "core/device/export.h"
#include "core/graph/graph.h"
#include "core/ops/op_rows.h"

namespace tenon::graph {

// `attributes` in the words in which a node stores them.
template <class T>
std::vector<uint64_t> words_of(const T& attributes) {
  std::vector<uint64_t> words((sizeof attributes + 7) / 8);
  std::memcpy(words.data(), &attributes, sizeof attributes);
  return words;
}

// A key that is equal for two nodes without regions that compute the same.
TENON_API std::vector<uint64_t> key_of(const Node& node);

inline bool is(const Graph& graph, NodeId node, OpId op) {
  return node != kNoNode && graph.node(node).op == &op_row(op);
}

// The node that computes `value` if its op is `op`; else kNoNode.
inline NodeId maker(const Graph& graph, ValueId value, OpId op) {
  const NodeId producer = value == 0 ? kNoNode : graph[value].producer;
  return is(graph, producer, op) ? producer : kNoNode;
}

// The only node that reads `value`, if it reads it once and `value` is not an output; else kNoNode.
inline NodeId only_reader(const Graph& graph, ValueId value) {
  const std::vector<Use>& uses = graph[value].uses;
  return uses.size() == 1 && !graph.is_output(value) ? uses[0].node : kNoNode;
}
inline NodeId only_reader(const Graph& graph, ValueId value, OpId op) {
  const NodeId reader = only_reader(graph, value);
  return is(graph, reader, op) ? reader : kNoNode;
}

inline ValueId result(const Graph& graph, NodeId node) { return graph.node(node).results[0]; }

// The parts of a node besides its op and its inputs.
struct NodeParts {
  std::vector<Scalar> scalars = {};
  std::vector<uint64_t> attributes = {};
  std::vector<Patch> patches = {};
};
// Inserts `op` before the node `at`, with the precision and label of `at`, and returns its first result.
ValueId put_before(Graph* graph, NodeId at, OpId op, std::vector<ValueId> inputs, NodeParts parts = {});

// The other argument of a binary node that has the argument `one`; 0 if the other is a number, or if both are `one`.
inline ValueId other_input(const Graph& graph, NodeId node, ValueId one) {
  const std::vector<ValueId>& inputs = graph.node(node).inputs;
  if (inputs.size() != 2 || inputs[0] == inputs[1]) return 0;
  return inputs[0] == one ? inputs[1] : inputs[1] == one ? inputs[0] : 0;
}

// Argument `index` of an element-wise node as a number, if it is a scalar, or a constant of one element that does not
// widen the result.
std::optional<double> number(const Graph& graph, NodeId node, size_t index);
// The other argument of a binary node that has the argument `one`, as a number.
inline std::optional<double> other_number(const Graph& graph, NodeId node, ValueId one) {
  const std::vector<ValueId>& inputs = graph.node(node).inputs;
  if (inputs.size() != 2 || (inputs[0] == one) == (inputs[1] == one)) return std::nullopt;
  return number(graph, node, inputs[0] == one ? 1 : 0);
}

// True if `found` equals `wanted` up to the rounding of a number in a file.
inline bool is_about(std::optional<double> found, double wanted) {
  return found && std::fabs(*found - wanted) <= 1e-6 * std::fabs(wanted);
}

inline bool same_dims(const SymDims& a, const SymDims& b) {
  if (a.rank() != b.rank()) return false;
  for (int32_t axis = 0; axis < a.rank(); ++axis) {
    if (!identical(a[axis], b[axis])) return false;
  }
  return true;
}

}  // namespace tenon::graph
