// MinCut: divides nodes into two sides at the least cost, where separating a pair of nodes may have a cost. Internal to
// core/graph/passes.
#pragma once

#include <cstdint>
#include <vector>

#include "core/device/export.h"

namespace tenon::graph {

class TENON_API MinCut {
 public:
  static constexpr uint64_t kNever = UINT64_C(1) << 60;  // a cost that a cut pays only if it must
  static constexpr uint32_t kFirst = 0, kSecond = 1;  // the nodes that are always on the first and on the second side

  MinCut() : edges_(2) {}
  uint32_t add_node();
  // Adds a cost that is paid if `first` is on the first side and `second` is on the second.
  void add_cost(uint32_t first, uint32_t second, uint64_t cost);
  // By node: true if it is on the first side. Of all cheapest cuts, this is the one with the fewest nodes on the first
  // side. Uses up the costs.
  std::vector<bool> run();

 private:
  struct Edge {
    uint32_t to = 0;
    uint32_t back = 0;  // index of the reverse edge in the edges of `to`
    uint64_t rest = 0;  // remaining capacity
  };
  bool find_levels();
  void push_flow();

  std::vector<std::vector<Edge>> edges_;  // indexed by node
  std::vector<uint32_t> levels_;          // by node: 1 + the number of edges with capacity from kFirst; 0: unreachable
};

}  // namespace tenon::graph
