// Fusion: what graphs ask of the kernel compiler, which stands above them. core/compiler defines it.
#pragma once

#include "core/graph/graph.h"

namespace tenon::graph {

// Makes each set of nodes that one kernel can compute one node, `fused`, whose region has them (regions/regions.h).
// Gives what was decided, a line for each decision.
std::string fuse_nodes(Graph* graph);

}  // namespace tenon::graph
