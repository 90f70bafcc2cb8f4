// Finds gelu as exporters write it: x / sqrt(2) or x * sqrt(1/2), erf, + 1, and times x and 1/2 in any order.
#include <cmath>

#include "core/graph/passes/match.h"
#include "core/graph/passes/passes.h"

namespace tenon::graph {
namespace {

// x if the node `id` computes x / sqrt(2); else 0.
ValueId over_root_two(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  if (is(graph, id, OpId::div)) {
    return is_about(number(graph, id, 1), std::sqrt(2.0)) ? node.inputs[0] : 0;
  }
  if (!is(graph, id, OpId::mul)) return 0;
  for (size_t i = 0; i < 2; ++i) {
    if (is_about(number(graph, id, 1 - i), std::sqrt(0.5))) return node.inputs[i];
  }
  return 0;
}

// The last node of the pattern if `product` multiplies `sum` by x; else kNoNode.
NodeId last_of(const Graph& graph, NodeId product, ValueId sum, ValueId x) {
  const ValueId other = other_input(graph, product, sum);
  if (other == x) {
    const NodeId half = only_reader(graph, result(graph, product), OpId::mul);
    return half != kNoNode && is_about(other_number(graph, half, result(graph, product)), 0.5) ? half : kNoNode;
  }
  const NodeId half = maker(graph, other, OpId::mul);
  return half != kNoNode && is_about(other_number(graph, half, x), 0.5) ? product : kNoNode;
}

void find_gelu(Graph* graph, NodeId scaled) {
  const ValueId x = over_root_two(*graph, scaled);
  if (x == 0) return;
  const NodeId erf = only_reader(*graph, result(*graph, scaled), OpId::erf);
  const NodeId add = erf == kNoNode ? kNoNode : only_reader(*graph, result(*graph, erf), OpId::add);
  if (add == kNoNode || !is_about(other_number(*graph, add, result(*graph, erf)), 1.0)) return;
  const NodeId product = only_reader(*graph, result(*graph, add), OpId::mul);
  const NodeId last = product == kNoNode ? kNoNode : last_of(*graph, product, result(*graph, add), x);
  if (last == kNoNode || !same_dims((*graph)[result(*graph, last)].dims, (*graph)[x].dims)) return;
  Node gelu;
  gelu.op = &op_row(OpId::gelu);
  gelu.inputs = {x};
  gelu.precision = graph->node(last).precision;
  gelu.label = graph->node(last).label;
  const NodeId made = graph->insert(last, std::move(gelu));
  graph->replace(result(*graph, last), result(*graph, made));
}

}  // namespace

void find_gelus(Graph* graph, const PassOptions& options) {
  for (NodeId id = graph->first(); id != kNoNode; id = graph->next(id)) {
    if (is(*graph, id, OpId::div) || is(*graph, id, OpId::mul)) find_gelu(graph, id);
  }
  remove_dead_code(graph, options);
}

}  // namespace tenon::graph
