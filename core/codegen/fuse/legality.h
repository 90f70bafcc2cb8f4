// Legality: decides if a set of nodes may be one kernel. Internal to core/codegen.
//
// A kernel runs one body for each index of its spatial axes, in any order and without communication between indices. So
//   * all reductions have the same spatial axes (the axes that their results keep), and their reduced lengths are
//   equal,
//   * every output has the spatial axes, and any other axis it has is as long as a reduced one,
//   * a value that one node makes and another reads is read at the same spatial index; otherwise the reader computes it
//     again, which is only possible for maps of maps,
//   * no path leaves the set and comes back (fuse.cpp checks this, because it knows all sets).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/codegen/axes/axes.h"
#include "core/codegen/fuse/fuse.h"
#include "core/graph/graph.h"

namespace tenon::codegen {

// The kernel that a set of nodes would be, or the reason why it cannot be one.
struct Verdict {
  std::string why_not;          // empty if it may be one
  bool axes_differ = false;     // it may be one if more axes are merged
  std::vector<AxisId> spatial;  // sorted
  bool reduces = false;
  std::vector<graph::ValueId> inputs, outputs;
};

// `nodes` are in program order. `wanted` returns true for a node whose result is needed outside of the set.
using Wanted = std::function<bool(graph::NodeId node)>;
Verdict judge(const graph::Graph& graph, const Axes& axes, const std::vector<graph::NodeId>& nodes,
              const Wanted& wanted, const FuseOptions& options);

constexpr int32_t kMostRecomputed = 4;  // additions that cost less than a store and a load

constexpr double kFewItems = 16;           // fewer items keep no device busy
constexpr double kManyElements = 1 << 18;  // this many elements take long if few items compute them

// Number of elements of `value` at its size hints; 1 if there are no hints.
double elements_at_hints(const graph::Graph& graph, graph::ValueId value);

}  // namespace tenon::codegen
