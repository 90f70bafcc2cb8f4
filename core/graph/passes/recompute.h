// Which values of forward are kept for backward, and which backward computes again: chosen by bytes and estimated time.
// Internal to the library.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/device/export.h"
#include "core/graph/graph.h"

namespace tenon::graph {

// Bytes are those of values at hint sizes; constants, held inputs and held outputs have none.
struct RecomputeReport {
  uint64_t saved = 0, saved_before = 0;  // of values that nodes before RecomputeOptions::begin make and others read
  uint64_t live = 0, live_before = 0;    // the largest sum of values that live at one node
  std::string ops = {};                  // what is computed again, by the number of nodes: "3 gelu, layer_norm"
};

struct RecomputeOptions {
  uint64_t limit = 0;                   // bytes that may live at one node; 0: no limit
  NodeId begin = kNoNode;               // the first node of backward; kNoNode: there is none
  bool freely = true;                   // backward computes again what costs next to nothing, limit or not
  std::vector<bool> held_inputs = {};   // by input: its elements are there, whether nodes read them or not
  std::vector<bool> held_outputs = {};  // by output: it is made in memory that was there before
  bool fused = false;                   // maps that read each other become one kernel
  RecomputeReport* report = nullptr;    // may be null
};

// Computes values again before their first reader that comes late, so that they need not live until then. The results
// have the same bits, as nodes have no state: random numbers are inputs, and control flow is never computed twice.
//
// Freely, backward computes again what costs at most a hundredth of the estimated time of the program: maps, norms,
// sums. A limit takes the values that are alive where most bytes are, the cheapest per byte first.
// Errors: invalid_argument, if the limit cannot be met, with the least that was reached.
TENON_API void compute_again(Graph* graph, const RecomputeOptions& options);

}  // namespace tenon::graph
