// Topology: a cluster as a model of its times. Ranks compute at a rate and read memory at a rate; they stand in groups
// (a node), and these in groups of groups (the cluster). An exchange takes time for its steps and time for its bytes.
// As text, a line for the rank and one per level, from inside:
//
//   # eight accelerators to a node, 512 nodes
//   rank: 400 TFLOP/s, 3 TB/s, 80 GB, 4 us       arithmetic; memory: its rate, its size; the start of an op (0)
//   node: 8 ranks, 5 us, 300 GB/s                how many; the time of a step; bytes that a rank sends in a second
//   cluster: 512 nodes, 10 us, 50 GB/s
//
// The quantities of a line stand in any order. Prefixes are powers of 1000. Ranks are numbered from inside: 0 to 7 are
// those of the first node.
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
  int64_t members = 0;   // how many of the level inside, or ranks
  double latency = 0;    // seconds of a step
  double bandwidth = 0;  // bytes per second that a rank sends
};

struct Topology {
  double compute = 0;    // operations per second of a rank
  double bandwidth = 0;  // bytes per second of its memory
  double memory = 0;     // bytes; 0: no limit
  double start = 0;      // seconds that an op takes at least
  std::vector<Level> levels;
  // How many times as long as that ops take here, by name, where it was measured (measure.h); no text has it.
  std::map<std::string, double, std::less<>> paces = {};

  TENON_API int64_t ranks() const;
};

// Errors: invalid_argument, with the line.
TENON_API Topology parse_topology(std::string_view text);
TENON_API std::string to_string(const Topology& topology);

// Where the ranks of one axis of a grid stand: how many groups of the level before are together at each level.
// Groups that do not come out even count as if they did.
class TENON_API Lines {
 public:
  Lines(const Topology& topology, const Dims& grid);

  // What an exchange of `sent` elements, which have so many bytes, takes. With hierarchical exchanges: a gather goes
  // from group to group first, a sum comes back that way, and in all each rank sends what `sent` says. At each level
  // as many steps as halving takes; of an all-to-all one per other rank.
  double seconds(const global::Sent& sent, double bytes) const;
  // Adds to per_level[i] the bytes that cross level i.
  void add_bytes(const global::Sent& sent, double bytes, std::vector<double>* per_level) const;

 private:
  struct Part {
    size_t level = 0;
    double members = 1;                    // > 1
    double share = 0, share_of_pairs = 0;  // of the bytes: of gathers and sums, of an all-to-all
  };
  const Topology& topology_;
  std::vector<std::vector<Part>> parts_;  // by axis of the grid
};

}  // namespace tenon::cluster
