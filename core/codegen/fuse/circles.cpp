#include "core/codegen/fuse/circles.h"

#include <algorithm>
#include <utility>

namespace tenon::codegen {
namespace {

using graph::Graph;
using graph::kNoNode;
using graph::NodeId;
using graph::Use;
using graph::ValueId;

// The number of edges that all searches together may visit, so that they take time in proportion to the program.
constexpr size_t kLooksPerNode = 512, kMoreLooks = size_t{1} << 26;

}  // namespace

Circles::Circles(const Graph& graph) : graph_(graph), left_(kMoreLooks + kLooksPerNode * graph.size()) {
  uint32_t rank = 0;
  for (NodeId id = graph.first(); id != kNoNode; id = graph.next(id)) {
    const size_t size = std::max<size_t>(parents_.size(), id + 1);
    parents_.resize(size), members_.resize(size), ranks_.resize(size), seen_.resize(size, 0);
    parents_[id] = id;
    members_[id] = {id};
    ranks_[id] = rank++;
  }
}

Circles::Group Circles::find(NodeId node) const {
  while (parents_[node] != node) node = parents_[node] = parents_[parents_[node]];
  return node;
}

bool Circles::spend(size_t looks) {
  left_ -= std::min(left_, looks);
  return left_ > 0;
}

void Circles::neighbours(Group group, bool forward, std::vector<Group>* into) {
  into->clear();
  for (const NodeId id : members_[group]) {
    if (forward) {
      for (const ValueId made : graph_.node(id).results) {
        for (const Use& use : graph_[made].uses) into->push_back(find(use.node));
      }
      continue;
    }
    for (const ValueId input : graph_.node(id).inputs) {
      if (input != 0 && graph_[input].producer != kNoNode) into->push_back(find(graph_[input].producer));
    }
  }
}

Circles::Found Circles::search(Group from, Group to, bool forward) {
  Found found;
  ++searches_;
  std::vector<Group> open{from}, next;
  while (!open.empty()) {
    const Group group = open.back();
    open.pop_back();
    neighbours(group, forward, &next);
    if (!spend(next.size() + 1)) return {true, {}};
    for (const Group other : next) {
      if (other == to && group != from) return {true, {}};
      const bool between = forward ? ranks_[other] < ranks_[to] : ranks_[other] > ranks_[to];
      if (other == from || other == to || !between || seen_[other] == searches_) continue;
      seen_[other] = searches_;
      found.groups.push_back(other);
      open.push_back(other);
    }
  }
  return found;
}

// Distributes the positions that these groups have: `before` gets the first ones, `after` the last ones, and `last` the
// position between them.
void Circles::reorder(const std::vector<Group>& before, Group first, Group last, const std::vector<Group>& after) {
  std::vector<uint32_t> places{ranks_[first], ranks_[last]};
  std::vector<Group> order = before;
  const auto by_rank = [&](Group a, Group b) { return ranks_[a] < ranks_[b]; };
  std::sort(order.begin(), order.end(), by_rank);
  order.push_back(last);
  order.insert(order.end(), after.begin(), after.end());
  std::sort(order.end() - static_cast<ptrdiff_t>(after.size()), order.end(), by_rank);
  for (const Group group : before) places.push_back(ranks_[group]);
  for (const Group group : after) places.push_back(ranks_[group]);
  std::sort(places.begin(), places.end());
  for (size_t i = 0; i < order.size(); ++i) ranks_[order[i]] = places[i + (i < before.size() ? 0 : 1)];
}

bool Circles::join(NodeId a, NodeId b) {
  Group first = find(a), last = find(b);
  if (first == last) return true;
  if (ranks_[first] > ranks_[last]) std::swap(first, last);
  const Found after = search(first, last, true);
  if (after.reached) return false;
  if (!after.groups.empty()) {
    const Found before = search(last, first, false);
    if (before.reached) return false;
    reorder(before.groups, first, last, after.groups);
  }
  const uint32_t rank = ranks_[last];
  if (members_[first].size() < members_[last].size()) std::swap(first, last);
  members_[first].insert(members_[first].end(), members_[last].begin(), members_[last].end());
  members_[last] = {};
  parents_[last] = first;
  ranks_[first] = rank;
  return true;
}

}  // namespace tenon::codegen
