// Legality: whether a set of nodes may be one kernel. Internal to core/codegen.
//
// A kernel runs one body for each index of its spatial axes, in any order and with no word between two of them. So
//   * all reductions have the same spatial axes: those that their results keep; their reduced lengths are equal,
//   * every output has the spatial axes, and no others but such that are as long as reduced ones,
//   * a value that one node makes and another reads is read at the same spatial index; or it is computed where it is
//     read, which only maps of maps can be,
//   * no path leaves the set and comes back (fuse.cpp sees to it, which knows all sets).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/codegen/axes/axes.h"
#include "core/codegen/fuse/fuse.h"
#include "core/graph/graph.h"

namespace tenon::codegen {

// What one kernel would be, or why there is none.
struct Verdict {
  std::string why_not;          // empty: it may be one
  bool axes_differ = false;     // it may be one where more axes are the same
  std::vector<AxisId> spatial;  // sorted
  bool reduces = false;
  std::vector<graph::ValueId> inputs, outputs;
};

// `nodes` are in the order of the program. `wanted` says of one of them whether others need its result.
using Wanted = std::function<bool(graph::NodeId node)>;
Verdict judge(const graph::Graph& graph, const Axes& axes, const std::vector<graph::NodeId>& nodes,
              const Wanted& wanted, const FuseOptions& options);

constexpr int32_t kMostRecomputed = 4;  // additions that cost less than a store and a load

constexpr double kFewItems = 16;           // no device is busy with fewer
constexpr double kManyElements = 1 << 18;  // which one item, or few, compute for long

// The number of elements of `value` at the hints of its sizes; 1 where there are none.
double elements_at_hints(const graph::Graph& graph, graph::ValueId value);

}  // namespace tenon::codegen
