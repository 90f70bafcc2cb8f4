// Fusion: which nodes of a graph become one kernel. Deterministic: it depends on the graph alone.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/device/export.h"
#include "core/graph/graph.h"

namespace tenon::codegen {

struct FuseOptions {
  size_t most_buffers = 32;  // inputs and outputs of one kernel
  size_t most_nodes = 128;
  // Nodes that one launch computes already stay as they are. False: single nodes are groups too.
  bool only_several = true;
  bool logs = true;  // decisions are written down
};

// Nodes that one kernel computes, in the order of the program. A cheap node may be in several groups.
struct FusionGroup {
  std::vector<graph::NodeId> nodes;
  std::vector<graph::ValueId> inputs, outputs;
  bool reduces = false;
};

struct Fusion {
  std::vector<FusionGroup> groups;  // by their last node
  std::string log;                  // each decision, a line: "fuse %5 = exp into {%3 = amax, %4 = sub}"
};

// Changes sizes of the arena only (it makes expressions).
TENON_API Fusion find_groups(graph::Graph& graph, const FuseOptions& options = {});

// How many kernels run `graph`: its groups, and the nodes outside of them that are not views.
TENON_API size_t kernel_count(const graph::Graph& graph, const Fusion& fusion);

}  // namespace tenon::codegen
