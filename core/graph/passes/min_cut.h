// MinCut: the cheapest way to put nodes on two sides, where some pairs cost something if they are apart. Internal to
// core/graph/passes.
#pragma once

#include <cstdint>
#include <vector>

#include "core/device/export.h"

namespace tenon::graph {

class TENON_API MinCut {
 public:
  static constexpr uint64_t kNever = UINT64_C(1) << 60;  // a cost that no cut pays if any other is left
  static constexpr uint32_t kFirst = 0, kSecond = 1;     // nodes that are on the first side, and on the second

  MinCut() : edges_(2) {}
  uint32_t add_node();
  // What it costs that `first` is on the first side and `second` on the second.
  void add_cost(uint32_t first, uint32_t second, uint64_t cost);
  // By node: whether it is on the first side. Of all cheapest cuts the one with the fewest nodes there. The costs are
  // used up.
  std::vector<bool> run();

 private:
  struct Edge {
    uint32_t to = 0;
    uint32_t back = 0;  // the edge the other way, among those of `to`
    uint64_t rest = 0;  // what may still flow
  };
  bool find_levels();
  void push_flow();

  std::vector<std::vector<Edge>> edges_;  // by node
  std::vector<uint32_t> levels_;          // by node: 1 + edges from kFirst that have something left; 0: none lead there
};

}  // namespace tenon::graph
