// The maximum flow equals the cheapest cut: Dinic, "Algorithm for solution of a problem of maximum flow in a network
// with power estimation" (1970). Flow is sent only along shortest paths, until none is left.
#include "core/graph/passes/min_cut.h"

#include <algorithm>

namespace tenon::graph {

uint32_t MinCut::add_node() {
  edges_.emplace_back();
  return static_cast<uint32_t>(edges_.size() - 1);
}

void MinCut::add_cost(uint32_t first, uint32_t second, uint64_t cost) {
  if (cost == 0 || first == second) return;
  edges_[first].push_back({second, static_cast<uint32_t>(edges_[second].size()), std::min(cost, kNever)});
  edges_[second].push_back({first, static_cast<uint32_t>(edges_[first].size() - 1), 0});
}

bool MinCut::find_levels() {
  levels_.assign(edges_.size(), 0);
  levels_[kFirst] = 1;
  std::vector<uint32_t> queue{kFirst};
  for (size_t at = 0; at < queue.size(); ++at) {
    for (const Edge& edge : edges_[queue[at]]) {
      if (edge.rest == 0 || levels_[edge.to] != 0) continue;
      levels_[edge.to] = levels_[queue[at]] + 1;
      queue.push_back(edge.to);
    }
  }
  return levels_[kSecond] != 0;
}

// Sends flow along paths whose levels increase by one, until there is none. A node whose edges are all tried is a dead
// end.
void MinCut::push_flow() {
  std::vector<size_t> tried(edges_.size(), 0);
  std::vector<uint32_t> path{kFirst};
  while (!path.empty()) {
    const uint32_t at = path.back();
    if (at == kSecond) {
      uint64_t least = UINT64_MAX;
      for (size_t i = 0; i + 1 < path.size(); ++i) least = std::min(least, edges_[path[i]][tried[path[i]]].rest);
      for (size_t i = 0; i + 1 < path.size(); ++i) {
        Edge& edge = edges_[path[i]][tried[path[i]]];
        edge.rest -= least;
        edges_[edge.to][edge.back].rest += least;
      }
      path.assign({kFirst});
      continue;
    }
    size_t& next = tried[at];
    while (next < edges_[at].size() &&
           (edges_[at][next].rest == 0 || levels_[edges_[at][next].to] != levels_[at] + 1)) {
      ++next;
    }
    if (next < edges_[at].size()) {
      path.push_back(edges_[at][next].to);
      continue;
    }
    path.pop_back();
    if (!path.empty()) ++tried[path.back()];
  }
}

std::vector<bool> MinCut::run() {
  while (find_levels()) push_flow();
  std::vector<bool> first(edges_.size());
  for (size_t node = 0; node < first.size(); ++node) first[node] = levels_[node] != 0;
  return first;
}

}  // namespace tenon::graph
