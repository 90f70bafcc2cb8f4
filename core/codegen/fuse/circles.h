// Circles: whether groups of nodes still form a program without circles when two of them become one. Internal to
// core/codegen.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/graph/graph.h"

namespace tenon::codegen {

// Keeps the groups in an order in which each stands behind what it reads, so that a search looks at what stands between
// two groups alone: Pearce and Kelly, "A dynamic topological sort algorithm for directed acyclic graphs" (2006).
class Circles {
 public:
  // Every node of `graph`, which must outlive this and stays as it is, is a group.
  explicit Circles(const graph::Graph& graph);

  // Makes the groups of two nodes one. False, and nothing changes, if a path leads from one to the other through a
  // third group, or if it takes too long to find out.
  bool join(graph::NodeId a, graph::NodeId b);

 private:
  using Group = uint32_t;  // the node that stands for it
  struct Found {
    bool reached = false;  // the end, or the limit
    std::vector<Group> groups;
  };

  Group find(graph::NodeId node) const;
  bool spend(size_t looks);
  // The groups between the two that `from` reaches, or that reach `from`, along other edges than those between both.
  Found search(Group from, Group to, bool forward);
  void neighbours(Group group, bool forward, std::vector<Group>* into);
  void reorder(const std::vector<Group>& before, Group first, Group last, const std::vector<Group>& after);

  const graph::Graph& graph_;
  mutable std::vector<Group> parents_;               // by node
  std::vector<std::vector<graph::NodeId>> members_;  // by group
  std::vector<uint32_t> ranks_;                      // by group: its place in the order
  std::vector<uint32_t> seen_;                       // by group: the last search that met it
  uint32_t searches_ = 0;
  size_t left_ = 0;  // looks at edges that may still be taken
};

}  // namespace tenon::codegen
