// Fusion: decides which nodes of a graph become one kernel. Deterministic: it depends on the graph alone.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/device/export.h"
#include "core/graph/graph.h"

namespace tenon::codegen {

struct FuseOptions {
  size_t most_buffers = 32;  // maximum number of inputs and outputs of one kernel
  size_t most_nodes = 128;
  // True: nodes that already run as one launch are not fused alone. False: single nodes are groups too.
  bool only_several = true;
  bool logs = true;  // writes Fusion::log
};

// Nodes that one kernel computes, in program order. A cheap node may be in several groups.
struct FusionGroup {
  std::vector<graph::NodeId> nodes;
  std::vector<graph::ValueId> inputs, outputs;
  bool reduces = false;
};

struct Fusion {
  std::vector<FusionGroup> groups;  // ordered by their last node
  std::string log;                  // one line per decision: "fuse %5 = exp into {%3 = amax, %4 = sub}"
};

// Finds the groups. It adds expressions to the graph's arena and changes nothing else.
TENON_API Fusion find_groups(graph::Graph& graph, const FuseOptions& options = {});

// Number of kernels that run `graph`: its groups, and the nodes outside of them that are not views.
TENON_API size_t kernel_count(const graph::Graph& graph, const Fusion& fusion);

}  // namespace tenon::codegen
