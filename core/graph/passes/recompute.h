// Recompute: chooses by bytes and estimated time which values of forward are kept for backward, and which backward
// computes again. Internal to the library.
#pragma once

#include <cstdint>
#include <string>

#include "core/device/export.h"
#include "core/graph/graph.h"
#include "core/graph/passes/lives.h"

namespace tenon::graph {

// Bytes at hint sizes. Constants, held inputs and held outputs count 0.
struct RecomputeReport {
  // values that nodes before RecomputeOptions::begin compute and later nodes read
  uint64_t saved = 0, saved_before = 0;
  uint64_t live = 0, live_before = 0;  // the most bytes of values that live at one node
  std::string ops = {};                // recomputed ops, by the number of nodes: "3 gelu, layer_norm"
};

struct RecomputeOptions {
  uint64_t limit = 0;      // most bytes that may live at one node; 0: no limit
  NodeId begin = kNoNode;  // the first node of backward; kNoNode: the graph is a whole program
  bool freely = true;      // recomputes values that cost next to nothing, even without a limit
  Held held = {};
  bool fused = false;                 // chains of maps are fused later
  RecomputeReport* report = nullptr;  // may be null
};

// Computes values again before a late reader, so that they need not live until then. The results keep their bits,
// because nodes have no state: random numbers are inputs, and control flow is never computed twice.
//
// With `freely`, values that cost at most 1 % of the estimated time of the program are recomputed: maps, norms, sums.
// In backward this is done if fewer bytes are saved, in a whole program if fewer bytes live at once. With a limit,
// values that live where the most bytes live are recomputed, the cheapest per byte first. Errors: invalid_argument if
// the limit cannot be met, with the least number of bytes that was reached.
TENON_API void compute_again(Graph* graph, const RecomputeOptions& options);

}  // namespace tenon::graph
