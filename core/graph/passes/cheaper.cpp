// Replaces ops that exporters write in an expensive form: x to the power of 2, 1 over a root, and x times its sigmoid.
#include "core/graph/passes/match.h"
#include "core/graph/passes/passes.h"

namespace tenon::graph {
namespace {

// Replaces `id` by `op` of `x`, if the result has the same dtype and dims.
void put(Graph* graph, NodeId id, OpId op, ValueId x) {
  const Value &from = (*graph)[x], &to = (*graph)[result(*graph, id)];
  if (from.dtype != to.dtype || from.device != to.device || !same_dims(from.dims, to.dims)) return;
  graph->replace(result(*graph, id), put_before(graph, id, op, {x}));
}

void make_cheaper(Graph* graph, NodeId id) {
  const std::vector<ValueId> inputs = graph->node(id).inputs;
  if (inputs.size() != 2 || !is_floating((*graph)[result(*graph, id)].dtype)) return;
  if (is(*graph, id, OpId::pow) && inputs[0] != 0 && number(*graph, id, 1) == 2.0) {
    put(graph, id, OpId::square, inputs[0]);
  } else if (is(*graph, id, OpId::div) && inputs[1] != 0 && number(*graph, id, 0) == 1.0) {
    const NodeId root = maker(*graph, inputs[1], OpId::sqrt);
    if (root != kNoNode) put(graph, id, OpId::rsqrt, graph->node(root).inputs[0]);
  } else if (is(*graph, id, OpId::mul)) {
    for (size_t i = 0; i < 2; ++i) {
      const NodeId sigmoid = maker(*graph, inputs[i], OpId::sigmoid);
      if (sigmoid == kNoNode || graph->node(sigmoid).inputs[0] != inputs[1 - i]) continue;
      return put(graph, id, OpId::silu, inputs[1 - i]);
    }
  }
}

}  // namespace

void find_cheaper_ops(Graph* graph, const PassOptions& options) {
  for (NodeId id = graph->first(); id != kNoNode; id = graph->next(id)) make_cheaper(graph, id);
  remove_dead_code(graph, options);
}

}  // namespace tenon::graph
