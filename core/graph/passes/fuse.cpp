// Replaces nodes that one kernel can compute by one node.
#include "core/graph/fusion.h"
#include "core/graph/passes/passes.h"
#include "core/graph/regions/regions.h"

namespace tenon::graph {

// Fused nodes are not fused again; control flow has regions of its own.
void fuse(Graph* graph, const PassOptions& options) {
  for (NodeId id = graph->first(); id != kNoNode; id = graph->next(id)) {
    if (is_fused(graph->node(id))) continue;
    for (const std::shared_ptr<Graph>& region : graph->node(id).regions) fuse(region.get(), options);
  }
  const std::string decided = fuse_nodes(graph, FusedGroups::several, options.decisions != nullptr);
  if (options.decisions != nullptr) *options.decisions += decided;
}

}  // namespace tenon::graph
