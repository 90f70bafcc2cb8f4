// Topology: a model of a cluster's speed. Ranks have a compute rate and a memory rate. They form groups (a node), and
// these form larger groups (the cluster). An exchange takes time per step and time per byte. As text, a topology has
// one line for the rank and one per level, innermost first:
//
//   # eight accelerators to a node, 512 nodes
//   rank: 400 TFLOP/s, 3 TB/s, 80 GB, 4 us       arithmetic; memory: its rate, its size; the start of an op (0)
//   node: 8 ranks, 5 us, 300 GB/s                how many; the time of a step; bytes that a rank sends in a second
//   cluster: 512 nodes, 10 us, 50 GB/s
//
// The quantities of a line may be in any order. Prefixes are powers of 1000. Ranks are numbered from the innermost
// level: 0 to 7 are those of the first node.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/device/export.h"
#include "core/global/moves.h"

namespace tenon::cluster {

struct Level {
  std::string name;      // "node"
  int64_t members = 0;   // members of the next inner level, or ranks
  double latency = 0;    // seconds of a step
  double bandwidth = 0;  // bytes that a rank sends per second
};

struct Topology {
  double compute = 0;    // operations per second of a rank
  double bandwidth = 0;  // bytes of its memory per second
  double memory = 0;     // bytes; 0: no limit
  double start = 0;      // the least seconds that an op takes
  std::vector<Level> levels;
  // Measured time of an op relative to this model, by the op's name (measure.h). Not part of the text form.
  std::map<std::string, double, std::less<>> paces = {};

  TENON_API int64_t ranks() const;
};

// Errors: invalid_argument, which quotes the line.
TENON_API Topology parse_topology(std::string_view text);
TENON_API std::string to_string(const Topology& topology);

// Where the ranks of one axis of a grid are located: at each level, how many groups of the previous level they span.
// Groups that do not divide evenly are treated as if they did.
class TENON_API Lines {
 public:
  Lines(const Topology& topology, const Dims& grid);

  // The seconds of an exchange of `sent` elements, which have `bytes` bytes. Assumes hierarchical exchanges: a gather
  // runs from outer to inner groups, a sum the other way, and in total each rank sends the elements of `sent`. Each
  // level takes as many steps as halving does; an all-to-all takes one step per other rank.
  double seconds(const global::Sent& sent, double bytes) const;
  // Adds to per_level[i] the bytes that cross level i.
  void add_bytes(const global::Sent& sent, double bytes, std::vector<double>* per_level) const;

 private:
  struct Part {
    size_t level = 0;
    double members = 1;                    // > 1
    double share = 0, share_of_pairs = 0;  // fractions of the bytes: for gathers and sums; for an all-to-all
  };
  const Topology& topology_;
  std::vector<std::vector<Part>> parts_;  // by axis of the grid
};

}  // namespace tenon::cluster
