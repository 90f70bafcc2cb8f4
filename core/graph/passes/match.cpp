#include "core/graph/passes/match.h"

#include <algorithm>
#include <utility>

#include "core/ops/scalar_patch.h"

namespace tenon::graph {

std::optional<double> number(const Graph& graph, NodeId node, size_t index) {
  const Node& of = graph.node(node);
  const auto is_open = [&](const Patch& patch) { return patch.word == kScalarPatch + index; };
  if (std::any_of(of.patches.begin(), of.patches.end(), is_open)) return std::nullopt;
  if (of.inputs[index] == 0)
    return index < of.scalars.size() ? std::optional(of.scalars[index].to_double()) : std::nullopt;
  const Tensor& constant = graph[of.inputs[index]].constant;
  if (!constant.defined() || constant.elements() != 1 || constant.rank() > 1) return std::nullopt;
  return constant.item().to_double();
}

ValueId put_before(Graph* graph, NodeId at, OpId op, std::vector<ValueId> inputs, NodeParts parts) {
  Node node;
  node.op = &op_row(op);
  node.inputs = std::move(inputs);
  node.scalars = std::move(parts.scalars);
  node.attributes = std::move(parts.attributes);
  node.patches = std::move(parts.patches);
  node.precision = graph->node(at).precision;
  node.label = graph->node(at).label;
  return result(*graph, graph->insert(at, std::move(node)));
}

}  // namespace tenon::graph
