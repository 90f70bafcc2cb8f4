// Which groups may join: against an exhaustive search of the program.
#include "core/codegen/fuse/circles.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "core/ops/ops.h"
#include "tests/unit/fusion/kernel_counts.h"

namespace tenon::codegen {
namespace {

using graph::NodeId;

class Groups {
 public:
  explicit Groups(const graph::Graph& graph) : graph_(graph) {
    for (NodeId id = graph.first(); id != graph::kNoNode; id = graph.next(id)) {
      nodes.push_back(id);
      of_.resize(id + 1, 0);
      of_[id] = id;
    }
  }

  bool join(NodeId a, NodeId b) {
    const NodeId from = of_[a], to = of_[b];
    if (from == to) return true;
    if (leads(from, to) || leads(to, from)) return false;
    for (NodeId& group : of_) group = group == to ? from : group;
    return true;
  }

  std::vector<NodeId> nodes;

 private:
  // True if a path leads from one group to another through a third one.
  bool leads(NodeId from, NodeId to) const {
    std::vector<bool> seen(of_.size(), false);
    std::vector<NodeId> open{from};
    while (!open.empty()) {
      const NodeId group = open.back();
      open.pop_back();
      for (const NodeId id : nodes) {
        if (of_[id] != group) continue;
        for (const graph::Use& use : graph_[graph_.node(id).results[0]].uses) {
          const NodeId next = of_[use.node];
          if (next == to && group != from) return true;
          if (next == from || next == to || seen[next]) continue;
          seen[next] = true;
          open.push_back(next);
        }
      }
    }
    return false;
  }

  const graph::Graph& graph_;
  std::vector<NodeId> of_;
};

TEST(Circles, AreFoundAsBySearchingEverything) {
  for (uint32_t seed = 0; seed < 60; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](size_t count) { return std::uniform_int_distribution<size_t>(0, count - 1)(random); };
    const graph::Graph graph = record(
        {{{4}}},
        [&](const TensorList& in) {
          TensorList all = in;
          for (int i = 0; i < 30; ++i) {
            const size_t near = all.size() > 8 && below(2) == 0 ? all.size() - 8 : 0;
            all.push_back(add(all[near + below(all.size() - near)], all[below(all.size())]));
          }
          return all;
        },
        Open::nothing);
    Groups expected(graph);
    Circles circles(graph);
    for (int i = 0; i < 80; ++i) {
      const NodeId a = expected.nodes[below(expected.nodes.size())], b = expected.nodes[below(expected.nodes.size())];
      ASSERT_EQ(circles.join(a, b), expected.join(a, b)) << "seed " << seed << ", try " << i;
    }
  }
}

}  // namespace
}  // namespace tenon::codegen
