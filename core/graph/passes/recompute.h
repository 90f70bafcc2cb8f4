// Which values of forward are kept for backward, and which backward computes again: chosen by bytes and estimated time.
// Internal to the library.
#pragma once

#include <cstdint>
#include <string>

#include "core/device/export.h"
#include "core/graph/graph.h"
#include "core/graph/passes/lives.h"

namespace tenon::graph {

// Bytes are those of values at hint sizes; constants, held inputs and held outputs have none.
struct RecomputeReport {
  uint64_t saved = 0, saved_before = 0;  // of values that nodes before RecomputeOptions::begin make and others read
  uint64_t live = 0, live_before = 0;    // the largest sum of values that live at one node
  std::string ops = {};                  // what is computed again, by the number of nodes: "3 gelu, layer_norm"
};

struct RecomputeOptions {
  uint64_t limit = 0;      // bytes that may live at one node; 0: no limit
  NodeId begin = kNoNode;  // the first node of backward; kNoNode: the graph is a whole program
  bool freely = true;      // what costs next to nothing is computed again, limit or not
  Held held = {};
  bool fused = false;                 // maps that read each other become one kernel later
  RecomputeReport* report = nullptr;  // may be null
};

// Computes values again before their first reader that comes late, so that they need not live until then. The results
// have the same bits, as nodes have no state: random numbers are inputs, and control flow is never computed twice.
//
// Freely, what costs at most a hundredth of the estimated time of the program is computed again: maps, norms, sums.
// Backward does so where less is saved for it, a whole program where fewer bytes live at once. A limit takes the values
// that are alive where most bytes are, the cheapest per byte first.
// Errors: invalid_argument, if the limit cannot be met, with the least that was reached.
TENON_API void compute_again(Graph* graph, const RecomputeOptions& options);

}  // namespace tenon::graph
