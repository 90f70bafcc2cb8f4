#include <algorithm>

#include "core/graph/passes/passes.h"

namespace tenon::graph {

void remove_dead_code(Graph* graph, const PassOptions&) {
  std::vector<bool> given(graph->value_count(), false);
  for (ValueId id : graph->outputs()) given[id] = true;
  for (NodeId id = graph->last(); id != kNoNode;) {
    const NodeId before = graph->previous(id);
    const std::vector<ValueId>& results = graph->node(id).results;
    const bool needed = std::any_of(results.begin(), results.end(),
                                    [&](ValueId value) { return given[value] || !(*graph)[value].uses.empty(); });
    if (!needed) graph->erase(id);
    id = before;
  }
}

}  // namespace tenon::graph
