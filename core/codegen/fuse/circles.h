// Circles: checks that groups of nodes stay free of cycles when two of them are merged. Internal to core/codegen.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/graph/graph.h"

namespace tenon::codegen {

// Keeps the groups in topological order, so that a search only visits groups between the two: Pearce and Kelly, "A
// dynamic topological sort algorithm for directed acyclic graphs" (2006).
class Circles {
 public:
  // At first every node of `graph` is a group. `graph` must outlive this object and must not change.
  explicit Circles(const graph::Graph& graph);

  // Merges the groups of two nodes. Returns false and changes nothing if a path leads from one to the other through a
  // third group, or if the search takes too long.
  bool join(graph::NodeId a, graph::NodeId b);

 private:
  using Group = uint32_t;  // the node that represents it
  struct Found {
    bool reached = false;  // the target or the limit was reached
    std::vector<Group> groups;
  };

  Group find(graph::NodeId node) const;
  bool spend(size_t looks);
  // The groups between the two that `from` reaches (forward) or that reach `from`, ignoring the edges that join the two
  // directly.
  Found search(Group from, Group to, bool forward);
  void neighbours(Group group, bool forward, std::vector<Group>* into);
  void reorder(const std::vector<Group>& before, Group first, Group last, const std::vector<Group>& after);

  const graph::Graph& graph_;
  mutable std::vector<Group> parents_;               // indexed by node
  std::vector<std::vector<graph::NodeId>> members_;  // indexed by group
  std::vector<uint32_t> ranks_;                      // by group: its position in the order
  std::vector<uint32_t> seen_;                       // by group: the last search that visited it
  uint32_t searches_ = 0;
  size_t left_ = 0;  // number of edges that the search may still visit
};

}  // namespace tenon::codegen
